//! What the reports share: percentages, colours, the text of an empty report.

use batchscan_model::Hundredths;

pub(super) const EMPTY: &str = "no batches in this date range\n";

/// SGR codes.
pub(super) const BOLD: u8 = 1;
pub(super) const YELLOW: u8 = 33;

/// `92.50 %`, or a dash.
pub(super) fn percent(rate: Option<Hundredths>) -> String {
    rate.map_or_else(|| "-".into(), |rate| format!("{rate} %"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use batchscan_model::Batch;
    use serde_json::json;

    /// A batch on a day of January 2026. Even days have warnings; the usable rate is five points lower.
    pub(in crate::reports) fn batch(day: i64, crop: Option<&str>, germination: Option<i64>) -> Batch {
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
