//! Hosts that crash or freeze: no read fails, and writes find the next primary.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use batchscan_store::{Freshness, ImportSource, ReadFrom};
use tokio::task::JoinHandle;

use crate::http::HANG_LIMIT;

use super::site::{Nursery, ORG, Site, blocking, first_five_plus, until};

/// Clients that read continuously, each in another way. A failure ends the test.
struct Readers {
    state: Arc<State>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    is_over: AtomicBool,
    /// Finished reads, by kind.
    done: [AtomicU64; KINDS],
    slowest_millis: AtomicU64,
}

/// A page and a credential from the store; v1, v2 and a token over HTTP.
const KINDS: usize = 5;

impl Readers {
    fn start(nursery: &Arc<Nursery>, token: &str) -> Self {
        let state = Arc::new(State::default());
        let task = |kind| {
            let (state, nursery, token) = (state.clone(), nursery.clone(), token.to_owned());
            tokio::spawn(async move { state.read(kind, &nursery, &token).await })
        };
        Self { tasks: (0..KINDS).map(task).collect(), state }
    }

    /// Waits until each has read some more.
    async fn continue_reading(&self) {
        let done = || self.state.done.iter().map(|done| done.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let before = done();
        let has_read = || done().iter().zip(&before).all(|(now, before)| *now >= before + 20);
        let failed = || self.tasks.iter().any(JoinHandle::is_finished);
        until(async || has_read() || failed()).await;
    }

    /// The number of reads, and the time of the slowest.
    async fn end(self) -> (u64, Duration) {
        self.state.is_over.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
        let reads = self.state.done.iter().map(|done| done.load(Ordering::Relaxed)).sum();
        (reads, Duration::from_millis(self.state.slowest_millis.load(Ordering::Relaxed)))
    }
}

impl State {
    async fn read(&self, kind: usize, nursery: &Nursery, token: &str) {
        while !self.is_over.load(Ordering::Relaxed) {
            let started = Instant::now();
            match kind {
                0 => assert_eq!(nursery.ids().await[..5], first_five_plus(&[])),
                1 => {
                    let lookup =
                        nursery.store.credential(&nursery.client.client_id(), Freshness::Any).await.unwrap();
                    assert_eq!(lookup.unwrap().secrets.len(), 1);
                }
                2 => assert_eq!(nursery.get("/v1/batches", token).await.ids()[..5], first_five_plus(&[])),
                3 => assert_eq!(nursery.get("/v2/batches", token).await.ids(), ["b0", "b1"]),
                _ => assert!(!nursery.token(&nursery.client).await.is_empty()),
            }
            let elapsed = started.elapsed();
            self.slowest_millis.fetch_max(u64::try_from(elapsed.as_millis()).unwrap(), Ordering::Relaxed);
            self.done[kind].fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Decision 028; design, "Storage": reads from any host that is current.
#[tokio::test(flavor = "multi_thread")]
async fn no_read_fails_when_a_standby_crashes_or_freezes() {
    let Site { cluster, nursery, .. } = Site::start(ReadFrom::Any).await;
    let nursery = Arc::new(nursery);
    let token = nursery.token(&nursery.client).await;
    let readers = Readers::start(&nursery, &token);
    let (first, second) = (cluster.standbys()[0], cluster.standbys()[1]);
    readers.continue_reading().await;
    blocking(|| first.kill());
    nursery.wait_for_host(first, false).await;
    readers.continue_reading().await;
    blocking(|| second.freeze());
    nursery.wait_for_host(second, false).await;
    readers.continue_reading().await;
    blocking(|| first.start_again());
    second.thaw();
    nursery.wait_for_host(first, true).await;
    nursery.wait_for_host(second, true).await;
    readers.continue_reading().await;
    let (reads, slowest) = readers.end().await;
    println!("standbys lost: {reads} reads, none failed, the slowest took {slowest:?}");
}

/// Decision 028; design, "Storage": writes to the primary.
#[tokio::test(flavor = "multi_thread")]
async fn no_read_fails_when_the_primary_freezes_or_crashes_and_writes_find_the_next() {
    let Site { cluster, nursery, .. } = Site::start(ReadFrom::Any).await;
    let nursery = Arc::new(nursery);
    let token = nursery.token(&nursery.client).await;
    let readers = Readers::start(&nursery, &token);
    let first = cluster.primary();
    readers.continue_reading().await;
    blocking(|| first.freeze());
    nursery.wait_for_host(first, false).await;
    readers.continue_reading().await;
    first.thaw();
    nursery.wait_for_host(first, true).await;
    nursery.add("before").await;
    for standby in cluster.standbys() {
        blocking(|| standby.wait_to_catch_up_with(first));
    }
    blocking(|| first.kill());
    nursery.wait_for_host(first, false).await;
    readers.continue_reading().await;
    blocking(|| cluster.fail_over());
    let promoted = Instant::now();
    nursery.add("next").await;
    let found = promoted.elapsed();
    readers.continue_reading().await;
    until(async || nursery.ids().await == first_five_plus(&["before", "next"])).await;
    let (reads, slowest) = readers.end().await;
    println!(
        "primary lost: {reads} reads, none failed, the slowest took {slowest:?}; a write after {found:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_on_a_frozen_primary_fails_with_a_clear_error() {
    let site = Site::start(ReadFrom::Any).await;
    let (steps, rows) = tokio::sync::mpsc::channel(2);
    let store = site.nursery.store.clone();
    let now = site.nursery.now();
    let import = tokio::spawn(async move { store.import(ORG, ImportSource::default(), rows, now).await });
    // The import waits for more rows, with a connection to the primary.
    until(async || site.nursery.store.hosts().iter().any(|host| host.connections > 0)).await;
    let primary = site.cluster.primary();
    blocking(|| primary.freeze());
    let outcome = tokio::time::timeout(HANG_LIMIT, import).await.unwrap().unwrap();
    primary.thaw();
    drop(steps);
    let error = outcome.unwrap_err().to_string();
    let expected = format!("127.0.0.1:{} went down during the command; nothing was imported", primary.port());
    assert!(error.contains(&expected), "{error}");
}
