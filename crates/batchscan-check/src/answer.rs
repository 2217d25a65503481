//! One answer as the rules read it: status, headers, JSON, and the error bodies of the interface.

use std::cell::OnceCell;
use std::fmt::Display;

use serde_json::Value;

use crate::verdict::{Checked, Verdict};

/// An answer, with the request it answers.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The request, redacted.
    pub(crate) sent: String,
    /// The answer, redacted and clipped.
    pub(crate) came: String,
    pub(crate) status: u16,
    /// Names in lower case; values redacted and printable.
    pub(crate) headers: Vec<(String, String)>,
    /// The body, decoded where it came compressed.
    pub(crate) body: Vec<u8>,
    /// Which of the things that must not be repeated the answer repeats.
    pub(crate) echo: Option<&'static str>,
    json: OnceCell<Option<Value>>,
}

/// One entry of a 422's `detail`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: String,
    pub(crate) loc: Vec<String>,
    pub(crate) msg: String,
}

impl Answer {
    pub(crate) fn new(
        sent: String,
        came: String,
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Self {
        Self { sent, came, status, headers, body, echo: None, json: OnceCell::new() }
    }

    pub(crate) fn with_echo(self, echo: Option<&'static str>) -> Self {
        Self { echo, ..self }
    }

    /// The verdict that this answer breaks a rule.
    pub(crate) fn fail(&self, expected: impl Display) -> Verdict {
        Verdict::Fail { sent: self.sent.clone(), came: self.came.clone(), expected: expected.to_string() }
    }

    /// The same, where headers are the point.
    pub(crate) fn fail_header(&self, name: &str, expected: impl Display) -> Verdict {
        let came = match self.header(name) {
            Some(value) => format!("{} with {name}: {value}", self.status),
            None => format!("{} without {name}", self.status),
        };
        Verdict::Fail { sent: self.sent.clone(), came, expected: expected.to_string() }
    }

    pub(crate) fn must(&self, holds: bool, expected: impl Display) -> Checked {
        if holds { Ok(()) } else { Err(self.fail(expected)) }
    }

    pub(crate) fn must_be(&self, status: u16) -> Checked {
        self.must(self.status == status, format!("status {status}"))
    }

    /// All values of a header, joined as if they had come on one line.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let values: Vec<&str> = self
            .headers
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
            .collect();
        if values.is_empty() { None } else { Some(values.join(", ")) }
    }

    /// Whether a comma-separated header names `word`, in any case.
    pub(crate) fn header_lists(&self, name: &str, word: &str) -> bool {
        let value = self.header(name).unwrap_or_default();
        value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word))
    }

    pub(crate) fn json(&self) -> Checked<&Value> {
        let parsed = self.json.get_or_init(|| serde_json::from_slice(&self.body).ok());
        parsed.as_ref().ok_or_else(|| self.fail("a JSON body"))
    }

    /// A refusal: some 4xx. A success, a redirect or a failure of the service is none.
    pub(crate) fn must_refuse(&self) -> Checked {
        self.must((400..500).contains(&self.status), "a refusal: a status from 400 to 499")
    }

    /// A 401 whose `detail` is a string.
    pub(crate) fn must_be_unauthorized(&self) -> Checked {
        self.must_be(401)?;
        let detail = self.json()?.get("detail");
        self.must(detail.is_some_and(Value::is_string), "401 with a string detail")
    }

    /// The entries of a 422, when it has the shape the interface gives it.
    pub(crate) fn entries(&self) -> Checked<Vec<Entry>> {
        self.must_be(422)?;
        let list = self.json()?.get("detail").and_then(Value::as_array);
        let entries: Option<Vec<Entry>> = list.and_then(|list| list.iter().map(Entry::read).collect());
        match entries {
            Some(entries) if !entries.is_empty() => Ok(entries),
            _ => Err(self.fail(
                "detail as an array of objects with type (string), loc (array of strings) and msg (string)",
            )),
        }
    }

    /// A 422 with an entry that locates `field` in `part` of the request.
    pub(crate) fn must_blame(&self, part: &str, field: &str) -> Checked {
        let entries = self.entries()?;
        let blamed = entries.iter().any(|entry| entry.blames(part, field));
        self.must(blamed, format!("422 with an entry whose loc begins with {part:?} and names {field:?}"))
    }

    /// A 422 with one entry for each of `fields`, in their order, all of the type `kind`.
    pub(crate) fn must_list(&self, part: &str, fields: &[&str], kind: &str) -> Checked {
        let entries = self.entries()?;
        let exact = entries.len() == fields.len()
            && entries
                .iter()
                .zip(fields)
                .all(|(entry, field)| entry.kind == kind && entry.loc == [part, *field]);
        let wanted: Vec<String> = fields.iter().map(|field| format!("[{part:?},{field:?}]")).collect();
        self.must(
            exact,
            format!("422 with just these entries, each of type {kind:?}, at loc {}", wanted.join(", ")),
        )
    }
}

impl Entry {
    fn read(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key)?.as_str().map(str::to_owned);
        let loc = value.get("loc")?.as_array()?;
        let loc: Option<Vec<String>> = loc.iter().map(|part| part.as_str().map(str::to_owned)).collect();
        Some(Self { kind: text("type")?, loc: loc.filter(|loc| !loc.is_empty())?, msg: text("msg")? })
    }

    pub(crate) fn blames(&self, part: &str, field: &str) -> bool {
        self.loc.first().is_some_and(|first| first == part) && self.loc.iter().any(|known| known == field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Answer {
        Answer::new("GET /".into(), format!("{status} {body}"), status, Vec::new(), body.into())
    }

    #[test]
    fn a_422_must_locate_the_field() {
        let good = answer(
            422,
            r#"{"detail":[{"type":"missing","loc":["body","client_id"],"msg":"Field required"}]}"#,
        );
        assert_eq!(good.must_blame("body", "client_id"), Ok(()));
        assert!(good.must_blame("body", "grant_type").is_err());
        assert!(good.must_blame("query", "client_id").is_err());
    }

    #[test]
    fn a_detail_of_another_shape_is_no_422_body() {
        let bodies = [
            "<html>",
            r#"{"detail":"no"}"#,
            r#"{"detail":[]}"#,
            r#"{"detail":[{"type":"missing","loc":["body",0],"msg":"x"}]}"#,
            r#"{"detail":[{"type":"missing","loc":[],"msg":"x"}]}"#,
            r#"{"detail":[{"loc":["body"],"msg":"x"}]}"#,
        ];
        for body in bodies {
            assert!(answer(422, body).entries().is_err(), "{body}");
        }
    }

    #[test]
    fn header_lists_are_read_over_several_lines() {
        let mut answer = answer(200, "");
        answer.headers =
            vec![("vary".into(), "Authorization".into()), ("vary".into(), "X, Accept-Encoding".into())];
        assert!(answer.header_lists("Vary", "accept-encoding"));
        assert!(!answer.header_lists("Vary", "accept"));
    }
}
