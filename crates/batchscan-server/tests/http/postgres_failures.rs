//! Outages of a PostgreSQL server: 503 for what may pass, 500 for what must not be.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use batchscan_server::config::Config;
use batchscan_server::serve::ServeOptions;
use batchscan_store::{DatabaseUrl, Opening, Store};
use batchscan_testbed::{Postgres, Settings};
use futures_util::future::join_all;
use serde_json::json;
use tokio_postgres::NoTls;

use crate::http::app::{Client, Database, PASSWORD, TestApp, instant, shared_server};
use crate::http::journal;
use crate::http::reply::{Reply, invalid_token, no_datetime, wrong_credentials};
use crate::http::sample::{many, many_bulky};
use crate::http::wire::Wire;

const PATHS: [&str; 2] = ["/v1/batches", "/v2/batches"];
/// Decision 028: an answer within this time, and an end of the outage too.
const LIMIT: Duration = Duration::from_secs(5);
/// Between two looks at what is waited for.
const PAUSE: Duration = Duration::from_millis(10);
/// All requests share one connection.
const ONE_CONNECTION: Opening = Opening { connections: 1, ..Opening::OR_MAKE };

/// A service on a database of its own.
struct Site {
    server: Arc<Postgres>,
    name: String,
    app: TestApp,
    client: Client,
    token: String,
}

impl Site {
    /// On a server that the test may break.
    async fn fragile() -> Self {
        let server = harm(|| Postgres::start(&Settings::default()));
        Self::on(Arc::new(server), Config::default(), Opening::OR_MAKE).await
    }

    async fn on(server: Arc<Postgres>, config: Config, opening: Opening) -> Self {
        let name = harm(|| server.fresh_database());
        let database = Database::Postgres { server: server.clone(), name: name.clone() };
        let options = ServeOptions { config, ..TestApp::options() };
        let app = TestApp::opened(database, options, opening).await;
        let client = app.org("Nursery").await;
        app.import("Nursery", &many(3)).await;
        let token = app.token(&client).await;
        Self { server, name, app, client, token }
    }

    /// Asks all that needs the database, at once.
    async fn ask_all(&self) -> [Reply; 4] {
        let (v1, v2, auth, ready) = tokio::join!(
            self.app.get("/v1/batches", &self.token),
            self.app.get("/v2/batches", &self.token),
            self.app.post_form("/v2/auth", self.client.form()),
            Reply::to(self.app.request("GET", "/readyz")),
        );
        [v1, v2, auth, ready]
    }

    /// All that needs the database is refused in time. Gives how long it took.
    async fn is_out(&self) -> Duration {
        let asked = Instant::now();
        self.ask_all().await.iter().for_each(is_unavailable);
        assert!(asked.elapsed() < LIMIT, "{:?}", asked.elapsed());
        asked.elapsed()
    }

    /// Waits until all is answered again, and gives how long that took.
    async fn is_back(&self) -> Duration {
        let began = Instant::now();
        while self.ask_all().await.iter().any(|reply| reply.status != 200) {
            assert!(began.elapsed() < LIMIT, "still out");
            tokio::time::sleep(PAUSE).await;
        }
        began.elapsed()
    }

    /// A session beside the service, which locks what every request reads until it is dropped.
    async fn lock_tables(&self) -> tokio_postgres::Client {
        let (session, connection) =
            tokio_postgres::connect(&self.server.url(&self.name), NoTls).await.unwrap();
        tokio::spawn(connection);
        let lock = "BEGIN; LOCK TABLE organisation, credential IN ACCESS EXCLUSIVE MODE";
        session.batch_execute(lock).await.unwrap();
        session
    }

