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
//!     ca_cert: None,
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
mod target;
mod verdict;
mod walk;

pub use limits::Limits;
pub use report::Report;
pub use target::{Secret, Target, Unreachable};
pub use verdict::{Finding, Source, Verdict};

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
    for &rules::Rule(source, id, rule, check) in rules::all() {
        let verdict = check(&mut probe).err().unwrap_or(Verdict::Pass);
        let finding = Finding { id, rule, source, verdict };
        on_finding(&finding);
        findings.push(finding);
    }
    Ok(Report { findings, requests: probe.requests })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_ids_are_unique_kebab_case_and_texts_are_sentences() {
        let mut ids = std::collections::HashSet::new();
        for &rules::Rule(_, id, text, _) in rules::all() {
            assert!(ids.insert(id), "{id} is not unique");
            let is_kebab = |byte: u8| byte == b'-' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
            assert!(id.bytes().all(is_kebab), "{id}");
            assert!(text.ends_with('.'), "{text}");
        }
        assert_eq!(ids.len(), 174);
    }
}
