//! Validates a [`RawBatch`], field by field (decision 039).

use url::Url;

use crate::field::{COUNT_MAX, Kind, batch_fields};
use crate::{Batch, BatchId, Field, FieldError, FieldErrors, Hundredths, RawBatch, UtcInstant, Value};

impl Batch {
    /// Validates a batch of a file that is imported.
    pub fn from_raw(raw: &RawBatch<'_>) -> Result<Self, FieldErrors> {
        Validator::new(raw, Source::File).run()
    }

    /// Validates a batch of a service's response. Only the rules of the API apply: an empty name and any link pass.
    pub fn from_wire(raw: &RawBatch<'_>) -> Result<Self, FieldErrors> {
        Validator::new(raw, Source::Wire).run()
    }

    /// Parses and validates the JSON text of a batch, as for an import.
    pub fn from_json(text: &str) -> Result<Self, FieldErrors> {
        let raw = RawBatch::from_json(text)
            .map_err(|error| FieldErrors(vec![FieldError::problem("", format!("invalid JSON: {error}"))]))?;
        Self::from_raw(&raw)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    File,
    Wire,
}

/// Validates all fields and collects the errors.
struct Validator<'r, 'a> {
    raw: &'r RawBatch<'a>,
    source: Source,
    errors: Vec<FieldError>,
}

macro_rules! define_batch_method {
    ($($variant:ident $name:ident $presence:ident $kind:ident $texts:tt;)*) => {
        impl Validator<'_, '_> {
            /// The batch, if every field is valid.
            fn batch(&mut self) -> Option<Batch> {
                $(let $name = self.$presence(Field::$variant);)*
                Some(Batch { $($name: $name?,)* })
            }
        }
    };
}
batch_fields!(define_batch_method);

impl<'r, 'a> Validator<'r, 'a> {
    fn new(raw: &'r RawBatch<'a>, source: Source) -> Self {
        Self { raw, source, errors: raw.errors().to_vec() }
    }

    fn run(mut self) -> Result<Batch, FieldErrors> {
        match self.batch() {
            Some(batch) if self.errors.is_empty() => Ok(batch),
            _ => Err(FieldErrors(self.errors)),
        }
    }

    fn required<T: FromValue>(&mut self, field: Field) -> Option<T> {
        let problem = match self.raw.get(field) {
            None => "missing required field",
            Some(Value::Null) => "required field is null",
            Some(Value::Rejected) => return None,
            Some(value) => return self.parse(field, value),
        };
        self.errors.push(FieldError::problem(field.name(), problem));
        None
    }

    fn nullable<T: FromValue>(&mut self, field: Field) -> Option<Option<T>> {
        match self.raw.get(field) {
            None | Some(Value::Null) => Some(None),
            Some(Value::Rejected) => None,
            Some(value) => self.parse(field, value).map(Some),
        }
    }

