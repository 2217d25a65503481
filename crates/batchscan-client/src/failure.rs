//! What the HTTP library's failures mean, in words for the person who reads them. Sends nothing.

use std::error::Error as StdError;
use std::io::{self, ErrorKind};

use tokio_rustls::rustls::{self, CertificateError, InvalidMessage};
use url::Url;

use crate::Error;

type Cause = dyn StdError + 'static;

/// How the system's resolver begins what it says.
const LOOKUP_FAILED: &str = "failed to lookup address information: ";

/// What hyper says of a server that does not wait for the request. It has no other name for it.
const SPOKE_FIRST: &str = "received unexpected message from connection";

/// What went wrong with a request, or with the body of its answer.
pub(crate) fn meaning(error: &reqwest::Error, url: &Url) -> Error {
    let host = host_of(url);
    if !error.is_connect() {
        return if find::<hyper::Error>(error).is_some_and(hyper::Error::is_parse) {
            Error::NotBatchscan { url: plain(url), why: no_http(url).to_owned() }
        } else {
            Error::Broken { host, why: broken(error) }
        };
    }
    match find::<rustls::Error>(error) {
        Some(tls) => Error::Untrusted { host, why: untrusted(tls) },
        None => Error::Unreachable { host, why: unreachable(error) },
    }
}

/// The host, and the port where it is not the scheme's own.
pub(crate) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// An address without its query: cursors are long, and nobody reads them.
pub(crate) fn plain(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}

fn unreachable(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it does not answer".into();
    }
    let told = last(error);
    if let Some(why) = told.strip_prefix(LOOKUP_FAILED) {
        let is_passing = why.starts_with("Temporary failure");
        return if is_passing { "its name cannot be looked up now".into() } else { "no such host".into() };
    }
    match io_kind(error) {
        Some(ErrorKind::ConnectionRefused) => "connection refused".into(),
        Some(ErrorKind::TimedOut) => "it does not answer".into(),
        Some(ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable) => "no way leads there".into(),
        Some(ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof) => "it hung up".into(),
        _ => told,
    }
}

fn untrusted(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(certificate) = error else {
        return match error {
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                "it does not speak TLS, perhaps its address begins with http://".into()
            }
            other => other.to_string(),
        };
    };
    match certificate {
        CertificateError::UnknownIssuer => "the certificate is not from a known authority".into(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate is for another host name".into()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate has expired".into()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate is not valid yet".into()
        }
        other => other.to_string(),
    }
}

fn broken(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it fell silent".into();
    }
    let is_incomplete = find::<hyper::Error>(error).is_some_and(hyper::Error::is_incomplete_message);
    match io_kind(error) {
        Some(ErrorKind::UnexpectedEof) => "the answer was cut off".into(),
        Some(ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe) => {
            "it was reset".into()
        }
        _ if is_incomplete => "it was closed before the answer was whole".into(),
        _ => match last(error) {
            told if told == SPOKE_FIRST => "it spoke before it was asked".into(),
            told => told,
        },
    }
}

fn no_http(url: &Url) -> &'static str {
    match url.scheme() {
        "http" => "it does not speak HTTP, perhaps its address begins with https://",
        _ => "it does not speak HTTP",
    }
}

/// What the innermost cause says, without the system's number for it.
fn last(error: &reqwest::Error) -> String {
    let told = causes(error).last().map(ToString::to_string).unwrap_or_default();
    told.split(" (os error").next().unwrap_or_default().to_owned()
}

/// What the system's own error is, inside of all that wraps it.
fn io_kind(error: &reqwest::Error) -> Option<ErrorKind> {
    causes(error).filter_map(|cause| cause.downcast_ref()).map(io::Error::kind).last()
}

fn find<T: StdError + 'static>(error: &reqwest::Error) -> Option<&T> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// An error and its causes, also those that an I/O error wraps: its own `source` leaps over them.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &Cause> {
    std::iter::successors(Some(error as &Cause), |cause: &&Cause| {
        match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped as &Cause),
            None => (*cause).source(),
        }
    })
}
