//! What a run found, for people and for programs. Judges nothing itself.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::verdict::{Demand, Finding, Verdict};

/// Rules that must have been seen to hold before anything can be said in a service's favour.
const ESSENTIAL: [&str; 4] =
    ["auth-v1-gives-a-token", "auth-v2-gives-a-token", "v1-is-a-flat-array", "v2-is-an-envelope"];

/// All findings of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// One for each rule, in the order in which they were put to the service.
    pub findings: Vec<Finding>,
    /// How many requests it took.
    pub requests: u64,
}

impl Report {
    /// How many rules held.
    pub fn passed(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Pass))
    }

    /// How many rules did not hold.
    pub fn failed(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Fail { .. }))
    }

    /// How many rules the run could not decide.
    pub fn undecided(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::CannotTell(_)))
    }

    /// Whether no rule of the interface is broken and, if `strict`, no decision of this project either. Undecided
    /// rules do not count against a service, but for the few without which nothing was seen of it at all.
    pub fn conforms(&self, strict: bool) -> bool {
        !self.breaks(strict) && !self.saw_nothing()
    }

    fn breaks(&self, strict: bool) -> bool {
        let counts = |finding: &&Finding| strict || matches!(finding.demand, Demand::Interface(_));
        self.findings.iter().filter(counts).any(|finding| matches!(finding.verdict, Verdict::Fail { .. }))
    }

    fn saw_nothing(&self) -> bool {
        let mut essential = self.findings.iter().filter(|finding| ESSENTIAL.contains(&finding.id));
        essential.any(|finding| finding.verdict != Verdict::Pass)
    }

    /// The report as text: first what the interface demands, then what this project decided, then the sum.
    pub fn text(&self, strict: bool, colour: bool) -> String {
        let paint = Paint { colour };
        let decided = if strict {
            "What this project decided where the interface is silent"
        } else {
            "What this project decided where the interface is silent (counts only when strict)"
        };
        let mut text = String::new();
        for (heading, interface) in [("What the interface demands", true), (decided, false)] {
            text.push_str(&paint.bold(heading));
            text.push('\n');
            for finding in &self.findings {
                if matches!(finding.demand, Demand::Interface(_)) == interface {
                    text.push_str(&lines(finding, paint));
                }
            }
            text.push('\n');
        }
        text.push_str(&self.summary(strict, paint));
        text
    }

    fn summary(&self, strict: bool, paint: Paint) -> String {
        let (passed, failed, undecided) = (self.passed(), self.failed(), self.undecided());
        let rules = self.findings.len();
        let requests = self.requests;
        let counts = format!(
            "{rules} rules: {passed} passed, {failed} failed, {undecided} undecided; {requests} requests"
        );
        let measure = if strict { "the interface and this project's decisions" } else { "the interface" };
        let verdict = if self.breaks(strict) {
            paint.red(&format!("the service does not conform to {measure}"))
        } else if self.saw_nothing() {
            paint.red("too little was answered to tell whether the service conforms")
        } else {
            paint.green(&format!("the service conforms to {measure}"))
        };
        format!("{counts}: {verdict}\n")
    }

    fn count(&self, which: impl Fn(&Verdict) -> bool) -> usize {
        self.findings.iter().filter(|finding| which(&finding.verdict)).count()
    }
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

fn lines(finding: &Finding, paint: Paint) -> String {
    let Finding { id, rule, demand, verdict } = finding;
    let mark = match verdict {
        Verdict::Pass => paint.green("pass"),
        Verdict::Fail { .. } => paint.red("FAIL"),
        Verdict::CannotTell(_) => paint.yellow("  ? "),
    };
    let head = format!("  {mark}  {rule} {}\n", paint.dim(&format!("[{demand}; {id}]")));
    match verdict {
        Verdict::Pass => head,
        Verdict::Fail { sent, came, expected } => {
            format!(
                "{head}          sent      {sent}\n          came      {came}\n          expected  {expected}\n"
            )
        }
        Verdict::CannotTell(why) => format!("{head}          cannot tell with this data: {why}\n"),
    }
}

/// Colours, or none.
#[derive(Clone, Copy)]
struct Paint {
    colour: bool,
}

impl Paint {
    fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    fn red(self, text: &str) -> String {
        self.wrap("31", text)
    }

    fn yellow(self, text: &str) -> String {
        self.wrap("33", text)
    }

    fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let fail = Verdict::Fail { sent: "GET /".into(), came: "500".into(), expected: "200".into() };
        Report {
            findings: vec![
                Finding { id: "b", rule: "Rule b.", demand: Demand::Decision(9), verdict: fail },
                Finding {
                    id: "a",
                    rule: "Rule a.",
                    demand: Demand::Interface("4. Endpoints"),
                    verdict: Verdict::Pass,
                },
                Finding {
                    id: "c",
                    rule: "Rule c.",
                    demand: Demand::Interface("8. Limits"),
                    verdict: Verdict::CannotTell("no batches".into()),
                },
            ],
            requests: 7,
        }
    }

    #[test]
    fn a_broken_decision_counts_only_when_strict() {
        assert!(report().conforms(false));
        assert!(!report().conforms(true));
    }

    #[test]
    fn a_service_that_showed_nothing_does_not_conform() {
        let mut report = report();
        report.findings[2].id = ESSENTIAL[2];
        assert!(!report.conforms(false));
        assert!(
            report
                .text(false, false)
                .ends_with("too little was answered to tell whether the service conforms\n")
        );
    }

    #[test]
    fn the_text_puts_the_interface_first_and_ends_with_the_sum() {
        let expected = "\
What the interface demands
  pass  Rule a. [interface 4. Endpoints; a]
    ?   Rule c. [interface 8. Limits; c]
          cannot tell with this data: no batches

What this project decided where the interface is silent (counts only when strict)
  FAIL  Rule b. [decision 009; b]
          sent      GET /
          came      500
          expected  200

3 rules: 1 passed, 1 failed, 1 undecided; 7 requests: the service conforms to the interface
";
        assert_eq!(report().text(false, false), expected);
    }

    #[test]
    fn without_colour_there_is_no_escape() {
        assert!(!report().text(true, false).contains('\x1b'));
        assert!(report().text(true, true).contains('\x1b'));
    }

    #[test]
    fn programs_read_the_counts() {
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!(json["conforms"], true);
        assert_eq!(json["conforms_strictly"], false);
        assert_eq!(json["undecided"], 1);
        assert_eq!(json["findings"][0]["verdict"], "fail");
    }
}
