//! Outages: 503 for what may pass, 500 for what must not be, and nothing of either for a bad request.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use batchscan_server::config::Config;
use serde_json::json;

use crate::http::app::{Client, TestApp};
use crate::http::journal;
use crate::http::reply::{Reply, invalid_token, no_datetime};
use crate::http::sample::many;

const PATHS: [&str; 2] = ["/v1/batches", "/v2/batches"];

async fn nursery() -> (TestApp, Client, String) {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(3)).await;
    let token = app.token(&client).await;
    (app, client, token)
}

#[track_caller]
fn is_unavailable(reply: &Reply) {
    let text = "The service cannot reach its data at the moment: try again in a few seconds";
    reply.is_error(503, &json!({ "detail": text }));
    let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((3..=5).contains(&wait), "{wait}");
}

/// A disk that fails to read: the write-ahead log, where all of a young database is, has lost its bytes.
struct FailedDisk {
    log: PathBuf,
    bytes: Vec<u8>,
}

impl FailedDisk {
    async fn under(app: &TestApp) -> Self {
        // A change, so that no connection can answer from pages it has read before.
        app.import("Nursery", &many(4)).await;
        let log = PathBuf::from(format!("{}-wal", app.database().display()));
        let bytes = std::fs::read(&log).unwrap();
        OpenOptions::new().write(true).open(&log).unwrap().set_len(0).unwrap();
        Self { log, bytes }
    }

    fn mend(&self) {
        OpenOptions::new().write(true).open(&self.log).unwrap().write_all(&self.bytes).unwrap();
    }
}

/// All readers of the store are at work for somebody else, until this is dropped.
struct BusyReaders {
    _release: crossbeam_channel::Sender<()>,
}

impl BusyReaders {
    async fn of(app: &TestApp) -> Self {
        const READERS: usize = 4;
        let (release, released) = crossbeam_channel::bounded::<()>(0);
        let (begun, begins) = crossbeam_channel::unbounded();
        for _ in 0..READERS {
            let (store, released, begun) = (app.store.clone(), released.clone(), begun.clone());
            let progress = move |_, _| {
                begun.send(()).unwrap();
                let _ = released.recv();
            };
            tokio::spawn(async move { store.examine(Arc::new(progress)).await });
        }
        while begins.len() < READERS {
            tokio::task::yield_now().await;
        }
        Self { _release: release }
    }
}

/// Interface section 7; decision 028.
#[tokio::test]
async fn a_store_that_cannot_be_read_is_a_503_that_says_when_to_retry() {
    let (app, client, token) = nursery().await;
    let _disk = FailedDisk::under(&app).await;
    for path in PATHS {
        is_unavailable(&app.get(path, &token).await);
    }
    is_unavailable(&app.post_form("/v1/auth", client.form()).await);
}

/// Decision 028: transient.
#[tokio::test]
async fn what_failed_is_answered_when_the_store_is_back() {
    let (app, _, token) = nursery().await;
    let disk = FailedDisk::under(&app).await;
    is_unavailable(&app.get("/v1/batches", &token).await);
    disk.mend();
    assert_eq!(app.v1_ids("", &token).await.len(), 4);
    assert_eq!(Reply::to(app.request("GET", "/readyz")).await.status, 200);
}

/// Decision 028: never for a bad request.
#[tokio::test]
async fn bad_requests_are_told_so_also_during_an_outage() {
    let (app, _, token) = nursery().await;
    let _disk = FailedDisk::under(&app).await;
    for path in PATHS {
        app.get(path, "x.y.z").await.is_error(401, &invalid_token());
        let reply = app.get(&format!("{path}?start_date=x"), &token).await;
        reply.is_invalid_query(&[no_datetime("start_date")]);
    }
    assert_eq!(app.post_form("/v1/auth", "grant_type=x").await.status, 422);
    assert_eq!(Reply::to(app.request("PUT", "/v1/auth")).await.status, 405);
    assert_eq!(Reply::to(app.request("GET", "/nothing")).await.status, 404);
}

/// Decision 028: the process lives, and is not ready.
#[tokio::test]
async fn during_an_outage_the_service_is_alive_and_not_ready() {
    let (app, _, _) = nursery().await;
    let ready = Reply::to(app.request("GET", "/readyz")).await;
    assert_eq!((ready.status, ready.json()), (200, json!({ "status": "ready" })));
    let _disk = FailedDisk::under(&app).await;
    is_unavailable(&Reply::to(app.request("GET", "/readyz")).await);
    let alive = Reply::to(app.request("GET", "/healthz")).await;
    assert_eq!((alive.status, alive.json()), (200, json!({ "status": "alive" })));
}

