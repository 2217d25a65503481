//! Requests to a running service, with the testbed's HTTP client.

use batchscan_testbed::http;
pub(crate) use batchscan_testbed::http::{Body, Reply, get_head};

use crate::service::Service;
use crate::site::Credential;

/// Sends a request. The head is without its blank line, `Host` and `Content-Length`.
pub(crate) fn send(service: &Service, head: &str, body: &str) -> Body {
    http::send(service.address(), head, body).unwrap()
}

/// Sends a request and reads the response.
pub(crate) fn request(service: &Service, head: &str, body: &str) -> Reply {
    http::request(service.address(), head, body).unwrap()
}

/// `GET` with a bearer token.
pub(crate) fn get(service: &Service, target: &str, token: &str) -> Reply {
    http::get(service.address(), target, token).unwrap()
}

/// Requests a token.
pub(crate) fn auth(service: &Service, credential: &Credential) -> Reply {
    http::request_token(service.address(), &credential.id, &credential.secret).unwrap()
}

/// A token. Fails if the service rejects the credential.
#[track_caller]
pub(crate) fn token(service: &Service, credential: &Credential) -> String {
    let reply = auth(service, credential);
    reply.token().unwrap_or_else(|| panic!("{reply:?}"))
}