    /// Waits until so many sessions of the service are in this state, as PostgreSQL sees it.
    async fn waits_for_sessions(&self, count: &str, state: &str) {
        let query = format!(
            "SELECT count(*) FROM pg_stat_activity
             WHERE datname = '{}' AND application_name = 'batchscan' AND {state}",
            self.name
        );
        let began = Instant::now();
        while harm(|| self.server.sql("postgres", &query)) != count {
            assert!(began.elapsed() < LIMIT, "not {count} sessions: {state}");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Does to a server what takes a while, beside the service that runs on the same threads.
fn harm<T, E: Debug>(done: impl FnOnce() -> Result<T, E>) -> T {
    tokio::task::block_in_place(done).unwrap()
}

#[track_caller]
fn is_unavailable(reply: &Reply) {
    let text = "The service cannot reach its data at the moment: try again in a few seconds";
    reply.is_error(503, &json!({ "detail": text }));
    let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((3..=5).contains(&wait), "{wait}");
}

/// Interface section 7; decision 028.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_database_is_a_503_within_five_seconds_and_soon_at_once() {
    let site = Site::fragile().await;
    harm(|| site.server.kill());
    let first = site.is_out().await;
    let second = site.is_out().await;
    assert!(
        second < Duration::from_secs(1),
        "{second:?}: nobody waits for a database that is known to be gone"
    );
    println!("killed: 503 after {first:?}, then after {second:?}");
}

/// Decision 028: never for a bad request; the process lives, and is not ready.
#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_and_health_are_told_during_an_outage_too() {
    let site = Site::fragile().await;
    harm(|| site.server.kill());
    for path in PATHS {
        site.app.get(path, "x.y.z").await.is_error(401, &invalid_token());
        let reply = site.app.get(&format!("{path}?start_date=x"), &site.token).await;
        reply.is_invalid_query(&[no_datetime("start_date")]);
    }
    assert_eq!(site.app.post_form("/v1/auth", "grant_type=x").await.status, 422);
    let alive = Reply::to(site.app.request("GET", "/healthz")).await;
    assert_eq!((alive.status, alive.json()), (200, json!({ "status": "alive" })));
    is_unavailable(&Reply::to(site.app.request("GET", "/readyz")).await);
}

/// Decision 028: the cause is for the operator, the password for nobody.
#[tokio::test(flavor = "multi_thread")]
async fn the_cause_of_an_outage_is_in_the_log_alone_and_the_password_nowhere() {
    let site = Site::fragile().await;
    harm(|| site.server.kill());
    let id = site.client.id.as_str();
    is_unavailable(&site.app.get_with("/v2/batches", &site.token, "x-request-id", id).await);
    let lines = journal::lines_with(&format!("\"id\":\"{id}\""));
    assert!(lines.len() == 1 && lines[0].contains("Connection refused"), "{lines:?}");
    let place = format!("127.0.0.1:{}", site.server.port());
    let down = journal::lines_with("database host is down");
    assert!(down.iter().any(|line| line.contains(&place)), "{down:?}");
    assert_eq!(journal::lines_with(PASSWORD), Vec::<String>::new());
}

/// Decision 028: transient, and nobody has to restart the service.
#[tokio::test(flavor = "multi_thread")]
async fn the_service_is_back_within_five_seconds_of_its_database() {
    let site = Site::fragile().await;
    harm(|| site.server.kill());
    site.is_out().await;
    harm(|| site.server.start_again());
    println!("back {:?} after the database", site.is_back().await);
    assert_eq!(site.app.v1_ids("", &site.token).await, ["b00000", "b00001", "b00002"]);
}

/// Decision 028: a server that takes connections and says nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_database_is_a_503_within_five_seconds_until_it_thaws() {
    let site = Site::fragile().await;
    harm(|| site.server.freeze());
    let refused = site.is_out().await;
    site.server.thaw();
    println!("frozen: 503 after {refused:?}, back {:?} after the thaw", site.is_back().await);
}

/// What clients met during the restarts.
#[derive(Default)]
struct Met {
    over: AtomicBool,
    answered: AtomicU64,
    refused: AtomicU64,
    cut: AtomicU64,
}

impl Met {
    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Asks and judges until it is over.
    async fn ask_without_pause(&self, site: &Site, ids: &[String]) {
        while !self.over.load(Ordering::Relaxed) {
            self.judge_stream(site, ids).await;
            self.judge_walk(site, ids).await;
            let auth = site.app.post_form("/v1/auth", site.client.form()).await;
            if self.is_answer(&auth) {
                assert!(auth.json()["access_token"].is_string());
            }
        }
    }

    /// 200 or a proper 503, and nothing else.
    fn is_answer(&self, reply: &Reply) -> bool {
        if reply.status == 200 {
            Self::count(&self.answered);
            return true;
        }
        is_unavailable(reply);
        Self::count(&self.refused);
        false
    }

