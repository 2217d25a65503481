//! An HTTP/1.1 client for loopback that keeps its connection and detects responses that were cut off.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Longer than the service or the balancer takes to report that it cannot answer, also on a slow machine.
const READ_TIMEOUT: Duration = Duration::from_secs(120);
/// What a slow reader reads between two pauses.
const PORTION_BYTES: usize = 16 << 10;

/// A client id and its secret.
#[derive(Clone, Debug)]
pub(crate) struct Credential {
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
}

/// A whole response.
#[derive(Debug, Default)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) etag: Option<String>,
    pub(crate) request_id: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// Why there is no whole response.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Set if the response had started.
    pub(crate) request_id: Option<String>,
    pub(crate) reason: String,
}

/// A client with one connection to a port on loopback.
#[derive(Debug)]
pub(crate) struct Client {
    port: u16,
    connection: Option<BufReader<TcpStream>>,
    /// How long a slow reader pauses after every portion of a body.
    pub(crate) pause: Duration,
}

impl Client {
    pub(crate) fn new(port: u16) -> Self {
        Self { port, connection: None, pause: Duration::ZERO }
    }

    /// Sends a GET request; an empty token or etag is left out.
    pub(crate) fn get(&mut self, path: &str, token: &str, etag: &str) -> Result<Response, Failure> {
        let mut message = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n");
        for (name, value) in [("authorization: Bearer", token), ("if-none-match:", etag)] {
            if !value.is_empty() {
                message += &format!("{name} {value}\r\n");
            }
        }
        self.exchange(&(message + "\r\n"))
    }

    /// Requests a token and returns whatever comes back.
    pub(crate) fn request_token(&mut self, credential: &Credential) -> Result<Response, Failure> {
        let Credential { client_id, client_secret } = credential;
        // Neither contains a character that a form would escape.
        let form =
            format!("grant_type=client_credentials&client_id={client_id}&client_secret={client_secret}");
        self.exchange(&format!(
            "POST /v2/auth HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/x-www-form-urlencoded\r\n\
             content-length: {}\r\n\r\n{form}",
            form.len()
        ))
    }

    /// A token, or an error.
    pub(crate) fn token(&mut self, credential: &Credential) -> Result<String> {
        let response = self.request_token(credential).map_err(|failure| anyhow::anyhow!(failure.reason))?;
        let body = String::from_utf8_lossy(&response.body);
        if response.status != 200 {
            bail!("no token: {} {body}", response.status);
        }
        token_in(&response.body).with_context(|| format!("no access_token in {body}"))
    }

    /// The body of a path that needs no token, if its status is 200.
    pub(crate) fn text(&mut self, path: &str) -> Option<String> {
        let response = self.get(path, "", "").ok().filter(|response| response.status == 200)?;
        String::from_utf8(response.body).ok()
    }

    /// The connection is kept only after a whole response.
    fn exchange(&mut self, message: &str) -> Result<Response, Failure> {
        let mut response = Response::default();
        let result = self.connect().and_then(|mut connection| {
            connection.get_mut().write_all(message.as_bytes())?;
            let is_kept = read_response(&mut connection, &mut response, self.pause)?;
            self.connection = is_kept.then_some(connection);
            Ok(())
        });
        match result {
            Ok(()) => Ok(response),
            Err(error) => {
                let reason = format!("status {}, {error}", response.status);
                Err(Failure { request_id: response.request_id, reason })
            }
        }
    }

    fn connect(&mut self) -> std::io::Result<BufReader<TcpStream>> {
        if let Some(connection) = self.connection.take() {
            return Ok(connection);
        }
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        Ok(BufReader::new(stream))
    }
}

/// The part of a request id that identifies the process.
pub(crate) fn process_id(request_id: &str) -> &str {
    request_id.split('-').next().unwrap_or_default()
}

/// The token in a response.
pub(crate) fn token_in(body: &[u8]) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    body["access_token"].as_str().map(str::to_owned)
}

/// Fills in the response as far as it comes. Returns whether the connection stays open.
fn read_response(
    reader: &mut impl BufRead,
    response: &mut Response,
    pause: Duration,
) -> std::io::Result<bool> {
    let status_line = read_line(reader)?;
    response.status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
    // Without a length the body is chunked. A 304 has no body.
    let (mut length, mut is_kept) = ((response.status == 304).then_some(0), true);
    loop {
        let line = read_line(reader)?;
        let Some((name, value)) = line.split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "etag" => response.etag = Some(value.to_owned()),
            "x-request-id" => response.request_id = Some(value.to_owned()),
            "content-length" if length.is_none() => length = value.parse().ok(),
            "connection" => is_kept = value != "close",
            _ => {}
        }
    }
    if let Some(length) = length {
        read_bytes(reader, length, pause, &mut response.body)?;
        return Ok(is_kept);
    }
    loop {
        let length = usize::from_str_radix(&read_line(reader)?, 16)
            .map_err(|_| Error::new(ErrorKind::InvalidData, "invalid chunk size"))?;
        read_bytes(reader, length, pause, &mut response.body)?;
        read_line(reader)?;
        if length == 0 {
            return Ok(is_kept);
        }
    }
}

fn read_bytes(
    reader: &mut impl Read,
    mut length: usize,
    pause: Duration,
    body: &mut Vec<u8>,
) -> std::io::Result<()> {
    while length > 0 {
        let portion = if pause.is_zero() { length } else { length.min(PORTION_BYTES) };
        if reader.by_ref().take(portion as u64).read_to_end(body)? < portion {
            return Err(Error::new(ErrorKind::UnexpectedEof, "connection closed in the body"));
        }
        length -= portion;
        std::thread::sleep(pause);
    }
    Ok(())
}

fn read_line(reader: &mut impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(Error::new(ErrorKind::UnexpectedEof, "connection closed"));
    }
    Ok(line.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_responses_are_read_and_cut_ones_are_errors() {
        let read = |text: &str| {
            let mut response = Response::default();
            let is_kept = read_response(&mut text.as_bytes(), &mut response, Duration::ZERO).ok()?;
            Some((response.status, String::from_utf8(response.body).unwrap(), is_kept))
        };
        for (text, expected) in [
            ("200 OK\r\nContent-Length: 3\r\n\r\nabcd", Some((200, "abc", true))),
            ("200 OK\r\nte: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", Some((200, "abc", true))),
            ("304 Not Modified\r\ncontent-length: 9\r\n\r\n", Some((304, "", true))),
            ("503 No\r\nconnection: close\r\ncontent-length: 1\r\n\r\na", Some((503, "a", false))),
            ("200 OK\r\n", None),
            ("200 OK\r\ncontent-length: 3\r\n\r\nab", None),
            ("200 OK\r\nte: chunked\r\n\r\n2\r\nab\r\n", None),
            ("200 OK\r\nte: chunked\r\n\r\n5\r\nab", None),
        ] {
            let expected = expected.map(|(status, body, is_kept)| (status, body.to_owned(), is_kept));
            assert_eq!(read(&format!("HTTP/1.1 {text}")), expected, "{text}");
        }
        assert_eq!(process_id("2dcf2a7a-15"), "2dcf2a7a");
    }
}
