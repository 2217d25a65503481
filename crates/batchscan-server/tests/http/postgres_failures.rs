//! Failures of a PostgreSQL server: 503 if they are temporary, otherwise 500.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use batchscan_server::config::Config;
use batchscan_server::serve::ServeOptions;
use batchscan_store::{AdminError, DatabaseUrl, OpenOptions, OrgName, Store, StoreError};
use batchscan_testbed::{Postgres, Settings};
use futures_util::future::join_all;
use serde_json::json;
use tokio_postgres::NoTls;

use crate::http::app::{Database, PASSWORD, shared_server};
use crate::http::log::lines_with;
use crate::http::*;
use crate::postgres_hosts::site::blocking;

/// All requests share one connection.
const ONE_CONNECTION: OpenOptions = OpenOptions { connections: 1, ..OpenOptions::CREATE };

/// A service with its own database.
struct Site {
    server: Arc<Postgres>,
    name: String,
    app: TestApp,
    client: Client,
    token: String,
}

impl Site {
    /// With its own server, which the test may break.
    async fn fragile() -> Self {
        let server = blocking(|| Postgres::start(&Settings::default()));
        Self::on(Arc::new(server), Config::default(), OpenOptions::CREATE).await
    }

    async fn on(server: Arc<Postgres>, config: Config, opening: OpenOptions) -> Self {
        let name = blocking(|| server.fresh_database());
        let database = Database::Postgres { server: server.clone(), name: name.clone() };
        let options = ServeOptions { config, ..TestApp::options() };
        let app = TestApp::open(database, options, opening).await;
        let client = app.org("Nursery").await;
        app.import("Nursery", &many(3)).await;
        let token = app.token(&client).await;
        Self { server, name, app, client, token }
    }

    /// Sends every kind of request that needs the database, concurrently.
    async fn request_all(&self) -> [Reply; 4] {
        let (v1, v2, auth, ready) = tokio::join!(
            self.app.get("/v1/batches", &self.token),
            self.app.get("/v2/batches", &self.token),
            self.app.post_form("/v2/auth", self.client.form()),
            self.app.send("GET", "/readyz"),
        );
        [v1, v2, auth, ready]
    }

    /// Every request is a 503. Returns after which time.
    async fn is_unavailable(&self) -> Duration {
        let started = Instant::now();
        self.request_all().await.iter().for_each(Reply::is_unavailable);
        started.elapsed()
    }

    /// Waits until every request succeeds.
    async fn recovers(&self) -> Duration {
        let started = Instant::now();
        until(async || self.request_all().await.iter().all(|reply| reply.status == 200)).await;
        started.elapsed()
    }

    /// A session that locks the tables of every request until it is dropped.
    async fn lock_tables(&self) -> tokio_postgres::Client {
        let (session, connection) =
            tokio_postgres::connect(&self.server.url(&self.name), NoTls).await.unwrap();
        tokio::spawn(connection);
        let lock = "BEGIN; LOCK TABLE organisation, credential IN ACCESS EXCLUSIVE MODE";
        session.batch_execute(lock).await.unwrap();
        session
    }

    /// Waits until this many sessions of the service are in this state.
    async fn waits_for_sessions(&self, count: &str, state: &str) {
        let query = format!(
            "SELECT count(*) FROM pg_stat_activity
             WHERE datname = '{}' AND application_name = 'batchscan' AND {state}",
            self.name
        );
        until(async || blocking(|| self.server.sql("postgres", &query)) == count).await;
    }
}

/// Contract section 7; decision 028: at once when the outage is known. Invalid requests are still rejected
/// as such, the cause is in the log only, and the password nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_database_is_a_503_until_it_is_back() {
    let site = Site::fragile().await;
    blocking(|| site.server.kill());
    let first = site.is_unavailable().await;
    let mut later = Vec::new();
    for _ in 0..10 {
        later.push(site.is_unavailable().await);
    }
    // A busy machine may delay some of them.
    let second = later.into_iter().min().unwrap();
    assert!(second < Duration::from_secs(1), "{second:?}: requests wait for a host that is known to be down");
    for path in PATHS {
        site.app.get(path, "x.y.z").await.is_invalid_token();
        let reply = site.app.get(&format!("{path}?start_date=x"), &site.token).await;
        reply.is_invalid_query(&[not_a_datetime("start_date")]);
    }
    assert_eq!(site.app.post_form("/v1/auth", "grant_type=x").await.status, 422);
    let alive = site.app.send("GET", "/healthz").await;
    assert_eq!((alive.status, alive.json()), (200, json!({ "status": "alive" })));
    let id = site.client.id.as_str();
    site.app.get_with("/v2/batches", &site.token, "x-request-id", id).await.is_unavailable();
    let lines = lines_with(&format!("\"id\":\"{id}\""));
    assert!(lines.len() == 1 && lines[0].contains("Connection refused"), "{lines:?}");
    let (host, down) = (format!("127.0.0.1:{}", site.server.port()), lines_with("database host is down"));
    assert!(down.iter().any(|line| line.contains(&host)), "{down:?}");
    assert_eq!(lines_with(PASSWORD), Vec::<String>::new());
    blocking(|| site.server.start_again());
    let back = site.recovers().await;
    println!("killed: 503 after {first:?}, then after {second:?}; back after {back:?}");
    assert_eq!(site.app.v1_ids("", &site.token).await, ["b00000", "b00001", "b00002"]);
}

