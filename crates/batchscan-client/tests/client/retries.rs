//! Trying again: when, how long, how often, and when not.

use std::time::{Duration, Instant};

use batchscan_client::{Error, TryStreamExt, Version};
use batchscan_server::config::Config;

use crate::script::{Answer, Script};
use crate::{ALL, Service, Waits, ids, numbered, to};

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Interface section 7: on 503, the client waits and retries. Decision 043: on 429 too.
#[tokio::test]
async fn retry_after_is_obeyed() {
    tokio::join!(obeyed(503), obeyed(429));
}

async fn obeyed(status: u16) {
    let busy = Answer::error(status, "busy").with("Retry-After", "1");
    let script = Script::signed_in([Answer::page(0..2, Some("c")), busy, Answer::page(2..3, None)]).await;
    let waits = Waits::default();
    let client = script.client().on_retry(waits.listener()).build().unwrap();
    let began = Instant::now();
    assert_eq!(ids(client.batches(ALL)).await.unwrap(), numbered(0..3));
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    let [(told, wait)] = &waits.heard()[..] else { panic!("{:?}", waits.heard()) };
    let told_status = told.starts_with(&format!("the service answered {status} "));
    assert!(told_status && told.ends_with(" (busy)"), "{told}");
    assert_eq!(*wait, Duration::from_secs(1));
}

/// Decision 043.
#[tokio::test]
async fn where_the_service_does_not_say_the_wait_is_the_callers() {
    for status in [429, 502, 503, 504] {
        let busy = || Answer::new(status, "<html>busy</html>");
        let script = Script::signed_in([busy(), busy(), busy(), Answer::page(0..1, None)]).await;
        let waits = Waits::default();
        let client = script.client().retry_wait(millis(10)..=millis(20)).on_retry(waits.listener());
        let began = Instant::now();
        assert_eq!(ids(client.build().unwrap().batches(ALL)).await.unwrap(), numbered(0..1), "{status}");
        assert!(began.elapsed() >= millis(30));
        let waits: Vec<_> = waits.heard().into_iter().map(|(_, wait)| wait).collect();
        assert_eq!(waits.len(), 3);
        assert!(waits.iter().all(|wait| (millis(10)..=millis(20)).contains(wait)), "{waits:?}");
        assert!(
            waits[0] != waits[1] || waits[1] != waits[2],
            "clients must not come back together: {waits:?}"
        );
    }
}

/// A date tells a client whose clock is wrong to wait for hours; zero would make for thousands of tries.
#[tokio::test]
async fn a_retry_after_that_is_no_use_is_as_if_it_were_not_there() {
    for odd in ["0", "", "soon", "-1", "Wed, 21 Oct 2065 07:28:00 GMT"] {
        let script = Script::signed_in([
            Answer::error(503, "busy").with("Retry-After", odd),
            Answer::page(0..1, None),
        ])
        .await;
        let waits = Waits::default();
        let client = script.client().on_retry(waits.listener()).build().unwrap();
        assert_eq!(ids(client.batches(ALL)).await.unwrap(), numbered(0..1), "{odd}");
        assert!((millis(1)..=millis(3)).contains(&waits.heard()[0].1), "{odd}: {:?}", waits.heard());
    }
}

#[tokio::test]
async fn the_auth_endpoint_is_tried_again_too() {
    let answers = [Answer::error(503, "busy"), Answer::nothing(), Answer::token(1), Answer::page(0..1, None)];
    let script = Script::of(answers).await;
    assert_eq!(ids(script.client().build().unwrap().batches(ALL)).await.unwrap(), numbered(0..1));
    assert_eq!(script.counts(), (3, 1));
}

#[tokio::test]
async fn patience_ends_and_the_error_tells_how_long_and_how_often() {
    let script = Script::with_tokens(|_| Answer::error(503, "busy")).await;
    let client = script.client().retry_for(millis(800)).retry_wait(millis(80)..=millis(120)).build().unwrap();
    let began = Instant::now();
    let error = ids(client.batches(ALL)).await.unwrap_err();
    assert!(began.elapsed() < millis(2_000), "{:?}", began.elapsed());
    let Error::GaveUp { after, tries, last } = &error else { panic!("{error:?}") };
    assert!((millis(600)..millis(2_000)).contains(after) && (2..=10).contains(tries), "{error:?}");
    assert_eq!(script.counts().1, *tries as usize);
    assert_eq!(last.to_string(), "the service answered 503 Service Unavailable (busy)");
    let expected = format!("{last}; gave up after {:.0} s and {tries} tries", after.as_secs_f64());
    assert_eq!(error.to_string(), expected);
    assert!(error.can_retry());
}

/// Also where neither the service nor the caller asks for any wait at all.
#[tokio::test]
async fn patience_ends_without_waits_too() {
    let script = Script::with_tokens(|_| Answer::error(503, "busy").with("Retry-After", "0")).await;
    let client =
        script.client().retry_for(millis(100)).retry_wait(Duration::ZERO..=Duration::ZERO).build().unwrap();
    let error =
        tokio::time::timeout(Duration::from_secs(5), ids(client.batches(ALL))).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::GaveUp { .. }), "{error:?}");
}

#[tokio::test]
async fn each_page_has_its_own_patience() {
    let busy = || Answer::error(503, "busy").after(millis(300));
    let answers = [busy(), Answer::page(0..1, Some("c")), busy(), Answer::page(1..2, Some("d")), busy()];
    let script = Script::signed_in(answers.into_iter().chain([Answer::page(2..3, None)])).await;
    // Enough for each, too little for all.
    let client = script.client().retry_for(millis(800)).build().unwrap();
    assert_eq!(ids(client.batches(ALL)).await.unwrap(), numbered(0..3));
}

