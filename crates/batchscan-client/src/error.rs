//! Errors of the SDK: one sentence each, and whether a retry can help.

use std::error::Error as StdError;
use std::io::{self, ErrorKind};
use std::time::Duration;

use batchscan_model::printable::is_control_or_bidi;
use reqwest::StatusCode;
use tokio_rustls::rustls::{self, CertificateError, InvalidMessage};
use url::Url;

/// How much of a service's own text an error repeats.
const SERVICE_TEXT_CHARS_MAX: usize = 300;
/// How the system's resolver begins its errors.
const LOOKUP_FAILED: &str = "failed to lookup address information: ";
/// hyper's text for a server that sends before the request; it has no error kind for this.
const UNEXPECTED_MESSAGE: &str = "received unexpected message from connection";

/// rustls' text for a CA certificate that a server uses; it has no error kind for this.
const CA_AS_SERVER: &str = "CaUsedAsEndEntity";

/// Why batches could not be read. No message contains a secret or a token.
///
/// ```
/// use batchscan_client::{Client, DateRange, Error, TryStreamExt};
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/service.rs"));
/// # fn main() { run_example(20, async |service| {
/// # let client = Client::builder(service.url()).credentials(service.client_id(), "an old secret").build()?;
/// match client.batches(DateRange::default()).try_collect::<Vec<_>>().await {
///     Ok(batches) => println!("{} batches", batches.len()),
///     // The client has retried as long as it may; it may work an hour later.
///     Err(error) if error.can_retry() => println!("try again later: {error}"),
///     Err(Error::CredentialsRejected { .. }) => println!("ask the operator for new credentials"),
///     Err(error) => println!("{error}"),
/// }
/// # assert!(!client.sign_in().await.unwrap_err().can_retry());
/// # Ok(()) }) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The client was given an invalid address, credential or ETag.
    #[error("{0}")]
    Config(String),
    /// An added root certificate cannot be read.
    #[error("cannot read the added root certificate: {0}")]
    RootCertificate(String),
    /// No connection to the service.
    #[error("cannot reach {host}: {reason}")]
    Unreachable {
        /// The host and port.
        host: String,
        /// What the system reports.
        reason: String,
    },
    /// The TLS handshake failed, for example because of an untrusted certificate.
    #[error("cannot trust {host}: {reason}")]
    Untrusted {
        /// The host and port.
        host: String,
        /// What is wrong.
        reason: String,
    },
    /// The connection was lost before the response was complete.
    #[error("lost the connection to {host}: {reason}")]
    ConnectionLost {
        /// The host and port.
        host: String,
        /// How it was lost.
        reason: String,
    },
    /// The service is temporarily unavailable, or limits the request rate.
    #[error("the service responded with {status}{}", in_parentheses(.detail))]
    Unavailable {
        /// 429, 502, 503 or 504.
        status: StatusCode,
        /// The service's explanation.
        detail: Option<String>,
        /// How long the service asks to wait.
        retry_after: Option<Duration>,
    },
    /// All retries failed.
    #[error(
        "{last}; gave up after {} in {}: the next one would be after the time limit for retries",
        count_tries(.tries), seconds(.elapsed)
    )]
    RetriesExhausted {
        /// Time since the first try.
        elapsed: Duration,
        /// Number of tries.
        tries: u32,
        /// The error of the last try.
        last: Box<Error>,
    },
    /// The service asks to wait longer than the retry limit allows.
    #[error("{last}; the service asks to wait {}, but only {} are left for retries", seconds(.retry_after), seconds(.left))]
    RetryAfterTooLong {
        /// How long the service asks to wait.
        retry_after: Duration,
        /// Time left for retries.
        left: Duration,
        /// The error of the last try.
        last: Box<Error>,
    },
    /// The client id or secret is wrong, expired or revoked.
    #[error("the service rejected the credentials{}; check the client id and secret", in_parentheses(.detail))]
    CredentialsRejected {
        /// The service's explanation.
        detail: Option<String>,
    },
    /// The service rejected a token that it had just issued.
    #[error("the service rejected a token that it had just issued{}", in_parentheses(.detail))]
    TokenRejected {
        /// The service's explanation.
        detail: Option<String>,
    },
    /// The service rejected the request, for example because of an invalid cursor, or failed with a 500.
    #[error("the service rejected the request with {status}{}", in_parentheses(.detail))]
    Rejected {
        /// The status, usually of 400 or above.
        status: StatusCode,
        /// The service's explanation.
        detail: Option<String>,
    },
    /// The service cannot continue from this position, for example because a backup was restored. Everything has to be
    /// read again.
    #[error("the service cannot continue from this position; read everything again")]
    PositionGone,
    /// The response is not one of the API.
    #[error("{url} does not respond like a batch scan service: {reason}; check the address")]
    UnexpectedResponse {
        /// The requested URL, without the query.
        url: String,
        /// What is wrong with the response.
        reason: String,
    },
    /// The service redirects. Redirects are not followed: credentials only go to the configured address.
    #[error("{url} redirects to {target}; use that address if you trust it")]
    Redirected {
        /// The requested URL, without the query.
        url: String,
        /// The `Location` header.
        target: String,
    },
    /// The response contains a batch that is not valid.
    #[error("the service sent an invalid batch: {0}")]
    InvalidBatch(String),
    /// The pages would never end.
    #[error("pagination loops: {0}")]
    PaginationLoop(&'static str),
}

impl Error {
    /// Whether the same call may succeed later without any change by the caller.
    ///
    /// The client has already retried where that is useful; this is for the caller's own schedule.
    pub fn can_retry(&self) -> bool {
        match self {
            Error::RetriesExhausted { .. } | Error::RetryAfterTooLong { .. } => true,
            Error::Rejected { status, .. } => status.is_server_error(),
            error => error.is_temporary(),
        }
    }

