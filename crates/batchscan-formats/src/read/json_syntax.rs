//! Parses one record from JSON bytes. Describes syntax errors in plain words, with their line and column.

use batchscan_model::printable::clip;
use batchscan_model::{FieldError, RawBatch};

use super::collector::unexpected;
use super::error::Location;
use super::text_buffer::TextBuffer;

/// How much of the text an error shows.
const EXCERPT_CHARS_MAX: usize = 24;
const AN_OBJECT: &str = "a batch as a JSON object";

/// Why bytes are not a record.
pub(super) struct SyntaxError {
    pub(super) kind: SyntaxErrorKind,
    /// The offset of the error.
    at: usize,
    found: String,
    expected: String,
}

/// What the error means for the records that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyntaxErrorKind {
    /// Valid JSON, but not an object.
    NotAnObject,
    /// The text ends inside the object.
    Incomplete,
    /// Not JSON, so that the end of the record is a guess.
    Malformed,
}

pub(super) fn parse(bytes: &[u8]) -> Result<RawBatch<'_>, SyntaxError> {
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to()))?;
    RawBatch::from_json(text).map_err(|error| not_json(text, &error))
}

impl SyntaxError {
    /// The error with its location, for bytes at the start of this buffer.
    pub(super) fn locate(self, text: &TextBuffer<'_>) -> (Location, FieldError) {
        let before = &text.bytes()[..self.at.min(text.bytes().len())];
        let lines = memchr::memchr_iter(b'\n', before).count() as u64;
        let column = match memchr::memrchr(b'\n', before) {
            Some(last) => (self.at - last) as u64,
            None => text.column() + self.at as u64,
        };
        let found = match self.kind {
            SyntaxErrorKind::NotAnObject => self.found,
            _ => format!("{} at column {column}", self.found),
        };
        (Location::Line(text.line() + lines), unexpected(found, self.expected))
    }
}

/// The first characters of a text, in backquotes.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(4 * EXCERPT_CHARS_MAX)];
    let text: String = String::from_utf8_lossy(head).chars().take(EXCERPT_CHARS_MAX).collect();
    format!("`{}`", clip(text.trim_end()))
}

fn not_utf8(bytes: &[u8], at: usize) -> SyntaxError {
    let found = bytes.get(at).map_or_else(String::new, |byte| format!("byte 0x{byte:02X}"));
    SyntaxError { kind: SyntaxErrorKind::Malformed, at, found, expected: "UTF-8".into() }
}

fn not_json(text: &str, error: &serde_json::Error) -> SyntaxError {
    if error.is_data() {
        let expected = AN_OBJECT.into();
        return SyntaxError { kind: SyntaxErrorKind::NotAnObject, at: 0, found: clip(text.trim()), expected };
    }
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let expected = match message.strip_suffix(&position) {
        Some(message) if text.trim_start().starts_with('{') => in_plain_words(message).into(),
        _ => AN_OBJECT.into(),
    };
    if error.is_eof() {
        let found = "the end of the line".into();
        return SyntaxError { kind: SyntaxErrorKind::Incomplete, at: text.len(), found, expected };
    }
    let at = offset(text, error.line(), error.column());
    SyntaxError { kind: SyntaxErrorKind::Malformed, at, found: excerpt(&text.as_bytes()[at..]), expected }
}

/// The offset of serde_json's line and column.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start = match line.checked_sub(2) {
        Some(nth) => memchr::memchr_iter(b'\n', text.as_bytes()).nth(nth).map_or(0, |end| end + 1),
        None => 0,
    };
    (start + column.saturating_sub(1)).min(text.len())
}

/// What was expected, for a message of serde_json about an object.
fn in_plain_words(message: &str) -> &'static str {
    match message {
        "expected value" => "a JSON value: text in double quotes, a number, true, false or null",
        "expected ident" => "true, false or null",
        "expected `:`" => "a colon after the field name",
        "expected `,` or `}`" => "a comma or }",
        "expected `,` or `]`" => "a comma or ]",
        "key must be a string" => "a field name in double quotes",
        "trailing comma" => "no comma before the closing bracket",
        "trailing characters" => "nothing after the object",
        "invalid number" => "a number such as 92.5",
        "invalid escape" => "an escape such as \\n, \\\" or \\u00e9 after the backslash",
        "control character (\\u0000-\\u001F) found while parsing a string" => {
            "control characters as escapes such as \\n, \\t or \\u0001"
        }
        "lone leading surrogate in hex escape" | "unexpected end of hex escape" => {
            "two escapes for one character, such as \\ud83c\\udf31"
        }
        "EOF while parsing a string" => "a closing \"",
        "EOF while parsing a list" => "a closing ]",
        "EOF while parsing an object" | "EOF while parsing a value" => "the rest of the object",
        // The numbers and texts of values are only skipped here, which has no other errors.
        _ => "valid JSON",
    }
}

#[cfg(test)]
mod tests {
    use crate::Format::{Json, Ndjson};
    use crate::testing::{errors, ids, small};

    /// The record with this as its last member.
    fn with(member: &str) -> String {
        small("a").replace("}", &format!(",{member}}}"))
    }

