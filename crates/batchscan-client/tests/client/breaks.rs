//! Connections that break: the page is asked for again, and nothing is lost or doubled.

use std::time::Duration;

use batchscan_client::{Error, TryStreamExt};

use crate::script::{Answer, Framing, Script, in_order};
use crate::{ALL, Waits, ids, numbered};

/// Every way in which an answer can end too early, with what is told of it.
fn cuts(page: &Answer) -> Vec<(Answer, &'static str)> {
    let framed = |framing| page.clone().framed(framing);
    vec![
        (Answer::nothing(), "it was closed before the answer was whole"),
        (Answer::bare("HTTP/1.1 200 OK\r\nContent-Le"), "it was closed before the answer was whole"),
        (framed(Framing::Length).lacking(10), "the answer was cut off"),
        // The last chunk is there, the end of chunks is not.
        (framed(Framing::Chunked).lacking(5), "the answer was cut off"),
        (framed(Framing::Chunked).lacking(100), "the answer was cut off"),
        (framed(Framing::UntilClose).lacking(1), "the page ends in the middle"),
        (framed(Framing::UntilClose).lacking(40), "the page ends in the middle"),
        (Answer::new(200, "").framed(Framing::UntilClose), "the page ends in the middle"),
    ]
}

/// Decision 043.
#[tokio::test]
async fn a_page_that_breaks_is_asked_for_again_and_nothing_is_lost_or_doubled() {
    let page = |number: u32, next| Answer::page(number * 3..number * 3 + 3, next);
    for (cut, told) in cuts(&page(1, Some("c2"))) {
        let answers = [page(0, Some("c1")), cut.clone(), cut.clone(), page(1, Some("c2")), page(2, None)];
        let script = Script::signed_in(answers).await;
        let waits = Waits::default();
        let client = script.client().on_retry(waits.listener()).build().unwrap();
        assert_eq!(ids(client.batches(ALL)).await.unwrap(), numbered(0..9), "{cut:?}");
        assert_eq!(script.counts(), (1, 5), "{cut:?}");
        let told = format!("the connection to {} broke: {told}", script.address);
        assert_eq!(waits.heard().iter().map(|(told, _)| told.as_str()).collect::<Vec<_>>(), [&told, &told]);
        let cursors: Vec<_> = script.heard().into_iter().skip(2).map(|request| request.target).collect();
        assert_eq!(cursors[..3], ["/v2/batches?next_token=c1"; 3]);
    }
}

#[tokio::test]
async fn a_page_is_whole_however_it_is_framed() {
    for framing in [Framing::Length, Framing::Chunked, Framing::UntilClose] {
        let script = Script::signed_in([Answer::page(0..5, None).framed(framing)]).await;
        assert_eq!(
            ids(script.client().build().unwrap().batches(ALL)).await.unwrap(),
            numbered(0..5),
            "{framing:?}"
        );
    }
}

/// Cut at any byte: a page is never taken for whole unless it is.
#[tokio::test]
async fn no_cut_of_a_page_passes_for_a_page() {
    let page = Answer::page(0..1, None).framed(Framing::UntilClose);
    for lacking in (1..=page.body_bytes()).step_by(17) {
        let script = Script::signed_in([page.clone().lacking(lacking)]).await;
        let client = script.client().retry_for(Duration::ZERO).build().unwrap();
        let error = client.pages(ALL).try_next().await.unwrap_err();
        assert!(matches!(error, Error::Broken { .. }), "{lacking}: {error:?}");
    }
}

#[tokio::test]
async fn a_token_that_breaks_is_asked_for_again() {
    for (cut, _) in cuts(&Answer::token(1)).into_iter().filter(|(_, told)| !told.contains("page")) {
        // Somebody must have answered before: else it counts as a wrong address.
        let answers = [Answer::error(503, "busy"), cut, Answer::token(2), Answer::page(0..1, None)];
        let script = Script::of(answers).await;
        assert_eq!(ids(script.client().build().unwrap().batches(ALL)).await.unwrap(), numbered(0..1));
    }
    let ends_early = Answer::token(1).framed(Framing::UntilClose).lacking(20);
    let script = Script::of([ends_early, Answer::token(2), Answer::page(0..1, None)]).await;
    assert_eq!(ids(script.client().build().unwrap().batches(ALL)).await.unwrap(), numbered(0..1));
}

#[tokio::test]
async fn a_server_that_dies_in_mid_walk_and_comes_back_is_waited_for() {
    let script = Script::signed_in([Answer::page(0..2, Some("c1")), Answer::page(2..4, Some("c2"))]).await;
    let waits = Waits::default();
    let wait = Duration::from_millis(30)..=Duration::from_millis(60);
    let client = script.client().retry_wait(wait).on_retry(waits.listener()).build().unwrap();
    let mut pages = client.pages(ALL);
    pages.try_next().await.unwrap();
    pages.try_next().await.unwrap();
    let address = script.address;
    drop(script);
    let back = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        Script::at(address, in_order([Answer::page(4..6, Some("c3")), Answer::page(6..7, None)])).await
    });
    let rest = crate::texts(pages).await.unwrap();
    assert_eq!(rest, (4..7).map(|number| crate::Service::batch(number).to_json()).collect::<Vec<_>>());
    let refused = format!("cannot reach {address}: connection refused");
    assert!(waits.heard().iter().any(|(told, _)| *told == refused), "{:?}", waits.heard());
    assert_eq!(back.await.unwrap().heard()[0].target, "/v2/batches?next_token=c2");
}

#[tokio::test]
async fn a_server_that_does_not_come_back_is_given_up() {
    let script = Script::signed_in([Answer::page(0..2, Some("c1"))]).await;
    let client = script.client().retry_for(Duration::from_millis(200)).build().unwrap();
    let mut pages = client.pages(ALL);
    pages.try_next().await.unwrap();
    let address = script.address;
    drop(script);
    let error = pages.try_next().await.unwrap_err();
    let told = error.to_string();
    assert!(
        told.starts_with(&format!("cannot reach {address}: connection refused; gave up after 0 s and ")),
        "{told}"
    );
    assert!(error.can_retry());
}
