//! Reads one record from JSON bytes, or says in words a person understands why it cannot be read.

use batchscan_model::record::clip;
use batchscan_model::{FieldError, Record};

use super::fault::Place;
use super::intake::whole;
use super::window::Window;

/// How much of a broken text a fault shows: enough to find it again.
const EXCERPT_CHARS_MAX: usize = 24;

/// Why bytes are no record.
pub(super) struct Misread {
    /// What kind of fault it is.
    pub(super) nature: Nature,
    /// The byte at which it shows.
    at: usize,
    found: String,
    expected: String,
}

/// How bad it is for what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    /// JSON, but not an object.
    Foreign,
    /// The text ends inside the object.
    Unfinished,
    /// The text is not JSON, so that where it ends is a guess.
    Malformed,
}

/// Reads a record. A fault of its values is not looked for here.
pub(super) fn record(bytes: &[u8]) -> Result<Record<'_>, Misread> {
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to()))?;
    Record::from_json(text).map_err(|error| not_json(text, &error))
}

impl Misread {
    /// The fault, if the bytes began where the window does.
    pub(super) fn in_window(self, window: &Window<'_>) -> (Place, FieldError) {
        let before = &window.bytes()[..self.at.min(window.bytes().len())];
        let lines = memchr::memchr_iter(b'\n', before).count() as u64;
        let column = match memchr::memrchr(b'\n', before) {
            Some(last) => (self.at - last) as u64,
            None => window.column() + self.at as u64,
        };
        let found = match self.nature {
            Nature::Foreign if self.at == 0 => self.found,
            _ => format!("{} at column {column}", self.found),
        };
        (Place::Line(window.line() + lines), whole(found, &self.expected))
    }
}

/// The first characters of a text from a byte on, marked as a quotation.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(4 * EXCERPT_CHARS_MAX)];
    let text: String = String::from_utf8_lossy(head).chars().take(EXCERPT_CHARS_MAX).collect();
    format!("`{}`", clip(text.trim_end()))
}

fn not_utf8(bytes: &[u8], at: usize) -> Misread {
    let found = bytes.get(at).map_or_else(String::new, |byte| format!("the byte 0x{byte:02X}, not UTF-8,"));
    Misread { nature: Nature::Malformed, at, found, expected: "UTF-8; save the file as UTF-8".into() }
}

fn not_json(text: &str, error: &serde_json::Error) -> Misread {
    if error.is_data() {
        let expected = "a batch as a JSON object".into();
        return Misread { nature: Nature::Foreign, at: 0, found: clip(text.trim()), expected };
    }
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let expected = in_words(message.strip_suffix(&place).unwrap_or(&message)).into();
    if error.is_eof() {
        let found = "the end of the line".into();
        return Misread { nature: Nature::Unfinished, at: text.len(), found, expected };
    }
    let at = offset(text, error.line(), error.column());
    Misread { nature: Nature::Malformed, at, found: excerpt(&text.as_bytes()[at..]), expected }
}

/// The byte that a line and a column of serde_json's point at.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start = match line.checked_sub(2) {
        Some(nth) => memchr::memchr_iter(b'\n', text.as_bytes()).nth(nth).map_or(0, |end| end + 1),
        None => 0,
    };
    (start + column.saturating_sub(1)).min(text.len())
}

/// What was expected, for a message of serde_json's about text that is not JSON.
fn in_words(message: &str) -> &str {
    match message {
        "expected value" => "a JSON value: text in double quotes, a number, true, false or null",
        "expected ident" => "true, false or null",
        "expected `:`" => "a colon between a field's name and its value",
        "expected `,` or `}`" => "a comma or the closing } of the object",
        "expected `,` or `]`" => "a comma or the closing ] of the array",
        "key must be a string" => "a field's name in double quotes",
        "trailing comma" => "no comma before the closing bracket",
        "trailing characters" => "nothing more after the object",
        "invalid number" => "a number such as 92.5",
        "invalid escape" => "an escape such as \\n, \\\" or \\u00e9 after the backslash",
        "control character (\\u0000-\\u001F) found while parsing a string" => {
            "text without raw control characters; JSON writes them as \\n, \\t or \\u0001"
        }
        "EOF while parsing a string" => "the closing \" of a text",
        "EOF while parsing a list" => "the closing ] of an array",
        "EOF while parsing an object" | "EOF while parsing a value" => "the rest of the object",
        other => other,
    }
}
