//! What is watched over all answers of a run, whatever rule asked for them. Sends nothing.

use serde_json::Value;

use crate::answer::Answer;
use crate::verdict::Verdict;

/// The first offence of each kind, and how many answers were looked at.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// Answers of status 400 and above.
    pub(crate) errors: Watch,
    /// Answers of status 422.
    pub(crate) invalid: Watch,
    /// Error answers, for their content type.
    pub(crate) labels: Watch,
    /// Answers of status 503, for their body.
    pub(crate) unavailable: Watch,
    /// Answers of status 503, for their `Retry-After`.
    pub(crate) patience: Watch,
    /// Answers of status 429, for their `Retry-After`.
    pub(crate) throttled: Watch,
    /// All answers, for secrets in them.
    pub(crate) echoes: Watch,
    /// Error answers, for the `input` that repeats what was sent.
    pub(crate) inputs: Watch,
}

/// One thing that is watched.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) seen: u64,
    pub(crate) offence: Option<Verdict>,
}

impl Watch {
    fn note(&mut self, holds: bool, offence: impl FnOnce() -> Verdict) {
        self.seen += 1;
        if !holds && self.offence.is_none() {
            self.offence = Some(offence());
        }
    }
}

impl Observed {
    /// Looks at one answer.
    pub(crate) fn note(&mut self, answer: &Answer) {
        self.note_echo(answer);
        // HEAD has no body to look at.
        if answer.status < 400 || answer.sent.starts_with("HEAD ") {
            return;
        }
        self.note_error(answer);
        let seconds = answer.header("retry-after").and_then(|value| value.trim().parse::<u64>().ok());
        match answer.status {
            422 => {
                let read = answer.entries();
                self.invalid.note(read.is_ok(), || read.err().unwrap_or(Verdict::Pass));
            }
            429 => self.throttled.note(seconds.is_some(), || {
                answer.fail_header("Retry-After", "429 with Retry-After in seconds")
            }),
            503 => self.patience.note(seconds.is_some_and(|seconds| (3..=5).contains(&seconds)), || {
                answer.fail_header("Retry-After", "503 with Retry-After from 3 to 5")
            }),
            _ => {}
        }
    }

    fn note_error(&mut self, answer: &Answer) {
        let detail = answer.json().ok().and_then(|body| body.get("detail"));
        let expected = "a JSON body with a field detail";
        self.errors.note(detail.is_some(), || answer.fail(expected));
        if answer.status == 503 {
            self.unavailable.note(detail.is_some(), || answer.fail(expected));
        }
        let label = answer.header("content-type").unwrap_or_default();
        self.labels.note(label.to_ascii_lowercase().starts_with("application/json"), || {
            answer.fail_header("Content-Type", "Content-Type: application/json on an error")
        });
        let entries = detail.and_then(Value::as_array);
        let repeats = entries.is_some_and(|list| list.iter().any(|entry| entry.get("input").is_some()));
        self.inputs.note(!repeats, || answer.fail("no entry with a field input"));
    }

    fn note_echo(&mut self, answer: &Answer) {
        self.echoes.note(answer.echo.is_none(), || {
            let came = format!("{} – and in it the {}", answer.came, answer.echo.unwrap_or_default());
            let expected = "an answer that does not repeat secrets or tokens".to_owned();
            Verdict::Fail { sent: answer.sent.clone(), came, expected }
        });
    }
}
