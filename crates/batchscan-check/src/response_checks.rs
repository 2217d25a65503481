//! What must be true of every response, whichever rule requested it. Sends nothing.

use std::collections::HashMap;

use serde_json::Value;

use crate::response::Response;
use crate::verdict::{CheckResult, Verdict, undecided};

/// The checks made on all responses of a run, by rule id: passed so far, or the first failure.
#[derive(Debug, Default)]
pub(crate) struct ResponseChecks(HashMap<&'static str, CheckResult>);

impl ResponseChecks {
    pub(crate) fn result(&self, rule_id: &str) -> CheckResult {
        self.0.get(rule_id).cloned().unwrap_or_else(|| Err(undecided("there was no such response")))
    }

    pub(crate) fn check(&mut self, response: &Response) {
        self.add("no-answer-echoes-a-secret", check_leaks(response));
        // A response to HEAD has no body to check.
        if response.status < 400 || response.request.starts_with("HEAD ") {
            return;
        }
        let detail = response.json().ok().and_then(|body| body.get("detail"));
        let has_detail = response.require(detail.is_some(), "a JSON body with a field detail");
        let is_json = response.header("Content-Type").unwrap_or_default().to_ascii_lowercase();
        let is_json = is_json.starts_with("application/json");
        let is_json = response.require_header("Content-Type", is_json, "Content-Type: application/json");
        let entries = detail.and_then(Value::as_array);
        let has_input = entries.is_some_and(|list| list.iter().any(|entry| entry.get("input").is_some()));
        let seconds = response.retry_after();
        match response.status {
            422 => self.add("errors-422-have-entries", response.validation_errors().map(drop)),
            429 => {
                let has_pause =
                    response.require_header("Retry-After", seconds.is_some(), "Retry-After in seconds");
                self.add("errors-429-say-when-to-retry", has_pause);
            }
            503 => {
                let in_range = seconds.is_some_and(|seconds| (3..=5).contains(&seconds));
                let has_pause = response.require_header("Retry-After", in_range, "Retry-After from 3 to 5");
                self.add("errors-503-say-when-to-retry", has_pause);
                self.add("errors-503-have-a-detail", has_detail.clone());
            }
            _ => {}
        }
        self.add("errors-have-a-detail", has_detail);
        self.add("errors-are-labelled-json", is_json);
        self.add("errors-repeat-no-input", response.require(!has_input, "no entry with a field input"));
    }

    fn add(&mut self, rule_id: &'static str, result: CheckResult) {
        let known = self.0.entry(rule_id).or_insert(Ok(()));
        if known.is_ok() {
            *known = result;
        }
    }
}

fn check_leaks(response: &Response) -> CheckResult {
    let Some(leaked) = response.leaked else { return Ok(()) };
    let shown = format!("{}, which contains the {leaked}", response.shown);
    Err(Verdict::fail(&response.request, shown, "a response without secrets and tokens"))
}
