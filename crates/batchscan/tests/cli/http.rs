//! HTTP/1.1 over a socket, for exact requests and slow readers.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::program::HANG_LIMIT;
use crate::service::Service;
use crate::site::Credential;

/// Longer than the limits of the service.
const RESPONSE_LIMIT: Duration = HANG_LIMIT;

/// A complete response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// The body as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// A header; the name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// The body. Fails unless the status is 200.
    #[track_caller]
    pub(crate) fn ok(self) -> Vec<u8> {
        assert_eq!(self.status, 200, "{} {}", self.head, String::from_utf8_lossy(&self.body));
        self.body
    }
}

/// Sends a request. The head is without its blank line and `Host`.
pub(crate) fn send(service: &Service, head: &str, body: &str) -> Body {
    let stream = TcpStream::connect(service.address()).unwrap();
    stream.set_read_timeout(Some(RESPONSE_LIMIT)).unwrap();
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let request = format!("{head}\r\nHost: {}\r\nConnection: close\r\n{length}\r\n{body}", service.address());
    (&stream).write_all(request.as_bytes()).unwrap();
    Body::begin(stream).unwrap()
}

/// Sends a request and reads the response.
pub(crate) fn request(service: &Service, head: &str, body: &str) -> Response {
    send(service, head, body).read_all().unwrap()
}

/// `GET` with a bearer token.
pub(crate) fn get(service: &Service, target: &str, token: &str) -> Response {
    request(service, &get_head(target, token), "")
}

/// The head of a `GET` with a bearer token.
pub(crate) fn get_head(target: &str, token: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nAuthorization: Bearer {token}")
}

/// Requests a token.
pub(crate) fn auth(service: &Service, credential: &Credential) -> Response {
    let Credential { id, secret } = credential;
    let form = format!("grant_type=client_credentials&client_id={id}&client_secret={secret}");
    request(service, "POST /v2/auth HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded", &form)
}

/// A token. Fails if the service rejects the credential.
#[track_caller]
pub(crate) fn token(service: &Service, credential: &Credential) -> String {
    let body: Value = serde_json::from_slice(&auth(service, credential).ok()).unwrap();
    body["access_token"].as_str().unwrap().to_owned()
}

/// A response whose body is read on demand. A truncated body is an error.
pub(crate) struct Body {
    stream: BufReader<TcpStream>,
    head: String,
    left: Left,
}

/// The rest of the body.
enum Left {
    Bytes(u64),
    /// The rest of a chunk, then more chunks.
    Chunk(u64),
    Nothing,
}

impl Body {
    fn begin(stream: TcpStream) -> Result<Self, Error> {
        let mut stream = BufReader::with_capacity(256 * 1024, stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        let length = header(&head, "content-length").map(|length| length.parse().unwrap());
        let left = match length {
            Some(length) => Left::Bytes(length),
            None if header(&head, "transfer-encoding") == Some("chunked") => Left::Chunk(0),
            None => Left::Nothing,
        };
        Ok(Self { stream, head, left })
    }

    /// The rest of the body.
    pub(crate) fn rest(&mut self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn read_all(mut self) -> Result<Response, Error> {
        let body = self.rest()?;
        let status = self.head.split(' ').nth(1).unwrap().parse().unwrap();
        Ok(Response { status, head: self.head, body })
    }

    /// The length of the next chunk; 0 at the end.
    fn next_chunk(&mut self) -> Result<u64, Error> {
        let mut line = String::new();
        // The previous chunk ends with a line end.
        while line.trim().is_empty() {
            if self.stream.read_line(&mut line)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(u64::from_str_radix(line.trim(), 16).unwrap())
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
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
        let wanted = buffer.len().min(usize::try_from(*left).unwrap());
        match self.stream.read(&mut buffer[..wanted])? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            bytes => {
                *left -= bytes as u64;
                Ok(bytes)
            }
        }
    }
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(field, _)| *field == name)
        .map(|(_, value)| value)
}
