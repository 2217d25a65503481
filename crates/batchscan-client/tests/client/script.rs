//! A server that follows a script, and keeps what it was asked. One request a connection.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use batchscan_client::{Client, ClientBuilder};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::Service;

/// What every scripted client signs in with.
pub(crate) const SECRET: &str = "hush-7d20c1";
/// The beginning of every scripted token; its number follows.
pub(crate) const TOKEN: &str = "token-4be1-";

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// What goes back, rightly or wrongly framed.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    framing: Framing,
    /// How many bytes at the end are never sent.
    lacking: usize,
    delay: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length,
    Chunked,
    UntilClose,
    /// The body again and again, for ever.
    Endless,
    /// The body alone, without a head.
    Bare,
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) address: SocketAddr,
    heard: Arc<Mutex<Vec<Request>>>,
    serving: JoinHandle<()>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.as_str())
    }

    /// The form or the query, decoded.
    pub(crate) fn pairs(&self) -> Vec<(String, String)> {
        let query = self.target.split_once('?').map_or(self.body.as_str(), |(_, query)| query);
        form_urlencoded::parse(query.as_bytes()).into_owned().collect()
    }
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let (framing, lacking, delay) = (Framing::Length, 0, Duration::ZERO);
        Self { status, headers: Vec::new(), body: body.into(), framing, lacking, delay }
    }

    /// An error as the interface has it.
    pub(crate) fn error(status: u16, detail: &str) -> Self {
        Self::new(status, serde_json::json!({ "detail": detail }).to_string())
    }

    /// A page with the batches of these numbers.
    pub(crate) fn page(numbers: Range<u32>, next: Option<&str>) -> Self {
        let batches: Vec<String> = numbers.map(|number| Service::batch(number).to_json()).collect();
        let next = serde_json::json!(next);
        Self::new(200, format!(r#"{{"data":[{}],"next_token":{next}}}"#, batches.join(",")))
    }

    /// The array of v1 with the batches of these numbers.
    pub(crate) fn array(numbers: Range<u32>) -> Self {
        let batches: Vec<String> = numbers.map(|number| Service::batch(number).to_json()).collect();
        Self::new(200, format!("[{}]", batches.join(",")))
    }

    pub(crate) fn token(number: usize) -> Self {
        let body = format!(r#"{{"access_token":"{TOKEN}{number}","token_type":"bearer","expires_in":3600}}"#);
        Self::new(200, body)
    }

    /// Nothing at all: the connection is closed.
    pub(crate) fn nothing() -> Self {
        Self::bare("")
    }

    /// These bytes, whatever they are.
    pub(crate) fn bare(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(0, bytes).framed(Framing::Bare)
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn framed(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Without its last bytes.
    pub(crate) fn lacking(mut self, bytes: usize) -> Self {
        self.lacking = bytes;
        self
    }

    pub(crate) fn body_bytes(&self) -> usize {
        self.body.len()
    }

    pub(crate) fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head().into_bytes();
        if self.framing == Framing::Chunked {
            // Two chunks, so that there is a place between them to be cut at.
            let halves = self.body.split_at(self.body.len() / 2);
            for half in [halves.0, halves.1] {
                bytes.extend_from_slice(format!("{:x}\r\n", half.len()).as_bytes());
                bytes.extend_from_slice(half);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        } else {
            bytes.extend_from_slice(&self.body);
        }
        bytes.truncate(bytes.len() - self.lacking);
        bytes
    }

    fn head(&self) -> String {
        if self.framing == Framing::Bare {
            return String::new();
        }
        let mut head = format!("HTTP/1.1 {} As Scripted\r\nConnection: close\r\n", self.status);
        match self.framing {
            Framing::Length => write!(head, "Content-Length: {}\r\n", self.body.len()).unwrap(),
            Framing::Chunked => head.push_str("Transfer-Encoding: chunked\r\n"),
            Framing::UntilClose | Framing::Endless | Framing::Bare => {}
        }
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        head + "\r\n"
    }
}

impl Script {
    /// Gives these answers to whatever comes, in their order.
    pub(crate) async fn of(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), in_order(answers)).await
    }

    /// Gives these answers in their order, and a new token to each who asks for one.
    pub(crate) async fn signed_in(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::with_tokens(in_order(answers)).await
    }

    /// Answers as told, and gives a new token to each who asks for one.
    pub(crate) async fn with_tokens(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let issued = Mutex::new(0);
        let answer = move |request: &Request| {
            if request.method == "POST" {
                let mut issued = issued.lock().unwrap();
                *issued += 1;
                return Answer::token(*issued);
            }
            answer(request)
        };
        Self::at("127.0.0.1:0".parse().unwrap(), answer).await
    }

    pub(crate) async fn at(
        address: SocketAddr,
        answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (answer, hearing) = (Arc::new(answer), heard.clone());
        let serving = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (answer, hearing) = (answer.clone(), hearing.clone());
                tokio::spawn(async move {
                    let Some((stream, request)) = read(stream).await else { return };
                    let answer = answer(&request);
                    hearing.lock().unwrap().push(request);
                    give(stream, &answer).await;
                });
            }
        });
        Self { address, heard, serving }
    }

    /// Says this to whoever comes, before anything was asked.
    pub(crate) async fn greeting(words: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.write_all(words.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        Self { address, heard: Arc::default(), serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A client that waits a moment before it tries again.
    pub(crate) fn client(&self) -> ClientBuilder {
        client_of(&self.url())
    }

    pub(crate) fn heard(&self) -> Vec<Request> {
        self.heard.lock().unwrap().clone()
    }

    /// How often a token was asked for, and how often anything else.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let heard = self.heard();
        let posts = heard.iter().filter(|request| request.method == "POST").count();
        (posts, heard.len() - posts)
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A client of this address with the scripted credentials.
pub(crate) fn client_of(url: &str) -> ClientBuilder {
    let wait = Duration::from_millis(1)..=Duration::from_millis(3);
    Client::builder(url).credentials("nursery", SECRET).retry_wait(wait)
}

/// Answers in their order, and after the last one an error that tells of it.
pub(crate) fn in_order(
    answers: impl IntoIterator<Item = Answer>,
) -> Box<dyn Fn(&Request) -> Answer + Send + Sync> {
    let left = Mutex::new(answers.into_iter().collect::<VecDeque<_>>());
    Box::new(move |_| {
        let next = left.lock().unwrap().pop_front();
        next.unwrap_or_else(|| Answer::error(418, "the script has no more answers"))
    })
}

async fn read(stream: TcpStream) -> Option<(TcpStream, Request)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).await.ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let mut request = Request { method, target, headers, body: String::new() };
    let length = request.header("content-length").map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.ok()?;
    request.body = String::from_utf8(body).unwrap();
    Some((reader.into_inner(), request))
}

/// The client may have gone before the end; that is its right.
async fn give(mut stream: TcpStream, answer: &Answer) {
    tokio::time::sleep(answer.delay).await;
    if stream.write_all(&answer.bytes()).await.is_err() {
        return;
    }
    while answer.framing == Framing::Endless && stream.write_all(&answer.body).await.is_ok() {}
    let _ = stream.shutdown().await;
}
