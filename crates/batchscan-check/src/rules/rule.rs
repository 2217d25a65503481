//! What a rule is, and what rules share.

use crate::probe::Probe;
use crate::request::Version;
use crate::verdict::{CheckResult, Source, Verdict};

/// Where a rule comes from, its id, its text, and its check.
pub(crate) struct Rule(
    pub(crate) Source,
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) fn(&mut Probe) -> CheckResult,
);

pub(crate) const SERVICE: Source = Source::Api("1. What the service does");
pub(crate) const RESOURCES: Source = Source::Api("2. Resources and their fields");
pub(crate) const ENDPOINTS: Source = Source::Api("4. Endpoints");
pub(crate) const AUTHENTICATION: Source = Source::Api("5. Authentication");
pub(crate) const ERRORS: Source = Source::Api("7. Errors");
pub(crate) const LIMITS: Source = Source::Api("8. Limits");
pub(crate) const VERSIONING: Source = Source::Api("9. Versioning");

pub(crate) const fn decision(number: u16) -> Source {
    Source::Decision(number)
}

/// Runs a check on both versions.
pub(crate) fn both(
    probe: &mut Probe,
    mut check: impl FnMut(&mut Probe, Version) -> CheckResult,
) -> CheckResult {
    Version::BOTH.into_iter().try_for_each(|version| check(probe, version))
}

/// Repeats a failed check without the cache: a batch may have been imported between two requests that it compares.
pub(crate) fn confirm(probe: &mut Probe, check: fn(&mut Probe) -> CheckResult) -> CheckResult {
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
pub(crate) fn alter(text: &str) -> Option<String> {
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
