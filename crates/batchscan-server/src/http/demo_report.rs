//! `/demo/reports/{id}`: what the analysis link of a demo batch opens. The maker of a real scanner has real reports.

use std::fmt::Write as _;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use batchscan_model::{BatchId, OrgId};
use serde_json::Value;

use super::app::App;
use super::error::ApiError;
use super::static_files::StaticFile;

/// The only organisation of a demo.
const DEMO_ORG: OrgId = OrgId(1);
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
);
/// Trays that are drawn.
const TRAYS_MAX: u64 = 6;
/// More cells would be too small to see.
const CELLS_MAX: u64 = 1_200;

pub(super) async fn page(
    State(app): State<App>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let id = BatchId::new(id).ok_or(ApiError::NotFound)?;
    let batch = app.store.batches_by_id(DEMO_ORG, vec![id]).await?.pop().flatten();
    let batch = batch.ok_or(ApiError::NotFound)?;
    let batch = serde_json::from_str(&batch).unwrap_or_default();
    let file = StaticFile::new("text/html; charset=utf-8", report(&batch).into(), None);
    Ok(file.respond_with_policy(&headers, POLICY))
}

fn report(batch: &Value) -> String {
    let figures = [
        ("Crop", "crop_type", ""),
        ("Scanned", "batch_creation_date", ""),
        ("Images", "number_of_images", ""),
        ("Cells per tray", "total_cells_per_tray", ""),
        ("Germination rate", "avg_germination_rate", " %"),
        ("Usable seedlings", "avg_usable_seedling_rate", " %"),
        ("Size variation", "avg_coefficient_of_variation", " %"),
        ("Median size", "avg_median_seedling_size_mm2", " mm²"),
    ];
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Analysis report</title><style>{STYLE}</style></head><body><main>\
         <p>Analysis report</p><h1>{}</h1><p>This is a simulated report for demo data.</p><dl>",
        escaped(&text(&batch["batch_name"]))
    );
    for (label, field, unit) in figures {
        let value = escaped(&text(&batch[field]));
        // Without seconds, for people.
        let value = match (field, value.get(..16)) {
            ("batch_creation_date", Some(minute)) => minute.replace('T', " ") + " UTC",
            _ => value,
        };
        let _ = write!(html, "<div><dt>{label}</dt><dd>{value}{unit}</dd></div>");
    }
    html.push_str("</dl><h2>Trays</h2><p>Green: usable. Yellow: germinated. Grey: not germinated.</p><div class=\"trays\">");
    for tray in 0..batch["number_of_images"].as_u64().unwrap_or(0).min(TRAYS_MAX) {
        push_tray(&mut html, batch, tray);
    }
    html.push_str("</div></main></body></html>\n");
    html
}

/// A tray with the average numbers of seedlings, in places that depend on the batch and the tray.
fn push_tray(html: &mut String, batch: &Value, tray: u64) {
    let cells = batch["total_cells_per_tray"].as_u64().unwrap_or(0).min(CELLS_MAX);
    let average = |field: &str| {
        text(&batch[field]).parse::<f64>().unwrap_or(0.0).round().clamp(0.0, cells as f64) as usize
    };
    let (germinated, usable) = (average("avg_germinated_seedlings"), average("avg_usable_seedlings"));
    let random = BuildHasherDefault::<DefaultHasher>::default();
    let mut places: Vec<u64> = (0..cells).collect();
    places.sort_by_key(|cell| random.hash_one((text(&batch["batch_id"]), tray, cell)));
    let columns = (1..=cells)
        .filter(|columns| cells.is_multiple_of(*columns) && columns * columns >= cells)
        .min()
        .unwrap_or(1);
    let _ = write!(html, "<svg viewBox=\"0 0 {} {}\">", columns * 10, cells.div_ceil(columns) * 10);
    for (rank, cell) in places.into_iter().enumerate() {
        let (x, y) = (cell % columns * 10 + 5, cell / columns * 10 + 5);
        let class = if rank < usable {
            "usable"
        } else if rank < germinated {
            "germinated"
        } else {
            "empty"
        };
        let _ = write!(html, "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"4\"/>");
    }
    html.push_str("</svg>");
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "not recorded".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

const STYLE: &str = "
    :root { color-scheme: light dark; font: 1rem/1.5 sans-serif }
    main { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
    h1 { margin: 0 0 1rem }
    dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(12rem, 1fr)); gap: 1rem }
    dt { opacity: 0.7 }
    dd { margin: 0; font-size: 1.25rem }
    .trays { display: grid; grid-template-columns: repeat(auto-fill, minmax(16rem, 1fr)); gap: 1.5rem }
    .usable { fill: #3a8f4a }
    .germinated { fill: #c9a227 }
    .empty { fill: #8886 }
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_shows_the_figures_and_escapes_texts() {
        let batch = serde_json::json!({
            "batch_id": "b", "batch_name": "<b>Tray</b>", "number_of_images": 9, "total_cells_per_tray": 12,
            "avg_germinated_seedlings": "10.40", "avg_usable_seedlings": "8.60", "avg_germination_rate": "86.67",
            "batch_creation_date": "2026-11-15T06:24:11.123456Z",
        });
        let html = report(&batch);
        assert!(html.contains("<h1>&lt;b&gt;Tray&lt;/b&gt;</h1>") && html.contains("86.67 %"), "{html}");
        assert!(html.contains("2026-11-15 06:24 UTC"), "{html}");
        let count = |class: &str| html.matches(&format!("class=\"{class}\"")).count();
        assert_eq!((count("usable"), count("germinated"), count("empty")), (6 * 9, 6, 6 * 2));
    }
}
