//! An HTTP/1.1 client over a socket, for exact requests and slow readers. A truncated body is an error. One request per
//! connection.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde_json::Value;

/// Above every limit of the service and of a balancer. Only to prevent hanging.
const READ_TIMEOUT: Duration = Duration::from_secs(300);

/// A complete response.
#[derive(Debug)]
pub struct Reply {
    /// Its code.
    pub status: u16,
    /// The status line and the headers.
    pub head: String,
    /// Without its chunks.
    pub body: Vec<u8>,
}

/// Sends a request. The head is without `Host`, `Content-Length` and its blank line.
pub fn send(address: impl ToSocketAddrs, head: &str, body: &str) -> Result<Body> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let request = format!("{head}\r\nHost: localhost\r\nConnection: close\r\n{length}\r\n{body}");
    // A service may respond before it has read everything, and close the connection.
    let _ = stream.write_all(request.as_bytes());
    Body::begin(stream)
}

/// Sends a request and reads the response.
pub fn request(address: impl ToSocketAddrs, head: &str, body: &str) -> Result<Reply> {
    send(address, head, body)?.read_all()
}

/// `GET` with a bearer token.
pub fn get(address: impl ToSocketAddrs, target: &str, token: &str) -> Result<Reply> {
    request(address, &get_head(target, token), "")
}

/// The head of a `GET` with a bearer token.
pub fn get_head(target: &str, token: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nAuthorization: Bearer {token}")
}

/// Requests a token. Neither id nor secret may contain a character that a form escapes.
pub fn request_token(address: impl ToSocketAddrs, client_id: &str, client_secret: &str) -> Result<Reply> {
    let form = format!("grant_type=client_credentials&client_id={client_id}&client_secret={client_secret}");
    request(address, "POST /v2/auth HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded", &form)
}

impl Reply {
    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The value of the first header with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// The body. Fails unless the status is 200.
    #[track_caller]
    pub fn ok(self) -> Vec<u8> {
        assert_eq!(self.status, 200, "{} {}", self.head, String::from_utf8_lossy(&self.body));
        self.body
    }

    /// The token in the response to a request for one.
    pub fn token(&self) -> Option<String> {
        let body: Value = serde_json::from_slice(&self.body).ok()?;
        body["access_token"].as_str().map(str::to_owned)
    }
}

/// A response whose body is read on demand.
#[derive(Debug)]
pub struct Body {
    /// The code of the response.
    pub status: u16,
    stream: BufReader<TcpStream>,
    head: String,
    left: Left,
}

/// The rest of the body.
#[derive(Debug)]
enum Left {
    Bytes(u64),
    /// The rest of a chunk, then more chunks.
    Chunk(u64),
    Nothing,
}

impl Body {
    fn begin(stream: TcpStream) -> Result<Self> {
        let mut stream = BufReader::with_capacity(256 * 1024, stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = code.ok_or_else(|| Error::other(format!("not HTTP: {head}")))?;
        let length = header(&head, "content-length").and_then(|length| length.parse().ok());
        let left = match length {
            _ if status == 304 => Left::Nothing,
            Some(length) => Left::Bytes(length),
            None if header(&head, "transfer-encoding") == Some("chunked") => Left::Chunk(0),
            None => Left::Nothing,
        };
        Ok(Self { status, stream, head, left })
    }

    /// The rest of the body.
    pub fn rest(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn read_all(mut self) -> Result<Reply> {
        let body = self.rest()?;
        Ok(Reply { status: self.status, head: self.head, body })
    }

    /// The length of the next chunk; 0 at the end.
    fn next_chunk(&mut self) -> Result<u64> {
        let mut line = String::new();
        // The previous chunk ends with a line end.
        while line.trim().is_empty() {
            if self.stream.read_line(&mut line)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        u64::from_str_radix(line.trim(), 16).map_err(Error::other)
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if let Left::Chunk(0) = self.left {
            self.left = match self.next_chunk()? {
                0 => Left::Nothing,
                length => Left::Chunk(length),
            };
        }
        let left = match &mut self.left {
            Left::Bytes(0) | Left::Nothing => return Ok(0),
            Left::Bytes(left) | Left::Chunk(left) => left,
        };
        let wanted = buffer.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
        match self.stream.read(&mut buffer[..wanted])? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            bytes => {
                *left -= bytes as u64;
                Ok(bytes)
            }
        }
    }
}

/// The value of the first header with this name, in the head of a request or a response.
pub(crate) fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut headers = head.lines().filter_map(|line| line.split_once(": "));
    headers.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}
