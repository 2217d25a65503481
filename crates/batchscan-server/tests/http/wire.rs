//! Raw connections, for what a client library would not send.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::http::app::TestApp;
use crate::http::reply::Reply;

/// No raw answer of these tests takes longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection, and what was received on it and not yet looked at.
pub(crate) struct Wire {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Wire {
    pub(crate) async fn open(app: &TestApp) -> Self {
        Self { stream: TcpStream::connect(app.address()).await.unwrap(), received: Vec::new() }
    }

    /// Opens, sends, and reads the one answer.
    pub(crate) async fn ask(app: &TestApp, bytes: impl AsRef<[u8]>) -> Reply {
        let mut wire = Self::open(app).await;
        wire.send(bytes).await;
        wire.answer().await
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends if the other side still takes it.
    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    /// The next answer, whose body is as long as its `Content-Length` says, or none.
    pub(crate) async fn answer(&mut self) -> Reply {
        let (status, headers) = self.head().await;
        let length =
            headers.get("content-length").map_or(0, |value| value.to_str().unwrap().parse().unwrap());
        while self.received.len() < length {
            assert!(self.receive().await, "the connection ended in the middle of a body");
        }
        Reply { status, headers, body: self.received.drain(..length).collect() }
    }

    /// The next answer's status and headers.
    pub(crate) async fn head(&mut self) -> (u16, HeaderMap) {
        let end = loop {
            if let Some(at) = self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.receive().await, "the connection ended without an answer");
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

    /// At least so many bytes more, or what there is before the other side ends the connection.
    pub(crate) async fn some(&mut self, bytes: usize) -> Vec<u8> {
        while self.received.len() < bytes && self.receive().await {}
        std::mem::take(&mut self.received)
    }

    /// What else comes until the other side ends the connection, in whatever way.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        while self.receive().await {}
        std::mem::take(&mut self.received)
    }

    /// Whether the other side ends the connection within that time, and sends nothing before.
    pub(crate) async fn is_closed_within(&mut self, time: Duration) -> bool {
        let more = tokio::time::timeout(time, self.receive()).await;
        more == Ok(false) && self.received.is_empty()
    }

    async fn receive(&mut self) -> bool {
        let mut bytes = [0u8; 16 * 1024];
        let read =
            tokio::time::timeout(PATIENCE, self.stream.read(&mut bytes)).await.expect("an answer in time");
        // A reset is an end too.
        let count = read.unwrap_or(0);
        self.received.extend_from_slice(&bytes[..count]);
        count > 0
    }
}
