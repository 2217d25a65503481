//! The eighteen fields of a batch: presence, type, nullability, format.

use jiff::Timestamp;
use serde_json::Value;

use super::rule::{RESOURCES, Rule, decision};
use crate::listing::batch_id;
use crate::probe::Probe;
use crate::request::Version;
use crate::verdict::{CheckResult, Verdict};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    Rule(RESOURCES, "batch-has-all-fields", "Every batch has all eighteen fields, null where there is no value.", all_fields),
    Rule(RESOURCES, "batch-has-no-other-fields", "No batch has a field that the API does not define.", no_other_fields),
    Rule(RESOURCES, "field-batch-id", "batch_id is a string, never null.", |p| field(p, "batch_id", TEXT, NEVER_NULL)),
    Rule(RESOURCES, "field-batch-name", "batch_name is a string, never null.", |p| field(p, "batch_name", TEXT, NEVER_NULL)),
    Rule(RESOURCES, "field-batch-creation-date", "batch_creation_date is an ISO 8601 UTC datetime that ends with Z, never null.", |p| field(p, "batch_creation_date", INSTANT, NEVER_NULL)),
    Rule(RESOURCES, "field-crop-type", "crop_type is a string or null.", |p| field(p, "crop_type", TEXT, OR_NULL)),
    Rule(RESOURCES, "field-number-of-images", "number_of_images is an integer, never null.", |p| field(p, "number_of_images", INTEGER, NEVER_NULL)),
    Rule(RESOURCES, "field-total-cells-per-tray", "total_cells_per_tray is an integer or null.", |p| field(p, "total_cells_per_tray", INTEGER, OR_NULL)),
    Rule(RESOURCES, "field-avg-germinated-seedlings", "avg_germinated_seedlings is a string with two fraction digits or null.", |p| field(p, "avg_germinated_seedlings", DECIMAL, OR_NULL)),
    Rule(RESOURCES, "field-avg-non-germinated-seedlings", "avg_non_germinated_seedlings is a string with two fraction digits or null.", |p| field(p, "avg_non_germinated_seedlings", DECIMAL, OR_NULL)),
    Rule(RESOURCES, "field-avg-germination-rate", "avg_germination_rate is a string with two fraction digits or null.", |p| field(p, "avg_germination_rate", DECIMAL, OR_NULL)),
    Rule(RESOURCES, "field-avg-usable-seedlings", "avg_usable_seedlings is a string with two fraction digits or null.", |p| field(p, "avg_usable_seedlings", DECIMAL, OR_NULL)),
    Rule(RESOURCES, "field-avg-non-usable-cells", "avg_non_usable_cells is a string with two fraction digits or null.", |p| field(p, "avg_non_usable_cells", DECIMAL, OR_NULL)),
    Rule(RESOURCES, "field-avg-usable-seedling-rate", "avg_usable_seedling_rate is a string with two fraction digits or null.", |p| field(p, "avg_usable_seedling_rate", DECIMAL, OR_NULL)),
    Rule(RESOURCES, "field-avg-coefficient-of-variation", "avg_coefficient_of_variation is a string with two fraction digits or null.", |p| field(p, "avg_coefficient_of_variation", DECIMAL, OR_NULL)),
    Rule(RESOURCES, "field-avg-median-seedling-size-mm2", "avg_median_seedling_size_mm2 is a string with two fraction digits or null.", |p| field(p, "avg_median_seedling_size_mm2", DECIMAL, OR_NULL)),
    Rule(RESOURCES, "field-scanned-by-email", "scanned_by_email is a string or null.", |p| field(p, "scanned_by_email", TEXT, OR_NULL)),
    Rule(RESOURCES, "field-analysis-link", "analysis_link is a URL or null.", |p| field(p, "analysis_link", URL, OR_NULL)),
    Rule(RESOURCES, "field-comment", "comment is a string or null.", |p| field(p, "comment", TEXT, OR_NULL)),
    Rule(RESOURCES, "field-warnings", "warnings is a boolean, never null.", |p| field(p, "warnings", BOOLEAN, NEVER_NULL)),
    Rule(decision(34), "creation-date-without-trailing-zeros", "batch_creation_date has no fraction if it is zero, and no trailing zeros.", |p| values(p, &["batch_creation_date"], "no trailing zeros and no empty fraction", |value| value.as_str().is_none_or(has_short_fraction))),
    Rule(decision(36), "batch-id-is-printable-and-short", "batch_id is not empty, has up to 128 bytes and no control characters.", |p| values(p, &["batch_id"], "1 to 128 bytes, all printable", |value| value.as_str().is_none_or(is_short_id))),
    Rule(decision(39), "batch-name-is-not-empty", "batch_name is not empty.", |p| values(p, &["batch_name"], "a name that is not empty", |value| value != "")),
    Rule(decision(39), "counts-are-not-negative", "number_of_images and total_cells_per_tray are not negative.", |p| values(p, &["number_of_images", "total_cells_per_tray"], "zero or more", |value| value.as_i64().is_none_or(|count| count >= 0))),
    Rule(decision(39), "decimals-are-below-ten-to-the-twelfth", "Decimals are smaller than 10^12.", |p| values(p, DECIMALS, "less than 10^12 in size", |value| value.as_str().is_none_or(is_small_decimal))),
    Rule(decision(39), "analysis-link-is-http", "analysis_link is an absolute http or https URL.", |p| values(p, &["analysis_link"], "an absolute http or https URL", |value| value.as_str().is_none_or(is_http_url))),
];

