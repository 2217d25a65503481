//! Black-box conformance checks of any deployment of the batch scan API.
//!
//! Knows only HTTP and JSON, and none of this project's own types: an error that server and check shared would go
//! unnoticed. Only reads, needs no special data, and limits every loop, wait and body.
//!
//! - [`run`] checks every rule on a [`Target`] and returns a [`Report`] of [`Finding`]s.
//! - `rules` lists the rules, one table per file, each with its section of the API or its decision.
//! - `walk` reads batches page by page; `listing` is what it returns.
//! - `probe` sends, counts, retries, caches; `http` is the HTTP client; `request` and `response` are what rules see.
//! - `response_checks` checks what must be true of every response.
//! - `redact` removes secrets and control characters from everything that is printed.
//!
//! ```no_run
//! use batchscan_check::{Secret, Target, run};
//!
//! let target = Target {
//!     base_url: "https://scans.example/api".to_owned(),
//!     client_id: "nursery".to_owned(),
//!     client_secret: Secret::new("…".to_owned()),
//! };
//! let report = run(&target, &mut |finding| println!("{}", finding.id))?;
//! println!("{}", report.text(false, false));
//! # Ok::<(), batchscan_check::Unreachable>(())
//! ```

mod http;
mod limits;
mod listing;
mod probe;
mod redact;
mod report;
mod request;
mod response;
mod response_checks;
mod rules;
mod verdict;
mod walk;

use std::fmt;

use url::Url;

pub use limits::Limits;
pub use report::Report;
pub use verdict::{Finding, Source, Verdict};

/// The service to check and the client to check it as.
#[derive(Debug, Clone)]
pub struct Target {
    /// `http` or `https`, with or without a path, with or without a slash at the end.
    pub base_url: String,
    /// The client id.
    pub client_id: String,
    /// The client secret.
    pub client_secret: Secret,
}

/// A client secret. Never printed.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps the secret as issued.
    pub fn new(secret: String) -> Self {
        Self(secret)
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Why nothing could be checked. All but `NoClient` begin with the base URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// The base URL is invalid.
    #[error("{0} is not a valid base URL: {1}")]
    BadUrl(String, &'static str),
    /// The HTTP client could not be set up.
    #[error("cannot set up the HTTP client: {0}")]
    NoClient(String),
    /// All paths of the API return 404.
    #[error("no batch scan API at {0} (404): give the base URL, without /v1 or /v2")]
    NoService(String),
    /// The service rejects the credentials.
    #[error(
        "the service at {0} rejected the client id and secret (401): nothing can be checked without a token"
    )]
    BadCredentials(String),
    /// There was no response to the first request.
    #[error("cannot reach the service at {0} ({1}): check that it is running and that the URL is correct")]
    NoResponse(String, String),
}

/// Checks every rule. Calls `on_finding` with each finding as soon as it is known.
///
/// # Errors
///
/// [`Unreachable`] if the URL is invalid, the first request gets no response, all paths of the API are missing, or the
/// credentials are rejected. Everything else a service does is a finding.
pub fn run(target: &Target, on_finding: &mut dyn FnMut(&Finding)) -> Result<Report, Unreachable> {
    run_within(target, &Limits::default(), on_finding)
}

/// [`run`] with other limits.
///
/// # Errors
///
/// As [`run`].
pub fn run_within(
    target: &Target,
    limits: &Limits,
    on_finding: &mut dyn FnMut(&Finding),
) -> Result<Report, Unreachable> {
    let mut probe = probe::Probe::new(target, limits)?;
    probe.check_access()?;
    let mut findings = Vec::new();
    for rule in rules::all() {
        let verdict = (rule.check)(&mut probe).err().unwrap_or(Verdict::Pass);
        let finding = Finding { id: rule.id, rule: rule.text, source: rule.source, verdict };
        on_finding(&finding);
        findings.push(finding);
    }
    Ok(Report { findings, requests: probe.requests })
}

fn parse_base_url(text: &str) -> Result<Url, Unreachable> {
    let bad = |why| Unreachable::BadUrl(format!("{text:?}"), why);
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or_else(|| bad("it must begin with http:// or https://"))?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("it must not contain ? or #"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // The message must not repeat the URL: it contains a secret.
        return Err(Unreachable::BadUrl("a URL with a user name or a password".to_owned(), "remove them"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print() {
        assert_eq!(format!("{:?}", Secret::new("hush".into())), "[redacted]");
    }

    #[test]
    fn a_base_url_is_http_or_https_without_query_and_credentials() {
        for good in ["http://127.0.0.1:8080", "https://scans.example/", "https://scans.example/api/"] {
            assert!(parse_base_url(good).is_ok(), "{good}");
        }
        for bad in ["", "scans.example", "ftp://x", "http://x/?a=b", "http://x/#a", "http://me:hush@x/"] {
            let error = parse_base_url(bad).unwrap_err().to_string();
            assert!(!error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn rule_ids_are_unique_kebab_case_and_texts_are_sentences() {
        let mut ids = std::collections::HashSet::new();
        for rule in rules::all() {
            assert!(ids.insert(rule.id), "{} is not unique", rule.id);
            let is_kebab = |byte: u8| byte == b'-' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
            assert!(rule.id.bytes().all(is_kebab), "{}", rule.id);
            assert!(rule.text.ends_with('.'), "{}", rule.text);
        }
        assert_eq!(ids.len(), 165);
    }
}
