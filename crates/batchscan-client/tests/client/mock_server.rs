//! A server that sends prepared responses and records the requests. One request per connection.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use batchscan_client::{Client, ClientBuilder, Error};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::Service;

/// The client secret for every mock server.
pub(crate) const SECRET: &str = "hush-7d20c1";
/// The prefix of every token; its number follows.
pub(crate) const TOKEN: &str = "token-4be1-";

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    framing: Framing,
    /// How many bytes at the end are not sent.
    missing: usize,
    delay: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length,
    Chunked,
    UntilClose,
    /// The body is repeated forever.
    Endless,
    /// The body without a header.
    Raw,
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct MockServer {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    task: JoinHandle<()>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.as_str())
    }

    /// The decoded query or form.
    pub(crate) fn pairs(&self) -> Vec<(String, String)> {
        let query = self.target.split_once('?').map_or(self.body.as_str(), |(_, query)| query);
        form_urlencoded::parse(query.as_bytes()).into_owned().collect()
    }
}

impl Response {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let (framing, missing, delay) = (Framing::Length, 0, Duration::ZERO);
        Self { status, headers: Vec::new(), body: body.into(), framing, missing, delay }
    }

    /// An error in the form of the API.
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

    /// Closes the connection without a response.
    pub(crate) fn none() -> Self {
        Self::raw("")
    }

    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(0, bytes).framed(Framing::Raw)
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn framed(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Leaves out the last bytes.
    pub(crate) fn truncated(mut self, bytes: usize) -> Self {
        self.missing = bytes;
        self
    }

    pub(crate) fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    pub(crate) fn body_bytes(&self) -> usize {
        self.body.len()
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
        let mut head = format!("HTTP/1.1 {} Mock\r\nConnection: close\r\n", self.status);
        match self.framing {
            Framing::Raw => return String::new(),
            Framing::Length => write!(head, "Content-Length: {}\r\n", self.body.len()).unwrap(),
            Framing::Chunked => head.push_str("Transfer-Encoding: chunked\r\n"),
            Framing::UntilClose | Framing::Endless => {}
        }
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        head + "\r\n"
    }
}

impl MockServer {
    /// Sends these responses in order, to token requests too.
    pub(crate) async fn new(responses: impl IntoIterator<Item = Response>) -> Self {
        Self::with_handler(in_order(responses)).await
    }

    /// Issues a new token to each token request, and sends these responses in order to the others.
    pub(crate) async fn with_tokens(responses: impl IntoIterator<Item = Response>) -> Self {
        Self::with_tokens_and(in_order(responses)).await
    }

    /// Issues a new token to each token request, and passes the others to a handler.
    pub(crate) async fn with_tokens_and(
        handler: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> Self {
        let issued = Mutex::new(0);
        Self::with_handler(move |request| {
            if request.method == "POST" {
                let mut issued = issued.lock().unwrap();
                *issued += 1;
                return Response::token(*issued);
            }
            handler(request)
        })
        .await
    }

    pub(crate) async fn with_handler(handler: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        Self::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), handler).await
    }

    pub(crate) async fn at(
        address: SocketAddr,
        handler: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (handler, record) = (Arc::new(handler), requests.clone());
        let (address, task) = listen(address, move |stream| {
            let (handler, record) = (handler.clone(), record.clone());
            async move {
                let Some((stream, request)) = read(stream).await else { return };
                let response = handler(&request);
                record.lock().unwrap().push(request);
                send(stream, &response).await;
            }
        })
        .await;
        Self { address, requests, task }
    }

    /// Sends this text to each connection before any request.
    pub(crate) async fn greeting(text: &'static str) -> Self {
        let (address, task) =
            listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), move |mut stream| async move {
                let _ = stream.write_all(text.as_bytes()).await;
                let _ = stream.shutdown().await;
            })
            .await;
        Self { address, requests: Arc::default(), task }
    }

    /// Stops listening; connections to the address are refused from now on.
    pub(crate) async fn stop(mut self) -> SocketAddr {
        self.task.abort();
        let _ = (&mut self.task).await;
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A client that waits a few milliseconds before a retry.
    pub(crate) fn client(&self) -> ClientBuilder {
        client_of(&self.url())
    }

    /// Reads the ids of all batches.
    pub(crate) async fn ids(&self) -> Result<Vec<String>, Error> {
        crate::ids(self.client()).await
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The paths and queries of the requests.
    pub(crate) fn targets(&self) -> Vec<String> {
        self.requests().into_iter().map(|request| request.target).collect()
    }

    /// The number of token requests, and of all others.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let requests = self.requests();
        let posts = requests.iter().filter(|request| request.method == "POST").count();
        (posts, requests.len() - posts)
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn client_of(url: &str) -> ClientBuilder {
    let wait = Duration::from_millis(1)..=Duration::from_millis(3);
    Client::builder(url).credentials("nursery", SECRET).retry_wait(wait)
}

/// Returns the responses in order, and a 418 when there are no more.
pub(crate) fn in_order(
    responses: impl IntoIterator<Item = Response>,
) -> impl Fn(&Request) -> Response + Send + Sync + 'static {
    let responses = Mutex::new(responses.into_iter().collect::<VecDeque<_>>());
    move |_| {
        let next = responses.lock().unwrap().pop_front();
        next.unwrap_or_else(|| Response::error(418, "the mock server has no more responses"))
    }
}

async fn listen<F: Future<Output = ()> + Send + 'static>(
    address: SocketAddr,
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(stream));
        }
    });
    (address, task)
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

/// The client may close the connection early.
async fn send(mut stream: TcpStream, response: &Response) {
    tokio::time::sleep(response.delay).await;
    if stream.write_all(&response.bytes()).await.is_err() {
        return;
    }
    while response.framing == Framing::Endless && stream.write_all(&response.body).await.is_ok() {}
    let _ = stream.shutdown().await;
}
