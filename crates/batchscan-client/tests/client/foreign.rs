//! Other deployments: they may say more than we know, and in their own layout, but not less than the interface asks.

use batchscan_client::{Error, Received, TryStreamExt, Version};

use crate::script::{Answer, Script};
use crate::{ALL, Service};

const PRETTY: &str = r#"{
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

fn page_of(batch: &str) -> Answer {
    Answer::new(200, format!("{{\n \"next_token\": null,\n \"total\": 1,\n \"data\": [\n {batch}\n ]\n}}\n"))
}

async fn only(version: Version, answer: Answer) -> Result<Received, Error> {
    let script = Script::signed_in([answer]).await;
    let batches = script.client().version(version).build().unwrap().batches(ALL);
    Ok(batches.try_collect::<Vec<_>>().await?.remove(0))
}

#[tokio::test]
async fn unknown_fields_are_kept_apart_and_the_layout_is_the_services_own() {
    let array = Answer::new(200, format!(" [\n {PRETTY}\r\n]\t\n"));
    for (version, answer) in [(Version::V1, array), (Version::V2, page_of(PRETTY))] {
        let received = only(version, answer).await.unwrap();
        assert_eq!(received.crop_type.as_deref(), Some("Tomate \"Fußball\" }]"));
        assert_eq!(received.batch_creation_date.to_string(), "2026-01-31T08:00:00.25Z");
        assert_eq!(received.avg_germination_rate.unwrap().count(), 9_250);
        assert_eq!(received.comment, None, "what is nullable may be left out");
        assert_eq!(received.unknown.keys().collect::<Vec<_>>(), ["score", "tray"]);
        assert_eq!(received.unknown["tray"], serde_json::json!({"colour": ["black", null]}));
    }
}

#[tokio::test]
async fn a_text_is_given_out_with_the_services_own_layout() {
    let script = Script::signed_in([page_of(PRETTY)]).await;
    assert_eq!(crate::texts(script.client().build().unwrap().pages(ALL)).await.unwrap(), [PRETTY]);
}

#[tokio::test]
async fn a_batch_that_lacks_a_required_field_is_an_error_that_names_it() {
    for (taken, told) in [
        (r#""number_of_images": 12,"#, "batch \"b-1\": number_of_images: found nothing, expected a value"),
        (r#""warnings": false,"#, "batch \"b-1\": warnings: found nothing, expected a value"),
        (r#""batch_id": "b-1","#, "batch_id: found nothing, expected a value"),
    ] {
        for version in [Version::V1, Version::V2] {
            let batch = PRETTY.replace(taken, "");
            let answer =
                if version == Version::V1 { Answer::new(200, format!("[{batch}]")) } else { page_of(&batch) };
            let error = only(version, answer).await.unwrap_err();
            let expected = format!("the service sent something that is not a batch: {told}");
            assert!(error.to_string().starts_with(&expected), "{error}");
            assert!(matches!(error, Error::NotABatch { .. }) && !error.can_retry());
        }
    }
}

#[tokio::test]
async fn a_value_of_another_type_is_an_error_and_never_a_guess() {
    for (from, to) in [
        (r#""avg_germination_rate": "92.50""#, r#""avg_germination_rate": "much""#),
        (r#""number_of_images": 12"#, r#""number_of_images": "12""#),
        (r#""warnings": false"#, r#""warnings": "no""#),
        (r#"2026-01-31T08:00:00.25Z"#, "2026-01-31T08:00:00"),
        (r#""batch_id": "b-1""#, r#""batch_id": null"#),
    ] {
        let error = only(Version::V2, page_of(&PRETTY.replace(from, to))).await.unwrap_err();
        assert!(matches!(error, Error::NotABatch { .. }), "{to}: {error:?}");
    }
    for no_batch in ["7", "null", "[]", "\"b\""] {
        let error = only(Version::V2, page_of(no_batch)).await.unwrap_err();
        let told = error.to_string();
        assert!(told.starts_with("the service sent something that is not a batch: invalid type"), "{told}");
    }
}

/// Where a batch ends that is none, nobody knows.
#[tokio::test]
async fn nothing_follows_what_is_no_batch() {
    let (good, bad) = (Service::batch(1).to_json(), "{\"batch_id\":\"b-2\"}");
    let bodies = [
        (Version::V1, Answer::new(200, format!("[{good},{bad},{good}]"))),
        (Version::V2, Answer::new(200, format!(r#"{{"data":[{good},{bad},{good}],"next_token":"c"}}"#))),
        (Version::V2, Answer::new(200, format!(r#"{{"data":[{good},{bad},{good}],"next_token":null}}"#))),
    ];
    for (version, answer) in bodies {
        let script = Script::signed_in([answer.clone(), answer]).await;
        let mut batches = script.client().version(version).build().unwrap().batches(ALL);
        assert!(batches.try_next().await.unwrap().is_some());
        assert!(matches!(batches.try_next().await, Err(Error::NotABatch { .. })));
        assert!(batches.try_next().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn members_of_the_envelope_that_are_unknown_are_passed_over() {
    let (one, two) = (Service::batch(0).to_json(), Service::batch(1).to_json());
    for body in [
        format!(r#"{{"data":[{one},{two}],"links":[],"next_token":null}}"#),
        format!(r#"{{"data":[{one},{two}],"links":[{{"rel":"self"}}],"next_token":null}}"#),
        format!(r#"{{"total":2,"next_token":null,"data":[{one},{two}]}}"#),
        format!("{{\r\n\t\"data\": [{one},\n{two}\n],\n\"next_token\": null, \"took_ms\": 1.5}}\n"),
    ] {
        let script = Script::signed_in([Answer::new(200, body.clone())]).await;
        let texts = crate::texts(script.client().build().unwrap().pages(ALL)).await;
        assert_eq!(texts.unwrap(), [one.clone(), two.clone()], "{body}");
    }
}
