//! Requests that every service must reject, and what must be true of every response of the run.

use super::rule::{ERRORS, Rule, SERVICE, both, decision};
use crate::probe::Probe;
use crate::request::{Request, Version};
use crate::verdict::CheckResult;

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    Rule(SERVICE, "batches-are-read-only", "POST on a batches endpoint is rejected.", read_only),
    Rule(decision(27), "unknown-path-is-404", "An unknown path is a 404.", unknown_path),
    Rule(decision(27), "wrong-method-is-405", "A wrong method is a 405 whose Allow lists the right one.", wrong_method),
    Rule(decision(27), "oversized-form-is-413", "A form of 20 KiB is a 413.", oversized_form),
    Rule(decision(27), "oversized-query-is-refused", "A query of 12,000 bytes is rejected with a complete response.", |p| p.fetch_batches(Version::V2, &[("next_token", &"x".repeat(OVERSIZED_QUERY_BYTES))])?.require_client_error()),
    Rule(ERRORS, "errors-have-a-detail", "Every error of this run has a JSON body with a field detail.", |p| p.response_checks.result("errors-have-a-detail")),
    Rule(ERRORS, "errors-422-have-entries", "Every 422 of this run has a detail of objects with type, loc and msg.", |p| p.response_checks.result("errors-422-have-entries")),
    Rule(ERRORS, "errors-503-have-a-detail", "Every 503 of this run has a JSON body with a field detail.", |p| p.response_checks.result("errors-503-have-a-detail")),
    Rule(decision(28), "errors-503-say-when-to-retry", "Every 503 of this run has a Retry-After from 3 to 5.", |p| p.response_checks.result("errors-503-say-when-to-retry")),
    Rule(decision(27), "errors-429-say-when-to-retry", "Every 429 of this run has a Retry-After.", |p| p.response_checks.result("errors-429-say-when-to-retry")),
    Rule(decision(27), "errors-are-labelled-json", "Every error of this run has Content-Type: application/json.", |p| p.response_checks.result("errors-are-labelled-json")),
    Rule(decision(14), "errors-repeat-no-input", "No 422 of this run repeats the input.", |p| p.response_checks.result("errors-repeat-no-input")),
    Rule(decision(14), "no-answer-echoes-a-secret", "No response of this run contains the client secret, and only token responses contain a token.", |p| p.response_checks.result("no-answer-echoes-a-secret")),
];

/// Larger than any real auth request, but small enough that a server can reject it without closing the connection.
const OVERSIZED_FORM_BYTES: usize = 20 << 10;

/// Longer than a query with any cursor, but within the header size that most servers accept.
const OVERSIZED_QUERY_BYTES: usize = 12_000;

// DELETE, PUT and PATCH are never sent: they might do harm on a server with a different API.
fn read_only(probe: &mut Probe) -> CheckResult {
    both(probe, |probe, version| {
        let token = probe.token(version)?;
        probe.fetch(&Request::empty_post(version.batches_path()).bearer(&token))?.require_client_error()
    })
}

fn unknown_path(probe: &mut Probe) -> CheckResult {
    let mut paths = ["/v1/batches/conformance-run", "/v3/batches", "/v2/conformance-run"].into_iter();
    paths.try_for_each(|path| probe.fetch(&Request::get(path))?.require_status(404))
}

fn wrong_method(probe: &mut Probe) -> CheckResult {
    both(probe, |probe, version| {
        let post = Request::empty_post(version.batches_path());
        for (request, allowed) in [(post, "GET"), (Request::get(version.auth_path()), "POST")] {
            let response = probe.fetch(&request)?;
            response.require_status(405)?;
            response.require_listed("Allow", &[allowed])?;
        }
        Ok(())
    })
}

fn oversized_form(probe: &mut Probe) -> CheckResult {
    let padding = "x".repeat(OVERSIZED_FORM_BYTES);
    both(probe, |probe, version| {
        let fields = [("client_id", "conformance-run"), ("client_secret", padding.as_str())];
        probe.fetch(&Request::form(version.auth_path(), &fields))?.require_status(413)
    })
}