    /// v1: all of it, or a connection that visibly broke (decision 026).
    async fn judge_stream(&self, site: &Site, ids: &[String]) {
        let request = site.app.request("GET", "/v1/batches").bearer_auth(&site.token);
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let Ok(body) = response.bytes().await else {
            assert_eq!(status, 200, "only a stream can be cut");
            return Self::count(&self.cut);
        };
        let reply = Reply { status, headers, body: body.to_vec() };
        if self.is_answer(&reply) {
            assert_eq!(reply.ids(), ids, "a part that passes for the whole");
        }
    }

    /// v2: page after page as long as there are answers, each with what must be on it.
    async fn judge_walk(&self, site: &Site, ids: &[String]) {
        let (mut path, mut walked) = ("/v2/batches".to_owned(), 0);
        loop {
            let reply = site.app.get(&path, &site.token).await;
            if !self.is_answer(&reply) {
                return;
            }
            let page = reply.ids();
            assert_eq!(page, ids[walked..ids.len().min(walked + 5)]);
            walked += page.len();
            let Some(next) = reply.next_token() else { break };
            path = format!("/v2/batches?next_token={next}");
        }
        assert_eq!(walked, ids.len());
    }

    /// Waits until the clients have had some more answers.
    async fn goes_on(&self) {
        grows(&self.answered, 12).await;
    }

    /// Waits until clients have been refused.
    async fn is_refused(&self) {
        grows(&self.refused, 4).await;
    }
}

