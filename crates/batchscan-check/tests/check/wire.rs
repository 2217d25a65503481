//! The least HTTP/1.1 a server can speak: one request a connection, on a thread of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// A request as it came.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// What goes back.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// How many bytes the head promises, where that is a lie.
    pub(crate) promised: Option<usize>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), promised: None }
    }

    pub(crate) fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::new(status, body.to_string()).with("Content-Type", "application/json")
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// Serves `answer` on a free port, for as long as the process lives, and returns the base URL. `None` from `answer`
/// leaves the connection open without a word.
pub(crate) fn serve(answer: impl Fn(Request) -> Option<Reply> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let (stream, answer) = (stream.unwrap(), Arc::clone(&answer));
            kept.push(stream.try_clone().unwrap());
            // Only what was left without an answer needs to stay open; the rest is closed by its own thread.
            if kept.len() > 64 {
                kept.remove(0);
            }
            std::thread::spawn(move || handle(&stream, &*answer));
        }
    });
    url
}

fn handle(stream: &TcpStream, answer: &dyn Fn(Request) -> Option<Reply>) {
    let Some(request) = read(stream) else { return };
    let head_only = request.method == "HEAD";
    let Some(reply) = answer(request) else { return };
    let mut head = format!("HTTP/1.1 {} Toy\r\nConnection: close\r\n", reply.status);
    if reply.status != 304 {
        head.push_str(&format!("Content-Length: {}\r\n", reply.promised.unwrap_or(reply.body.len())));
    }
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut stream = stream;
    let _ = stream.write_all(head.as_bytes());
    if !head_only {
        let _ = stream.write_all(&reply.body);
    }
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let mut request = Request { method, path: path.to_owned(), query, headers, body: Vec::new() };
    let length = request.header("content-length").map_or(0, |text| text.parse().unwrap());
    request.body = vec![0; length];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}
