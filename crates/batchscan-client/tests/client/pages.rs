//! Walks: every batch of a window, once, as the service sent it.

use batchscan_client::{DateRange, Error, Page, TryStreamExt, UtcInstant, Version};
use serde_json::value::RawValue;

use crate::script::{Answer, Script};
use crate::{ALL, Service, ids, numbered, paged, texts, to};

fn instant(text: &str) -> UtcInstant {
    UtcInstant::parse_any_offset(text).unwrap()
}

/// From the creation of one batch to that of another.
fn between(first: u32, last: u32) -> DateRange {
    let created = |number| Some(Service::batch(number).batch_creation_date);
    DateRange { start: created(first), end: created(last) }
}

/// v1's answer, asked for without the SDK.
async fn v1_texts(service: &Service) -> Vec<String> {
    // No TLS is spoken, but the library wants to know how it would be.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", service.client_id()),
        ("client_secret", service.client_secret()),
    ];
    let granted = http.post(format!("{}/v1/auth", service.url())).form(&form).send().await.unwrap();
    let granted: serde_json::Value = granted.json().await.unwrap();
    let token = granted["access_token"].as_str().unwrap();
    let answer = http.get(format!("{}/v1/batches", service.url())).bearer_auth(token).send().await.unwrap();
    let array: Vec<Box<RawValue>> = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    array.iter().map(|raw| raw.get().to_owned()).collect()
}

/// Interface section 9: the two versions behave identically apart from the envelope.
#[tokio::test]
async fn pages_and_batches_are_v1_byte_for_byte() {
    let service = paged(50, 7).await;
    let expected = v1_texts(&service).await;
    assert_eq!(expected.len(), 50);
    for version in [Version::V1, Version::V2] {
        let client = to(&service).version(version).build().unwrap();
        assert_eq!(texts(client.pages(ALL)).await.unwrap(), expected, "{version:?}");
        let batches: Vec<_> = client.batches(ALL).try_collect().await.unwrap();
        let rendered: Vec<_> = batches.iter().map(|received| received.batch.to_json()).collect();
        assert_eq!(rendered, expected, "{version:?}");
        assert!(batches.iter().all(|received| received.unknown.is_empty()));
    }
}

#[tokio::test]
async fn pages_are_those_of_the_service_and_all_but_the_last_name_the_next() {
    let service = paged(15, 7).await;
    let client = to(&service).build().unwrap();
    let pages: Vec<Page> = client.pages(ALL).try_collect().await.unwrap();
    let shape: Vec<_> =
        pages.iter().map(|page| (page.texts().count(), page.next_token().is_some())).collect();
    assert_eq!(shape, [(7, true), (7, true), (1, false)]);
}

#[tokio::test]
async fn an_array_of_v1_comes_in_pieces_and_is_the_same_as_the_pages_of_v2() {
    let service = Service::with_batches(2_500).await;
    let v1 = to(&service).version(Version::V1).build().unwrap();
    let v2 = to(&service).build().unwrap();
    let pieces: Vec<Page> = v1.pages(ALL).try_collect().await.unwrap();
    assert!(pieces.len() >= 3, "{}", pieces.len());
    let joined: Vec<_> = pieces.iter().flat_map(Page::texts).map(Result::unwrap).collect();
    assert_eq!(joined, texts(v2.pages(ALL)).await.unwrap());
}

/// Decision 011.
#[tokio::test]
async fn a_window_holds_both_of_its_ends() {
    let service = paged(30, 4).await;
    for version in [Version::V1, Version::V2] {
        let client = to(&service).version(version).build().unwrap();
        let window = async |range| ids(client.batches(range)).await.unwrap();
        assert_eq!(window(between(10, 20)).await, numbered(10..21));
        assert_eq!(window(between(10, 10)).await, numbered(10..11));
        assert_eq!(window(DateRange { end: None, ..between(25, 25) }).await, numbered(25..30));
        assert_eq!(window(DateRange { start: None, ..between(3, 3) }).await, numbered(0..4));
        assert_eq!(window(between(20, 10)).await, numbered(0..0));
    }
}

#[tokio::test]
async fn a_window_goes_out_in_the_interfaces_form_and_again_beside_each_cursor() {
    let pages = [(0..2, Some("c1")), (2..4, Some("c2")), (4..5, None)];
    let script = Script::signed_in(pages.map(|(numbers, next)| Answer::page(numbers, next))).await;
    let range = DateRange {
        start: Some(instant("2026-01-31T09:30:00+01:00")),
        end: Some(instant("2026-02-28T23:59:59Z")),
    };
    let client = script.client().build().unwrap();
    assert_eq!(ids(client.batches(range)).await.unwrap(), numbered(0..5));
    let window = "start_date=2026-01-31T08%3A30%3A00Z&end_date=2026-02-28T23%3A59%3A59Z";
    let targets: Vec<_> = script.heard().into_iter().skip(1).map(|request| request.target).collect();
    assert_eq!(
        targets,
        [
            format!("/v2/batches?{window}"),
            format!("/v2/batches?{window}&next_token=c1"),
            format!("/v2/batches?{window}&next_token=c2"),
        ]
    );
}

