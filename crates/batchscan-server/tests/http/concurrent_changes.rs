//! Paging and streaming while the data changes (decision 025): no batch twice, and no unchanged batch missing.

use std::collections::{BTreeMap, BTreeSet};

use batchscan_model::{Batch, UtcInstant};
use batchscan_server::config::Config;
use proptest::prelude::*;
use tokio::runtime::Runtime;

use super::*;

/// A change between two pages.
#[derive(Clone, Debug)]
enum Change {
    /// A new batch at this second.
    Insert(i64),
    /// Another name for an existing batch.
    Correct(usize),
    /// Another creation date for an existing batch.
    Move(usize, i64),
    /// An existing batch is deleted.
    Remove(usize),
}

const SECONDS: i64 = 40;

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (0..SECONDS).prop_map(Change::Insert),
        any::<usize>().prop_map(Change::Correct),
        (any::<usize>(), 0..SECONDS).prop_map(|(which, to)| Change::Move(which, to)),
        any::<usize>().prop_map(Change::Remove),
    ]
}

fn created(second: i64) -> UtcInstant {
    instant("2026-01-01T00:00:00Z").plus_secs(second)
}

/// Changes the data, and remembers which batches it changed.
struct Writer<'a> {
    app: &'a TestApp,
    make: fn(&str, UtcInstant) -> Batch,
    batches: BTreeMap<String, Batch>,
    changed: BTreeSet<String>,
    inserted: usize,
}

impl<'a> Writer<'a> {
    /// Batches at these seconds.
    async fn new(app: &'a TestApp, make: fn(&str, UtcInstant) -> Batch, seconds: &[i64]) -> Writer<'a> {
        let batches: Vec<Batch> = seconds
            .iter()
            .enumerate()
            .map(|(n, second)| make(&format!("b{n:03}"), created(*second)))
            .collect();
        app.import("Nursery", &batches).await;
        let batches = batches.into_iter().map(|batch| (batch.batch_id.as_str().to_owned(), batch)).collect();
        Writer { app, make, batches, changed: BTreeSet::new(), inserted: 0 }
    }

    async fn apply(&mut self, change: &Change) {
        match change {
            Change::Insert(second) => {
                self.inserted += 1;
                let id = format!("a{}", self.inserted);
                self.put((self.make)(&id, created(*second))).await;
            }
            Change::Correct(which) => {
                let Some(known) = self.pick(*which) else { return };
                self.put(Batch { batch_name: format!("{}!", known.batch_name), ..known }).await;
            }
            Change::Move(which, second) => {
                let Some(known) = self.pick(*which) else { return };
                self.put(Batch { batch_creation_date: created(*second), ..known }).await;
            }
            Change::Remove(which) => {
                let Some(known) = self.pick(*which) else { return };
                self.delete(known.batch_id.as_str());
            }
        }
    }

    fn pick(&self, which: usize) -> Option<Batch> {
        (!self.batches.is_empty())
            .then(|| self.batches.values().nth(which % self.batches.len()).unwrap().clone())
    }

    async fn put(&mut self, batch: Batch) {
        self.app.import("Nursery", std::slice::from_ref(&batch)).await;
        let id = batch.batch_id.as_str().to_owned();
        self.changed.insert(id.clone());
        self.batches.insert(id, batch);
    }

    fn delete(&mut self, id: &str) {
        self.app.delete_batch(id);
        self.batches.remove(id);
        self.changed.insert(id.to_owned());
    }

    /// Checks the ids that were read.
    fn check(&self, ids: &[String]) {
        let mut seen = BTreeSet::new();
        for id in ids {
            assert!(seen.insert(id), "{id} twice: {ids:?}");
        }
        for id in self.batches.keys().filter(|id| !self.changed.contains(*id)) {
            assert!(seen.contains(id), "unchanged {id} is missing: {ids:?}");
        }
    }
}

async fn read_v2(page_rows: usize, seconds: &[i64], changes: &[Vec<Change>]) {
    let app = TestApp::paged(page_rows).await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    let mut writer = Writer::new(&app, at, seconds).await;
    let mut changes = changes.iter();
    let mut ids = Vec::new();
    let mut path = "/v2/batches".to_owned();
    loop {
        let page = app.get(&path, &token).await;
        ids.extend(page.ids());
        let Some(next) = page.next_token() else { break };
        for change in changes.next().into_iter().flatten() {
            writer.apply(change).await;
        }
        path = format!("/v2/batches?next_token={next}");
    }
    writer.check(&ids);
}

/// v1 over HTTP/1.0, read in steps with changes in between.
async fn read_v1(seconds: &[i64], changes: &[Vec<Change>]) {
    const STEP_BYTES: usize = 1_000_000;
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    let mut writer = Writer::new(&app, bulky, seconds).await;
    let request = format!("GET /v1/batches HTTP/1.0\r\nauthorization: Bearer {token}\r\n\r\n");
    let mut raw = Raw::sending(&app, request).await;
    assert_eq!(raw.head().await.0, 200);
    let mut body = Vec::new();
    for changes in changes {
        body.extend(raw.read_some(STEP_BYTES).await);
        for change in changes {
            writer.apply(change).await;
        }
    }
    body.extend(raw.read_rest().await);
    let batches: Vec<serde_json::Value> = serde_json::from_slice(&body).unwrap();
    let ids: Vec<String> =
        batches.iter().map(|batch| batch["batch_id"].as_str().unwrap().to_owned()).collect();
    writer.check(&ids);
}

fn between_pages() -> impl Strategy<Value = Vec<Vec<Change>>> {
    proptest::collection::vec(proptest::collection::vec(change(), 0..3), 12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Decision 025.
    #[test]
    fn pages_of_changing_data_repeat_nothing_and_miss_no_unchanged_batch(
        page_rows in 1usize..5,
        seconds in proptest::collection::vec(0..SECONDS, 0..24),
        changes in between_pages(),
    ) {
        Runtime::new().unwrap().block_on(read_v2(page_rows, &seconds, &changes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, failure_persistence: None, ..ProptestConfig::default() })]

    /// Decisions 020, 025.
    #[test]
    fn a_stream_of_changing_data_repeats_nothing_and_misses_no_unchanged_batch(
        seconds in proptest::collection::vec(0..SECONDS, 250),
        changes in between_pages(),
    ) {
        Runtime::new().unwrap().block_on(read_v1(&seconds, &changes));
    }
}

/// Decision 025, with a concurrent writer in another process.
#[tokio::test(flavor = "multi_thread")]
async fn reads_during_concurrent_imports_repeat_nothing_and_miss_nothing() {
    let (app, _, token) = TestApp::filled(7, &many(60)).await;
    let other = app.node(Config::default()).await;
    let writer = tokio::spawn(async move {
        for round in 0i64.. {
            let moving = at("moving", created((round * 17) % 60));
            let new = at(&format!("new{round}"), created((round * 23) % 60));
            other.import("Nursery", &[moving, new]).await;
        }
    });
    for _ in 0..25 {
        for ids in [app.v2_ids("", &token).await, app.v1_ids("", &token).await] {
            let unique: BTreeSet<&String> = ids.iter().collect();
            assert_eq!(unique.len(), ids.len(), "repeated: {ids:?}");
            assert_eq!(unique.iter().filter(|id| id.starts_with("b0")).count(), 60, "missing: {ids:?}");
        }
    }
    writer.abort();
}
