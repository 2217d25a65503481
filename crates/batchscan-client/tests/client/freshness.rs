//! Whether anything changed, without reading it.

use batchscan_client::{DateRange, Error, Freshness};

use crate::script::{Answer, Script};
use crate::{ALL, Service, paged, to};

async fn etag(client: &crate::Client, range: DateRange, held: Option<&str>) -> String {
    match client.freshness(range, held).await.unwrap() {
        Freshness::Changed { etag } => etag.unwrap(),
        Freshness::Unchanged => panic!("unchanged"),
    }
}

/// Decisions 031 and 044.
#[tokio::test]
async fn nothing_is_new_until_an_import() {
    let service = paged(10, 3).await;
    let client = to(&service).build().unwrap();
    let first = etag(&client, ALL, None).await;
    assert_eq!(client.freshness(ALL, Some(&first)).await.unwrap(), Freshness::Unchanged);
    assert_eq!(client.freshness(ALL, Some(&first)).await.unwrap(), Freshness::Unchanged);
    service.import(10..11).await;
    let second = etag(&client, ALL, Some(&first)).await;
    assert_ne!(first, second);
    assert_eq!(client.freshness(ALL, Some(&second)).await.unwrap(), Freshness::Unchanged);
}

#[tokio::test]
async fn an_etag_stands_for_its_window() {
    let service = paged(10, 3).await;
    let client = to(&service).build().unwrap();
    let whole = etag(&client, ALL, None).await;
    let window = DateRange { start: Some(Service::batch(5).batch_creation_date), end: None };
    assert_ne!(etag(&client, window, Some(&whole)).await, whole);
}

#[tokio::test]
async fn a_service_without_etags_is_always_new() {
    let script = Script::signed_in([Answer::array(0..1), Answer::array(0..1)]).await;
    let client = script.client().build().unwrap();
    for held in [None, Some("\"abc\"")] {
        assert_eq!(client.freshness(ALL, held).await.unwrap(), Freshness::Changed { etag: None });
    }
    let asked: Vec<_> =
        script.heard().iter().skip(1).map(|heard| heard.header("if-none-match").map(str::to_owned)).collect();
    assert_eq!(asked, [None, Some("\"abc\"".to_owned())]);
    assert_eq!(script.heard()[1].target, "/v1/batches");
}

#[tokio::test]
async fn a_304_that_was_not_asked_for_is_no_answer() {
    let script = Script::signed_in([Answer::new(304, "")]).await;
    let error = script.client().build().unwrap().freshness(ALL, None).await.unwrap_err();
    assert!(error.to_string().contains("it answered 304 Not Modified"), "{error}");
}

#[tokio::test]
async fn freshness_is_tried_again_like_a_page() {
    let answers = [Answer::error(503, "busy"), Answer::error(401, "old"), Answer::new(304, "")];
    let script = Script::signed_in(answers).await;
    let client = script.client().build().unwrap();
    assert_eq!(client.freshness(ALL, Some("\"abc\"")).await.unwrap(), Freshness::Unchanged);
    assert_eq!(script.counts(), (2, 3));
}

#[tokio::test]
async fn an_etag_that_cannot_be_sent_is_told_and_not_tried() {
    let script = Script::signed_in([]).await;
    let error = script.client().build().unwrap().freshness(ALL, Some("a\nb")).await.unwrap_err();
    assert_eq!(error, Error::Settings("the ETag cannot be sent in a header".into()));
    assert!(script.heard().is_empty());
}
