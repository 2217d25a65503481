//! Compares texts with inline snapshots. `SNAPSHOTS=overwrite cargo test -p batchscan` rewrites them.

use std::process::Command;
use std::sync::OnceLock;

use regex::Regex;
use snapbox::{Assert, IntoData, Redactions};

use crate::program::Outcome;

/// What differs from run to run.
const VARIABLE: [(&str, &str); 10] = [
    ("[SITE]", r"/[^ ']*/batchscan-cli-[A-Za-z0-9]+"),
    ("[DATABASE]", r"fresh_\d+_\d+"),
    ("[PORT]", r"(127\.0\.0\.1|localhost):(?<redacted>\d+)"),
    ("[CLIENT_ID]", r"bs_[A-Za-z0-9_-]{16}"),
    ("[SESSION]", r"(?:\n|Green Valley  )(?<redacted>[A-Za-z0-9_-]{16})  "),
    ("[SECRET]", r"secret  (?<redacted>[A-Za-z0-9_-]{43})"),
    ("[TIME]", r" in (?<redacted>\d+\.\d) s"),
    ("[SIZE]", r"(?<redacted>\d+(\.\d [KM]iB| bytes))( in |\))"),
    ("[DIGEST]", r"  (?<redacted>[0-9a-f]{16})  "),
    ("[DATE]", r"  (?<redacted>20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ)(  |\n)"),
];

/// Fails if the text differs from the snapshot.
#[track_caller]
pub(crate) fn assert_snapshot(text: &str, expected: impl IntoData) {
    static ASSERT: OnceLock<Assert> = OnceLock::new();
    let assert = ASSERT.get_or_init(|| {
        let mut redactions = Redactions::new();
        for (placeholder, pattern) in VARIABLE {
            redactions.insert(placeholder, Regex::new(pattern).unwrap()).unwrap();
        }
        Assert::new().action_env("SNAPSHOTS").redact_with(redactions)
    });
    assert.eq(text, expected);
}

/// Runs command lines and returns what a terminal would show: output, errors, and the exit status if it is not 0.
pub(crate) fn transcript(lines: &[&str], command: impl Fn(&[&str]) -> Command) -> String {
    let mut text = String::new();
    for line in lines {
        let words = split_words(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let Outcome { code, out, err, .. } = Outcome::run(&mut command(&words));
        // Usage errors end with lines that are the same for every command.
        let err = if code == Some(2) { err.split("\n\n").next().unwrap().to_owned() + "\n" } else { err };
        text += &format!("$ batchscan {line}\n{out}{err}");
        if code != Some(0) {
            text += &format!("exit status {}\n", code.unwrap());
        }
        text += "\n";
    }
    text
}

/// Words separated by spaces; `'a b'` is one word.
fn split_words(line: &str) -> Vec<String> {
    let (mut words, mut quoted) = (Vec::new(), false);
    for part in line.split('\'') {
        if quoted {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
        quoted = !quoted;
    }
    words
}
