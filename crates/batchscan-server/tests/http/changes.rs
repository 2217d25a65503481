//! `GET /v2/changes` and `GET /v2/batches/{batch_id}` (decision 052).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use batchscan_model::{Batch, BatchId, UtcInstant};
use batchscan_server::config::Config;
use batchscan_store::KeyRotation;
use serde_json::Value;
use tokio::time::sleep;

use super::*;

/// More than a request waits that is woken, and less than the longest wait, 45 s.
const SOON: Duration = Duration::from_secs(40);
/// Until a request waits.
const MOMENT: Duration = Duration::from_millis(500);

/// A client's copy of the batches.
#[derive(Default)]
struct Mirror {
    since: Option<String>,
    batches: BTreeMap<String, Value>,
}

impl Mirror {
    /// A complete copy.
    async fn complete(app: &TestApp, token: &str) -> Self {
        let mut mirror = Self::default();
        while mirror.read(app, token).await {}
        mirror
    }

    fn path(&self) -> String {
        self.since.as_ref().map_or("/v2/changes".into(), |since| format!("/v2/changes?since={since}"))
    }

    /// Applies the next response. Returns whether there is more.
    async fn read(&mut self, app: &TestApp, token: &str) -> bool {
        let reply = app.get(&self.path(), token).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let (body, removed) = (reply.json(), removed(&reply));
        let ids: Vec<String> = reply.ids().into_iter().chain(removed.clone()).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "an id twice: {ids:?}");
        self.batches.extend(reply.ids().into_iter().zip(reply.batches()));
        self.batches.retain(|id, _| !removed.contains(id));
        self.since = body["since"].as_str().map(str::to_owned);
        assert!(self.since.is_some(), "{body}");
        body["more"].as_bool().unwrap()
    }
}

fn removed(reply: &Reply) -> Vec<String> {
    serde_json::from_value(reply.json()["removed"].clone()).unwrap()
}

async fn remove(app: &TestApp, id: &str) {
    let ids = vec![BatchId::new(id).unwrap()];
    app.store.remove_batches("Nursery", ids, UtcInstant::EPOCH, app.now()).await.unwrap();
}

fn bad_position() -> Value {
    let msg = "Value error, not a position of this service: pass since of the last response, or leave it out";
    invalid("value_error", "query", "since", msg)
}

fn bad_wait() -> Value {
    let msg = "Value error, wait should be a whole number of seconds from 0 to 60";
    invalid("value_error", "query", "wait", msg)
}

#[track_caller]
fn is_gone(reply: &Reply) {
    let text = "The changes since this position are not known any more: read everything again, without since";
    reply.is_detail(410, text);
}

#[tokio::test]
async fn data_has_the_bytes_of_v2_batches() {
    let batches = [Batch::from_json(FULL).unwrap(), batch("b", "2026-01-01T00:00:00Z")];
    let (app, _, token) = TestApp::filled(1_000, &[]).await;
    let empty = app.get("/v2/changes", &token).await;
    assert!(empty.text().starts_with("{\"data\":[],\"removed\":[],\"since\":\""), "{}", empty.text());
    let since = Mirror::complete(&app, &token).await.path();
    app.import("Nursery", &batches).await;
    let page = app.get("/v2/batches", &token).await;
    let expected = page.text().split("],\"next_token\"").next().unwrap();
    // As state and as changes.
    for path in ["/v2/changes", &since] {
        let reply = app.get(path, &token).await;
        assert_eq!(reply.text().split("],\"removed\"").next(), Some(expected), "{path}");
        reply.has_headers(&[("content-type", "application/json"), ("cache-control", "no-store")]);
        assert_eq!(reply.header("etag"), None);
    }
}

/// Decisions 030, 032.
#[tokio::test]
async fn gzip_and_head_have_what_identity_has() {
    let (app, _, token) = TestApp::filled(1_000, &many(50)).await;
    let plain = app.get("/v2/changes", &token).await;
    let gzip = app.get_with("/v2/changes", &token, "accept-encoding", "gzip").await;
    gzip.has_headers(&[("content-encoding", "gzip")]);
    assert_eq!(gzip.decoded(), plain.body);
    let head = Reply::to(app.request("HEAD", "/v2/changes").bearer_auth(&token)).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), plain.header("content-length"));
}