/// Decision 028: a server that accepts connections and sends nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_database_is_a_503_until_it_thaws() {
    let site = Site::fragile().await;
    blocking(|| site.server.freeze());
    let unavailable = site.is_unavailable().await;
    site.server.thaw();
    println!("frozen: 503 after {unavailable:?}, back after {:?}", site.recovers().await);
}

/// What clients saw during the restarts.
#[derive(Default)]
struct Load {
    is_over: AtomicBool,
    ok: AtomicU64,
    unavailable: AtomicU64,
    aborted: AtomicU64,
}

impl Load {
    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends requests and checks the responses until it is over.
    async fn run(&self, site: &Site, ids: &[String]) {
        while !self.is_over.load(Ordering::Relaxed) {
            self.check_stream(site, ids).await;
            self.check_pages(site, ids).await;
            let auth = site.app.post_form("/v1/auth", site.client.form()).await;
            if self.is_ok(&auth) {
                assert!(auth.json()["access_token"].is_string());
            }
        }
    }

    /// 200 or a proper 503, and nothing else.
    fn is_ok(&self, reply: &Reply) -> bool {
        if reply.status == 200 {
            Self::count(&self.ok);
            return true;
        }
        reply.is_unavailable();
        Self::count(&self.unavailable);
        false
    }

    /// v1: complete, or an aborted connection (decision 026).
    async fn check_stream(&self, site: &Site, ids: &[String]) {
        let request = site.app.request("GET", "/v1/batches").bearer_auth(&site.token);
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let Ok(body) = response.bytes().await else {
            assert_eq!(status, 200, "only a stream can be aborted");
            return Self::count(&self.aborted);
        };
        let reply = Reply { status, headers, body: body.to_vec() };
        if self.is_ok(&reply) {
            assert_eq!(reply.ids(), ids, "incomplete");
        }
    }

    /// v2: every page has the expected batches.
    async fn check_pages(&self, site: &Site, ids: &[String]) {
        let (mut path, mut read) = ("/v2/batches".to_owned(), 0);
        loop {
            let reply = site.app.get(&path, &site.token).await;
            if !self.is_ok(&reply) {
                return;
            }
            let page = reply.ids();
            assert_eq!(page, ids[read..ids.len().min(read + 5)]);
            read += page.len();
            let Some(next) = reply.next_token() else { break };
            path = format!("/v2/batches?next_token={next}");
        }
        assert_eq!(read, ids.len());
    }

    /// Waits for more successful responses.
    async fn continues(&self) {
        grows(&self.ok, 12).await;
    }

    /// Waits for more 503s.
    async fn fails(&self) {
        grows(&self.unavailable, 4).await;
    }
}

async fn grows(counter: &AtomicU64, by: u64) {
    let before = counter.load(Ordering::Relaxed);
    until(async || counter.load(Ordering::Relaxed) >= before + by).await;
}

/// Decisions 026, 028: a correct response or a 503.
#[tokio::test(flavor = "multi_thread")]
async fn restarts_under_load_are_503s_and_never_a_wrong_response() {
    const CLIENTS: usize = 4;
    const RESTARTS: u64 = 10;
    let server = Arc::new(blocking(|| Postgres::start(&Settings::default())));
    // Without the cache.
    let config = Config { page_rows: 5, cache_bytes: 0, ..Config::default() };
    let site = Arc::new(Site::on(server, config, OpenOptions::CREATE).await);
    // Three chunks of v1, so that a restart can fall between them.
    site.app.import("Nursery", &many_bulky(12)).await;
    let ids: Arc<Vec<String>> = Arc::new((0..12).map(|n| format!("b{n:05}")).collect());
    let load = Arc::new(Load::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (load, site, ids) = (load.clone(), site.clone(), ids.clone());
            tokio::spawn(async move { load.run(&site, &ids).await })
        })
        .collect();
    let mut slowest = Duration::ZERO;
    for round in 0..RESTARTS {
        load.continues().await;
        blocking(|| if round % 2 == 0 { site.server.stop() } else { site.server.kill() });
        // Requests wait for the end of a short outage; some outages are longer.
        if round % 5 == 4 {
            load.fails().await;
        }
        blocking(|| site.server.start_again());
        slowest = slowest.max(site.recovers().await);
    }
    load.continues().await;
    load.is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (ok, unavailable, aborted) = (count(&load.ok), count(&load.unavailable), count(&load.aborted));
    println!(
        "{RESTARTS} restarts: {ok} ok, {unavailable} 503s, {aborted} aborted streams, back within {slowest:?}"
    );
    assert!(ok > RESTARTS * 12 && unavailable >= RESTARTS / 5 * 4);
}

