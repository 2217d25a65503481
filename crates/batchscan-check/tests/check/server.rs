//! A minimal HTTP/1.1 server: one request per connection, one thread per connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// A request as received.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// A response to send.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// A wrong `Content-Length`.
    pub(crate) content_length: Option<usize>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.as_str())
    }
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), content_length: None }
    }

    pub(crate) fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::new(status, body.to_string()).with("Content-Type", "application/json")
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// Serves on a free port until the process ends, and returns the base URL. Where `handler` returns `None`, the
/// connection stays open without a response.
pub(crate) fn serve(handler: impl Fn(Request) -> Option<Reply> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let handler = Arc::new(handler);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, handler) = (stream.unwrap(), Arc::clone(&handler));
            std::thread::spawn(move || respond(stream, &*handler));
        }
    });
    url
}

fn respond(mut stream: TcpStream, handler: &dyn Fn(Request) -> Option<Reply>) {
    let Some(request) = read_request(&stream) else { return };
    let is_head = request.method == "HEAD";
    let Some(reply) = handler(request) else { return std::mem::forget(stream) };
    let mut head = format!("HTTP/1.1 {} Mock\r\nConnection: close\r\n", reply.status);
    if reply.status != 304 {
        let length = reply.content_length.unwrap_or(reply.body.len());
        head.push_str(&format!("Content-Length: {length}\r\n"));
    }
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let _ = stream.write_all(head.as_bytes());
    if !is_head {
        let _ = stream.write_all(&reply.body);
    }
}

fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    lines.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let mut request = Request { method, path: path.to_owned(), query, headers, body: Vec::new() };
    let length = request.header("content-length").map_or(0, |text| text.parse().unwrap());
    request.body = vec![0; length];
    lines.read_exact(&mut request.body).ok()?;
    Some(request)
}
