//! The result of one rule: where the rule comes from and whether the service follows it. Knows nothing about HTTP.

use std::fmt::{self, Display};

use serde::Serialize;

/// Where a rule comes from. Every server must follow the API; this project's decisions bind only its own server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A section of the API document, by number and heading.
    Api(&'static str),
    /// A numbered decision of this project on something the API leaves open.
    Decision(u16),
}

/// Whether the service follows a rule. The names in JSON are fixed: programs read them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The service follows the rule.
    Pass,
    /// The service breaks the rule. The texts contain no secret and no token, and are safe to print.
    Fail {
        /// The request, on one line.
        request: String,
        /// The response, truncated.
        response: String,
        /// What the rule requires.
        expected: String,
    },
    /// The rule could not be decided.
    Undecided {
        /// Too little data, a limit of the run, or no response.
        why: String,
    },
}

/// One rule and its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A stable name in kebab-case, for programs.
    pub id: &'static str,
    /// The rule, as a sentence.
    pub rule: &'static str,
    /// Where the rule comes from.
    pub source: Source,
    /// Whether the service follows it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// The result of a check. The error is never [`Verdict::Pass`].
pub(crate) type CheckResult<T = ()> = Result<T, Verdict>;

pub(crate) fn undecided(why: impl Into<String>) -> Verdict {
    Verdict::Undecided { why: why.into() }
}

/// Fails a check with the verdict unless it `passes`.
pub(crate) fn require(passes: bool, verdict: impl FnOnce() -> Verdict) -> CheckResult {
    if passes { Ok(()) } else { Err(verdict()) }
}

impl Verdict {
    pub(crate) fn fail(request: impl Display, response: impl Display, expected: impl Display) -> Self {
        let (request, response) = (request.to_string(), response.to_string());
        Self::Fail { request, response, expected: expected.to_string() }
    }

    /// A failure while preparing a rule does not break that rule: it leaves the rule undecided.
    pub(crate) fn into_undecided(self) -> Self {
        match self {
            Self::Fail { request, response, .. } => undecided(format!("{request} returned {response}")),
            other => other,
        }
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api(section) => write!(f, "API {section}"),
            Self::Decision(number) => write!(f, "decision {number:03}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_preparation_leaves_a_rule_undecided() {
        let fail = Verdict::fail("GET /", "500", "200");
        assert_eq!(fail.into_undecided(), undecided("GET / returned 500"));
    }
}
