//! Parses one record from JSON bytes. Describes syntax errors in plain words, with their line and column.

use batchscan_model::printable::clip;
use batchscan_model::{FieldError, RawBatch};

use super::collector::unexpected;
use super::error::Location;
use super::text_buffer::TextBuffer;

/// How much of the text an error shows.
const EXCERPT_CHARS_MAX: usize = 24;

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
        let expected = "a batch as a JSON object".into();
        return SyntaxError { kind: SyntaxErrorKind::NotAnObject, at: 0, found: clip(text.trim()), expected };
    }
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let expected = in_plain_words(message.strip_suffix(&position).unwrap_or(&message)).into();
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

/// What was expected, for a message of serde_json.
fn in_plain_words(message: &str) -> &str {
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
        "EOF while parsing a string" => "a closing \"",
        "EOF while parsing a list" => "a closing ]",
        "EOF while parsing an object" | "EOF while parsing a value" => "the rest of the object",
        other => other,
    }
}
