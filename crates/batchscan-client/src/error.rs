//! What can go wrong, in one sentence each, and whether trying again can help.

use std::time::Duration;

use batchscan_model::printable::is_control_or_bidi;
use reqwest::StatusCode;

/// How much of a service's own words an error repeats.
const TOLD_CHARS_MAX: usize = 300;

/// Why batches could not be had. No message holds a secret or a token.
///
/// ```
/// use batchscan_client::{Client, DateRange, Error, TryStreamExt};
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/service.rs"));
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # let service = Service::with_batches(20).await;
/// # let client = Client::builder(service.url()).credentials(service.client_id(), service.client_secret()).build()?;
/// # let client = Client::builder(service.url()).credentials(service.client_id(), "an old secret").build()?;
/// match client.batches(DateRange::default()).try_collect::<Vec<_>>().await {
///     Ok(batches) => println!("{} batches", batches.len()),
///     // It has been tried for as long as the client was told to; an hour later all may be well.
///     Err(error) if error.can_retry() => println!("not now: {error}"),
///     Err(Error::CredentialsRefused { .. }) => println!("ask the operator for new credentials"),
///     Err(error) => println!("{error}"),
/// }
/// # assert!(!client.sign_in().await.unwrap_err().can_retry());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The client was built with something that cannot work.
    #[error("{0}")]
    Settings(String),
    /// Nobody answers at that address.
    #[error("cannot reach {host}: {why}")]
    Unreachable {
        /// The host and port.
        host: String,
        /// What the system says.
        why: String,
    },
    /// The service's certificate is not trusted, or it speaks no TLS.
    #[error("cannot trust {host}: {why}")]
    Untrusted {
        /// The host and port.
        host: String,
        /// What is wrong with it.
        why: String,
    },
    /// The connection broke before the answer was whole.
    #[error("the connection to {host} broke: {why}")]
    Broken {
        /// The host and port.
        host: String,
        /// Where it broke.
        why: String,
    },
    /// The service is alive, and cannot answer now.
    #[error("the service answered {status}{}", told(.detail))]
    Unavailable {
        /// 429, 502, 503 or 504.
        status: StatusCode,
        /// What the service said.
        detail: Option<String>,
    },
    /// Tried again and again, to no avail.
    #[error("{last}; gave up after {} and {}", seconds(.after), times(.tries))]
    GaveUp {
        /// How long it was tried.
        after: Duration,
        /// How often.
        tries: u32,
        /// What went wrong the last time.
        last: Box<Error>,
    },
    /// The service asks for more patience than it was given.
    #[error("{last}; it asks to wait {}, longer than the {} that are left for trying again",
            seconds(.asked), seconds(.left))]
    AskedToWait {
        /// How long to wait.
        asked: Duration,
        /// How long the caller would have.
        left: Duration,
        /// What went wrong the last time.
        last: Box<Error>,
    },
    /// The client id or the secret is wrong, or was revoked.
    #[error("the service refused the credentials{}; check client id and secret", told(.detail))]
    CredentialsRefused {
        /// What the service said.
        detail: Option<String>,
    },
    /// A token that the service had just issued was refused.
    #[error("the service refuses the token that it issued{}", told(.detail))]
    TokenRefused {
        /// What the service said.
        detail: Option<String>,
    },
    /// The service does not take the cursor, or finds another fault with the question.
    #[error("the service refused the request with {status}{}", told(.detail))]
    Refused {
        /// A status of 400 or above.
        status: StatusCode,
        /// What the service said.
        detail: Option<String>,
    },
    /// The answer is not one that the interface has.
    #[error("{url} does not answer like a batch scan service: {why}; check the address")]
    NotBatchscan {
        /// What was asked.
        url: String,
        /// What came.
        why: String,
    },
    /// The service sends the caller elsewhere. Credentials are not carried there.
    #[error("{url} redirects to {to}; use that address if you trust it")]
    Redirected {
        /// What was asked.
        url: String,
        /// Where it points.
        to: String,
    },
    /// A batch of the answer is not one.
    #[error("the service sent something that is not a batch: {why}")]
    NotABatch {
        /// What is wrong with it.
        why: String,
    },
    /// The walk would never end.
    #[error("the service's pages run in a circle: {why}")]
    Circle {
        /// What was seen.
        why: String,
    },
}

impl Error {
    /// Whether the same call may succeed later, with nothing changed by the caller.
    ///
    /// The client has tried again by itself where that made sense; this is for the caller's own plans.
    pub fn can_retry(&self) -> bool {
        match self {
            Error::Unreachable { .. } | Error::Broken { .. } | Error::Unavailable { .. } => true,
            Error::GaveUp { .. } | Error::AskedToWait { .. } => true,
            Error::Refused { status, .. } => status.is_server_error(),
            _ => false,
        }
    }

    /// The same error with another's words in it changed, then clipped.
    pub(crate) fn in_words(mut self, change: &dyn Fn(&str) -> String) -> Self {
        let words = match &mut self {
            Error::Unavailable { detail, .. }
            | Error::CredentialsRefused { detail }
            | Error::TokenRefused { detail }
            | Error::Refused { detail, .. } => detail.as_mut(),
            Error::NotBatchscan { why, .. } | Error::NotABatch { why } => Some(why),
            Error::Redirected { to, .. } => Some(to),
            _ => None,
        };
        if let Some(words) = words {
            *words = clipped(&change(words));
        }
        self
    }

    /// Whether to try again without being asked to.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Error::Unreachable { .. } | Error::Broken { .. } | Error::Unavailable { .. })
    }
}

/// Another's words: one line, not too long, and nothing in it turns the writing around.
pub(crate) fn clipped(text: &str) -> String {
    let line = text.chars().map(|c| if is_control_or_bidi(c) { ' ' } else { c });
    line.take(TOLD_CHARS_MAX).collect()
}

fn told(detail: &Option<String>) -> String {
    detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default()
}

fn times(count: &u32) -> String {
    if *count == 1 { "one try".into() } else { format!("{count} tries") }
}

fn seconds(time: &Duration) -> String {
    format!("{:.0} s", time.as_secs_f64())
}
