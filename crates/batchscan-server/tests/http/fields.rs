//! The fields of a batch in both versions.

use batchscan_model::Batch;
use serde_json::{Value, json};

use super::*;

async fn nursery(batches: &[Batch]) -> (TestApp, String) {
    let (app, _, token) = TestApp::filled(1_000, batches).await;
    (app, token)
}

fn full() -> Value {
    serde_json::from_str(FULL).unwrap()
}

/// Contract section 2; decisions 034, 035: fractions of seconds without trailing zeros, decimals with two digits.
#[tokio::test]
async fn dates_and_decimals_are_normalised() {
    let (app, token) = nursery(&[]).await;
    for (field, imported, printed) in [
        ("batch_creation_date", json!("2026-01-31T08:00:00Z"), "2026-01-31T08:00:00Z"),
        ("batch_creation_date", json!("2026-01-31T08:00:00.000Z"), "2026-01-31T08:00:00Z"),
        ("batch_creation_date", json!("2026-01-31T08:00:00.120000Z"), "2026-01-31T08:00:00.12Z"),
        ("batch_creation_date", json!("2026-01-31T08:00:00.000001Z"), "2026-01-31T08:00:00.000001Z"),
        ("batch_creation_date", json!("2026-01-31T09:30:00+01:30"), "2026-01-31T08:00:00Z"),
        ("avg_germination_rate", json!("1.005"), "1.01"),
        ("avg_germination_rate", json!("-1.005"), "-1.01"),
        ("avg_germination_rate", json!("92.5"), "92.50"),
        ("avg_germination_rate", json!(7), "7.00"),
        ("avg_germination_rate", json!("0.004"), "0.00"),
        ("avg_germination_rate", json!("999999999999.99"), "999999999999.99"),
    ] {
        let mut batch = full();
        batch[field] = imported;
        app.import("Nursery", &[Batch::from_json(&batch.to_string()).unwrap()]).await;
        assert_eq!(app.get("/v1/batches", &token).await.batches()[0][field], printed);
    }
}

/// Decision 036: any text without control characters, unique within the organisation.
#[tokio::test]
async fn ids_are_free_text_and_belong_to_an_organisation() {
    let ids = ["tray 7/ä #3", "\"quoted\"", "a\\b", "日本語", "' OR 1=1 --", &"x".repeat(128)];
    let batches = ids.map(|id| batch(id, "2026-01-31T08:00:00Z"));
    let (app, token) = nursery(&batches).await;
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    assert_eq!(app.v1_ids("", &token).await, sorted);
    let other = app.org("Other").await;
    app.import("Other", &[batch(ids[0], "2026-01-30T00:00:00Z")]).await;
    let others = app.get("/v1/batches", &app.token(&other).await).await.batches();
    assert_eq!((others.len(), &others[0]["batch_creation_date"]), (1, &json!("2026-01-30T00:00:00Z")));
    assert_eq!(app.v1_ids("?end_date=2026-01-30T00:00:00Z", &token).await, [""; 0]);
}

/// Decisions 037, 040.
#[tokio::test]
async fn an_import_replaces_a_batch_and_the_last_duplicate_wins() {
    let (app, token) =
        nursery(&[batch("a", "2026-01-01T00:00:00Z"), batch("b", "2026-01-02T00:00:00Z")]).await;
    let corrected = named("a", "2026-01-03T00:00:00Z", "Second");
    app.import("Nursery", &[named("a", "2026-01-03T00:00:00Z", "First"), corrected.clone()]).await;
    assert_eq!(app.v1_ids("", &token).await, ["b", "a"]);
    let batches = app.get("/v2/batches", &token).await.batches();
    assert_eq!(batches[1], serde_json::from_str::<Value>(&corrected.to_json()).unwrap());
}