#[tokio::test]
async fn a_window_without_ends_sends_no_dates_and_each_version_has_its_own_paths() {
    for (version, answer, prefix) in
        [(Version::V1, Answer::array(0..3), "/v1"), (Version::V2, Answer::page(0..3, None), "/v2")]
    {
        let script = Script::signed_in([answer]).await;
        let client = script.client().version(version).build().unwrap();
        assert_eq!(ids(client.batches(ALL)).await.unwrap(), numbered(0..3));
        let asked: Vec<_> =
            script.heard().iter().map(|heard| format!("{} {}", heard.method, heard.target)).collect();
        assert_eq!(asked, [format!("POST {prefix}/auth"), format!("GET {prefix}/batches")]);
    }
}

#[tokio::test]
async fn the_base_address_may_have_a_path_and_a_slash() {
    for path in ["/api", "/api/"] {
        let script = Script::signed_in([Answer::page(0..1, None)]).await;
        let client = crate::script::client_of(&format!("{}{path}", script.url())).build().unwrap();
        assert_eq!(ids(client.batches(ALL)).await.unwrap(), numbered(0..1));
        let targets: Vec<_> = script.heard().into_iter().map(|request| request.target).collect();
        assert_eq!(targets, ["/api/v2/auth", "/api/v2/batches"]);
    }
}

#[tokio::test]
async fn a_cursor_goes_back_as_it_came_whatever_it_holds() {
    let odd = "a+b/c=&d=1#%41 ü\"";
    let script = Script::signed_in([Answer::page(0..1, Some(odd)), Answer::page(1..2, None)]).await;
    let client = script.client().build().unwrap();
    assert_eq!(ids(client.batches(ALL)).await.unwrap(), numbered(0..2));
    assert_eq!(script.heard()[2].pairs(), [("next_token".to_owned(), odd.to_owned())]);
}

#[tokio::test]
async fn an_empty_window_ends_at_once() {
    let service = paged(3, 2).await;
    for version in [Version::V1, Version::V2] {
        let client = to(&service).version(version).build().unwrap();
        assert_eq!(ids(client.batches(between(100, 200))).await.unwrap(), [""; 0]);
    }
    let script = Script::signed_in([Answer::page(0..0, None)]).await;
    let client = script.client().build().unwrap();
    let pages: Vec<Page> = client.pages(ALL).try_collect().await.unwrap();
    assert!(pages.len() == 1 && pages[0].is_empty() && pages[0].next_token().is_none());
    assert_eq!(script.counts(), (1, 1));
}

#[tokio::test]
async fn an_empty_page_in_the_middle_does_not_end_the_walk() {
    let pages = [(0..2, Some("a")), (0..0, Some("b")), (2..3, None)];
    let script = Script::signed_in(pages.map(|(numbers, next)| Answer::page(numbers, next))).await;
    let client = script.client().build().unwrap();
    assert_eq!(ids(client.batches(ALL)).await.unwrap(), numbered(0..3));
}

#[tokio::test]
async fn a_walk_goes_on_from_a_cursor_in_another_client() {
    let service = paged(20, 6).await;
    let range = between(2, 17);
    let first = to(&service).build().unwrap().pages(range).try_next().await.unwrap().unwrap();
    let other = to(&service).build().unwrap();
    let mut all: Vec<String> = first.texts().map(|text| text.unwrap().to_owned()).collect();
    all.extend(texts(other.pages_after(range, first.next_token().unwrap())).await.unwrap());
    let expected: Vec<_> = (2..18).map(|number| Service::batch(number).to_json()).collect();
    assert_eq!(all, expected);
}

#[tokio::test]
async fn a_cursor_of_another_window_is_refused_in_the_services_words() {
    let service = paged(20, 6).await;
    let client = to(&service).build().unwrap();
    let page = client.pages(between(2, 17)).try_next().await.unwrap().unwrap();
    let cursor = page.next_token().unwrap();
    for (range, cursor) in [(between(2, 18), cursor), (between(2, 17), "made-up")] {
        let error = client.pages_after(range, cursor).try_next().await.unwrap_err();
        assert!(matches!(error, Error::Refused { .. }) && !error.can_retry(), "{error:?}");
        let told = error.to_string();
        assert!(
            told.starts_with("the service refused the request with 422 Unprocessable Entity (query."),
            "{told}"
        );
    }
}

/// Batches that come while a walk is under way stand at its end.
#[tokio::test]
async fn a_walk_meets_what_is_added_behind_it() {
    let service = paged(10, 5).await;
    let client = to(&service).build().unwrap();
    let mut batches = client.batches(ALL);
    batches.try_next().await.unwrap();
    service.import(10..20).await;
    assert_eq!(ids(batches).await.unwrap(), numbered(1..20));
}
