//! An HTTP/1.1 server with the responses of a test. Records the requests. One request per connection.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its servers too")]

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::http;

/// A request as received.
#[derive(Clone, Debug)]
pub struct Request {
    /// Such as `GET`.
    pub method: String,
    /// The path and the query.
    pub target: String,
    /// The decoded query.
    pub query: Vec<(String, String)>,
    /// The request line and the headers.
    pub head: String,
    /// Without it: empty.
    pub body: Vec<u8>,
}

/// A response to send.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its code.
    pub status: u16,
    /// In addition to those for the length of the body.
    pub headers: Vec<(String, String)>,
    /// Before it is framed.
    pub body: Vec<u8>,
    framing: Framing,
    /// How many bytes at the end are not sent.
    missing: usize,
    delay: Duration,
}

/// How the client detects the end of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `Content-Length`.
    Length,
    /// Two chunks.
    Chunked,
    /// The end of the connection.
    UntilClose,
    /// The body is repeated forever.
    Endless,
    /// The body without a head.
    Raw,
    /// Nothing is sent until the client closes the connection.
    Silent,
}

/// A server that runs until it is dropped. Then connections are refused.
#[derive(Debug)]
pub struct ScriptedServer {
    /// Where it listens.
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    is_stopped: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Request {
    /// The value of the first header with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        http::header(&self.head, name)
    }

    /// The target without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The decoded form in the body.
    pub fn form(&self) -> Vec<(String, String)> {
        form_urlencoded::parse(&self.body).into_owned().collect()
    }

    /// Everything that was received.
    pub fn text(&self) -> String {
        self.head.clone() + &String::from_utf8_lossy(&self.body)
    }
}

impl Response {
    /// A response with a `Content-Length`.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let (framing, missing, delay) = (Framing::Length, 0, Duration::ZERO);
        Self { status, headers: Vec::new(), body: body.into(), framing, missing, delay }
    }

    /// A response in JSON.
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::new(status, body.to_string()).with("Content-Type", "application/json")
    }

    /// An error in the form of the API.
    pub fn error(status: u16, detail: &str) -> Self {
        Self::json(status, &serde_json::json!({ "detail": detail }))
    }

    /// Closes the connection without a response.
    pub fn none() -> Self {
        Self::raw("")
    }

    /// Sends this instead of HTTP.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(0, bytes).framed(Framing::Raw)
    }

    /// Adds a header.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Replaces the `Content-Length`.
    pub fn framed(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Leaves out the last bytes.
    pub fn truncated(mut self, bytes: usize) -> Self {
        self.missing = bytes;
        self
    }

    /// Waits before it is sent.
    pub fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head().into_bytes();
        if self.framing == Framing::Chunked {
            for half in <[&[u8]; 2]>::from(self.body.split_at(self.body.len() / 2)) {
                bytes.extend_from_slice(format!("{:x}\r\n", half.len()).as_bytes());
                bytes.extend_from_slice(half);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        } else {
            bytes.extend_from_slice(&self.body);
        }
        bytes.truncate(bytes.len() - self.missing);
        bytes
    }

    fn head(&self) -> String {
        let mut head = format!("HTTP/1.1 {} Scripted\r\nConnection: close\r\n", self.status);
        match self.framing {
            Framing::Raw => return String::new(),
            Framing::Length if self.status != 304 => {
                write!(head, "Content-Length: {}\r\n", self.body.len()).unwrap();
            }
            Framing::Chunked => head.push_str("Transfer-Encoding: chunked\r\n"),
            _ => {}
        }
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        head + "\r\n"
    }
}

/// Returns the responses in order, and a 418 when there are no more.
pub fn in_order(
    responses: impl IntoIterator<Item = Response>,
) -> impl Fn(&Request) -> Response + Send + Sync + 'static {
    let responses = Mutex::new(responses.into_iter().collect::<VecDeque<_>>());
    move |_| {
        let next = responses.lock().unwrap().pop_front();
        next.unwrap_or_else(|| Response::error(418, "the scripted server has no more responses"))
    }
}

impl ScriptedServer {
    /// Sends what the handler returns.
    pub fn start(handler: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        Self::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), handler)
    }

    /// The same at a known address.
    pub fn at(address: SocketAddr, handler: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let record = requests.clone();
        Self::listen(address, requests, move |stream| {
            let Some(request) = read(&stream) else { return };
            let response = handler(&request);
            let is_head = request.method == "HEAD";
            record.lock().unwrap().push(request);
            send(stream, &response, is_head);
        })
    }

    /// Sends this text to each connection before any request.
    pub fn greeting(text: &'static str) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self::listen(address, Arc::default(), move |mut stream| {
            let _ = stream.write_all(text.as_bytes());
            let _ = stream.shutdown(Shutdown::Write);
        })
    }

    /// A thread per connection.
    fn listen(
        address: SocketAddr,
        requests: Arc<Mutex<Vec<Request>>>,
        serve: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let (serve, is_stopped) = (Arc::new(serve), Arc::new(AtomicBool::new(false)));
        let is_over = is_stopped.clone();
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let serve = serve.clone();
                std::thread::spawn(move || serve(stream));
            }
        });
        Self { address, requests, is_stopped, accepting: Some(accepting) }
    }

    /// Its address for clients.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        // Ends the wait for a connection.
        let _ = TcpStream::connect(self.address);
        let _ = self.accepting.take().map(JoinHandle::join);
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut words = head.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let mut body = vec![0; http::header(&head, "content-length").map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, target, query, head, body })
}

/// The client may close the connection early.
fn send(mut stream: TcpStream, response: &Response, is_head: bool) {
    std::thread::sleep(response.delay);
    let bytes = match response.framing {
        Framing::Silent => {
            let _ = stream.read(&mut [0]);
            return;
        }
        _ if is_head => response.head().into_bytes(),
        _ => response.bytes(),
    };
    if stream.write_all(&bytes).is_err() {
        return;
    }
    while response.framing == Framing::Endless && stream.write_all(&response.body).is_ok() {}
    let _ = stream.shutdown(Shutdown::Write);
}
