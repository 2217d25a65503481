//! A response as the rules read it: status, headers, JSON, and the API's error bodies.

use std::cell::OnceCell;
use std::fmt::Display;

use serde_json::Value;

use crate::verdict::{CheckResult, Verdict, require};

/// A response, together with its request.
#[derive(Debug, Default)]
pub(crate) struct Response {
    /// The request, redacted.
    pub(crate) request: String,
    /// Status and body, redacted and truncated.
    pub(crate) shown: String,
    pub(crate) status: u16,
    /// Names in lower case; values redacted and printable.
    pub(crate) headers: Vec<(String, String)>,
    /// The body, decompressed.
    pub(crate) body: Vec<u8>,
    /// The placeholder of a secret or token that the response repeats.
    pub(crate) leaked: Option<&'static str>,
    /// The parsed body, filled on first use.
    pub(crate) json: OnceCell<Option<Value>>,
}

/// One entry of a 422's `detail`.
#[derive(Debug)]
pub(crate) struct ErrorEntry {
    pub(crate) kind: String,
    pub(crate) loc: Vec<String>,
    pub(crate) msg: String,
}

impl Response {
    /// The verdict that this response breaks a rule.
    pub(crate) fn fail(&self, expected: impl Display) -> Verdict {
        Verdict::fail(&self.request, &self.shown, expected)
    }

    /// The same, showing one header in place of the body.
    pub(crate) fn fail_header(&self, name: &str, expected: impl Display) -> Verdict {
        let shown = match self.header(name) {
            Some(value) => format!("{} with {name}: {value}", self.status),
            None => format!("{} without {name}", self.status),
        };
        Verdict::fail(&self.request, shown, expected)
    }

    pub(crate) fn require(&self, passes: bool, expected: impl Display) -> CheckResult {
        require(passes, || self.fail(expected))
    }

    pub(crate) fn require_header(&self, name: &str, passes: bool, expected: impl Display) -> CheckResult {
        require(passes, || self.fail_header(name, expected))
    }

    pub(crate) fn require_status(&self, status: u16) -> CheckResult {
        self.require(self.status == status, format!("status {status}"))
    }

    pub(crate) fn require_client_error(&self) -> CheckResult {
        self.require((400..500).contains(&self.status), "a status from 400 to 499")
    }

    /// A 401 with a string `detail`.
    pub(crate) fn require_unauthorized(&self) -> CheckResult {
        self.require_status(401)?;
        let detail = self.json()?.get("detail");
        self.require(detail.is_some_and(Value::is_string), "401 with a string detail")
    }

    /// A comma-separated header that lists every one of `words`, in any case.
    pub(crate) fn require_listed(&self, name: &str, words: &[&str]) -> CheckResult {
        let value = self.header(name).unwrap_or_default();
        let lists = |word: &&str| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word));
        self.require_header(name, words.iter().all(lists), format!("{name}: {}", words.join(", ")))
    }

    /// All values of a header, joined by commas.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let named = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let values: Vec<&str> = named.map(|(_, value)| value.as_str()).collect();
        if values.is_empty() { None } else { Some(values.join(", ")) }
    }

    /// `Retry-After` in seconds.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.header("Retry-After")?.trim().parse().ok()
    }

    pub(crate) fn json(&self) -> CheckResult<&Value> {
        let parsed = self.json.get_or_init(|| serde_json::from_slice(&self.body).ok());
        parsed.as_ref().ok_or_else(|| self.fail("a JSON body"))
    }

    /// The entries of a valid 422.
    pub(crate) fn validation_errors(&self) -> CheckResult<Vec<ErrorEntry>> {
        self.require_status(422)?;
        let list = self.json()?.get("detail").and_then(Value::as_array);
        let entries: Option<Vec<ErrorEntry>> =
            list.and_then(|list| list.iter().map(ErrorEntry::parse).collect());
        let expected =
            "detail as an array of objects with type (string), loc (array of strings), msg (string)";
        entries.filter(|entries| !entries.is_empty()).ok_or_else(|| self.fail(expected))
    }

    /// A 422 with an entry for `field` in `part` of the request.
    pub(crate) fn require_error_at(&self, part: &str, field: &str) -> CheckResult {
        let names_field =
            |entry: &ErrorEntry| entry.loc[0] == part && entry.loc.iter().any(|name| name == field);
        let found = self.validation_errors()?.iter().any(names_field);
        self.require(found, format!("422 with an entry whose loc begins with {part:?} and names {field:?}"))
    }

    /// A 422 with exactly one entry for each of `fields`, in this order, all of type `kind`.
    pub(crate) fn require_errors(&self, part: &str, fields: &[&str], kind: &str) -> CheckResult {
        let entries = self.validation_errors()?;
        let found: Vec<String> =
            entries.iter().map(|entry| format!("{} at {:?}", entry.kind, entry.loc)).collect();
        let expected: Vec<String> =
            fields.iter().map(|field| format!("{kind} at {:?}", [part, field])).collect();
        self.require(found == expected, format!("422 with exactly these entries: {}", expected.join(", ")))
    }

    /// A 422 whose entries all have a `msg` that begins with `start`, or is `start` if `exact`.
    pub(crate) fn require_msg(&self, start: &str, exact: bool) -> CheckResult {
        let passes = |msg: &str| if exact { msg == start } else { msg.starts_with(start) };
        let all_pass = self.validation_errors()?.iter().all(|entry| passes(&entry.msg));
        self.require(all_pass, format!("the msg {start:?}{}", if exact { "" } else { "…" }))
    }
}

impl ErrorEntry {
    fn parse(value: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let loc: Option<Vec<String>> = value.get("loc")?.as_array()?.iter().map(text).collect();
        let loc = loc.filter(|loc| !loc.is_empty())?;
        Some(Self { kind: text(value.get("type")?)?, loc, msg: text(value.get("msg")?)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invalid(body: &str) -> Response {
        Response { status: 422, body: body.into(), ..Response::default() }
    }

    #[test]
    fn a_422_must_locate_the_field() {
        let response =
            invalid(r#"{"detail":[{"type":"missing","loc":["body","client_id"],"msg":"Field required"}]}"#);
        assert_eq!(response.require_error_at("body", "client_id"), Ok(()));
        assert!(response.require_error_at("body", "grant_type").is_err());
        assert!(response.require_error_at("query", "client_id").is_err());
    }

    #[test]
    fn a_detail_of_another_shape_is_rejected() {
        for body in [
            "<html>",
            r#"{"detail":"no"}"#,
            r#"{"detail":[]}"#,
            r#"{"detail":[{"type":"missing","loc":["body",0],"msg":"x"}]}"#,
            r#"{"detail":[{"type":"missing","loc":[],"msg":"x"}]}"#,
            r#"{"detail":[{"loc":["body"],"msg":"x"}]}"#,
        ] {
            assert!(invalid(body).validation_errors().is_err(), "{body}");
        }
    }

    #[test]
    fn a_list_may_span_several_header_lines() {
        let headers = [("vary", "Authorization"), ("vary", "X, Accept-Encoding")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let response = Response { headers, ..Response::default() };
        assert_eq!(response.require_listed("Vary", &["authorization", "accept-encoding"]), Ok(()));
        assert!(response.require_listed("Vary", &["accept"]).is_err());
    }
}
