//! Cursors: opaque, bound, and good everywhere (decisions 021, 022, 023).

use batchscan_server::config::Config;

use crate::http::app::{Client, TestApp};
use crate::http::reply::{bad_cursor, fault, naive};
use crate::http::sample::{batch, many};

const START: &str = "2026-01-01T00:00:01Z";
const END: &str = "2026-01-01T00:00:05Z";
const DIFFERS: &str =
    "Value error, differs from the date that next_token was issued with: repeat it or leave it out";

/// Ten batches a second apart, pages of two.
async fn nursery() -> (TestApp, Client, String) {
    let app = TestApp::paged(2).await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(10)).await;
    let token = app.token(&client).await;
    (app, client, token)
}

/// The cursor of the first page of a window.
async fn cursor(app: &TestApp, token: &str, query: &str) -> String {
    app.get(&format!("/v2/batches{query}"), token).await.next_token().unwrap()
}

fn window() -> String {
    format!("?start_date={START}&end_date={END}")
}

/// Decision 021.
#[tokio::test]
async fn dates_may_be_left_out_beside_a_cursor() {
    let (app, _, token) = nursery().await;
    let next = cursor(&app, &token, &window()).await;
    let page = app.get(&format!("/v2/batches?next_token={next}"), &token).await;
    assert_eq!(page.ids(), ["b00003", "b00004"]);
    assert_eq!(app.v2_ids(&window(), &token).await, ["b00001", "b00002", "b00003", "b00004", "b00005"]);
}

/// Decision 021.
#[tokio::test]
async fn dates_may_be_repeated_beside_a_cursor() {
    let (app, _, token) = nursery().await;
    let next = cursor(&app, &token, &window()).await;
    for dates in [
        format!("start_date={START}&end_date={END}"),
        format!("start_date={START}"),
        format!("end_date={END}"),
        "start_date=2026-01-01T00:00:01.000%2B00:00&end_date=2026-01-01T00:00:05.000000000Z".to_owned(),
    ] {
        let page = app.get(&format!("/v2/batches?next_token={next}&{dates}"), &token).await;
        assert_eq!((page.status, page.ids()), (200, vec!["b00003".into(), "b00004".into()]), "{dates}");
    }
}

/// Decisions 014, 021.
#[tokio::test]
async fn dates_that_differ_from_the_cursors_are_refused() {
    let (app, _, token) = nursery().await;
    let next = cursor(&app, &token, &window()).await;
    let differs = |field| fault("value_error", "query", field, DIFFERS);
    let ask = async |dates: &str| app.get(&format!("/v2/batches?next_token={next}&{dates}"), &token).await;
    ask("start_date=2026-01-01T00:00:02Z").await.is_invalid_query(&[differs("start_date")]);
    ask("end_date=2026-01-01T00:00:05.000001Z").await.is_invalid_query(&[differs("end_date")]);
    ask(&format!("end_date={START}&start_date={END}"))
        .await
        .is_invalid_query(&[differs("start_date"), differs("end_date")]);
    let open = cursor(&app, &token, "").await;
    let reply = app.get(&format!("/v2/batches?next_token={open}&start_date={START}"), &token).await;
    reply.is_invalid_query(&[differs("start_date")]);
}

/// Decision 014: in the order of the interface, whatever the faults are.
#[tokio::test]
async fn a_differing_start_comes_before_a_malformed_end() {
    let (app, _, token) = nursery().await;
    let next = cursor(&app, &token, &window()).await;
    let reply =
        app.get(&format!("/v2/batches?next_token={next}&end_date=2026-01-01&start_date={END}"), &token).await;
    reply.is_invalid_query(&[fault("value_error", "query", "start_date", DIFFERS), naive("end_date")]);
}

