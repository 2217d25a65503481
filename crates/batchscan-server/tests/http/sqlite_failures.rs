//! Failures of SQLite: 503 if they are temporary, otherwise 500.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use batchscan_server::config::Config;
use batchscan_store::{DatabaseUrl, OpenOptions as StoreOptions};
use serde_json::json;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::http::app::Database;
use crate::http::log::lines_with;
use crate::http::*;

async fn nursery() -> (TestApp, Client, String) {
    TestApp::filled(1_000, &many(3)).await
}

/// A disk error: the write-ahead log, which contains all of a new database, is truncated.
struct FailedDisk {
    log: PathBuf,
    bytes: Vec<u8>,
}

impl FailedDisk {
    async fn under(app: &TestApp) -> Self {
        // A change, so that no connection can use pages that it has cached.
        app.import("Nursery", &many(4)).await;
        let log = PathBuf::from(format!("{}-wal", app.database().display()));
        let bytes = std::fs::read(&log).unwrap();
        OpenOptions::new().write(true).open(&log).unwrap().set_len(0).unwrap();
        Self { log, bytes }
    }

    fn repair(&self) {
        OpenOptions::new().write(true).open(&self.log).unwrap().write_all(&self.bytes).unwrap();
    }
}

/// Keeps all reader threads of the store busy until it is dropped.
struct BusyReaders {
    _release: OwnedMutexGuard<()>,
}

impl BusyReaders {
    async fn of(app: &TestApp) -> Self {
        const READERS: usize = 5;
        let (gate, started) = (Arc::new(Mutex::new(())), Arc::new(AtomicUsize::new(0)));
        let release = gate.clone().lock_owned().await;
        for _ in 0..READERS {
            let (store, gate, started) = (app.store.clone(), gate.clone(), started.clone());
            let progress = move |_, _| {
                started.fetch_add(1, Ordering::SeqCst);
                drop(gate.blocking_lock());
            };
            tokio::spawn(async move { store.doctor(Arc::new(progress)).await });
        }
        until(async || started.load(Ordering::SeqCst) == READERS).await;
        Self { _release: release }
    }
}

/// Contract section 7; decision 028: temporary, and never the response to an invalid request.
#[tokio::test]
async fn a_store_that_cannot_be_read_is_a_503_until_it_recovers() {
    let (app, client, token) = nursery().await;
    let ready = app.send("GET", "/readyz").await;
    assert_eq!((ready.status, ready.json()), (200, json!({ "status": "ready" })));
    let disk = FailedDisk::under(&app).await;
    for path in PATHS {
        app.get(path, &token).await.is_unavailable();
        app.get(path, "x.y.z").await.is_invalid_token();
        let invalid = app.get(&format!("{path}?start_date=x"), &token).await;
        invalid.is_invalid_query(&[not_a_datetime("start_date")]);
    }
    app.post_form("/v1/auth", client.form()).await.is_unavailable();
    assert_eq!(app.post_form("/v1/auth", "grant_type=x").await.status, 422);
    assert_eq!(app.send("PUT", "/v1/auth").await.status, 405);
    assert_eq!(app.send("GET", "/nothing").await.status, 404);
    app.send("GET", "/readyz").await.is_unavailable();
    let alive = app.send("GET", "/healthz").await;
    assert_eq!((alive.status, alive.json()), (200, json!({ "status": "alive" })));
    app.get_with("/v2/batches", &token, "x-request-id", &client.id).await.is_unavailable();
    let lines = lines_with(&format!("\"id\":\"{}\"", client.id));
    assert!(lines.len() == 1 && lines[0].contains("disk I/O error"), "{lines:?}");
    disk.repair();
    assert_eq!(app.v1_ids("", &token).await.len(), 4);
    assert_eq!(app.send("GET", "/readyz").await.status, 200);
}

/// Decision 028.
#[tokio::test]
async fn a_store_that_is_too_busy_is_a_503() {
    let (app, client, token) = nursery().await;
    let busy = BusyReaders::of(&app).await;
    let started = Instant::now();
    let (v1, v2, auth, ready, invalid) = tokio::join!(
        app.get("/v1/batches", &token),
        app.get("/v2/batches", &token),
        app.post_form("/v1/auth", client.form()),
        app.send("GET", "/readyz"),
        app.get("/v2/batches?start_date=x", &token),
    );
    println!("too busy: 503 after {:?}", started.elapsed());
    for reply in [v1, v2, auth, ready] {
        reply.is_unavailable();
    }
    invalid.is_invalid_query(&[not_a_datetime("start_date")]);
    drop(busy);
    assert_eq!(app.v1_ids("", &token).await.len(), 3, "recovered");
}