    fn parse<T: FromValue>(&mut self, field: Field, value: &Value<'_>) -> Option<T> {
        let kind = match (self.source, field.kind()) {
            (Source::Wire, Kind::Name | Kind::Link) => Kind::Text,
            (_, kind) => kind,
        };
        match T::from_value(value, kind) {
            Ok(parsed) => Some(parsed),
            Err(expected) => {
                self.errors.push(FieldError::new(field.name(), value.to_string(), expected));
                None
            }
        }
    }
}

/// A type of a field. The error is what was expected.
trait FromValue: Sized {
    fn from_value(value: &Value<'_>, kind: Kind) -> Result<Self, String>;
}

impl FromValue for String {
    fn from_value(value: &Value<'_>, kind: Kind) -> Result<Self, String> {
        let text = text(value).ok_or_else(|| kind.expected())?;
        let is_valid = match kind {
            Kind::Name => !text.is_empty(),
            Kind::Link => is_web_link(text),
            _ => true,
        };
        if is_valid { Ok(text.to_owned()) } else { Err(kind.expected()) }
    }
}

impl FromValue for BatchId {
    fn from_value(value: &Value<'_>, kind: Kind) -> Result<Self, String> {
        text(value).and_then(BatchId::new).ok_or_else(|| kind.expected())
    }
}

impl FromValue for UtcInstant {
    fn from_value(value: &Value<'_>, kind: Kind) -> Result<Self, String> {
        match value {
            Value::Instant(instant) => Ok(*instant),
            other => text(other)
                .and_then(|text| UtcInstant::parse_any_offset(text).ok())
                .ok_or_else(|| kind.expected()),
        }
    }
}

impl FromValue for Hundredths {
    fn from_value(value: &Value<'_>, kind: Kind) -> Result<Self, String> {
        match value {
            Value::Number(text) | Value::Text(text) | Value::Cell(text) | Value::Percent(text) => {
                Hundredths::parse(text).map_err(|error| error.to_string())
            }
            _ => Err(kind.expected()),
        }
    }
}

impl FromValue for u64 {
    fn from_value(value: &Value<'_>, kind: Kind) -> Result<Self, String> {
        let count = match value {
            Value::Number(text) | Value::Cell(text) => parse_count(text),
            _ => None,
        };
        count.ok_or_else(|| kind.expected())
    }
}

impl FromValue for bool {
    fn from_value(value: &Value<'_>, kind: Kind) -> Result<Self, String> {
        match value {
            Value::Bool(flag) => Ok(*flag),
            Value::Cell(text) if text.eq_ignore_ascii_case("true") || text == "1" => Ok(true),
            Value::Cell(text) if text.eq_ignore_ascii_case("false") || text == "0" => Ok(false),
            _ => Err(kind.expected()),
        }
    }
}

fn text<'v>(value: &'v Value<'_>) -> Option<&'v str> {
    match value {
        Value::Text(text) | Value::Cell(text) => Some(text),
        _ => None,
    }
}

/// Digits, with or without `.0`: data frames write a column with gaps as floats.
fn parse_count(text: &str) -> Option<u64> {
    let whole = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => whole,
        _ => text,
    };
    let is_digits = whole.bytes().all(|byte| byte.is_ascii_digit());
    whole.parse().ok().filter(|count| is_digits && *count <= COUNT_MAX)
}

/// Whether a text is an absolute http or https URL that needs no repair. The URL standard would strip whitespace, add
/// missing slashes, remove needless ones and turn backslashes into slashes.
fn is_web_link(text: &str) -> bool {
    if is_usual_link(text) {
        return true;
    }
    let is_clean = !text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\');
    let has_scheme =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme));
    let is_web = has_scheme("http://") || has_scheme("https://");
    let has_host = text.split_once("://").is_some_and(|(_, rest)| !rest.starts_with('/'));
    is_clean && is_web && has_host && Url::parse(text).is_ok_and(|url| url.has_host())
}

/// Accepts most links without the URL parser, which costs more than the rest of a batch: a host of plain labels, then
/// any printable ASCII.
fn is_usual_link(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let rest = rest.as_bytes();
    let host = rest.split(|byte| matches!(byte, b'/' | b'?' | b'#')).next().unwrap_or_default();
    // Without an early exit the compiler vectorises the loop.
    let is_plain = |byte: u8| byte.is_ascii_graphic() & (byte != b'\\');
    is_usual_host(host) && rest.iter().fold(true, |all, byte| all & is_plain(*byte))
}

