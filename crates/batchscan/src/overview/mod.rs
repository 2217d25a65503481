//! Batches at a glance: the newest ones with their crop's trend, and a summary by crop and week.
//! Takes batches one by one in bounded memory; fetches and prints nothing.

pub(crate) mod latest;
mod statistics;
pub(crate) mod summary;
mod trend;

use batchscan_model::Hundredths;

/// What an empty table says.
const NOTHING: &str = "no batches in this window\n";

/// SGR codes: what stands out, and what wants a look.
const BOLD: u8 = 1;
const YELLOW: u8 = 33;

/// `92.50 %`, or a dash.
fn percent(rate: Option<Hundredths>) -> String {
    rate.map_or_else(|| "-".into(), |rate| format!("{rate} %"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use batchscan_model::Batch;
    use serde_json::json;

    /// A batch of 08:00 on a day of January 2026, with warnings on every even day; five points fewer are usable.
    pub(super) fn batch(day: i64, crop: Option<&str>, germination: Option<i64>) -> Batch {
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
