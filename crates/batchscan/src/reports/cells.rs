//! What the reports share: percentages, colours, the texts of values.

use batchscan_model::{FieldValue, Hundredths};

use crate::table::sanitize;

/// The value of a field without a value.
const NONE: &str = "-";

/// SGR codes.
pub(super) const BOLD: u8 = 1;
pub(super) const YELLOW: u8 = 33;

/// `92.50 %`, or a dash.
pub(super) fn percent(rate: Option<Hundredths>) -> String {
    rate.map_or_else(|| NONE.into(), |rate| format!("{rate} %"))
}

/// The value of a field as in the API, or a dash.
pub(super) fn value_text(value: FieldValue<'_>) -> String {
    match value {
        FieldValue::Null => NONE.into(),
        FieldValue::Text(text) => sanitize(text),
        FieldValue::Instant(instant) => instant.to_string(),
        FieldValue::Count(count) => count.to_string(),
        FieldValue::Decimal(decimal) => decimal.to_string(),
        FieldValue::Flag(flag) => flag.to_string(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use batchscan_model::Batch;
    use serde_json::json;

    /// A batch on a day of January 2026. Even days have warnings; the usable rate is five points lower.
    pub(crate) fn batch(day: i64, crop: Option<&str>, germination: Option<i64>) -> Batch {
        let rate =
            |points: i64| germination.and_then(|rate| Hundredths::from_hundredths(rate - points * 100));
        let text = json!({
            "batch_id": format!("b-{day}"), "batch_name": format!("Tray {day}"), "crop_type": crop,
            "batch_creation_date": format!("2026-01-{day:02}T08:00:00Z"),
            "avg_germination_rate": rate(0).map(|rate| rate.to_string()),
            "avg_usable_seedling_rate": rate(5).map(|rate| rate.to_string()),
            "number_of_images": 1, "warnings": day % 2 == 0,
        });
        Batch::from_json(&text.to_string()).unwrap()
    }
}
