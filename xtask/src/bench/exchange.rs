//! One HTTP/1.1 connection by hand: asks, reads the answer to its end, and says when it began to come.
//!
//! A library would hide what is to be measured: the moment of the first byte, and how an answer ends. Knows no contender.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// A slow contender takes this long for its first byte of a million batches.
const SILENCE_LIMIT: Duration = Duration::from_secs(180);
/// What is taken from the socket at once.
const BUFFER_BYTES: usize = 256 << 10;
/// Above the answer with a hundred thousand batches, which is the largest that is held whole.
const BODY_LIMIT_BYTES: u64 = 512 << 20;
const HEADER_LINES_LIMIT: usize = 100;

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
}

/// The status line and the headers.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
}

/// How an answer came whose body went elsewhere.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) head: Head,
    pub(crate) body_bytes: u64,
    /// From the request to the first byte of the body.
    pub(crate) first_byte: Duration,
}

/// An open connection, kept alive between requests.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Request {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self { method: "GET", path: path.into(), ..Self::default() }
    }

    /// The same with one more header.
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// The same with a bearer token; without one if there is none.
    pub(crate) fn with_token(self, token: &str) -> Self {
        if token.is_empty() { self } else { self.with("authorization", format!("Bearer {token}")) }
    }

    fn text(&self) -> String {
        let Self { method, path, headers, body } = self;
        let mut text = format!("{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n");
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            text.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        text + "\r\n" + body
    }
}

impl Head {
    /// A header's value; names are compared in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Connection {
    /// Connects to a port of loopback.
    pub(crate) fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("nobody listens")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_LIMIT))?;
        Ok(Self { stream: BufReader::with_capacity(BUFFER_BYTES, stream) })
    }

    /// Asks and reads the whole answer into memory.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<Answer> {
        let mut body = Vec::new();
        let arrival = self.pour(request, &mut Bounded { bytes: &mut body })?;
        Ok(Answer { head: arrival.head, body })
    }

    /// Asks and pours the body into a sink as it comes. An answer that breaks off is an error.
    pub(crate) fn pour(&mut self, request: &Request, sink: &mut dyn Write) -> Result<Arrival> {
        let begun = Instant::now();
        self.stream.get_mut().write_all(request.text().as_bytes())?;
        let head = self.head().with_context(|| format!("no answer to {}", request.path))?;
        let mut body = Body { stream: &mut self.stream, sink, begun, bytes: 0, first_byte: None };
        body.read(&head).with_context(|| format!("the answer to {} broke off", request.path))?;
        let (body_bytes, first_byte) = (body.bytes, body.first_byte);
        Ok(Arrival { head, body_bytes, first_byte: first_byte.unwrap_or_else(|| begun.elapsed()) })
    }

    fn head(&mut self) -> Result<Head> {
        let first = line(&mut self.stream)?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.with_context(|| format!("`{first}` is no status line"))?;
        let mut head = Head { status, headers: Vec::new() };
        for _ in 0..HEADER_LINES_LIMIT {
            let text = line(&mut self.stream)?;
            if text.is_empty() {
                return Ok(head);
            }
            let (name, value) = text.split_once(':').with_context(|| format!("`{text}` is no header"))?;
            head.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        bail!("more than {HEADER_LINES_LIMIT} headers")
    }
}

/// A body on its way from the socket to a sink.
struct Body<'a> {
    stream: &'a mut BufReader<TcpStream>,
    sink: &'a mut dyn Write,
    begun: Instant,
    bytes: u64,
    first_byte: Option<Duration>,
}

impl Body<'_> {
    fn read(&mut self, head: &Head) -> Result<()> {
        if head.status == 304 || head.status == 204 {
            return Ok(());
        }
        if head.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            return self.chunks();
        }
        let length = head.header("content-length").context("neither chunked nor of a known length")?;
        self.take(length.parse().context("the length is no number")?)
    }

    /// Up to the chunk of no length, which alone says that the answer is whole.
    fn chunks(&mut self) -> Result<()> {
        loop {
            let size = line(self.stream)?;
            let digits = size.split(';').next().unwrap_or_default().trim();
            let length =
                u64::from_str_radix(digits, 16).with_context(|| format!("`{size}` is no chunk size"))?;
            self.take(length)?;
            if !line(self.stream)?.is_empty() {
                bail!("a chunk is longer than it says");
            }
            if length == 0 {
                return Ok(());
            }
        }
    }

    fn take(&mut self, length: u64) -> Result<()> {
        let mut left = length;
        while left > 0 {
            let buffer = self.stream.fill_buf()?;
            if buffer.is_empty() {
                bail!("it ended {left} bytes too early");
            }
            self.first_byte.get_or_insert_with(|| self.begun.elapsed());
            let taken = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            self.sink.write_all(&buffer[..taken])?;
            self.stream.consume(taken);
            left -= taken as u64;
            self.bytes += taken as u64;
        }
        Ok(())
    }
}

/// Memory for a body, with an end.
struct Bounded<'a> {
    bytes: &'a mut Vec<u8>,
}

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() as u64 + bytes.len() as u64 > BODY_LIMIT_BYTES {
            return Err(std::io::Error::other("the body is too long to be held"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A line without its end.
fn line(stream: &mut BufReader<TcpStream>) -> Result<String> {
    let mut text = String::new();
    if stream.read_line(&mut text)? == 0 {
        bail!("the connection was closed");
    }
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// What a server that sends these bytes is understood to say.
    fn told(bytes: &'static str) -> Result<Answer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while line(&mut reader).is_ok_and(|line| !line.is_empty()) {}
            stream.write_all(bytes.as_bytes()).unwrap();
        });
        let answer = Connection::open(port).unwrap().ask(&Request::get("/"));
        server.join().unwrap();
        answer
    }

    #[test]
    fn an_answer_of_known_length_and_one_in_chunks_are_read_whole() {
        let answer = told("HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 3\r\n\r\nabc").unwrap();
        assert_eq!((answer.head.status, answer.body.as_slice()), (200, b"abc".as_slice()));
        assert_eq!(answer.head.header("etag"), Some("\"a\""));
        let answer =
            told("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\n");
        assert_eq!(answer.unwrap().body, b"abc");
    }

    #[test]
    fn an_answer_that_breaks_off_is_an_error() {
        for text in [
            "",
            "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\nabc",
        ] {
            assert!(told(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_unchanged_answer_has_no_body() {
        assert_eq!(told("HTTP/1.1 304 Not Modified\r\n\r\n").unwrap().body, b"");
    }

    #[test]
    fn a_request_is_written_as_it_goes_out() {
        let request = Request { method: "POST", path: "/a".into(), body: "x=1".into(), ..Request::default() };
        let text = request.with_token("t").with_token("").text();
        assert_eq!(
            text,
            "POST /a HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer t\r\ncontent-length: 3\r\n\r\nx=1"
        );
    }
}
