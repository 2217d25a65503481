//! The eighteen fields of a batch: type, nullability, format.

use jiff::Timestamp;
use serde_json::Value;

use super::batch::each_batch;
use super::{RESOURCES, Rule, decided, rule};
use crate::probe::Probe;
use crate::verdict::Checked;

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    rule(RESOURCES, "field-batch-id", "batch_id is a string, never null.", field::<0>),
    rule(RESOURCES, "field-batch-name", "batch_name is a string, never null.", field::<1>),
    rule(RESOURCES, "field-batch-creation-date", "batch_creation_date is an ISO 8601 UTC datetime that ends with Z, never null.", field::<2>),
    rule(RESOURCES, "field-crop-type", "crop_type is a string or null.", field::<3>),
    rule(RESOURCES, "field-number-of-images", "number_of_images is an integer, never null.", field::<4>),
    rule(RESOURCES, "field-total-cells-per-tray", "total_cells_per_tray is an integer or null.", field::<5>),
    rule(RESOURCES, "field-avg-germinated-seedlings", "avg_germinated_seedlings is a string with two fraction digits or null.", field::<6>),
    rule(RESOURCES, "field-avg-non-germinated-seedlings", "avg_non_germinated_seedlings is a string with two fraction digits or null.", field::<7>),
    rule(RESOURCES, "field-avg-germination-rate", "avg_germination_rate is a string with two fraction digits or null.", field::<8>),
    rule(RESOURCES, "field-avg-usable-seedlings", "avg_usable_seedlings is a string with two fraction digits or null.", field::<9>),
    rule(RESOURCES, "field-avg-non-usable-cells", "avg_non_usable_cells is a string with two fraction digits or null.", field::<10>),
    rule(RESOURCES, "field-avg-usable-seedling-rate", "avg_usable_seedling_rate is a string with two fraction digits or null.", field::<11>),
    rule(RESOURCES, "field-avg-coefficient-of-variation", "avg_coefficient_of_variation is a string with two fraction digits or null.", field::<12>),
    rule(RESOURCES, "field-avg-median-seedling-size-mm2", "avg_median_seedling_size_mm2 is a string with two fraction digits or null.", field::<13>),
    rule(RESOURCES, "field-scanned-by-email", "scanned_by_email is a string or null.", field::<14>),
    rule(RESOURCES, "field-analysis-link", "analysis_link is a URL or null.", field::<15>),
    rule(RESOURCES, "field-comment", "comment is a string or null.", field::<16>),
    rule(RESOURCES, "field-warnings", "warnings is a boolean, never null.", field::<17>),
    rule(decided(34), "creation-date-without-trailing-zeros", "batch_creation_date has a fraction only where it is not zero, and no trailing zeros.", trimmed_dates),
    rule(decided(36), "batch-id-is-printable-and-short", "batch_id is not empty, has up to 128 bytes and no control characters.", short_ids),
    rule(decided(39), "batch-name-is-not-empty", "batch_name is not empty.", named),
    rule(decided(39), "counts-are-not-negative", "number_of_images and total_cells_per_tray are not negative.", counts),
    rule(decided(39), "decimals-are-below-ten-to-the-twelfth", "Decimals are smaller than 10^12.", small_decimals),
    rule(decided(39), "analysis-link-is-http", "analysis_link is an absolute http or https URL.", http_links),
];

/// One field of a batch.
pub(super) struct Field {
    pub(super) name: &'static str,
    kind: Kind,
    nullable: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Instant,
    Integer,
    Decimal,
    Url,
    Boolean,
}

#[rustfmt::skip]
pub(super) const FIELDS: [Field; 18] = [
    Field { name: "batch_id", kind: Kind::Text, nullable: false },
    Field { name: "batch_name", kind: Kind::Text, nullable: false },
    Field { name: "batch_creation_date", kind: Kind::Instant, nullable: false },
    Field { name: "crop_type", kind: Kind::Text, nullable: true },
    Field { name: "number_of_images", kind: Kind::Integer, nullable: false },
    Field { name: "total_cells_per_tray", kind: Kind::Integer, nullable: true },
    Field { name: "avg_germinated_seedlings", kind: Kind::Decimal, nullable: true },
    Field { name: "avg_non_germinated_seedlings", kind: Kind::Decimal, nullable: true },
    Field { name: "avg_germination_rate", kind: Kind::Decimal, nullable: true },
    Field { name: "avg_usable_seedlings", kind: Kind::Decimal, nullable: true },
    Field { name: "avg_non_usable_cells", kind: Kind::Decimal, nullable: true },
    Field { name: "avg_usable_seedling_rate", kind: Kind::Decimal, nullable: true },
    Field { name: "avg_coefficient_of_variation", kind: Kind::Decimal, nullable: true },
    Field { name: "avg_median_seedling_size_mm2", kind: Kind::Decimal, nullable: true },
    Field { name: "scanned_by_email", kind: Kind::Text, nullable: true },
    Field { name: "analysis_link", kind: Kind::Url, nullable: true },
    Field { name: "comment", kind: Kind::Text, nullable: true },
    Field { name: "warnings", kind: Kind::Boolean, nullable: false },
];

/// Batches without the field are left to the rule that all fields are there.
fn field<const INDEX: usize>(probe: &mut Probe) -> Checked {
    let field = &FIELDS[INDEX];
    each_batch(probe, |batch| {
        let value = batch.get(field.name)?;
        let right = if value.is_null() { field.nullable } else { field.kind.fits(value) };
        if right { None } else { Some((format!("{}: {value}", field.name), field.wanted())) }
    })
}