/// Decision 028: waiting for a connection has a limit.
#[tokio::test(flavor = "multi_thread")]
async fn an_exhausted_pool_is_a_503_and_recovers() {
    let site = Site::on(shared_server(), Config::default(), ONE_CONNECTION).await;
    let lock = site.lock_tables().await;
    let unavailable = join_all((0..50).map(|_| site.is_unavailable())).await;
    println!(
        "200 requests on one connection: 503 after {:?} at most",
        unavailable.into_iter().max().unwrap()
    );
    drop(lock);
    site.recovers().await;
    for reply in site.request_all().await {
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}

/// Decision 028: a waiting statement is cancelled on the server, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_waits_for_a_lock_is_cancelled() {
    let site = Site::on(shared_server(), Config::default(), OpenOptions::CREATE).await;
    let lock = site.lock_tables().await;
    let requests = async {
        loop {
            site.app.get("/v2/batches", &site.token).await.is_unavailable();
        }
    };
    tokio::select! {
        () = site.waits_for_sessions("1", "wait_event_type = 'Lock'") => {}
        () = requests => {}
    }
    site.app.get("/v2/batches", &site.token).await.is_unavailable();
    // The times of use are recorded in the background.
    site.waits_for_sessions("1", "wait_event_type = 'Lock' AND query LIKE 'UPDATE credential%'").await;
    site.waits_for_sessions("0", "wait_event_type = 'Lock'").await;
    drop(lock);
    site.recovers().await;
}

/// Decision 020: a slow client does not occupy a database connection.
#[tokio::test(flavor = "multi_thread")]
async fn stalled_readers_use_no_database_connection() {
    let site = Site::on(shared_server(), Config::default(), ONE_CONNECTION).await;
    site.app.import("Nursery", &many_bulky(300)).await;
    let request = get_head("/v1/batches", &site.token, "connection: close\r\n");
    let mut stalled = Vec::new();
    for _ in 0..20 {
        let mut raw = Raw::sending(&site.app, &request).await;
        assert_eq!(raw.head().await.0, 200);
        assert!(raw.read_some(1).await.contains(&b'['));
        stalled.push(raw);
    }
    site.waits_for_sessions("0", "state <> 'idle'").await;
    let path = "/v2/batches?end_date=2026-01-01T00:00:00Z";
    for _ in 0..20 {
        assert_eq!(site.app.get(path, &site.token).await.ids(), ["b00000"]);
    }
    let last = stalled.last_mut().unwrap().read_rest().await;
    assert!(last.ends_with(b"0\r\n\r\n"), "complete");
}

/// Operating guide, "Start": several nodes may start at once, also on an empty database.
#[tokio::test(flavor = "multi_thread")]
async fn ten_nodes_that_open_an_empty_database_migrate_it_once() {
    let server = shared_server();
    for _ in 0..5 {
        let name = blocking(|| server.fresh_database());
        let url: DatabaseUrl = server.url(&name).parse().unwrap();
        let open = async || {
            let store = Store::open(&url, OpenOptions::CREATE).await.unwrap();
            let keys = store.keys(instant("2026-02-01T00:00:00Z")).await.unwrap();
            keys.into_iter().map(|key| key.kid).collect::<Vec<_>>()
        };
        let keys = join_all((0..10).map(|_| open())).await;
        assert_eq!(keys[0].len(), 3, "one for each purpose");
        assert!(keys.iter().all(|kids| *kids == keys[0]), "{keys:?}");
        assert_eq!(blocking(|| server.sql(&name, "SELECT version FROM schema_history")), "1");
    }
}

/// A value that PostgreSQL does not accept is the fault of the request: no connection is closed.
#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_value_or_an_unknown_name_keeps_the_connection() {
    let site = Site::on(shared_server(), Config::default(), ONE_CONNECTION).await;
    let backends = || {
        let sql = "SELECT string_agg(pid::text, ' ' ORDER BY pid) FROM pg_stat_activity
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        blocking(|| site.server.sql(&site.name, sql))
    };
    let store = &site.app.store;
    assert_eq!(site.request_all().await[1].status, 200);
    let before = backends();
    for _ in 0..3 {
        let rejected = store.org("a\0b").await;
        assert!(matches!(rejected, Err(AdminError::Store(StoreError::Rejected(_)))), "{rejected:?}");
        let missing = store.org("Missing").await;
        assert!(matches!(missing, Err(AdminError::OrgNotFound { .. })), "{missing:?}");
        let rename = store.rename_org("Missing", &OrgName::new("New").unwrap(), site.app.now()).await;
        assert!(matches!(rename, Err(AdminError::OrgNotFound { .. })), "{rename:?}");
    }
    assert_eq!(site.request_all().await[1].status, 200);
    assert_eq!(backends(), before, "the same connections");
}