    #[test]
    fn every_form_of_json_is_accepted() {
        for member in [
            r#""comment":null"#,
            r#""comment" : "" "#,
            "\t\"comment\"\r:\t\"a\"  ",
            r#""comment":"\"\\\/\b\f\n\r\t\u00e9\uD83C\uDF31""#,
            r#""\u0063omment":"name with an escape""#,
            "\"comment\":\"\u{7F}\u{2028}\u{FEFF}\u{10FFFF}\"",
            r#""avg_germination_rate":92.5"#,
            r#""avg_germination_rate":925e-1"#,
            r#""avg_germination_rate":9.25E+1"#,
            r#""avg_germination_rate":-0"#,
            r#""avg_germination_rate":0e0"#,
        ] {
            for record in [with(member), format!(" {} ", with(member))] {
                assert_eq!(ids(Ndjson, record.clone()), ["a"], "{record}");
                assert_eq!(ids(Json, format!("[{record}]")), ["a"], "{record}");
            }
        }
    }

    /// What the error says after "expected".
    fn expected(record: &str) -> String {
        let errors = errors(Ndjson, format!("{}\n{record}", small("b")));
        let text =
            errors.strip_prefix("line 2: expected ").and_then(|text| text.split_once(", found ")).unwrap();
        assert!(errors.lines().count() == 1 && !text.1.is_empty(), "{record}: {errors}");
        text.0.to_owned()
    }

    #[test]
    fn what_was_expected_is_named_for_every_syntax_error() {
        let escape = r#"an escape such as \n, \" or \u00e9 after the backslash"#;
        let pair = r"two escapes for one character, such as \ud83c\udf31";
        let value = "a JSON value: text in double quotes, a number, true, false or null";
        let control = r"control characters as escapes such as \n, \t or \u0001";
        for (member, text) in [
            (r#""x":"#, value),
            (r#""x":,"y":1"#, value),
            (r#""x":'a'"#, value),
            (r#""x":NaN"#, value),
            (r#""x":Infinity"#, value),
            (r#""x":+1"#, value),
            (r#""x":.5"#, value),
            (r#""x":undefined"#, value),
            (r#""x":True"#, value),
            (r#""x":tru"#, "true, false or null"),
            (r#""x":nul"#, "true, false or null"),
            (r#""x":-"#, "a number such as 92.5"),
            (r#""x":1."#, "a number such as 92.5"),
            (r#""x":1e"#, "a number such as 92.5"),
            (r#""x":1e+"#, "a number such as 92.5"),
            (r#""x":01"#, "a number such as 92.5"),
            (r#""x":-01"#, "a number such as 92.5"),
            (r#""x":0x1F"#, "a comma or }"),
            (r#""x":1 2"#, "a comma or }"),
            (r#""x":"a" "b""#, "a comma or }"),
            (r#""x" 1"#, "a colon after the field name"),
            (r#""x",1"#, "a colon after the field name"),
            (r#"x:1"#, "a field name in double quotes"),
            (r#"'x':1"#, "a field name in double quotes"),
            (r#"1:1"#, "a field name in double quotes"),
            (r#",""x":1"#, "a field name in double quotes"),
            (r#""#, "no comma before the closing bracket"),
            (r#""x":[1,]"#, value),
            (r#""x":[1 2]"#, "a comma or ]"),
            (r#""x":[,1]"#, value),
            (r#""x":"\a""#, escape),
            (r#""x":"\u12G4""#, escape),
            (r#""x":"\u123""#, escape),
            (r#""x":"\U0041""#, escape),
            (r#""x":"\'""#, escape),
            (r#""\u12G4":1"#, escape),
            (r#""\ud800":1"#, pair),
            (r#""\ud800x":1"#, pair),
            (r#""\ud800\n":1"#, pair),
            (r#""\ud800\u0041":1"#, pair),
            (r#""\udc00":1"#, pair),
            ("\"x\":\"\t\"", control),
            ("\"x\":\"\0\"", control),
            ("\"x\u{1F}\":1", control),
            (r#""x":1}}"#, "nothing after the object"),
            (r#""x":1},"#, "nothing after the object"),
            (r#""x":1} {"#, "nothing after the object"),
        ] {
            assert_eq!(expected(&with(member)), text, "{member}");
        }
    }

    #[test]
    fn what_was_expected_is_named_for_other_lines_and_the_end_of_a_line() {
        let object = "a batch as a JSON object";
        for (record, text) in [
            ("7", object),
            ("null", object),
            ("1e999", object),
            ("-", object),
            ("hello", object),
            (r#""text""#, object),
            (r#""\ud800x""#, object),
            (r#""open"#, object),
            ("<html>", object),
            ("}", object),
            ("{", "the rest of the object"),
            (r#"{"x""#, "the rest of the object"),
            (r#"{"x":"#, "the rest of the object"),
            (r#"{"x":1"#, "the rest of the object"),
            (r#"{"x":[1"#, "a closing ]"),
            (r#"{"x"#, "a closing \""),
            (r#"{"x":"a"#, "a closing \""),
            (r#"{"x":"a\"#, "a closing \""),
            (r#"{"x":"a\u12"#, "a closing \""),
        ] {
            assert_eq!(expected(record), text, "{record}");
        }
    }
}