async fn grows(counter: &AtomicU64, by: u64) {
    let (before, began) = (counter.load(Ordering::Relaxed), Instant::now());
    while counter.load(Ordering::Relaxed) < before + by {
        assert!(began.elapsed() < LIMIT, "the clients wait for an answer");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Decisions 026, 028: whatever a database goes through, clients get the truth or a 503.
#[tokio::test(flavor = "multi_thread")]
async fn twenty_restarts_under_load_are_503s_and_never_a_wrong_answer() {
    const CLIENTS: usize = 4;
    let server = Arc::new(harm(|| Postgres::start(&Settings::default())));
    // No page comes from the cache.
    let config = Config { page_rows: 5, cache_bytes: 0, ..Config::default() };
    let site = Arc::new(Site::on(server, config, Opening::OR_MAKE).await);
    // Three chunks of v1, so that a restart can fall between them.
    site.app.import("Nursery", &many_bulky(12)).await;
    let ids: Arc<Vec<String>> = Arc::new((0..12).map(|n| format!("b{n:05}")).collect());
    let met = Arc::new(Met::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (met, site, ids) = (met.clone(), site.clone(), ids.clone());
            tokio::spawn(async move { met.ask_without_pause(&site, &ids).await })
        })
        .collect();
    let mut slowest = Duration::ZERO;
    for round in 0..20 {
        met.goes_on().await;
        harm(|| if round % 2 == 0 { site.server.stop() } else { site.server.kill() });
        // A short outage is waited out; now and then one is too long for that.
        if round % 5 == 4 {
            met.is_refused().await;
        }
        harm(|| site.server.start_again());
        slowest = slowest.max(site.is_back().await);
    }
    met.goes_on().await;
    met.over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (answered, refused, cut) = (count(&met.answered), count(&met.refused), count(&met.cut));
    println!(
        "20 restarts: {answered} answers, {refused} times 503, {cut} cut streams, back within {slowest:?}"
    );
    assert!(answered > 20 * 12 && refused >= 4 * 4);
}

/// Decision 028: a pool slot that is not had in time; nobody queues without end.
#[tokio::test(flavor = "multi_thread")]
async fn an_exhausted_pool_is_a_503_for_all_who_wait_and_recovers() {
    let site = Site::on(shared_server(), Config::default(), ONE_CONNECTION).await;
    let lock = site.lock_tables().await;
    // As many as a service may have in flight on a busy day, and far more than it has connections.
    let refused = join_all((0..50).map(|_| site.is_out())).await;
    println!("200 requests on one connection: 503 after {:?} at most", refused.into_iter().max().unwrap());
    drop(lock);
    site.is_back().await;
    for reply in join_all((0..50).map(|_| site.ask_all())).await.iter().flatten() {
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}

/// Decision 028: what waits for a lock is given up, on the server too.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_waits_for_a_lock_is_given_up_within_five_seconds() {
    let site = Site::on(shared_server(), Config::default(), Opening::OR_MAKE).await;
    let lock = site.lock_tables().await;
    let asked = Instant::now();
    let (refused, ()) = tokio::join!(
        site.app.get("/v2/batches", &site.token),
        site.waits_for_sessions("1", "wait_event_type = 'Lock'")
    );
    is_unavailable(&refused);
    assert!(asked.elapsed() < LIMIT, "{:?}", asked.elapsed());
    println!("a lock: 503 after {:?}", asked.elapsed());
    site.waits_for_sessions("0", "wait_event_type = 'Lock'").await;
    drop(lock);
    site.is_back().await;
}

/// Decision 020: a slow reader holds no connection to the database, not even the only one.
#[tokio::test(flavor = "multi_thread")]
async fn stalled_readers_hold_no_database_connection() {
    let site = Site::on(shared_server(), Config::default(), ONE_CONNECTION).await;
    site.app.import("Nursery", &many_bulky(300)).await;
    let request = format!(
        "GET /v1/batches HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
        site.token
    );
    let mut stalled = Vec::new();
    for _ in 0..20 {
        let mut wire = Wire::open(&site.app).await;
        wire.send(&request).await;
        assert_eq!(wire.head().await.0, 200);
        assert!(wire.some(1).await.contains(&b'['));
        stalled.push(wire);
    }
    site.waits_for_sessions("0", "state <> 'idle'").await;
    let path = "/v2/batches?end_date=2026-01-01T00:00:00Z";
    for _ in 0..20 {
        let asked = Instant::now();
        assert_eq!(site.app.get(path, &site.token).await.ids(), ["b00000"]);
        assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    }
    let last = stalled.last_mut().unwrap().rest().await;
    assert!(last.ends_with(b"0\r\n\r\n"), "it was only waiting");
}

/// Interface section 7; decision 029.
#[tokio::test(flavor = "multi_thread")]
async fn what_must_not_be_is_a_500_of_fixed_text_whose_cause_is_in_the_log_alone() {
    let site = Site::on(shared_server(), Config::default(), Opening::OR_MAKE).await;
    harm(|| site.server.sql(&site.name, "DROP TABLE batch CASCADE"));
    for (turn, path) in PATHS.into_iter().enumerate() {
        let id = format!("{}-{turn}", site.client.id);
        let reply = site.app.get_with(path, &site.token, "x-request-id", &id).await;
        reply.is_error(500, &json!({ "detail": "Internal Server Error" }));
        assert_eq!(reply.header("retry-after"), None);
        let lines = journal::lines_with(&id);
        assert!(lines.len() == 1 && lines[0].contains("42P01"), "{lines:?}");
    }
}

/// Decision 010: on every node.
#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_on_one_node_holds_on_another_at_once() {
    let site = Site::on(shared_server(), Config::default(), Opening::OR_MAKE).await;
    let other = site.app.node(Config::default()).await;
    for _ in 0..5 {
        let client = site.app.credential("Nursery", None).await;
        let token = site.app.token(&client).await;
        assert_eq!(other.get("/v2/batches", &token).await.status, 200);
        site.app.revoke(&client).await;
        for path in PATHS {
            other.get(path, &token).await.is_error(401, &invalid_token());
        }
        other.post_form("/v2/auth", client.form()).await.is_error(401, &wrong_credentials());
    }
}

/// Operating guide, "Start": nodes may be started together, also the first time.
#[tokio::test(flavor = "multi_thread")]
async fn ten_nodes_that_open_a_new_database_at_once_migrate_it_once() {
    let server = shared_server();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/postgres");
    let migrations = std::fs::read_dir(folder).unwrap().count();
    for _ in 0..5 {
        let name = harm(|| server.fresh_database());
        let url: DatabaseUrl = server.url(&name).parse().unwrap();
        let open = async || {
            let store = Store::open(&url, Opening::OR_MAKE).await.unwrap();
            let keys = store.keys(instant("2026-02-01T00:00:00Z")).await.unwrap();
            keys.into_iter().map(|key| key.kid).collect::<Vec<_>>()
        };
        let keys = join_all((0..10).map(|_| open())).await;
        assert_eq!(keys[0].len(), 3, "one for each purpose");
        assert!(keys.iter().all(|kids| *kids == keys[0]), "{keys:?}");
        let applied =
            harm(|| server.sql(&name, "SELECT version FROM refinery_schema_history ORDER BY version"));
        let expected: Vec<String> = (1..=migrations).map(|version| version.to_string()).collect();
        assert_eq!(applied.lines().collect::<Vec<_>>(), expected);
    }
}
