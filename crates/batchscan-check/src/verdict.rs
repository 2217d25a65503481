//! What is said about one rule: where it comes from and how the service did. Knows nothing of HTTP.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

/// Where a rule comes from. A server must follow the interface; this project's decisions bind ours alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// The interface document, by section number and heading.
    Interface(&'static str),
    /// A numbered decision of this project on something the interface leaves open.
    Decision(u16),
}

/// How the service did on one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The rule was put to the service, and it held.
    Pass,
    /// The rule does not hold. The three texts carry no secret and no token, and are safe to print.
    Fail {
        /// The request, as a person would write it down.
        sent: String,
        /// What the service answered, clipped.
        came: String,
        /// What the rule asks for instead.
        expected: String,
    },
    /// The run could not decide, and why: too little data, a limit of the run, or an answer that never came.
    CannotTell(String),
}

/// One rule and how the service did on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A stable name in kebab-case, for programs.
    pub id: &'static str,
    /// The claim, as a sentence.
    pub rule: &'static str,
    /// Where the rule comes from.
    pub demand: Demand,
    /// How the service did.
    pub verdict: Verdict,
}

/// The outcome of a check: nothing to object, or the verdict that ends it. Never holds [`Verdict::Pass`] as an error.
pub(crate) type Checked<T = ()> = Result<T, Verdict>;

impl Verdict {
    /// A failure met while preparing a rule is no failure of that rule: it only keeps the rule from being judged.
    pub(crate) fn as_doubt(&self) -> Self {
        match self {
            Self::Fail { sent, came, .. } => Self::CannotTell(format!("{sent} answered {came}")),
            other => other.clone(),
        }
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(section) => write!(f, "interface {section}"),
            Self::Decision(number) => write!(f, "decision {number:03}"),
        }
    }
}

impl Serialize for Demand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Interface(section) => map.serialize_entry("interface", section)?,
            Self::Decision(number) => map.serialize_entry("decision", number)?,
        }
        map.end()
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", self.id)?;
        map.serialize_entry("rule", self.rule)?;
        map.serialize_entry("demand", &self.demand)?;
        match &self.verdict {
            Verdict::Pass => map.serialize_entry("verdict", "pass")?,
            Verdict::Fail { sent, came, expected } => {
                map.serialize_entry("verdict", "fail")?;
                map.serialize_entry("sent", sent)?;
                map.serialize_entry("came", came)?;
                map.serialize_entry("expected", expected)?;
            }
            Verdict::CannotTell(why) => {
                map.serialize_entry("verdict", "cannot_tell")?;
                map.serialize_entry("why", why)?;
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_met_on_the_way_is_only_a_doubt() {
        let fail = Verdict::Fail { sent: "GET /".into(), came: "500".into(), expected: "200".into() };
        assert_eq!(fail.as_doubt(), Verdict::CannotTell("GET / answered 500".into()));
    }

    #[test]
    fn a_finding_serialises_flat() {
        let finding = Finding {
            id: "an-id",
            rule: "A claim.",
            demand: Demand::Decision(13),
            verdict: Verdict::CannotTell("no batches".into()),
        };
        let json = serde_json::to_value(finding).unwrap();
        let expected = serde_json::json!({
            "id": "an-id", "rule": "A claim.", "demand": {"decision": 13},
            "verdict": "cannot_tell", "why": "no batches",
        });
        assert_eq!(json, expected);
    }
}
