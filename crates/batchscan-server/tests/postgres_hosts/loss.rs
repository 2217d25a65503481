//! Hosts that die or freeze: no read fails, and writes find the next primary.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use batchscan_store::{Freshness, ReadFrom};
use tokio::task::JoinHandle;

use crate::site::{Nursery, ORG, Site, first_five_and, harm, until};

/// A host is known to be down within a second; the rest is for a busy machine.
const READ_LIMIT: Duration = Duration::from_secs(2);
/// How long a failover may keep a command waiting once there is a primary.
const WRITE_LIMIT: Duration = Duration::from_secs(5);

/// Clients that read without pause, each in its own way, and take no failure.
struct Readers {
    work: Arc<Work>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Work {
    over: AtomicBool,
    /// Reads done, by way of reading.
    done: [AtomicU64; WAYS],
    slowest_millis: AtomicU64,
}

/// A page and a credential of the store; v1, v2 and a token over HTTP.
const WAYS: usize = 5;

impl Readers {
    fn start(nursery: &Arc<Nursery>, token: &str) -> Self {
        let work = Arc::new(Work::default());
        let task = |way| {
            let (work, nursery, token) = (work.clone(), nursery.clone(), token.to_owned());
            tokio::spawn(async move { work.read_on(way, &nursery, &token).await })
        };
        Self { tasks: (0..WAYS).map(task).collect(), work }
    }

    /// Waits until every one of them has read some more.
    async fn go_on(&self) {
        let done = || self.work.done.iter().map(|done| done.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let before = done();
        let has_read = || done().iter().zip(&before).all(|(now, before)| *now >= before + 20);
        let failed = || self.tasks.iter().any(JoinHandle::is_finished);
        until(Duration::from_secs(20), async || has_read() || failed()).await;
    }

    /// All they read, and the longest any of them waited.
    async fn end(self) -> (u64, Duration) {
        self.work.over.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
        let reads = self.work.done.iter().map(|done| done.load(Ordering::Relaxed)).sum();
        (reads, Duration::from_millis(self.work.slowest_millis.load(Ordering::Relaxed)))
    }
}

impl Work {
    async fn read_on(&self, way: usize, nursery: &Nursery, token: &str) {
        while !self.over.load(Ordering::Relaxed) {
            let asked = Instant::now();
            match way {
                0 => assert_eq!(nursery.ids().await[..5], first_five_and(&[])),
                1 => {
                    let known = nursery.store.credential(&nursery.client.id, Freshness::Any).await.unwrap();
                    assert_eq!(known.credential.unwrap().secrets.len(), 1);
                }
                2 => assert_eq!(nursery.get("/v1/batches", token).await.ids()[..5], first_five_and(&[])),
                3 => assert_eq!(nursery.get("/v2/batches", token).await.ids(), ["b0", "b1"]),
                _ => assert!(!nursery.token(&nursery.client).await.is_empty()),
            }
            let took = asked.elapsed();
            assert!(took < READ_LIMIT, "way {way} took {took:?}");
            self.slowest_millis.fetch_max(u64::try_from(took.as_millis()).unwrap(), Ordering::Relaxed);
            self.done[way].fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Decision 028; design, "Storage": read from whichever host can answer.
#[tokio::test(flavor = "multi_thread")]
async fn no_read_fails_when_a_standby_dies_or_freezes() {
    let Site { cluster, nursery, .. } = Site::start(ReadFrom::Any).await;
    let nursery = Arc::new(nursery);
    let token = nursery.token(&nursery.client).await;
    let readers = Readers::start(&nursery, &token);
    let (first, second) = (cluster.standbys()[0], cluster.standbys()[1]);
    readers.go_on().await;
    harm(|| first.kill());
    nursery.sees_host(first, false).await;
    readers.go_on().await;
    harm(|| second.freeze());
    nursery.sees_host(second, false).await;
    readers.go_on().await;
    harm(|| first.start_again());
    second.thaw();
    nursery.sees_host(first, true).await;
    nursery.sees_host(second, true).await;
    readers.go_on().await;
    let (reads, slowest) = readers.end().await;
    println!("standbys lost: {reads} reads, none failed, the slowest took {slowest:?}");
}

/// Decision 028; design, "Storage": written to whichever host is primary.
#[tokio::test(flavor = "multi_thread")]
async fn no_read_fails_when_the_primary_freezes_or_dies_and_writes_find_the_next() {
    let Site { cluster, nursery, .. } = Site::start(ReadFrom::Any).await;
    let nursery = Arc::new(nursery);
    let token = nursery.token(&nursery.client).await;
    let readers = Readers::start(&nursery, &token);
    let first = cluster.primary();
    readers.go_on().await;
    harm(|| first.freeze());
    nursery.sees_host(first, false).await;
    readers.go_on().await;
    first.thaw();
    nursery.sees_host(first, true).await;
    nursery.add("before").await;
    for standby in cluster.standbys() {
        harm(|| standby.wait_to_catch_up_with(first));
    }
    harm(|| first.kill());
    nursery.sees_host(first, false).await;
    readers.go_on().await;
    harm(|| cluster.fail_over());
    let promoted = Instant::now();
    nursery.add("next").await;
    let found = promoted.elapsed();
    assert!(found < WRITE_LIMIT, "{found:?}");
    readers.go_on().await;
    until(WRITE_LIMIT, async || nursery.ids().await == first_five_and(&["before", "next"])).await;
    let (reads, slowest) = readers.end().await;
    println!(
        "primary lost: {reads} reads, none failed, the slowest took {slowest:?}; a write after {found:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_on_a_primary_that_freezes_and_stays_so_gives_up_and_says_so() {
    let site = Site::start(ReadFrom::Any).await;
    let (steps, rows) = tokio::sync::mpsc::channel(2);
    let store = site.nursery.store.clone();
    let import = tokio::spawn(async move { store.import(ORG, rows).await });
    // It waits for more of its file, on a connection to the primary.
    until(Duration::from_secs(10), async || {
        site.nursery.store.hosts().iter().any(|host| host.connections > 0)
    })
    .await;
    let primary = site.cluster.primary();
    harm(|| primary.freeze());
    let outcome = tokio::time::timeout(Duration::from_secs(25), import).await.unwrap().unwrap();
    primary.thaw();
    drop(steps);
    let told = outcome.unwrap_err().to_string();
    let wanted = format!("127.0.0.1:{} went away in the middle of the command", primary.port());
    assert!(told.contains(&wanted) && told.ends_with("nothing was imported: run it again"), "{told}");
}
