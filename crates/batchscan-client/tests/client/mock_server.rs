//! A scripted server that issues tokens and sends batches.

use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use batchscan_client::{Client, ClientBuilder, Error};
use batchscan_testbed::ScriptedServer;
pub(crate) use batchscan_testbed::scripted_server::{Framing, Request, Response, in_order};

use crate::Service;

/// The client secret for every mock server.
pub(crate) const SECRET: &str = "hush-7d20c1";
/// The prefix of every token; its number follows.
pub(crate) const TOKEN: &str = "token-4be1-";

/// Responses of the API.
pub(crate) trait ApiResponse {
    /// A page with the batches of these numbers.
    fn page(numbers: Range<u32>, next: Option<&str>) -> Response {
        let next = serde_json::json!(next);
        Response::new(200, format!(r#"{{"data":[{}],"next_token":{next}}}"#, texts(numbers)))
    }

    /// The array of v1 with the batches of these numbers.
    fn array(numbers: Range<u32>) -> Response {
        Response::new(200, format!("[{}]", texts(numbers)))
    }

    fn token(number: usize) -> Response {
        let body = format!(r#"{{"access_token":"{TOKEN}{number}","token_type":"bearer","expires_in":3600}}"#);
        Response::new(200, body)
    }
}

impl ApiResponse for Response {}

fn texts(numbers: Range<u32>) -> String {
    numbers.map(|number| Service::batch(number).to_json()).collect::<Vec<_>>().join(",")
}

#[derive(Debug)]
pub(crate) struct MockServer(ScriptedServer);

impl Deref for MockServer {
    type Target = ScriptedServer;

    fn deref(&self) -> &ScriptedServer {
        &self.0
    }
}

impl MockServer {
    /// Sends these responses in order, to token requests too.
    pub(crate) fn new(responses: impl IntoIterator<Item = Response>) -> Self {
        Self::with_handler(in_order(responses))
    }

    /// Issues a new token to each token request, and sends these responses in order to the others.
    pub(crate) fn with_tokens(responses: impl IntoIterator<Item = Response>) -> Self {
        Self::with_tokens_and(in_order(responses))
    }

    /// Issues a new token to each token request, and passes the others to a handler.
    pub(crate) fn with_tokens_and(handler: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        let issued = AtomicUsize::new(0);
        Self::with_handler(move |request| match request.method.as_str() {
            "POST" => Response::token(issued.fetch_add(1, Ordering::Relaxed) + 1),
            _ => handler(request),
        })
    }

    pub(crate) fn with_handler(handler: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        Self(ScriptedServer::start(handler))
    }

    /// A client that waits a few milliseconds before a retry.
    pub(crate) fn client(&self) -> ClientBuilder {
        client_of(&self.url())
    }

    /// Reads the ids of all batches.
    pub(crate) async fn ids(&self) -> Result<Vec<String>, Error> {
        crate::ids(self.client()).await
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

pub(crate) fn client_of(url: &str) -> ClientBuilder {
    let wait = Duration::from_millis(1)..=Duration::from_millis(3);
    Client::builder(url).credentials("nursery", SECRET).retry_wait(wait)
}
