//! Refusals of what is not there, and what holds of every answer of the run.

use super::{ERRORS, Rule, SERVICE, decided, rule};
use crate::ask::{Ask, Version};
use crate::observed::Watch;
use crate::probe::Probe;
use crate::verdict::{Checked, Verdict};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    rule(SERVICE, "batches-are-read-only", "POST on a batches endpoint is refused.", read_only),
    rule(decided(27), "unknown-path-is-404", "A path that is not there is a 404.", unknown_path),
    rule(decided(27), "wrong-method-is-405", "Another method is a 405 with an Allow that names the right one.", wrong_method),
    rule(decided(27), "oversized-form-is-413", "A form of 20 KiB is a 413.", oversized_form),
    rule(decided(27), "oversized-query-is-refused", "A query of 12,000 bytes is refused in good order, not answered and not cut off.", oversized_query),
    rule(ERRORS, "errors-have-a-detail", "Every error met in this run has a JSON body with a field detail.", |p| watched(&p.observed.errors, "no error was met")),
    rule(ERRORS, "errors-422-have-entries", "Every 422 met in this run has a detail of objects with type, loc and msg.", |p| watched(&p.observed.invalid, "no 422 was met")),
    rule(ERRORS, "errors-503-have-a-detail", "Every 503 met in this run has a JSON body with a field detail.", |p| watched(&p.observed.unavailable, "no 503 was met")),
    rule(decided(28), "errors-503-say-when-to-retry", "Every 503 met in this run has a Retry-After from 3 to 5.", |p| watched(&p.observed.patience, "no 503 was met")),
    rule(decided(27), "errors-429-say-when-to-retry", "Every 429 met in this run has a Retry-After.", |p| watched(&p.observed.throttled, "no 429 was met")),
    rule(decided(27), "errors-are-labelled-json", "Every error met in this run has Content-Type: application/json.", |p| watched(&p.observed.labels, "no error was met")),
    rule(decided(14), "errors-repeat-no-input", "No 422 met in this run repeats the input.", |p| watched(&p.observed.inputs, "no error was met")),
    rule(decided(14), "no-answer-echoes-a-secret", "No answer of this run repeats the client secret, and none but a token response repeats a token.", |p| watched(&p.observed.echoes, "nothing was answered")),
];

/// Beyond any honest auth request, yet small enough that a server which refuses it unread need not cut the line.
const OVERSIZED_FORM_BYTES: usize = 20 << 10;

/// Beyond the query that any cursor makes, yet within the header bytes that servers commonly take.
const OVERSIZED_QUERY_BYTES: usize = 12_000;

// DELETE, PUT and PATCH are never sent: on a server that is no service of this interface they might do harm.
fn read_only(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let token = probe.token(version)?;
        probe.ask(&empty_post(version.batches()).bearer(&token))?.must_refuse()?;
    }
    Ok(())
}

fn unknown_path(probe: &mut Probe) -> Checked {
    for path in ["/v1/batches/conformance-run", "/v3/batches", "/v2/conformance-run"] {
        probe.ask(&Ask::get(path))?.must_be(404)?;
    }
    Ok(())
}

fn wrong_method(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        for (ask, allowed) in [(empty_post(version.batches()), "GET"), (Ask::get(version.auth()), "POST")] {
            let answer = probe.ask(&ask)?;
            answer.must_be(405)?;
            if !answer.header_lists("Allow", allowed) {
                return Err(answer.fail_header("Allow", format!("an Allow that names {allowed}")));
            }
        }
    }
    Ok(())
}

fn oversized_form(probe: &mut Probe) -> Checked {
    let padding = "x".repeat(OVERSIZED_FORM_BYTES);
    for version in Version::BOTH {
        let ask = Ask::form(version.auth(), &[("client_id", "conformance-run"), ("client_secret", &padding)]);
        probe.ask(&ask)?.must_be(413)?;
    }
    Ok(())
}

fn oversized_query(probe: &mut Probe) -> Checked {
    let cursor = "x".repeat(OVERSIZED_QUERY_BYTES);
    probe.get_batches(Version::V2, &[("next_token", &cursor)])?.must_refuse()
}

fn watched(watch: &Watch, nothing: &str) -> Checked {
    match &watch.offence {
        Some(verdict) => Err(verdict.clone()),
        None if watch.seen == 0 => Err(Verdict::CannotTell(nothing.to_owned())),
        None => Ok(()),
    }
}

fn empty_post(path: &str) -> Ask {
    let mut ask = Ask::new("POST", path);
    ask.body = Some(Vec::new());
    ask
}