#[tokio::test]
async fn an_invalid_foreign_or_repeated_position_is_rejected() {
    let (app, _, token) = TestApp::filled(2, &many(5)).await;
    let other = app.org("Other").await;
    let foreign = Mirror::complete(&app, &app.token(&other).await).await.since.unwrap();
    let since = Mirror::complete(&app, &token).await.since.unwrap();
    let cursor = app.get("/v2/batches", &token).await.next_token().unwrap();
    let mut positions = vec![foreign, cursor, "A".repeat(600), "A".repeat(80)];
    positions.extend(["", "x", "0", "null", "%00", "%ff"].map(str::to_owned));
    positions.extend([format!("{since}A"), format!("{since}="), since[..since.len() - 4].to_owned()]);
    for position in positions {
        let path = format!("/v2/changes?since={position}");
        app.get(&path, &token).await.is_invalid_query(&[bad_position()]);
    }
    let twice = app.get(&format!("/v2/changes?since={since}&since={since}"), &token).await;
    twice.is_invalid_query(&[repeated("query", "since")]);
}

#[tokio::test]
async fn an_invalid_wait_is_rejected() {
    let (app, token) = TestApp::nursery().await;
    for wait in ["61", "x", "", "-1", "1.5", "1s", "99999999999999999999"] {
        app.get(&format!("/v2/changes?wait={wait}"), &token).await.is_invalid_query(&[bad_wait()]);
    }
    app.get("/v2/changes?wait=0&wait=0", &token).await.is_invalid_query(&[repeated("query", "wait")]);
    app.get("/v2/changes?wait=61&since=x", &token).await.is_invalid_query(&[bad_position(), bad_wait()]);
    app.get("/v2/changes?wait=61", "x").await.is_invalid_token();
    let started = Instant::now();
    assert_eq!(app.get("/v2/changes?wait=60", &token).await.ids().len(), 2);
    assert!(started.elapsed() < SOON, "without a position there is nothing to wait for");
}

#[tokio::test]
async fn a_position_is_gone_if_the_database_lost_its_version() {
    let (app, _, token) = TestApp::filled(2, &many(5)).await;
    let mut partial = Mirror::default();
    partial.read(&app, &token).await;
    let complete = Mirror::complete(&app, &token).await;
    app.replace_versions();
    for path in [partial.path(), complete.path(), format!("{}&wait=60", complete.path())] {
        is_gone(&app.get(&path, &token).await);
        let head = Reply::to(app.request("HEAD", &path).bearer_auth(&token)).await;
        assert_eq!(head.status, 410);
    }
    assert_eq!(Mirror::complete(&app, &token).await.batches, complete.batches);
}

/// Decision 042.
#[tokio::test]
async fn a_position_is_valid_on_every_node_after_a_key_rotation() {
    let (app, client, token) = TestApp::filled(2, &many(5)).await;
    let mut mirror = Mirror::complete(&app, &token).await;
    app.advance_secs(24 * 3_600);
    let now = app.now();
    app.store.rotate_keys(KeyRotation { now, remove_before: now }).await.unwrap();
    app.advance_secs(400 * 24 * 3_600);
    app.store.rotate_keys(KeyRotation { now: app.now(), remove_before: app.now() }).await.unwrap();
    let other = app.node(Config { page_rows: 2, ..Config::default() }).await;
    other.import("Nursery", &[batch("late", "2026-02-01T00:00:00Z")]).await;
    assert!(!mirror.read(&other, &other.token(&client).await).await);
    assert_eq!(mirror.batches.len(), 6);
}

#[tokio::test]
async fn a_waiting_request_ends_soon_after_a_change_or_after_its_time() {
    let (app, _, token) = TestApp::filled(1_000, &many(1)).await;
    let path = Mirror::complete(&app, &token).await.path();
    let started = Instant::now();
    let unchanged = app.get(&format!("{path}&wait=1"), &token).await;
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert_eq!((unchanged.status, unchanged.ids().len(), removed(&unchanged).len()), (200, 0, 0));
    assert!(path.ends_with(unchanged.json()["since"].as_str().unwrap()), "{}", unchanged.text());

    let long = format!("{path}&wait=60");
    let import = async {
        sleep(MOMENT).await;
        app.import("Nursery", &[batch("new", "2026-02-01T00:00:00Z")]).await
    };
    let (changed, _) = tokio::join!(app.get(&long, &token), import);
    assert_eq!(changed.ids(), ["new"]);

    let long = format!("/v2/changes?since={}&wait=60", changed.json()["since"].as_str().unwrap());
    let removal = async {
        sleep(MOMENT).await;
        remove(&app, "new").await;
    };
    let (changed, ()) = tokio::join!(app.get(&long, &token), removal);
    assert_eq!(removed(&changed), ["new"]);
    assert!(started.elapsed() < SOON + SOON);
}

