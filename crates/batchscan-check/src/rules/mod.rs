//! The rules, one table per file. A rule is a sentence, where it comes from, and a function that checks the service.

mod auth;
mod batches;
mod bearer;
mod dates;
mod errors;
mod fields;
mod http;
mod paging;
mod ranges;
mod token;

use crate::probe::Probe;
use crate::request::Version;
use crate::verdict::{CheckResult, Source, Verdict};

/// One rule.
pub(crate) struct Rule {
    pub(crate) source: Source,
    pub(crate) id: &'static str,
    pub(crate) text: &'static str,
    pub(crate) check: fn(&mut Probe) -> CheckResult,
}

/// Every rule, in the order of the run. The rules on all responses come last.
pub(crate) fn all() -> impl Iterator<Item = &'static Rule> {
    let tables = [
        auth::RULES,
        token::RULES,
        bearer::RULES,
        batches::RULES,
        fields::RULES,
        dates::RULES,
        ranges::RULES,
        paging::RULES,
        http::RULES,
        errors::RULES,
    ];
    tables.into_iter().flatten()
}

const SERVICE: Source = Source::Api("1. What the service does");
const RESOURCES: Source = Source::Api("2. Resources and their fields");
const ENDPOINTS: Source = Source::Api("4. Endpoints");
const AUTHENTICATION: Source = Source::Api("5. Authentication");
const ERRORS: Source = Source::Api("7. Errors");
const LIMITS: Source = Source::Api("8. Limits");
const VERSIONING: Source = Source::Api("9. Versioning");

const fn decision(number: u16) -> Source {
    Source::Decision(number)
}

const fn rule(
    source: Source,
    id: &'static str,
    text: &'static str,
    check: fn(&mut Probe) -> CheckResult,
) -> Rule {
    Rule { source, id, text, check }
}

/// Runs a check on both versions.
fn both(probe: &mut Probe, mut check: impl FnMut(&mut Probe, Version) -> CheckResult) -> CheckResult {
    Version::BOTH.into_iter().try_for_each(|version| check(probe, version))
}

/// Repeats a failed check without the cache: a batch may have been imported between two requests that it compares.
fn confirm(probe: &mut Probe, check: fn(&mut Probe) -> CheckResult) -> CheckResult {
    let first = check(probe);
    if !matches!(first, Err(Verdict::Fail { .. })) {
        return first;
    }
    probe.clear_cache();
    match check(probe) {
        // The run has reached a limit meanwhile, so the first result counts.
        Err(Verdict::Undecided { .. }) => first,
        second => second,
    }
}

/// `text` with one character in the middle changed. Not the last: in base64 it may have unused bits.
fn alter(text: &str) -> Option<String> {
    let middle = text.len() / 2;
    let (head, old, tail) = (text.get(..middle)?, text.get(middle..=middle)?, text.get(middle + 1..)?);
    Some(format!("{head}{}{tail}", if old == "A" { "B" } else { "A" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_altered_text_differs_in_one_character() {
        assert_eq!(alter("abcde").as_deref(), Some("abAde"));
        assert_eq!(alter("abAde").as_deref(), Some("abBde"));
        assert_eq!(alter(""), None);
    }
}