    /// Whether the client itself retries.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self, Error::Unreachable { .. } | Error::ConnectionLost { .. } | Error::Unavailable { .. })
    }

    pub(crate) fn connection_lost(url: &Url, reason: impl Into<String>) -> Self {
        Error::ConnectionLost { host: host_and_port(url), reason: reason.into() }
    }

    pub(crate) fn unexpected_response(url: &Url, reason: impl Into<String>) -> Self {
        Error::UnexpectedResponse { url: without_query(url), reason: reason.into() }
    }

    pub(crate) fn redirected(url: &Url, target: &str) -> Self {
        Error::Redirected { url: without_query(url), target: target.to_owned() }
    }

    /// Translates an error of the HTTP library, of a request or of reading its response.
    pub fn from_http(error: &reqwest::Error, url: &Url) -> Self {
        let host = host_and_port(url);
        if error.is_connect() {
            return match find_cause::<rustls::Error>(error) {
                Some(tls) => Error::Untrusted { host, reason: tls_reason(tls) },
                None => Error::Unreachable { host, reason: connection_reason(error) },
            };
        }
        if find_cause::<hyper::Error>(error).is_some_and(hyper::Error::is_parse) {
            let hint = if url.scheme() == "http" { " (try https://)" } else { "" };
            return Self::unexpected_response(url, format!("it does not speak HTTP{hint}"));
        }
        Self::connection_lost(url, connection_reason(error))
    }

    /// Applies `redact` to text that comes from the service, then clips it.
    pub(crate) fn redacted(mut self, redact: impl Fn(&str) -> String) -> Self {
        let text = match &mut self {
            Error::Unavailable { detail, .. }
            | Error::CredentialsRejected { detail }
            | Error::TokenRejected { detail }
            | Error::Rejected { detail, .. } => detail.as_mut(),
            Error::UnexpectedResponse { reason: text, .. } | Error::InvalidBatch(text) => Some(text),
            Error::Redirected { target, .. } => Some(target),
            _ => None,
        };
        if let Some(text) = text {
            *text = clip(&redact(text));
        }
        self
    }
}

/// Makes a service's text one short line without control characters.
pub(crate) fn clip(text: &str) -> String {
    let line = text.chars().map(|c| if is_control_or_bidi(c) { ' ' } else { c });
    line.take(SERVICE_TEXT_CHARS_MAX).collect()
}

fn in_parentheses(detail: &Option<String>) -> String {
    detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default()
}

fn count_tries(count: &u32) -> String {
    if *count == 1 { "1 try".into() } else { format!("{count} tries") }
}

fn seconds(time: &Duration) -> String {
    format!("{:.0} s", time.as_secs_f64())
}

/// The host, and the port unless it is the scheme's default.
fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Cursors are long and useless in an error.
fn without_query(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}

/// Why there was no connection, or why it was lost.
fn connection_reason(error: &reqwest::Error) -> String {
    let is_incomplete = find_cause::<hyper::Error>(error).is_some_and(hyper::Error::is_incomplete_message);
    let reason = match io_kind(error) {
        _ if error.is_timeout() => "timed out waiting for a response",
        Some(ErrorKind::TimedOut) => "timed out waiting for a response",
        Some(ErrorKind::ConnectionRefused) => "connection refused",
        Some(ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable) => "no route to host",
        Some(ErrorKind::UnexpectedEof) if !error.is_connect() => "the response was truncated",
        Some(ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof) if error.is_connect() => {
            "it closed the connection"
        }
        Some(ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe) => {
            "connection reset"
        }
        _ if is_incomplete => "it closed the connection",
        _ => return root_cause(error),
    };
    reason.to_owned()
}

fn tls_reason(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "it does not speak TLS (try http://)".into()
        }
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            CertificateError::UnknownIssuer => "its certificate is not from a known authority; if you trust that \
                authority, add its certificate (--ca-cert FILE)"
                .into(),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another host name; use the name in the certificate, or make one for this host"
                    .into()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired; renew it, or check the clock of this machine".into()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet; check the clock of this machine".into()
            }
            CertificateError::Other(other) if other.to_string() == CA_AS_SERVER => "its certificate is a CA \
                certificate, which a server cannot use; make a server certificate, and trust the CA with --ca-cert FILE"
                .into(),
            other => other.to_string(),
        },
        other => other.to_string(),
    }
}

/// The innermost cause, in plain words where the libraries have only text for it.
fn root_cause(error: &reqwest::Error) -> String {
    let text = causes(error).last().map(ToString::to_string).unwrap_or_default();
    match text.strip_prefix(LOOKUP_FAILED) {
        Some(reason) if reason.starts_with("Temporary failure") => "host name lookup failed".into(),
        Some(_) => "no such host".into(),
        None if text == UNEXPECTED_MESSAGE => "unexpected data before the request".into(),
        None => text.split(" (os error").next().unwrap_or_default().to_owned(),
    }
}

fn io_kind(error: &reqwest::Error) -> Option<ErrorKind> {
    causes(error).filter_map(|cause| cause.downcast_ref()).map(io::Error::kind).last()
}

fn find_cause<T: StdError + 'static>(error: &reqwest::Error) -> Option<&T> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// An error and its causes, including those wrapped in an I/O error, whose `source` skips them.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    type Cause = dyn StdError + 'static;
    std::iter::successors(Some(error as &Cause), |cause: &&Cause| {
        match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped as &Cause),
            None => (*cause).source(),
        }
    })
}
