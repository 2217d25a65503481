//! The findings of a run, as text for people and as JSON for programs.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::verdict::{Finding, Source, Verdict};

/// Rules that must pass before a service can be said to conform: without them nothing was seen of it.
const ESSENTIAL: [&str; 4] =
    ["auth-v1-gives-a-token", "auth-v2-gives-a-token", "v1-is-a-flat-array", "v2-is-an-envelope"];

/// All findings of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// One for each rule, in the order of the run.
    pub findings: Vec<Finding>,
    /// How many requests were sent.
    pub requests: u64,
}

impl Report {
    /// How many rules passed.
    pub fn passed(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Pass))
    }

    /// How many rules failed.
    pub fn failed(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Fail { .. }))
    }

    /// How many rules could not be decided.
    pub fn undecided(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Undecided { .. }))
    }

    /// Whether no rule of the API failed and, if `strict`, no decision of this project either. Undecided rules count
    /// against a service only if they are essential.
    pub fn conforms(&self, strict: bool) -> bool {
        !self.has_failures(strict) && self.essentials_passed()
    }

    fn has_failures(&self, strict: bool) -> bool {
        let counts = |finding: &&Finding| strict || is_api(finding);
        self.findings.iter().filter(counts).any(|finding| matches!(finding.verdict, Verdict::Fail { .. }))
    }

    fn essentials_passed(&self) -> bool {
        let mut essential = self.findings.iter().filter(|finding| ESSENTIAL.contains(&finding.id));
        essential.all(|finding| finding.verdict == Verdict::Pass)
    }

    /// The report as text: the rules of the API, this project's decisions, the summary.
    pub fn text(&self, strict: bool, colour: bool) -> String {
        let style = Style { colour };
        let note = if strict { "" } else { " (not counted without --strict)" };
        let mut text = style.paint(BOLD, "Rules of the API") + "\n";
        text.extend(
            self.findings.iter().filter(|finding| is_api(finding)).map(|finding| style.lines(finding)),
        );
        text += &format!("\n{}\n", style.paint(BOLD, &format!("Decisions of this project{note}")));
        text.extend(
            self.findings.iter().filter(|finding| !is_api(finding)).map(|finding| style.lines(finding)),
        );
        text + "\n" + &self.summary(strict, style)
    }

    fn summary(&self, strict: bool, style: Style) -> String {
        let (rules, passed, failed) = (self.findings.len(), self.passed(), self.failed());
        let (undecided, requests) = (self.undecided(), self.requests);
        let scope = if strict { "the API and this project's decisions" } else { "the API" };
        let result = if self.has_failures(strict) {
            style.paint(RED, &format!("the service does not conform to {scope}"))
        } else if !self.essentials_passed() {
            style.paint(RED, "too few responses to decide whether the service conforms")
        } else {
            style.paint(GREEN, &format!("the service conforms to {scope}"))
        };
        format!(
            "{rules} rules: {passed} passed, {failed} failed, {undecided} undecided; {requests} requests: {result}\n"
        )
    }

    fn count(&self, matches: impl Fn(&Verdict) -> bool) -> usize {
        self.findings.iter().filter(|finding| matches(&finding.verdict)).count()
    }
}

fn is_api(finding: &Finding) -> bool {
    matches!(finding.source, Source::Api(_))
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut report = serializer.serialize_struct("Report", 7)?;
        report.serialize_field("conforms", &self.conforms(false))?;
        report.serialize_field("conforms_strictly", &self.conforms(true))?;
        report.serialize_field("passed", &self.passed())?;
        report.serialize_field("failed", &self.failed())?;
        report.serialize_field("undecided", &self.undecided())?;
        report.serialize_field("requests", &self.requests)?;
        report.serialize_field("findings", &self.findings)?;
        report.end()
    }
}

/// Terminal colours, or none.
#[derive(Clone, Copy)]
struct Style {
    colour: bool,
}

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn lines(self, Finding { id, rule, source, verdict }: &Finding) -> String {
        let (mark, details) = match verdict {
            Verdict::Pass => (self.paint(GREEN, "pass"), String::new()),
            Verdict::Fail { request, response, expected } => (
                self.paint(RED, "FAIL"),
                format!(
                    "          request   {request}\n          response  {response}\n          expected  {expected}\n"
                ),
            ),
            Verdict::Undecided { why } => {
                (self.paint(YELLOW, "  ? "), format!("          undecided: {why}\n"))
            }
        };
        format!("  {mark}  {rule} {}\n{details}", self.paint(DIM, &format!("[{source}; {id}]")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::undecided;

    fn report() -> Report {
        let finding = |id, rule, source, verdict| Finding { id, rule, source, verdict };
        let findings = vec![
            finding("b", "Rule b.", Source::Decision(9), Verdict::fail("GET /", 500, 200)),
            finding("a", "Rule a.", Source::Api("4. Endpoints"), Verdict::Pass),
            finding("c", "Rule c.", Source::Api("8. Limits"), undecided("no batches")),
        ];
        Report { findings, requests: 7 }
    }

    #[test]
    fn a_failed_decision_counts_only_if_strict() {
        assert!(report().conforms(false));
        assert!(!report().conforms(true));
    }

    #[test]
    fn a_service_without_the_essentials_does_not_conform() {
        let mut report = report();
        report.findings[2].id = ESSENTIAL[2];
        assert!(!report.conforms(false));
        let text = report.text(false, false);
        assert!(text.ends_with("too few responses to decide whether the service conforms\n"), "{text}");
    }

    #[test]
    fn the_text_lists_the_api_first_and_ends_with_the_summary() {
        let expected = "\
Rules of the API
  pass  Rule a. [API 4. Endpoints; a]
    ?   Rule c. [API 8. Limits; c]
          undecided: no batches

Decisions of this project (not counted without --strict)
  FAIL  Rule b. [decision 009; b]
          request   GET /
          response  500
          expected  200

3 rules: 1 passed, 1 failed, 1 undecided; 7 requests: the service conforms to the API
";
        assert_eq!(report().text(false, false), expected);
        assert!(report().text(true, true).contains("\x1b[31mFAIL"));
    }

    #[test]
    fn the_json_has_counts_and_flat_findings() {
        let expected = serde_json::json!({
            "conforms": true, "conforms_strictly": false, "passed": 1, "failed": 1, "undecided": 1, "requests": 7,
            "findings": [
                {"id": "b", "rule": "Rule b.", "source": {"decision": 9},
                 "verdict": "fail", "request": "GET /", "response": "500", "expected": "200"},
                {"id": "a", "rule": "Rule a.", "source": {"api": "4. Endpoints"}, "verdict": "pass"},
                {"id": "c", "rule": "Rule c.", "source": {"api": "8. Limits"},
                 "verdict": "undecided", "why": "no batches"},
            ],
        });
        assert_eq!(serde_json::to_value(report()).unwrap(), expected);
    }
}