/// Decision 028: a slot is not had in time; answered within 5 s.
#[tokio::test]
async fn a_store_that_is_too_busy_is_a_503_within_five_seconds() {
    let (app, client, token) = nursery().await;
    let busy = BusyReaders::of(&app).await;
    let asked = Instant::now();
    let (v1, v2, auth, ready, invalid) = tokio::join!(
        app.get("/v1/batches", &token),
        app.get("/v2/batches", &token),
        app.post_form("/v1/auth", client.form()),
        Reply::to(app.request("GET", "/readyz")),
        app.get("/v2/batches?start_date=x", &token),
    );
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    for reply in [v1, v2, auth, ready] {
        is_unavailable(&reply);
    }
    invalid.is_invalid_query(&[no_datetime("start_date")]);
    drop(busy);
    assert_eq!(app.v1_ids("", &token).await.len(), 3, "it recovers by itself");
}

/// Decision 028: the advice varies, so that clients refused together do not come back together.
#[tokio::test]
async fn the_advised_wait_varies_within_three_to_five_seconds() {
    let app = TestApp::with(Config { fail_rate: 1.0, ..Config::default() }).await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    let mut waits = std::collections::BTreeSet::new();
    while waits.len() < 3 {
        let reply = app.get("/v1/batches", &token).await;
        is_unavailable(&reply);
        waits.insert(reply.header("retry-after").unwrap());
    }
    assert_eq!(waits.into_iter().collect::<Vec<_>>(), ["3", "4", "5"]);
}

/// Decision 028: failures on demand fall on batch requests alone, in the share that was asked for.
#[tokio::test]
async fn failures_on_demand_fall_on_batch_requests_alone() {
    let app = TestApp::with(Config { fail_rate: 0.25, ..Config::default() }).await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    let mut failed = 0;
    for turn in 0..100 {
        let reply = app.get(PATHS[turn % 2], &token).await;
        if reply.status == 503 {
            is_unavailable(&reply);
            failed += 1;
        }
    }
    assert!((20..=30).contains(&failed), "{failed} of 100");
    for _ in 0..20 {
        assert_eq!(app.post_form("/v1/auth", client.form()).await.status, 200);
        assert_eq!(Reply::to(app.request("GET", "/readyz")).await.status, 200);
    }
}

/// Interface section 7; decision 029.
#[tokio::test]
async fn what_must_not_be_is_a_500_of_fixed_text_whose_cause_is_in_the_log_alone() {
    let (app, client, token) = nursery().await;
    app.lose_batches();
    for (turn, path) in PATHS.into_iter().enumerate() {
        let id = format!("{}-{turn}", client.id);
        let reply = app.get_with(path, &token, "x-request-id", &id).await;
        reply.is_error(500, &json!({ "detail": "Internal Server Error" }));
        assert_eq!(reply.header("retry-after"), None);
        let lines = journal::lines_with(&id);
        assert!(lines.len() == 1 && lines[0].contains("no such table"), "{lines:?}");
    }
}

/// Decision 028: the cause of a 503 is in the log too.
#[tokio::test]
async fn the_cause_of_a_503_is_in_the_log_alone() {
    let (app, client, token) = nursery().await;
    let _disk = FailedDisk::under(&app).await;
    let reply = app.get_with("/v2/batches", &token, "x-request-id", &client.id).await;
    is_unavailable(&reply);
    let lines = journal::lines_with(&format!("\"id\":\"{}\"", client.id));
    assert!(lines.len() == 1 && lines[0].contains("disk I/O error"), "{lines:?}");
}

/// Decision 028: who has another file open than the one at the path would not hear of a revocation.
#[tokio::test]
async fn a_database_that_was_replaced_under_the_service_is_out_of_reach() {
    let (app, client, token) = nursery().await;
    let moved = app.database().with_extension("moved");
    std::fs::rename(app.database(), &moved).unwrap();
    std::fs::copy(&moved, app.database()).unwrap();
    let noticed = Instant::now();
    while app.get("/readyz", "x").await.status != 503 {
        assert!(noticed.elapsed() < Duration::from_secs(5), "not noticed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    is_unavailable(&app.get("/v2/batches", &token).await);
    is_unavailable(&app.post_form("/v2/auth", client.form()).await);
    std::fs::rename(&moved, app.database()).unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(app.get("/v2/batches", &token).await.status, 200, "the file is back");
}