/// Decision 010: at once, not when the request has waited.
#[tokio::test]
async fn a_waiting_request_ends_when_its_credential_is_revoked() {
    let (app, revoked, token) = TestApp::filled(1_000, &many(1)).await;
    let valid = app.token(&app.credential("Nursery", None).await).await;
    let path = format!("{}&wait=40", Mirror::complete(&app, &token).await.path());
    let revoke = async {
        sleep(MOMENT).await;
        app.revoke(&revoked).await;
        std::future::pending::<()>().await;
    };
    // Both wait for the same time, unless one of them ends early.
    tokio::select! {
        rejected = app.get(&path, &token) => rejected.is_invalid_token(),
        waited = app.get(&path, &valid) => panic!("only this one ended: {}", waited.text()),
        () = revoke => {}
    }
}

/// Decision 010.
#[tokio::test]
async fn a_credential_that_ends_while_its_request_waits_is_rejected() {
    let (app, revoked, _) = TestApp::filled(1_000, &many(1)).await;
    let expiring = app.credential("Nursery", Some(app.now().plus_secs(60))).await;
    let (revoked_token, expiring_token) = (app.token(&revoked).await, app.token(&expiring).await);
    let path = format!("{}&wait=2", Mirror::complete(&app, &revoked_token).await.path());
    let end = async {
        sleep(MOMENT).await;
        app.revoke(&revoked).await;
        app.advance_secs(61);
    };
    let (first, second, ()) =
        tokio::join!(app.get(&path, &revoked_token), app.get(&path, &expiring_token), end);
    first.is_invalid_token();
    second.is_invalid_token();
}

/// Operating guide, "Start".
#[tokio::test]
async fn waiting_requests_end_when_the_service_stops() {
    let (mut app, _, token) = TestApp::filled(1_000, &many(1)).await;
    let path = format!("{}&wait=60", Mirror::complete(&app, &token).await.path());
    let mut raw = Raw::sending(&app, get_head(&path, &token, "")).await;
    sleep(MOMENT).await;
    let started = Instant::now();
    app.stop().await.unwrap();
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    let reply = raw.response().await;
    assert_eq!((reply.status, reply.json()["more"].as_bool()), (200, Some(false)));
}

fn encoded(id: &str) -> String {
    id.bytes().fold("/v2/batches/".to_owned(), |path, byte| format!("{path}%{byte:02X}"))
}

#[tokio::test]
async fn a_batch_is_read_by_its_id() {
    let (app, _, token) = TestApp::signed_in().await;
    app.import("Nursery", &[Batch::from_json(FULL).unwrap()]).await;
    let reply = app.get("/v2/batches/b-1", &token).await;
    assert_eq!((reply.status, reply.text()), (200, FULL));
    let etag = reply.header("etag").unwrap();
    let again = app.get_with("/v2/batches/b-1", &token, "if-none-match", &etag).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    let head = Reply::to(app.request("HEAD", "/v2/batches/b-1").bearer_auth(&token)).await;
    assert_eq!((head.status, head.header("etag"), head.body.len()), (200, Some(etag.clone()), 0));
    app.import("Nursery", &[named("b-1", "2026-01-31T08:00:00Z", "Corrected")]).await;
    let corrected = app.get_with("/v2/batches/b-1", &token, "if-none-match", &etag).await;
    assert_eq!((corrected.status, corrected.json()["batch_name"].as_str()), (200, Some("Corrected")));
    app.get("/v2/batches/b-1", "x").await.is_invalid_token();
}

/// Decision 036.
#[tokio::test]
async fn an_id_may_have_any_characters() {
    let ids = ["a/b", "ä ö", "100%", "a?b#c", "+", "%2F", "日本", "{batch_id}", "\"\\"];
    let batches = ids.map(|id| batch(id, "2026-01-01T00:00:00Z"));
    let (app, _, token) = TestApp::filled(1_000, &batches).await;
    for id in ids {
        let reply = app.get(&encoded(id), &token).await;
        assert_eq!((reply.status, reply.json()["batch_id"].as_str()), (200, Some(id)));
    }
}

#[tokio::test]
async fn an_unknown_foreign_removed_or_invalid_id_is_not_found() {
    let (app, _, token) = TestApp::filled(1_000, &many(2)).await;
    let _ = app.org("Other").await;
    app.import("Other", &[batch("foreign", "2026-01-01T00:00:00Z")]).await;
    remove(&app, "b00001").await;
    let ids = ["foreign", "unknown", "b00001", "B00000", "%FF", "a%00b", &"x".repeat(129)];
    for id in ids {
        let path = format!("/v2/batches/{id}");
        for reply in [app.get(&path, &token).await, app.get_with(&path, &token, "if-none-match", "*").await] {
            reply.is_detail(404, "There is no batch with this id");
        }
    }
}
