//! A black-box conformance run over any deployment of the batch scan interface, ours or another's.
//!
//! It knows raw HTTP and JSON only, and none of this project's own types: a mistake that server and check shared
//! would hide itself. It only reads, it needs no special data, and every loop, wait and body in it has a limit.
//!
//! The map, from the outside in:
//!
//! - [`run`] puts every rule to a [`Target`] and gathers a [`Report`] of [`Finding`]s;
//! - `rules` lists the rules, one table a file, each with the section or decision it comes from;
//! - `batches` fetches what rules have in common: tokens, walks over pages, windows that hold data;
//! - `probe` sends, counts, retries; `ask` and `answer` are what goes out and what comes back;
//! - `observed` watches all answers for what holds of every answer;
//! - `redact` sees to it that no secret and no control character is ever printed.
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

mod answer;
mod ask;
mod batches;
mod limits;
mod observed;
mod probe;
mod redact;
mod report;
mod rules;
mod verdict;

use std::fmt;

pub use limits::Limits;
pub use report::Report;
pub use verdict::{Demand, Finding, Verdict};

/// The service to be checked and the client to check it as.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where the service is addressed: `http` or `https`, with or without a path, with or without a slash at the end.
    pub base_url: String,
    /// The client identifier.
    pub client_id: String,
    /// The client secret.
    pub client_secret: Secret,
}

/// A client secret, which no output of this crate shows.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Takes the secret as issued.
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

/// Why there was nothing to check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// The base URL cannot be used.
    #[error("{url:?} is no base URL of a service: {why}")]
    BadUrl {
        /// The URL as given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// Something answers there, but has none of the interface's paths.
    #[error("there is no such service at {url}: give the base URL, to which /v1 and /v2 are appended")]
    NoService {
        /// The base URL.
        url: String,
    },
    /// The service does not know the credentials.
    #[error(
        "the service at {url} refused the client id and secret (401): nothing else can be checked without a token"
    )]
    Refused {
        /// The base URL.
        url: String,
    },
    /// The first request was not answered.
    #[error("the service at {url} could not be reached ({why}): is it running, and is this its address?")]
    NoAnswer {
        /// The base URL.
        url: String,
        /// What happened instead.
        why: String,
    },
}

/// Puts every rule to the service. `on_finding` hears of each as soon as it is decided.
///
/// # Errors
///
/// [`Unreachable`] when the URL cannot be used, the first request stays without an answer, no path of the interface is
/// there, or the credentials are refused. Whatever else a service does is a finding.
pub fn run(target: &Target, on_finding: &mut dyn FnMut(&Finding)) -> Result<Report, Unreachable> {
    run_within(target, &Limits::default(), on_finding)
}

/// [`run`] with limits of the caller's choice.
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
    probe.knock()?;
    let mut findings = Vec::new();
    for rule in rules::all() {
        let verdict = (rule.check)(&mut probe).err().unwrap_or(Verdict::Pass);
        let finding = Finding { id: rule.id, rule: rule.claim, demand: rule.demand, verdict };
        on_finding(&finding);
        findings.push(finding);
    }
    Ok(Report { findings, requests: probe.requests })
}

/// The base URL, when it is one: to it, paths are appended.
fn base_url(text: &str) -> Result<url::Url, Unreachable> {
    let bad = |why: String| Unreachable::BadUrl { url: text.to_owned(), why };
    let url = url::Url::parse(text).map_err(|_| bad("it must begin with http:// or https://".to_owned()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("it must begin with http:// or https://".to_owned()));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("it must end with the path, without ? and #".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // Not repeated in the message: what stands there may well be a secret.
        let url = "the address".to_owned();
        return Err(Unreachable::BadUrl { url, why: "credentials do not belong into it".to_owned() });
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
    fn a_base_url_is_http_and_ends_with_its_path() {
        for good in ["http://127.0.0.1:8080", "https://scans.example/", "https://scans.example/api/"] {
            assert!(base_url(good).is_ok(), "{good}");
        }
        for bad in
            ["", "scans.example", "ftp://scans.example", "http://x/?a=b", "http://x/#a", "http://a:b@x/"]
        {
            assert!(base_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn credentials_in_the_url_are_not_repeated() {
        let error = base_url("http://me:hush@scans.example/").unwrap_err().to_string();
        assert!(!error.contains("hush"), "{error}");
    }

    #[test]
    fn rule_ids_are_unique_kebab_case_and_claims_are_sentences() {
        let mut ids = std::collections::HashSet::new();
        for rule in rules::all() {
            assert!(ids.insert(rule.id), "{} stands twice", rule.id);
            assert!(
                rule.id.bytes().all(|b| b == b'-' || b.is_ascii_lowercase() || b.is_ascii_digit()),
                "{}",
                rule.id
            );
            assert!(rule.claim.ends_with('.'), "{}", rule.claim);
        }
    }
}