/// Decision 023.
#[tokio::test]
async fn what_is_no_cursor_is_refused() {
    let (app, _, token) = nursery().await;
    let long = "A".repeat(600);
    for text in
        ["", "x", "2", "b00001", "null", "%00", "%ff", &long, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"]
    {
        let reply = app.get(&format!("/v2/batches?next_token={text}"), &token).await;
        reply.is_invalid_query(&[bad_cursor()]);
    }
}

/// Decisions 022, 023: authenticated, so that nothing of it can be changed.
#[tokio::test]
async fn an_altered_cursor_is_refused() {
    let (app, _, token) = nursery().await;
    let next = cursor(&app, &token, &window()).await;
    for place in 0..next.len() - 1 {
        let mut altered = next.clone().into_bytes();
        altered[place] = if altered[place] == b'A' { b'B' } else { b'A' };
        let altered = String::from_utf8(altered).unwrap();
        app.get(&format!("/v2/batches?next_token={altered}"), &token).await.is_invalid_query(&[bad_cursor()]);
    }
    for altered in [format!("{next}A"), format!("{next}="), next[..next.len() - 4].to_owned()] {
        app.get(&format!("/v2/batches?next_token={altered}"), &token).await.is_invalid_query(&[bad_cursor()]);
    }
}

/// Decisions 014, 023: a bad cursor and bad dates are told together, in order.
#[tokio::test]
async fn a_bad_cursor_comes_after_bad_dates() {
    let (app, _, token) = nursery().await;
    let reply = app.get("/v2/batches?next_token=x&end_date=2026-01-01&start_date=2026-01-01", &token).await;
    reply.is_invalid_query(&[naive("start_date"), naive("end_date"), bad_cursor()]);
}

/// Decisions 022, 023.
#[tokio::test]
async fn a_cursor_of_another_organisation_is_simply_invalid() {
    let (app, _, token) = nursery().await;
    let other = app.org("Other").await;
    app.import("Other", &many(10)).await;
    let foreign = cursor(&app, &app.token(&other).await, "").await;
    let own = cursor(&app, &token, "").await;
    assert_ne!(foreign, own);
    app.get(&format!("/v2/batches?next_token={foreign}"), &token).await.is_invalid_query(&[bad_cursor()]);
}

/// Decision 022: bound to the organisation, not to a credential or a token.
#[tokio::test]
async fn a_cursor_serves_every_credential_of_its_organisation() {
    let (app, _, token) = nursery().await;
    let next = cursor(&app, &token, "").await;
    let second = app.credential("Nursery", None).await;
    let page = app.get(&format!("/v2/batches?next_token={next}"), &app.token(&second).await).await;
    assert_eq!(page.ids(), ["b00002", "b00003"]);
}

/// Decision 022: URL-safe without padding, under 512 bytes, also for the longest id.
#[tokio::test]
async fn a_cursor_is_short_and_needs_no_escaping() {
    let app = TestApp::paged(1).await;
    let client = app.org("Nursery").await;
    let long = "日".repeat(42);
    app.import("Nursery", &[batch(&long, "2026-01-01T00:00:00Z"), batch("b", "2026-01-02T00:00:00Z")]).await;
    let token = app.token(&client).await;
    let query = "?start_date=2026-01-01T00:00:00Z&end_date=2026-01-02T00:00:00Z";
    let next = cursor(&app, &token, query).await;
    assert!(next.len() < 512, "{}", next.len());
    assert!(next.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{next}");
    assert_eq!(app.v2_ids(query, &token).await.len(), 2);
}

/// Decision 022: encrypted, so that nobody builds on what is inside.
#[tokio::test]
async fn a_cursor_shows_nothing_of_what_it_holds() {
    use base64::Engine;
    let (app, _, token) = nursery().await;
    let next = cursor(&app, &token, "").await;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(next).unwrap();
    assert!(!bytes.windows(6).any(|six| six == b"b00001"));
}

/// Decision 022: no state on the server.
#[tokio::test]
async fn a_cursor_is_valid_on_every_node_and_after_a_restart() {
    let (mut app, _, token) = nursery().await;
    let next = cursor(&app, &token, &window()).await;
    let other = app.node(Config { page_rows: 2, ..Config::default() }).await;
    app.stop().await.unwrap();
    let page = other.get(&format!("/v2/batches?next_token={next}"), &token).await;
    assert_eq!(page.ids(), ["b00003", "b00004"]);
}

/// Decision 022: a cursor does not run out; the token beside it may be a new one.
#[tokio::test]
async fn a_walk_may_go_on_with_a_new_token() {
    let (app, client, token) = nursery().await;
    let next = cursor(&app, &token, "").await;
    app.advance_secs(30 * 24 * 3_600);
    let page = app.get(&format!("/v2/batches?next_token={next}"), &app.token(&client).await).await;
    assert_eq!(page.ids(), ["b00002", "b00003"]);
}

/// Interface section 7: reading is safe to retry.
#[tokio::test]
async fn the_same_cursor_gives_the_same_page_again() {
    let (app, _, token) = nursery().await;
    let path = format!("/v2/batches?next_token={}", cursor(&app, &token, "").await);
    let [one, two] = [app.get(&path, &token).await, app.get(&path, &token).await];
    assert_eq!(one.body, two.body);
}