#[rustfmt::skip]
const FIELDS: [&str; 18] = [
    "batch_id", "batch_name", "batch_creation_date", "crop_type", "number_of_images", "total_cells_per_tray",
    "avg_germinated_seedlings", "avg_non_germinated_seedlings", "avg_germination_rate", "avg_usable_seedlings",
    "avg_non_usable_cells", "avg_usable_seedling_rate", "avg_coefficient_of_variation",
    "avg_median_seedling_size_mm2", "scanned_by_email", "analysis_link", "comment", "warnings",
];

const DECIMALS: &[&str] = FIELDS.split_at(6).1.split_at(8).0;

const OR_NULL: bool = true;
const NEVER_NULL: bool = false;

/// The type of a field: its description and its test.
type Kind = (&'static str, fn(&Value) -> bool);

const TEXT: Kind = ("a string", Value::is_string);
const BOOLEAN: Kind = ("true or false", Value::is_boolean);
const INTEGER: Kind = ("an integer", |value| value.is_i64() || value.is_u64());
const INSTANT: Kind =
    ("a string such as \"2024-05-01T08:30:00Z\"", |value| value.as_str().is_some_and(is_instant));
const DECIMAL: Kind =
    ("a string with two fraction digits such as \"92.50\"", |value| value.as_str().is_some_and(is_decimal));
const URL: Kind =
    ("a string that is a URL", |value| value.as_str().is_some_and(|text| url::Url::parse(text).is_ok()));

fn all_fields(probe: &mut Probe) -> CheckResult {
    each_batch(probe, "all eighteen fields", |batch| {
        let missing = FIELDS.iter().find(|name| batch.get(name).is_none())?;
        Some(format!("no {missing}"))
    })
}

fn no_other_fields(probe: &mut Probe) -> CheckResult {
    each_batch(probe, "only the eighteen fields of the API", |batch| {
        let other = batch.as_object()?.keys().find(|name| !FIELDS.contains(&name.as_str()))?;
        Some(format!("the field {other:?}"))
    })
}

fn field(probe: &mut Probe, name: &str, (description, matches): Kind, nullable: bool) -> CheckResult {
    let or_null = if nullable { ", or null" } else { "" };
    let expected = format!("{description}{or_null}");
    values(probe, &[name], &expected, |value| if value.is_null() { nullable } else { matches(value) })
}

/// Checks the values of some fields. Missing fields are left to another rule.
fn values(probe: &mut Probe, names: &[&str], expected: &str, passes: impl Fn(&Value) -> bool) -> CheckResult {
    each_batch(probe, expected, |batch| {
        let present = names.iter().filter_map(|name| Some((name, batch.get(name)?)));
        let (name, value) = present.into_iter().find(|(_, value)| !passes(value))?;
        Some(format!("{name}: {value}"))
    })
}

/// Checks every batch that both versions returned. `find_error` describes what is wrong with a batch.
fn each_batch(
    probe: &mut Probe,
    expected: &str,
    find_error: impl Fn(&Value) -> Option<String>,
) -> CheckResult {
    let v2 = probe.sample()?;
    let range = probe.small_range().ok();
    // If v1 has no valid response, other rules report it.
    let v1 = range.and_then(|range| probe.list(Version::V1, &range).ok());
    for page in [Some(v2), v1].iter().flatten().flat_map(|listing| &listing.pages) {
        for batch in &page.batches {
            if let Some(error) = find_error(batch) {
                let id = probe.show(batch_id(batch).unwrap_or("without an id"));
                let found = format!("batch {id} with {}", probe.show(error));
                return Err(Verdict::fail(&page.request, found, expected));
            }
        }
    }
    Ok(())
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

fn has_short_fraction(text: &str) -> bool {
    !text.contains('.') || !text.trim_end_matches('Z').ends_with(['0', '.'])
}

fn is_small_decimal(text: &str) -> bool {
    let whole = text.trim_start_matches('-').split('.').next().unwrap_or_default();
    whole.trim_start_matches('0').len() <= 12
}

fn is_http_url(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

fn is_short_id(id: &str) -> bool {
    (1..=128).contains(&id.len()) && !id.chars().any(char::is_control)
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
        let (_, is_integer) = INTEGER;
        assert!(is_integer(&serde_json::json!(12)));
        assert!(!is_integer(&serde_json::json!(12.0)));
        assert!(!is_integer(&serde_json::json!("12")));
    }
}