/// Labels of lower-case letters, digits and hyphens. A last label that begins with a digit may belong to an IP
/// address, and a label that begins with `xn--` is encoded: both need the URL parser.
fn is_usual_host(host: &[u8]) -> bool {
    let is_dot = |byte: &u8| *byte == b'.';
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let is_label =
        |label: &[u8]| !label.is_empty() && !label.starts_with(b"xn--") && label.iter().all(is_plain);
    let last = host.rsplit(is_dot).next().unwrap_or_default();
    host.split(is_dot).all(is_label) && last.first().is_some_and(u8::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::example_json;
    use proptest::prelude::*;
    use std::borrow::Cow;

    fn errors(text: &str) -> String {
        Batch::from_json(text).unwrap_err().to_string()
    }

    /// Decision 039.
    #[test]
    fn every_error_of_a_batch_is_reported_at_once() {
        let text = r#"{"batch_id":"","batch_name":"","batch_creation_date":"2026-01-31T08:00:00","number_of_images":-1,"total_cells_per_tray":1.5,"avg_germination_rate":"92,5","avg_usable_seedlings":1e12,"analysis_link":"ftp://x","coment":"x","price":1,"warnings":"yes"}"#;
        let expected = "coment: unknown field; did you mean comment?; price: unknown field; \
            batch_id: expected 1 to 128 bytes of text without control characters, found \"\"; \
            batch_name: expected text that is not empty, found \"\"; \
            batch_creation_date: expected a date and time with a UTC offset, such as 2026-01-31T08:00:00Z, found \
            \"2026-01-31T08:00:00\"; \
            number_of_images: expected a whole number from 0 to 9007199254740991, found -1; \
            total_cells_per_tray: expected a whole number from 0 to 9007199254740991, found 1.5; \
            avg_germination_rate: expected a decimal such as 92.5, found \"92,5\"; \
            avg_usable_seedlings: expected a decimal between -1000000000000 and 1000000000000, found 1e12; \
            analysis_link: expected an absolute http or https URL, found \"ftp://x\"; \
            warnings: expected true or false, found \"yes\"";
        assert_eq!(errors(text), expected);
    }

    /// Decision 039.
    #[test]
    fn missing_null_mistyped_and_duplicate_fields_are_errors() {
        let example = example_json();
        for (old, new, error) in [
            (example.as_str(), "{}", "warnings: missing required field"),
            (&example, "[]", "invalid JSON: invalid type: sequence, expected a batch as a JSON object"),
            ("\"b-000123\"", "null", "batch_id: required field is null"),
            (
                "\"b-000123\"",
                "7",
                "batch_id: expected 1 to 128 bytes of text without control characters, found 7",
            ),
            ("\"sown a day late\"", "[1]", "comment: expected text, found [1]"),
            ("\"2026-01-31T08:00:00Z\"", "0", "such as 2026-01-31T08:00:00Z, found 0"),
            (
                ":12,",
                ":\"12\",",
                "number_of_images: expected a whole number from 0 to 9007199254740991, found \"12\"",
            ),
            (":12,", ":9007199254740992,", "found 9007199254740992"),
            ("\"comment\":", "\"comment\":null,\"comment\":", "comment: duplicate field"),
            ("Roma wk 5", "\\ud800", "batch_name: expected text that is not empty, found \"\\ud800"),
        ] {
            let errors = errors(&example.replace(old, new));
            assert!(errors.contains(error), "{error} in {errors}");
        }
    }

    /// Decision 039: spreadsheets and data frames write whole numbers and flags in several ways.
    #[test]
    fn a_csv_cell_may_hold_any_type() {
        let cell = |text: &'static str| Value::Cell(Cow::Borrowed(text));
        for (images, warnings, expected) in [("12.0", "TRUE", (12, true)), ("7", "0", (7, false))] {
            let mut raw = RawBatch::from_json(r#"{"batch_id":"b","batch_name":"n"}"#).unwrap();
            raw.set(Field::BatchCreationDate, cell("2026-01-31 08:00:00+00:00"));
            raw.set(Field::NumberOfImages, cell(images));
            raw.set(Field::Warnings, cell(warnings));
            let batch = Batch::from_raw(&raw).unwrap();
            assert_eq!((batch.number_of_images, batch.warnings), expected);
        }
    }

    #[test]
    fn a_response_may_have_an_empty_name_any_link_and_unknown_fields() {
        let text =
            example_json().replace("Roma wk 5 house 1", "").replace("https://reports", "ftp://reports");
        let text = text.replace("{\"batch_id\"", "{\"tray_colour\":{\"rgb\": [1, 2]},\"batch_id\"");
        assert!(errors(&text).contains("tray_colour"));
        let text = format!("{text} , more");
        let mut raw = RawBatch::default();
        let (unknown, end) = raw.read_wire(&text).unwrap();
        assert_eq!(unknown, [("tray_colour".to_owned(), r#"{"rgb": [1, 2]}"#)]);
        assert_eq!(&text[end..], " , more");
        let batch = Batch::from_wire(&raw).unwrap();
        assert_eq!((batch.batch_name.as_str(), batch.batch_id.as_str()), ("", "b-000123"));
        let mut raw = RawBatch::default();
        raw.read_wire(r#"{"batch_id":"b"}"#).unwrap();
        assert!(Batch::from_wire(&raw).unwrap_err().to_string().contains("warnings: missing required field"));
    }

    #[test]
    fn a_usual_link_needs_no_url_parser() {
        for (link, is_usual) in [
            ("https://app.example.org/a/7?view=full#top", true),
            ("https://", false),
            ("ftp://example.org", false),
            ("https://1.2.3.4", false),
            ("https://a..b", false),
            ("https://a.org/ü", false),
            ("https://A.org", false),
        ] {
            assert_eq!(is_usual_link(link), is_usual, "{link}");
        }
    }

    #[test]
    fn a_link_that_a_browser_would_repair_is_rejected() {
        for link in [
            "https:evil",
            "https:///evil",
            "https:/evil",
            r"https:\\evil",
            r"https://a.org\@evil",
            r"https://a.org/\evil",
            " https://a.org",
        ] {
            assert!(!is_web_link(link), "{link}");
        }
        assert!(is_web_link("HTTPS://1.2.3.4/ü"));
    }

    proptest! {
        #[test]
        fn a_usual_link_passes_the_url_parser(
            host in "[a-z0-9.-]{1,24}|xn--[a-z0-9]{1,8}|[0-9.]{1,9}|0x[0-9a-f]{1,4}", path in "([/?#:@][!-~]{0,12})?",
        ) {
            let link = format!("https://{host}{path}");
            if is_usual_link(&link) {
                let url = Url::parse(&link);
                prop_assert!(url.is_ok_and(|url| url.has_host() && url.scheme() == "https"), "{}", link);
            }
        }
    }
}
