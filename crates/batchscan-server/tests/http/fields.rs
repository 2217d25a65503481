//! What a batch looks like on the wire: the eighteen fields, in both versions.

use batchscan_model::Batch;
use serde_json::{Value, json};

use crate::http::app::TestApp;
use crate::http::sample::{FULL, batch};

async fn nursery(batches: &[Batch]) -> (TestApp, String) {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    app.import("Nursery", batches).await;
    let token = app.token(&client).await;
    (app, token)
}

/// The one batch of an organisation that imported this.
async fn served(json: Value) -> Value {
    let (app, token) = nursery(&[Batch::from_json(&json.to_string()).unwrap()]).await;
    app.get("/v1/batches", &token).await.batches()[0].clone()
}

fn full() -> Value {
    serde_json::from_str(FULL).unwrap()
}

/// Interface section 2: every field with its type.
#[tokio::test]
async fn a_batch_has_exactly_the_eighteen_fields_with_their_values() {
    assert_eq!(served(full()).await, full());
    assert_eq!(full().as_object().unwrap().len(), 18);
}

/// Interface section 2: nullable fields are present with null.
#[tokio::test]
async fn a_field_without_a_value_is_null_and_never_left_out() {
    let (app, token) = nursery(&[batch("b", "2026-01-31T08:00:00Z")]).await;
    let batch = app.get("/v2/batches", &token).await.batches()[0].clone();
    let names: Vec<&String> = batch.as_object().unwrap().keys().collect();
    assert_eq!(names, full().as_object().unwrap().keys().collect::<Vec<_>>());
    let null: Vec<&str> = batch
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, value)| value.is_null())
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(null.len(), 13, "{null:?}");
    for required in ["batch_id", "batch_name", "batch_creation_date", "number_of_images", "warnings"] {
        assert!(!null.contains(&required), "{required}");
    }
}

/// Interface sections 1, 4 and 9: the flat array and the envelope, byte for byte.
#[tokio::test]
async fn v1_is_a_flat_array_and_v2_an_envelope_of_the_same_objects() {
    let (app, token) = nursery(&[Batch::from_json(FULL).unwrap()]).await;
    assert_eq!(app.get("/v1/batches", &token).await.text(), format!("[{FULL}]"));
    let page = app.get("/v2/batches", &token).await;
    assert_eq!(page.text(), format!("{{\"data\":[{FULL}],\"next_token\":null}}"));
    assert_eq!(page.header("content-type").as_deref(), Some("application/json"));
}

/// Decision 034.
#[tokio::test]
async fn a_creation_date_keeps_a_fraction_that_is_not_zero() {
    let pairs = [
        ("2026-01-31T08:00:00Z", "2026-01-31T08:00:00Z"),
        ("2026-01-31T08:00:00.000Z", "2026-01-31T08:00:00Z"),
        ("2026-01-31T08:00:00.120000Z", "2026-01-31T08:00:00.12Z"),
        ("2026-01-31T08:00:00.000001Z", "2026-01-31T08:00:00.000001Z"),
        ("2026-01-31T09:30:00+01:30", "2026-01-31T08:00:00Z"),
    ];
    for (imported, printed) in pairs {
        let mut batch = full();
        batch["batch_creation_date"] = json!(imported);
        assert_eq!(served(batch).await["batch_creation_date"], printed);
    }
}

/// Interface section 2; decision 035.
#[tokio::test]
async fn decimals_are_strings_with_two_fraction_digits_rounded_half_away_from_zero() {
    let pairs = [
        (json!("1.005"), "1.01"),
        (json!("-1.005"), "-1.01"),
        (json!("92.5"), "92.50"),
        (json!(7), "7.00"),
        (json!("0.004"), "0.00"),
        (json!("999999999999.99"), "999999999999.99"),
    ];
    for (imported, printed) in pairs {
        let mut batch = full();
        batch["avg_germination_rate"] = imported;
        assert_eq!(served(batch).await["avg_germination_rate"], printed);
    }
}

/// Decision 036: ids come from the scanner's world.
#[tokio::test]
async fn any_text_without_control_characters_may_be_an_id() {
    let ids = ["tray 7/ä #3", "\"quoted\"", "a\\b", "日本語", "' OR 1=1 --", &"x".repeat(128)];
    let batches: Vec<Batch> = ids.iter().map(|id| batch(id, "2026-01-31T08:00:00Z")).collect();
    let (app, token) = nursery(&batches).await;
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    assert_eq!(app.v1_ids("", &token).await, sorted);
}

/// Decision 036: unique within its organisation, and no further.
#[tokio::test]
async fn two_organisations_may_have_a_batch_of_the_same_id() {
    let (app, token) = nursery(&[batch("b", "2026-01-31T08:00:00Z")]).await;
    let other = app.org("Other").await;
    app.import("Other", &[batch("b", "2026-01-30T00:00:00Z")]).await;
    let theirs = app.get("/v1/batches", &app.token(&other).await).await.batches();
    assert_eq!((theirs.len(), &theirs[0]["batch_creation_date"]), (1, &json!("2026-01-30T00:00:00Z")));
    assert_eq!(
        app.get("/v1/batches", &token).await.batches()[0]["batch_creation_date"],
        "2026-01-31T08:00:00Z"
    );
}

/// Decision 037.
#[tokio::test]
async fn an_import_of_a_known_id_replaces_the_batch_also_where_its_date_moved() {
    let (app, token) =
        nursery(&[batch("a", "2026-01-01T00:00:00Z"), batch("b", "2026-01-02T00:00:00Z")]).await;
    let corrected = crate::http::sample::named("a", "2026-01-03T00:00:00Z", "Corrected");
    app.import("Nursery", std::slice::from_ref(&corrected)).await;
    assert_eq!(app.v1_ids("", &token).await, ["b", "a"]);
    let batches = app.get("/v2/batches", &token).await.batches();
    assert_eq!(batches[1], serde_json::from_str::<Value>(&corrected.to_json()).unwrap());
}

/// Decision 040: the later one wins.
#[tokio::test]
async fn of_two_batches_of_one_id_in_one_import_the_later_is_served() {
    let twice = [
        crate::http::sample::named("a", "2026-01-01T00:00:00Z", "First"),
        crate::http::sample::named("a", "2026-01-01T00:00:00Z", "Second"),
    ];
    let (app, token) = nursery(&twice).await;
    let batches = app.get("/v1/batches", &token).await.batches();
    assert_eq!((batches.len(), &batches[0]["batch_name"]), (1, &json!("Second")));
}
