//! Cursors (decisions 021, 022, 023).

use batchscan_server::config::Config;

use super::*;

const START: &str = "2026-01-01T00:00:01Z";
const END: &str = "2026-01-01T00:00:05Z";
const RANGE: &str = "?start_date=2026-01-01T00:00:01Z&end_date=2026-01-01T00:00:05Z";
const DIFFERS: &str =
    "Value error, differs from the date that next_token was issued with: repeat it or leave it out";

/// Ten batches one second apart, in pages of two.
async fn nursery() -> (TestApp, Client, String) {
    TestApp::filled(2, &many(10)).await
}

/// The cursor on the first page.
async fn cursor(app: &TestApp, token: &str, query: &str) -> String {
    app.get(&format!("/v2/batches{query}"), token).await.next_token().unwrap()
}

fn path(cursor: &str) -> String {
    format!("/v2/batches?next_token={cursor}")
}

/// Decision 021.
#[tokio::test]
async fn dates_may_be_omitted_or_repeated_with_a_cursor() {
    let (app, _, token) = nursery().await;
    let next = cursor(&app, &token, RANGE).await;
    for dates in [
        String::new(),
        format!("&start_date={START}&end_date={END}"),
        format!("&start_date={START}"),
        format!("&end_date={END}"),
        "&start_date=2026-01-01T00:00:01.000%2B00:00&end_date=2026-01-01T00:00:05.000000000Z".to_owned(),
    ] {
        let page = app.get(&format!("{}{dates}", path(&next)), &token).await;
        assert_eq!((page.status, page.ids()), (200, vec!["b00003".into(), "b00004".into()]), "{dates}");
    }
    assert_eq!(app.v2_ids(RANGE, &token).await, ["b00001", "b00002", "b00003", "b00004", "b00005"]);
}

/// Decisions 014, 021, 023: in the contract's order.
#[tokio::test]
async fn dates_that_differ_from_the_cursor_are_rejected() {
    let (app, _, token) = nursery().await;
    let (next, open) = (cursor(&app, &token, RANGE).await, cursor(&app, &token, "").await);
    let differs = |field| invalid("value_error", "query", field, DIFFERS);
    for (cursor, dates, errors) in [
        (next.as_str(), "start_date=2026-01-01T00:00:02Z".into(), vec![differs("start_date")]),
        (&next, "end_date=2026-01-01T00:00:05.000001Z".into(), vec![differs("end_date")]),
        (
            &next,
            format!("end_date={START}&start_date={END}"),
            vec![differs("start_date"), differs("end_date")],
        ),
        (&open, format!("start_date={START}"), vec![differs("start_date")]),
        (
            &next,
            format!("end_date=2026-01-31T08:00:00&start_date={END}"),
            vec![differs("start_date"), naive("end_date")],
        ),
        (
            "x",
            "end_date=2026-01-31T08:00:00&start_date=2026-01-31T08:00:00".into(),
            vec![naive("start_date"), naive("end_date"), bad_cursor()],
        ),
    ] {
        app.get(&format!("{}&{dates}", path(cursor)), &token).await.is_invalid_query(&errors);
    }
}

/// Decisions 022, 023: authenticated, and bound to the organisation.
#[tokio::test]
async fn an_invalid_or_foreign_cursor_is_rejected() {
    let (app, _, token) = nursery().await;
    let other = app.org("Other").await;
    app.import("Other", &many(10)).await;
    let foreign = cursor(&app, &app.token(&other).await, "").await;
    let next = cursor(&app, &token, RANGE).await;
    let mut invalid = vec![foreign, "A".repeat(600), "A".repeat(40)];
    invalid.extend(["", "x", "2", "b00001", "null", "%00", "%ff"].map(str::to_owned));
    invalid.extend([format!("{next}A"), format!("{next}="), next[..next.len() - 4].to_owned()]);
    for cursor in invalid {
        app.get(&path(&cursor), &token).await.is_invalid_query(&[bad_cursor()]);
    }
}

/// Decision 022: stateless, without expiry, bound to the organisation and not to a credential.
#[tokio::test]
async fn a_cursor_is_valid_on_every_node_for_every_credential_and_does_not_expire() {
    let (mut app, client, token) = nursery().await;
    let next = path(&cursor(&app, &token, "").await);
    let expected = app.get(&next, &token).await;
    assert_eq!(expected.ids(), ["b00002", "b00003"]);
    let second = app.credential("Nursery", None).await;
    let second = app.token(&second).await;
    let other = app.node(Config { page_rows: 2, ..Config::default() }).await;
    app.stop().await.unwrap();
    for token in [&token, &second] {
        assert_eq!(other.get(&next, token).await.body, expected.body);
    }
    other.advance_secs(30 * 24 * 3_600);
    assert_eq!(other.get(&next, &other.token(&client).await).await.body, expected.body);
}
