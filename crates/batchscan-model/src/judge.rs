//! Judges a record's values, field by field (decision 039). Private to the crate: [`Batch::from_record`] is the door.

use url::Url;

use crate::batch::COUNT_MAX;
use crate::ids::BATCH_ID_BYTES_MAX;
use crate::{Batch, BatchId, Field, FieldError, Hundredths, Record, UtcInstant, Value};

/// Whose record it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A file that is to be imported: decision 039 in full.
    File,
    /// Another deployment's answer: what it serves is its own to decide, as far as the interface leaves it open.
    Wire,
}

/// Judges the values of one record, and goes on after a fault so that all are told at once.
pub(crate) struct Judge<'r, 'a> {
    record: &'r Record<'a>,
    source: Source,
    pub(crate) faults: Vec<FieldError>,
}

type TextRule = fn(&Value<'_>) -> Result<String, String>;

impl<'r, 'a> Judge<'r, 'a> {
    pub(crate) fn new(record: &'r Record<'a>, source: Source) -> Self {
        Self { record, source, faults: record.faults().to_vec() }
    }

    /// The batch, if every required value is there and sound. `faults` tells what was not.
    pub(crate) fn batch(&mut self) -> Option<Batch> {
        let batch_id = self.required(Field::BatchId, Judge::batch_id);
        let (name, link): (TextRule, TextRule) = match self.source {
            Source::File => (Judge::name, Judge::link),
            Source::Wire => (Judge::text, Judge::text),
        };
        let batch_name = self.required(Field::BatchName, name);
        let batch_creation_date = self.required(Field::BatchCreationDate, Judge::instant);
        let number_of_images = self.required(Field::NumberOfImages, Judge::count);
        let warnings = self.required(Field::Warnings, Judge::flag);
        Some(Batch {
            crop_type: self.optional(Field::CropType, Judge::text),
            total_cells_per_tray: self.optional(Field::TotalCellsPerTray, Judge::count),
            avg_germinated_seedlings: self.optional(Field::AvgGerminatedSeedlings, Judge::decimal),
            avg_non_germinated_seedlings: self.optional(Field::AvgNonGerminatedSeedlings, Judge::decimal),
            avg_germination_rate: self.optional(Field::AvgGerminationRate, Judge::decimal),
            avg_usable_seedlings: self.optional(Field::AvgUsableSeedlings, Judge::decimal),
            avg_non_usable_cells: self.optional(Field::AvgNonUsableCells, Judge::decimal),
            avg_usable_seedling_rate: self.optional(Field::AvgUsableSeedlingRate, Judge::decimal),
            avg_coefficient_of_variation: self.optional(Field::AvgCoefficientOfVariation, Judge::decimal),
            avg_median_seedling_size_mm2: self.optional(Field::AvgMedianSeedlingSizeMm2, Judge::decimal),
            scanned_by_email: self.optional(Field::ScannedByEmail, Judge::text),
            analysis_link: self.optional(Field::AnalysisLink, link),
            comment: self.optional(Field::Comment, Judge::text),
            batch_id: batch_id?,
            batch_name: batch_name?,
            batch_creation_date: batch_creation_date?,
            number_of_images: number_of_images?,
            warnings: warnings?,
        })
    }

    fn required<T>(&mut self, field: Field, judge: fn(&Value<'_>) -> Result<T, String>) -> Option<T> {
        match self.record.get(field) {
            None => self.fault(field, "nothing", "a value: this field is required".into()),
            Some(Value::Null) => self.fault(field, "null", "a value: this field is required".into()),
            Some(value) => {
                judge(value).map_or_else(|expected| self.fault(field, &value.to_string(), expected), Some)
            }
        }
    }

    fn optional<T>(&mut self, field: Field, judge: fn(&Value<'_>) -> Result<T, String>) -> Option<T> {
        match self.record.get(field) {
            None | Some(Value::Null) => None,
            Some(value) => {
                judge(value).map_or_else(|expected| self.fault(field, &value.to_string(), expected), Some)
            }
        }
    }

    fn fault<T>(&mut self, field: Field, found: &str, expected: String) -> Option<T> {
        self.faults.push(FieldError { field: field.name().into(), found: found.into(), expected });
        None
    }

    fn batch_id(value: &Value<'_>) -> Result<BatchId, String> {
        let expected = || format!("1 to {BATCH_ID_BYTES_MAX} bytes of text without control characters");
        BatchId::new(Self::text(value)?).ok_or_else(expected)
    }

    fn name(value: &Value<'_>) -> Result<String, String> {
        let text = Self::text(value)?;
        if text.is_empty() { Err("text that is not empty".into()) } else { Ok(text) }
    }

    fn text(value: &Value<'_>) -> Result<String, String> {
        match value {
            Value::Text(text) | Value::Cell(text) => Ok(text.clone().into_owned()),
            _ => Err("text".into()),
        }
    }

    fn link(value: &Value<'_>) -> Result<String, String> {
        let text = Self::text(value)?;
        if is_plain_link(&text) {
            return Ok(text);
        }
        // The URL standard strips white space around and inside; a stored link must be one that needs no repair.
        let clean = !text.contains(|c: char| c.is_whitespace() || c.is_control());
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        match Url::parse(&text).ok().filter(|url| clean && is_web(url)) {
            Some(_) => Ok(text),
            None => Err("an absolute http or https URL".into()),
        }
    }

    fn instant(value: &Value<'_>) -> Result<UtcInstant, String> {
        match value {
            Value::Instant(instant) => Ok(*instant),
            Value::Text(text) | Value::Cell(text) => {
                UtcInstant::parse_any_offset(text).map_err(|fault| fault.to_string())
            }
            _ => Err("a date and time as text, such as 2026-01-31T08:00:00Z".into()),
        }
    }

    fn decimal(value: &Value<'_>) -> Result<Hundredths, String> {
        match value {
            Value::Number(text) | Value::Text(text) | Value::Cell(text) => {
                Hundredths::parse(text).map_err(|fault| fault.to_string())
            }
            _ => Err("a decimal number, as text or as a number".into()),
        }
    }

    fn count(value: &Value<'_>) -> Result<u64, String> {
        let (Value::Number(text) | Value::Cell(text)) = value else {
            return Err("a whole number".into());
        };
        if let Some(count) = plain_count(text) {
            return Ok(count);
        }
        // Data frames write a column with gaps as floats: 128.0 is still whole.
        let whole = match text.split_once('.') {
            Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => whole,
            _ => text.as_ref(),
        };
        let digits = !whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit());
        match whole.parse::<u64>() {
            Ok(count) if digits && count <= COUNT_MAX => Ok(count),
            _ if digits => Err(format!("a whole number of at most {COUNT_MAX}")),
            _ => Err("a whole number that is not negative".into()),
        }
    }

    fn flag(value: &Value<'_>) -> Result<bool, String> {
        match value {
            Value::Bool(flag) => Ok(*flag),
            Value::Cell(text) => match text.to_ascii_lowercase().as_str() {
                "true" | "1" => Ok(true),
                "false" | "0" => Ok(false),
                _ => Err("true or false".into()),
            },
            _ => Err("true or false".into()),
        }
    }
}

/// Reads the form that most counts have: digits alone, and too few of them to be too large.
fn plain_count(text: &str) -> Option<u64> {
    const DIGITS_MAX: usize = 15;
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    if text.is_empty() || text.len() > DIGITS_MAX {
        return None;
    }
    text.bytes().try_fold(0, |count, byte| Some(count * 10 + digit(byte)?))
}

/// Whether a text is a web address at which the URL standard has nothing to refuse: a host of plain labels, then any
/// printable ASCII. Most links are, and the standard's parser costs more than the rest of a record.
fn is_plain_link(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    is_plain_host(host) && rest.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Labels of lower-case letters, digits and hyphens. A last one that begins with a digit may be part of an IP address,
/// and one that begins with `xn--` is encoded: both have rules of their own.
fn is_plain_host(host: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label =
        |label: &str| !label.is_empty() && !label.starts_with("xn--") && label.bytes().all(is_plain);
    let last = host.rsplit('.').next().unwrap_or_default();
    host.split('.').all(is_label) && last.starts_with(|first: char| first.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_link_that_passes_as_plain_passes_the_url_standard_too(
            host in "[a-z0-9.-]{1,24}|xn--[a-z0-9]{1,8}|[0-9.]{1,9}|0x[0-9a-f]{1,4}", path in "([/?#:@][!-~]{0,12})?",
        ) {
            let link = format!("https://{host}{path}");
            if is_plain_link(&link) {
                let url = Url::parse(&link);
                prop_assert!(url.is_ok_and(|url| url.has_host() && url.scheme() == "https"), "{}", link);
            }
        }
    }

    #[test]
    fn a_usual_link_is_plain() {
        assert!(is_plain_link("https://app.example.org/a/7?view=full#top"));
        for other in [
            "https://",
            "ftp://example.org",
            "https://1.2.3.4",
            "https://a..b",
            "https://a.org/ü",
            "https://A.org",
        ] {
            assert!(!is_plain_link(other), "{other}");
        }
    }
}
