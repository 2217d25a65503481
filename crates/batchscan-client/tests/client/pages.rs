//! Pages and batches: every batch of a date range, once, as the service sent it.

use batchscan_client::{DateRange, Page, TryStreamExt, UtcInstant, Version};

use crate::mock_server::{ApiResponse as _, MockServer, Response, client_of};
use crate::{ALL, Service, ids, ids_in, numbered, paged, texts};

fn instant(text: &str) -> UtcInstant {
    UtcInstant::parse_any_offset(text).unwrap()
}

/// API section 9: the versions differ only in the envelope.
#[tokio::test]
async fn both_versions_return_the_bytes_of_the_service() {
    let service = paged(50, 7).await;
    let expected: Vec<_> = (0..50).map(|number| Service::batch(number).to_json()).collect();
    for version in [Version::V1, Version::V2] {
        let client = service.client().version(version).build().unwrap();
        assert_eq!(texts(client.pages(ALL)).await.unwrap(), expected, "{version:?}");
        let batches: Vec<_> = client.batches(ALL).try_collect().await.unwrap();
        let rendered: Vec<_> = batches.iter().map(|received| received.batch.to_json()).collect();
        assert_eq!(rendered, expected, "{version:?}");
        assert!(batches.iter().all(|received| received.unknown.is_empty()));
    }
}

#[tokio::test]
async fn every_page_but_the_last_has_a_cursor() {
    let client = paged(15, 7).await;
    let pages: Vec<Page> = client.client().build().unwrap().pages(ALL).try_collect().await.unwrap();
    let shapes = pages.iter().map(|page| (page.texts().count(), page.next_token().is_some()));
    assert_eq!(shapes.collect::<Vec<_>>(), [(7, true), (7, true), (1, false)]);
}

#[tokio::test]
async fn the_array_of_v1_is_returned_in_several_pages() {
    let service = Service::with_batches(2_500).await;
    let v1 = service.client().version(Version::V1).build().unwrap();
    let pages: Vec<Page> = v1.pages(ALL).try_collect().await.unwrap();
    assert!(pages.len() >= 3, "{}", pages.len());
    let joined: Vec<_> = pages.iter().flat_map(Page::texts).map(Result::unwrap).collect();
    assert_eq!(joined, texts(service.client().build().unwrap().pages(ALL)).await.unwrap());
}

#[tokio::test]
async fn the_date_range_is_sent_in_utc_with_every_page() {
    let pages = [(0..2, Some("c1")), (2..4, Some("c2")), (4..5, None)];
    let server = MockServer::with_tokens(pages.map(|(numbers, next)| Response::page(numbers, next)));
    let range = DateRange {
        start: Some(instant("2026-01-31T09:30:00+01:00")),
        end: Some(instant("2026-02-28T23:59:59Z")),
    };
    assert_eq!(ids_in(server.client(), range).await.unwrap(), numbered(0..5));
    let query = "start_date=2026-01-31T08%3A30%3A00Z&end_date=2026-02-28T23%3A59%3A59Z";
    let expected = ["", "&next_token=c1", "&next_token=c2"].map(|next| format!("/v2/batches?{query}{next}"));
    assert_eq!(server.targets()[1..], expected);
    let server = MockServer::with_tokens([Response::array(0..5)]);
    assert_eq!(ids_in(server.client().version(Version::V1), range).await.unwrap(), numbered(0..5));
    assert_eq!(server.targets()[1], format!("/v1/batches?{query}"));
}

#[tokio::test]
async fn each_version_has_its_own_paths_below_the_base_address() {
    for (version, base, path) in [
        (Version::V1, "", "/v1"),
        (Version::V2, "", "/v2"),
        (Version::V2, "/api", "/api/v2"),
        (Version::V2, "/api/", "/api/v2"),
    ] {
        let is_v1 = version == Version::V1;
        let response = if is_v1 { Response::array(0..3) } else { Response::page(0..3, None) };
        let server = MockServer::with_tokens([response]);
        let client = client_of(&format!("{}{base}", server.url())).version(version);
        assert_eq!(ids(client).await.unwrap(), numbered(0..3));
        assert_eq!(server.targets(), [format!("{path}/auth"), format!("{path}/batches")]);
        assert_eq!(server.counts(), (1, 1));
    }
}

#[tokio::test]
async fn a_cursor_is_sent_back_unchanged() {
    let cursor = "a+b/c=&d=1#%41 ü\"";
    let server = MockServer::with_tokens([Response::page(0..1, Some(cursor)), Response::page(1..2, None)]);
    assert_eq!(server.ids().await.unwrap(), numbered(0..2));
    assert_eq!(server.requests()[2].query, [("next_token".to_owned(), cursor.to_owned())]);
}

#[tokio::test]
async fn an_empty_page_ends_the_pagination_only_if_it_is_the_last() {
    let server = MockServer::with_tokens([Response::page(0..0, None)]);
    let pages: Vec<Page> = server.client().build().unwrap().pages(ALL).try_collect().await.unwrap();
    assert!(pages.len() == 1 && pages[0].is_empty() && pages[0].next_token().is_none());
    let pages = [(0..2, Some("a")), (0..0, Some("b")), (2..3, None)];
    let server = MockServer::with_tokens(pages.map(|(numbers, next)| Response::page(numbers, next)));
    assert_eq!(server.ids().await.unwrap(), numbered(0..3));
}