#[tokio::test]
async fn a_longer_wait_than_there_is_patience_for_is_told_at_once() {
    let script = Script::signed_in([Answer::error(503, "back at nine").with("Retry-After", "3600")]).await;
    let waits = Waits::default();
    let client =
        script.client().retry_for(Duration::from_secs(90)).on_retry(waits.listener()).build().unwrap();
    let began = Instant::now();
    let error = ids(client.batches(ALL)).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(5));
    let Error::AskedToWait { left, .. } = &error else { panic!("{error:?}") };
    assert!((80..=90).contains(&left.as_secs()) && error.can_retry(), "{error:?}");
    let expected = format!(
        "the service answered 503 Service Unavailable (back at nine); it asks to wait 3600 s, longer than the {:.0} s \
         that are left for trying again",
        left.as_secs_f64()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!((script.counts(), waits.heard()), ((1, 1), vec![]));
}

#[tokio::test]
async fn no_patience_means_one_try_and_the_error_as_it_is() {
    for (answer, told) in [
        (Answer::error(503, "busy"), "the service answered 503 Service Unavailable (busy)"),
        (
            Answer::error(429, "slow down").with("Retry-After", "1"),
            "the service answered 429 Too Many Requests (slow down)",
        ),
    ] {
        let script = Script::signed_in([answer]).await;
        let client = script.client().retry_for(Duration::ZERO).retry_wait(Duration::ZERO..=Duration::ZERO);
        let error = ids(client.build().unwrap().batches(ALL)).await.unwrap_err();
        assert_eq!(error.to_string(), told);
        assert_eq!(script.counts(), (1, 1));
    }
    let script = Script::signed_in([Answer::nothing()]).await;
    let error =
        ids(script.client().retry_for(Duration::ZERO).build().unwrap().batches(ALL)).await.unwrap_err();
    assert!(matches!(error, Error::Broken { .. }), "{error:?}");
    assert_eq!(script.counts(), (1, 1));
}

/// Decision 043.
#[tokio::test]
async fn what_will_not_pass_is_asked_once() {
    let refused = |status: &str| format!("the service refused the request with {status} (no luck)");
    let cases = [
        (400, refused("400 Bad Request"), false),
        (403, refused("403 Forbidden"), false),
        (422, refused("422 Unprocessable Entity"), false),
        (500, refused("500 Internal Server Error"), true),
        (501, refused("501 Not Implemented"), true),
    ];
    for (status, told, can_retry) in cases {
        for version in [Version::V1, Version::V2] {
            let script = Script::with_tokens(move |_| Answer::error(status, "no luck")).await;
            let error =
                ids(script.client().version(version).build().unwrap().batches(ALL)).await.unwrap_err();
            assert_eq!((error.to_string(), error.can_retry()), (told.clone(), can_retry));
            assert_eq!(script.counts(), (1, 1), "{status}");
        }
    }
    let script = Script::with_tokens(|_| Answer::error(404, "Not Found")).await;
    let error = ids(script.client().build().unwrap().batches(ALL)).await.unwrap_err();
    let expected = format!(
        "{}/v2/batches does not answer like a batch scan service: it answered 404 Not Found; check the address",
        script.url()
    );
    assert_eq!((error.to_string(), error.can_retry()), (expected, false));
    assert_eq!(script.counts(), (1, 1));
}

#[tokio::test]
async fn a_422_names_the_field_at_fault() {
    let body = r#"{"detail":[{"type":"timezone_aware","loc":["query","start_date"],"msg":"Input should have timezone info"},
        {"loc":["query","end_date"],"msg":"Input should be a valid datetime"}]}"#;
    let script = Script::signed_in([Answer::new(422, body)]).await;
    let error = ids(script.client().build().unwrap().batches(ALL)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the service refused the request with 422 Unprocessable Entity (query.start_date: Input should have timezone \
         info; query.end_date: Input should be a valid datetime)"
    );
}

/// Decision 028: `Retry-After` from 3 to 5.
#[tokio::test]
async fn the_real_services_503_is_outlasted() {
    let config = Config { fail_rate: 0.3, ..Config::default() };
    let service = Service::configured(config, None).await;
    service.import(0..3).await;
    let waits = Waits::default();
    let client = to(&service).on_retry(waits.listener()).build().unwrap();
    while waits.heard().is_empty() {
        assert_eq!(ids(client.batches(ALL)).await.unwrap(), numbered(0..3));
    }
    for (told, wait) in waits.heard() {
        assert!(told.starts_with("the service answered 503 Service Unavailable ("), "{told}");
        assert!((3..=5).contains(&wait.as_secs()), "{wait:?}");
    }
}

#[tokio::test]
async fn the_real_services_503_is_told_at_once_to_the_impatient() {
    let service = Service::configured(Config { fail_rate: 1.0, ..Config::default() }, None).await;
    let client = to(&service).retry_for(Duration::from_secs(2)).build().unwrap();
    let began = Instant::now();
    let error = client.pages(ALL).try_next().await.unwrap_err();
    assert!(matches!(error, Error::AskedToWait { .. }), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(2));
}

/// Decision 033.
#[tokio::test]
async fn the_real_services_429_is_outlasted() {
    let rate = batchscan_server::config::Rate { requests: 3, per: Duration::from_secs(1) };
    let config = Config { rate_limit: Some(rate), page_rows: 1, ..Config::default() };
    let service = Service::configured(config, None).await;
    service.import(0..5).await;
    let waits = Waits::default();
    let client = to(&service).on_retry(waits.listener()).build().unwrap();
    assert_eq!(ids(client.batches(ALL)).await.unwrap(), numbered(0..5));
    assert!(
        waits.heard().iter().any(|(told, _)| told.starts_with("the service answered 429")),
        "{:?}",
        waits.heard()
    );
}