/// Decision 028: `Retry-After` varies, so that clients that failed together do not retry together. Failures on demand
/// affect batch requests only.
#[tokio::test]
async fn failures_on_demand_affect_batch_requests_only() {
    let app = TestApp::with(Config { fail_rate: 0.25, ..Config::default() }).await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    let mut waits = Vec::new();
    for turn in 0..100 {
        let reply = app.get(PATHS[turn % 2], &token).await;
        if reply.status == 503 {
            reply.is_unavailable();
            waits.push(reply.header("retry-after").unwrap());
        }
    }
    assert!((20..=30).contains(&waits.len()), "{} of 100", waits.len());
    let different: std::collections::BTreeSet<_> = waits.iter().map(String::as_str).collect();
    assert_eq!(different.into_iter().collect::<Vec<_>>(), ["3", "4", "5"]);
    for _ in 0..20 {
        assert_eq!(app.post_form("/v1/auth", client.form()).await.status, 200);
        assert_eq!(app.send("GET", "/readyz").await.status, 200);
    }
}

/// Decision 028: a process with another file open would not see a revocation.
#[tokio::test]
async fn a_replaced_database_file_is_unavailable() {
    let (app, client, token) = nursery().await;
    let moved = app.database().with_extension("moved");
    std::fs::rename(app.database(), &moved).unwrap();
    std::fs::copy(&moved, app.database()).unwrap();
    until(async || app.get("/readyz", "x").await.status == 503).await;
    app.get("/v2/batches", &token).await.is_unavailable();
    app.post_form("/v2/auth", client.form()).await.is_unavailable();
    std::fs::rename(&moved, app.database()).unwrap();
    until(async || app.get("/v2/batches", &token).await.status == 200).await;
}

/// A damaged file: a page that looks valid and has one batch less.
#[tokio::test]
async fn a_damaged_file_is_a_503() {
    let (mut app, _, token) = TestApp::filled(1_000, &many(5)).await;
    let path = app.database();
    app.stop().await.unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let number =
        |query: &str| connection.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap().cast_unsigned();
    let root = number("SELECT rootpage FROM sqlite_schema WHERE name = 'batch'");
    let start = (root - 1) * number("PRAGMA page_size");
    let copy = path.with_extension("damaged");
    std::fs::copy(&path, &copy).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&copy).unwrap();
    let mut header = [0; 5];
    file.read_exact_at(&mut header, start).unwrap();
    assert_eq!(header, [10, header[1], header[2], 0, 5], "a leaf with five cells");
    file.write_all_at(&[4], start + 4).unwrap();
    let damaged =
        TestApp::open(Database::Url(DatabaseUrl::Sqlite(copy)), TestApp::options(), StoreOptions::EXISTING)
            .await;
    damaged.get("/v1/batches", &token).await.is_unavailable();
}

/// Signed-in users and guesses only read: neither waits for an import of another process, nor delays one.
#[tokio::test]
async fn sessions_are_used_while_the_write_lock_is_held() {
    let (app, client, token) = nursery().await;
    let signed_in = app.post_form("/session", format!("{}&keep=true", client.form())).await;
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let guess = format!("{}.{}", "A".repeat(16), "B".repeat(43));
    let exchange = async |cookie: String| {
        Reply::to(app.request("POST", "/session/token").header("cookie", cookie)).await.status
    };
    let import = rusqlite::Connection::open(app.database()).unwrap();
    import.execute_batch("BEGIN IMMEDIATE").unwrap();
    for _ in 0..3 {
        assert_eq!(exchange(cookie.clone()).await, 200);
        assert_eq!(exchange(format!("batchscan_session={guess}")).await, 401);
        assert_eq!(app.post_form("/session", format!("link={guess}")).await.status, 401);
        let sign_out =
            app.request("DELETE", "/session").header("cookie", format!("batchscan_session={guess}"));
        assert_eq!(Reply::to(sign_out).await.status, 204);
    }
    app.post_form("/session", client.form()).await.is_unavailable();
    let mark = async || {
        Reply::to(app.request("POST", "/session/seen").bearer_auth(&token).body("{\"marks\":{}}")).await
    };
    mark().await.is_unavailable();
    assert_eq!(app.get("/session/seen", &token).await.status, 200);
    import.execute_batch("COMMIT").unwrap();
    assert_eq!(app.post_form("/session", client.form()).await.status, 200);
    assert_eq!(mark().await.status, 200);
}
