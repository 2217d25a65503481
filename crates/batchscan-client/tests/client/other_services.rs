//! Other deployments: they may send unknown fields and their own layout, but not less than the API requires.

use batchscan_client::{Error, ReceivedBatch, TryStreamExt, Version};

use crate::mock_server::{MockServer, Response};
use crate::{ALL, Service, texts};

const FORMATTED: &str = r#"{
  "batch_id": "b-1",
  "batch_name": "",
  "batch_creation_date": "2026-01-31T08:00:00.25Z",
  "crop_type": "Tomate \"Fußball\" }]",
  "number_of_images": 12,
  "avg_germination_rate": "92.50",
  "analysis_link": "ftp://example.org/a",
  "warnings": false,
  "tray": { "colour": ["black", null] },
  "score": 1.50
}"#;

/// A response of this version with one batch.
fn response_with(version: Version, batch: &str) -> Response {
    let body = match version {
        Version::V1 => format!(" [\n {batch}\r\n]\t\n"),
        Version::V2 => {
            format!("{{\n \"next_token\": null,\n \"total\": 1,\n \"data\": [\n {batch}\n ]\n}}\n")
        }
    };
    Response::new(200, body)
}

async fn receive(version: Version, batch: &str) -> Result<ReceivedBatch, Error> {
    let server = MockServer::with_tokens([response_with(version, batch)]);
    let batches = server.client().version(version).build().unwrap().batches(ALL);
    Ok(batches.try_collect::<Vec<_>>().await?.remove(0))
}

#[tokio::test]
async fn unknown_fields_are_separate_and_any_layout_is_accepted() {
    for version in [Version::V1, Version::V2] {
        let received = receive(version, FORMATTED).await.unwrap();
        assert_eq!(received.crop_type.as_deref(), Some("Tomate \"Fußball\" }]"));
        assert_eq!(received.batch_creation_date.to_string(), "2026-01-31T08:00:00.25Z");
        assert_eq!(received.avg_germination_rate.unwrap().count(), 9_250);
        assert_eq!(received.comment, None, "nullable fields may be missing");
        assert_eq!(received.unknown.keys().collect::<Vec<_>>(), ["score", "tray"]);
        assert_eq!(received.unknown["tray"], serde_json::json!({"colour": ["black", null]}));
    }
    let server = MockServer::with_tokens([response_with(Version::V2, FORMATTED)]);
    assert_eq!(texts(server.client().build().unwrap().pages(ALL)).await.unwrap(), [FORMATTED]);
}

#[tokio::test]
async fn an_invalid_batch_is_an_error() {
    for (from, to, expected) in [
        (r#""number_of_images": 12,"#, "", "batch \"b-1\": number_of_images: "),
        (r#""warnings": false,"#, "", "batch \"b-1\": warnings: "),
        (r#""batch_id": "b-1","#, "", "batch_id: "),
        (r#""92.50""#, r#""much""#, "batch \"b-1\": avg_germination_rate: "),
        (r#""number_of_images": 12"#, r#""number_of_images": "12""#, "batch \"b-1\": number_of_images: "),
        (r#""warnings": false"#, r#""warnings": "no""#, "batch \"b-1\": warnings: "),
        ("08:00:00.25Z", "08:00:00", "batch \"b-1\": batch_creation_date: "),
        (r#""batch_id": "b-1""#, r#""batch_id": null"#, "batch null: batch_id: "),
        (FORMATTED, "{}", ""),
    ] {
        for version in [Version::V1, Version::V2] {
            let error = receive(version, &FORMATTED.replace(from, to)).await.unwrap_err();
            let expected = format!("the service sent an invalid batch: {expected}");
            assert!(error.to_string().starts_with(&expected), "{error}");
            assert!(matches!(error, Error::InvalidBatch { .. }) && !error.can_retry());
        }
    }
    for not_object in ["7", "null", "[]", "\"b\""] {
        let error = receive(Version::V2, not_object).await.unwrap_err().to_string();
        assert!(error.starts_with("the service sent an invalid batch: invalid type"), "{error}");
    }
}

#[tokio::test]
async fn nothing_follows_an_invalid_batch() {
    let (good, bad) = (Service::batch(1).to_json(), "{\"batch_id\":\"b-2\"}");
    let array = format!("[{good},{bad},{good}]");
    for (version, body) in [
        (Version::V1, array.clone()),
        (Version::V2, format!(r#"{{"data":{array},"next_token":"c"}}"#)),
        (Version::V2, format!(r#"{{"data":{array},"next_token":null}}"#)),
    ] {
        let response = Response::new(200, body);
        let server = MockServer::with_tokens([response.clone(), response]);
        let mut batches = server.client().version(version).build().unwrap().batches(ALL);
        assert!(batches.try_next().await.unwrap().is_some());
        assert!(matches!(batches.try_next().await, Err(Error::InvalidBatch { .. })));
        assert!(batches.try_next().await.unwrap().is_none());
    }
}
