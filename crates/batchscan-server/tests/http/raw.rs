//! Raw connections, for requests that a client library does not send.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{HANG_LIMIT, Reply, TestApp};

/// A connection, and the received bytes that were not consumed yet.
pub(crate) struct Raw {
    stream: TcpStream,
    received: Vec<u8>,
    pub(crate) was_reset: bool,
}

impl Raw {
    pub(crate) async fn connect(app: &TestApp) -> Self {
        Self::connect_to(app.address()).await
    }

    /// Connects to the operator's address.
    pub(crate) async fn connect_to_operator(app: &TestApp) -> Self {
        Self::connect_to(app.operator_url.as_ref().unwrap().trim_start_matches("http://")).await
    }

    async fn connect_to(address: &str) -> Self {
        Self { stream: TcpStream::connect(address).await.unwrap(), received: Vec::new(), was_reset: false }
    }

    /// Connects, sends, and reads one response.
    pub(crate) async fn request(app: &TestApp, bytes: impl AsRef<[u8]>) -> Reply {
        Self::sending(app, bytes).await.response().await
    }

    /// Connects and sends.
    pub(crate) async fn sending(app: &TestApp, bytes: impl AsRef<[u8]>) -> Self {
        let mut raw = Self::connect(app).await;
        raw.send(bytes).await;
        raw
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends, unless the other side has closed the connection.
    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Closes the sending half.
    pub(crate) async fn half_close(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Closes the connection with a reset.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }

    /// The next response, with a body of `Content-Length` bytes.
    pub(crate) async fn response(&mut self) -> Reply {
        let (status, headers) = self.head().await;
        let length =
            headers.get("content-length").map_or(0, |value| value.to_str().unwrap().parse().unwrap());
        while self.received.len() < length {
            assert!(self.receive().await, "the connection ended within a body");
        }
        Reply { status, headers, body: self.received.drain(..length).collect() }
    }

    /// Status and headers of the next response.
    pub(crate) async fn head(&mut self) -> (u16, HeaderMap) {
        let end = loop {
            if let Some(at) = self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.receive().await, "the connection ended without a response");
        };
        let head: Vec<u8> = self.received.drain(..end).collect();
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        (status, lines.map(header).collect())
    }

    /// At least this many bytes, or fewer if the connection ends.
    pub(crate) async fn read_some(&mut self, bytes: usize) -> Vec<u8> {
        while self.received.len() < bytes && self.receive().await {}
        std::mem::take(&mut self.received)
    }

    /// Everything up to the end of the connection.
    pub(crate) async fn read_rest(&mut self) -> Vec<u8> {
        self.read_some(usize::MAX).await
    }

    /// Whether the other side closes the connection within this time without sending anything.
    pub(crate) async fn is_closed_within(&mut self, time: Duration) -> bool {
        let more = tokio::time::timeout(time, self.receive()).await;
        more == Ok(false) && self.received.is_empty()
    }

    async fn receive(&mut self) -> bool {
        let mut bytes = [0u8; 16 * 1024];
        let read = tokio::time::timeout(HANG_LIMIT, self.stream.read(&mut bytes)).await.expect("timed out");
        // A reset also ends the connection.
        self.was_reset |= read.is_err();
        let count = read.unwrap_or(0);
        self.received.extend_from_slice(&bytes[..count]);
        count > 0
    }
}

/// A `GET` with a bearer token and more header lines.
pub(crate) fn get_head(path: &str, token: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n{more}\r\n")
}