impl Field {
    fn wanted(&self) -> String {
        let kind = match self.kind {
            Kind::Text => "a string",
            Kind::Instant => "a string such as \"2024-05-01T08:30:00Z\"",
            Kind::Integer => "an integer",
            Kind::Decimal => "a string with two fraction digits such as \"92.50\"",
            Kind::Url => "a string that is a URL",
            Kind::Boolean => "true or false",
        };
        if self.nullable { format!("{kind}, or null") } else { kind.to_owned() }
    }
}

impl Kind {
    fn fits(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text, Value::String(_)) | (Self::Boolean, Value::Bool(_)) => true,
            (Self::Integer, Value::Number(number)) => number.is_i64() || number.is_u64(),
            (Self::Instant, Value::String(text)) => is_instant(text),
            (Self::Decimal, Value::String(text)) => is_decimal(text),
            (Self::Url, Value::String(text)) => url::Url::parse(text).is_ok(),
            _ => false,
        }
    }
}

fn is_instant(text: &str) -> bool {
    let shape = |at: usize, byte: u8| match at {
        4 | 7 => byte == b'-',
        10 => byte == b'T',
        13 | 16 => byte == b':',
        _ => byte.is_ascii_digit(),
    };
    let Some(rest) = text.strip_suffix('Z') else { return false };
    let (seconds, fraction) = rest.split_once('.').unwrap_or((rest, "0"));
    let digits = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let shaped = seconds.len() == 19 && seconds.bytes().enumerate().all(|(at, byte)| shape(at, byte));
    digits && shaped && text.parse::<Timestamp>().is_ok()
}

fn is_decimal(text: &str) -> bool {
    let Some((whole, fraction)) = text.strip_prefix('-').unwrap_or(text).split_once('.') else {
        return false;
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !whole.is_empty() && digits(whole) && fraction.len() == 2 && digits(fraction)
}

fn trimmed_dates(probe: &mut Probe) -> Checked {
    each_text(probe, Kind::Instant, "no trailing zeros and no empty fraction", |text| {
        !text.contains('.') || !text.trim_end_matches('Z').ends_with(['0', '.'])
    })
}

fn small_decimals(probe: &mut Probe) -> Checked {
    each_text(probe, Kind::Decimal, "less than 10^12 in size", |text| {
        let whole = text.trim_start_matches('-').split('.').next().unwrap_or_default();
        whole.trim_start_matches('0').len() <= 12
    })
}

fn http_links(probe: &mut Probe) -> Checked {
    each_text(probe, Kind::Url, "an absolute http or https URL", |text| {
        url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
    })
}

/// Looks at the texts of all fields of one kind.
fn each_text(probe: &mut Probe, kind: Kind, expected: &str, right: impl Fn(&str) -> bool) -> Checked {
    each_batch(probe, |batch| {
        let mut fields = FIELDS.iter().filter(|field| field.kind == kind);
        fields.find_map(|field| {
            let text = batch.get(field.name)?.as_str()?;
            if right(text) { None } else { Some((format!("{}: {text:?}", field.name), expected.to_owned())) }
        })
    })
}

fn short_ids(probe: &mut Probe) -> Checked {
    each_batch(probe, |batch| {
        let id = batch.get("batch_id")?.as_str()?;
        let right = (1..=128).contains(&id.len()) && !id.chars().any(char::is_control);
        if right {
            None
        } else {
            Some((format!("batch_id {id:?}"), "1 to 128 bytes, all printable".to_owned()))
        }
    })
}

fn named(probe: &mut Probe) -> Checked {
    each_batch(probe, |batch| {
        let name = batch.get("batch_name")?.as_str()?;
        name.is_empty().then(|| ("an empty batch_name".to_owned(), "a name".to_owned()))
    })
}

fn counts(probe: &mut Probe) -> Checked {
    each_batch(probe, |batch| {
        let mut fields = FIELDS.iter().filter(|field| field.kind == Kind::Integer);
        fields.find_map(|field| {
            let count = batch.get(field.name)?.as_i64()?;
            (count < 0).then(|| (format!("{}: {count}", field.name), "zero or more".to_owned()))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_is_a_number_with_two_fraction_digits() {
        for good in ["0.00", "92.50", "-1.25", "1000000.00"] {
            assert!(is_decimal(good), "{good}");
        }
        for bad in ["", "1", "1.5", "1.505", ".50", "1,50", "+1.50", "1e2.00", "--1.00", "NaN", " 1.00"] {
            assert!(!is_decimal(bad), "{bad}");
        }
    }

    #[test]
    fn an_instant_is_utc_and_ends_with_z() {
        for good in ["2024-05-01T08:30:00Z", "2024-02-29T23:59:59.123456Z"] {
            assert!(is_instant(good), "{good}");
        }
        for bad in [
            "2024-05-01T08:30:00",
            "2024-05-01T08:30:00+00:00",
            "2024-05-01 08:30:00Z",
            "2024-05-01t08:30:00z",
            "2023-02-29T00:00:00Z",
            "2024-05-01T08:30Z",
            "2024-05-01",
            "2024-05-01T08:30:00.Z",
            "20240501T083000Z",
        ] {
            assert!(!is_instant(bad), "{bad}");
        }
    }

    #[test]
    fn an_integer_has_no_fraction() {
        assert!(Kind::Integer.fits(&serde_json::json!(12)));
        assert!(!Kind::Integer.fits(&serde_json::json!(12.0)));
        assert!(!Kind::Integer.fits(&serde_json::json!("12")));
    }
}
