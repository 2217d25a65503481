//! Walks while the data changes (decision 025): no repeat ever, and nothing lost that was there all the while.

use std::collections::{BTreeMap, BTreeSet};

use batchscan_model::Batch;
use batchscan_server::config::Config;
use proptest::prelude::*;
use tokio::runtime::Runtime;

use crate::http::app::{TestApp, instant};
use crate::http::sample::{at, batch, bulky, many, named};
use crate::http::wire::Wire;

/// What a writer does between two pages.
#[derive(Clone, Debug)]
enum Change {
    /// A batch that was not there before, at this second.
    Insert(i64),
    /// Another name for the batch of this number.
    Correct(usize),
    /// Another creation date for the batch of this number: forwards or backwards.
    Move(usize, i64),
    /// The batch of this number goes away.
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

fn created(second: i64) -> batchscan_model::UtcInstant {
    instant("2026-01-01T00:00:00Z").plus_secs(second)
}

/// A writer beside the service, and what it has touched.
struct Writer<'a> {
    app: &'a TestApp,
    make: fn(&str, batchscan_model::UtcInstant) -> Batch,
    there: BTreeMap<String, Batch>,
    touched: BTreeSet<String>,
    inserted: usize,
}

impl<'a> Writer<'a> {
    /// Batches at these seconds.
    async fn new(
        app: &'a TestApp,
        make: fn(&str, batchscan_model::UtcInstant) -> Batch,
        seconds: &[i64],
    ) -> Writer<'a> {
        let batches: Vec<Batch> = seconds
            .iter()
            .enumerate()
            .map(|(n, second)| make(&format!("b{n:03}"), created(*second)))
            .collect();
        app.import("Nursery", &batches).await;
        let there = batches.into_iter().map(|batch| (batch.batch_id.as_str().to_owned(), batch)).collect();
        Writer { app, make, there, touched: BTreeSet::new(), inserted: 0 }
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
                self.remove(known.batch_id.as_str());
            }
        }
    }

    fn pick(&self, which: usize) -> Option<Batch> {
        (!self.there.is_empty()).then(|| self.there.values().nth(which % self.there.len()).unwrap().clone())
    }

    async fn put(&mut self, batch: Batch) {
        self.app.import("Nursery", std::slice::from_ref(&batch)).await;
        let id = batch.batch_id.as_str().to_owned();
        self.touched.insert(id.clone());
        self.there.insert(id, batch);
    }

    fn remove(&mut self, id: &str) {
        self.app.remove(id);
        self.there.remove(id);
        self.touched.insert(id.to_owned());
    }

    /// Holds what a walk met against what was there.
    fn judge(&self, met: &[String]) {
        let mut seen = BTreeSet::new();
        for id in met {
            assert!(seen.insert(id), "{id} came twice: {met:?}");
        }
        for id in self.there.keys().filter(|id| !self.touched.contains(*id)) {
            assert!(seen.contains(id), "{id} was there all the while and did not come: {met:?}");
        }
    }
}

async fn walk_v2(page_rows: usize, seconds: &[i64], changes: &[Vec<Change>]) {
    let app = TestApp::paged(page_rows).await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    let mut writer = Writer::new(&app, at, seconds).await;
    let mut changes = changes.iter();
    let mut met = Vec::new();
    let mut path = "/v2/batches".to_owned();
    loop {
        let page = app.get(&path, &token).await;
        met.extend(page.ids());
        let Some(next) = page.next_token() else { break };
        for change in changes.next().into_iter().flatten() {
            writer.apply(change).await;
        }
        path = format!("/v2/batches?next_token={next}");
    }
    writer.judge(&met);
}

/// v1 over HTTP/1.0, read a little at a time, with changes in between.
async fn walk_v1(seconds: &[i64], changes: &[Vec<Change>]) {
    const STEP_BYTES: usize = 1_000_000;
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    let mut writer = Writer::new(&app, bulky, seconds).await;
    let mut wire = Wire::open(&app).await;
    wire.send(format!("GET /v1/batches HTTP/1.0\r\nauthorization: Bearer {token}\r\n\r\n")).await;
    assert_eq!(wire.head().await.0, 200);
    let mut body = Vec::new();
    for changes in changes {
        body.extend(wire.some(STEP_BYTES).await);
        for change in changes {
            writer.apply(change).await;
        }
    }
    body.extend(wire.rest().await);
    let met: Vec<serde_json::Value> = serde_json::from_slice(&body).unwrap();
    let ids: Vec<String> = met.iter().map(|batch| batch["batch_id"].as_str().unwrap().to_owned()).collect();
    writer.judge(&ids);
}

fn between_pages() -> impl Strategy<Value = Vec<Vec<Change>>> {
    proptest::collection::vec(proptest::collection::vec(change(), 0..3), 12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Decision 025.
    #[test]
    fn a_walk_over_changing_pages_repeats_nothing_and_loses_nothing_that_stayed(
        page_rows in 1usize..5,
        seconds in proptest::collection::vec(0..SECONDS, 0..24),
        changes in between_pages(),
    ) {
        Runtime::new().unwrap().block_on(walk_v2(page_rows, &seconds, &changes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, failure_persistence: None, ..ProptestConfig::default() })]

    /// Decisions 020, 025.
    #[test]
    fn a_stream_over_changing_data_repeats_nothing_and_loses_nothing_that_stayed(
        seconds in proptest::collection::vec(0..SECONDS, 250),
        changes in between_pages(),
    ) {
        Runtime::new().unwrap().block_on(walk_v1(&seconds, &changes));
    }
}

/// Decision 025: new batches come last, so that a walk under way still meets them.
#[tokio::test]
async fn a_walk_meets_what_is_added_behind_it_and_not_what_is_added_before_it() {
    let app = TestApp::paged(2).await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(4)).await;
    let token = app.token(&client).await;
    let next = app.get("/v2/batches", &token).await.next_token().unwrap();
    app.import("Nursery", &[batch("late", "2026-02-01T00:00:00Z"), batch("early", "2025-01-01T00:00:00Z")])
        .await;
    let rest = app.v2_ids(&format!("?next_token={next}"), &token).await;
    assert_eq!(rest, ["b00002", "b00003", "late"]);
}

/// Decisions 025, 037: a batch that moved ahead of the walk is not met again; a new walk finds it there.
#[tokio::test]
async fn a_batch_that_moves_ahead_of_a_walk_does_not_come_again() {
    let app = TestApp::paged(2).await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(4)).await;
    let token = app.token(&client).await;
    let next = app.get("/v2/batches", &token).await.next_token().unwrap();
    app.import("Nursery", &[named("b00000", "2026-01-01T00:00:09Z", "Moved")]).await;
    assert_eq!(app.v2_ids(&format!("?next_token={next}"), &token).await, ["b00002", "b00003"]);
    assert_eq!(app.v2_ids("", &token).await, ["b00001", "b00002", "b00003", "b00000"]);
}

/// Decision 025: the batch that a cursor points at may be gone.
#[tokio::test]
async fn a_walk_goes_on_where_its_last_batch_was_removed() {
    let app = TestApp::paged(2).await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(5)).await;
    let token = app.token(&client).await;
    let next = app.get("/v2/batches", &token).await.next_token().unwrap();
    ["b00001", "b00002"].into_iter().for_each(|id| app.remove(id));
    assert_eq!(app.v2_ids(&format!("?next_token={next}"), &token).await, ["b00003", "b00004"]);
}

/// Decision 025, with a writer that does not wait: another process on the same file.
#[tokio::test(flavor = "multi_thread")]
async fn walks_beside_a_busy_writer_repeat_nothing_and_lose_nothing() {
    let app = TestApp::paged(7).await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(60)).await;
    let token = app.token(&client).await;
    let other = app.node(Config::default()).await;
    let writing = tokio::spawn(async move {
        for round in 0i64.. {
            let wanderer = at("wanderer", created((round * 17) % 60));
            let newcomer = at(&format!("new{round}"), created((round * 23) % 60));
            other.import("Nursery", &[wanderer, newcomer]).await;
        }
    });
    for _ in 0..25 {
        for ids in [app.v2_ids("", &token).await, app.v1_ids("", &token).await] {
            let unique: BTreeSet<&String> = ids.iter().collect();
            assert_eq!(unique.len(), ids.len(), "a repeat: {ids:?}");
            assert_eq!(unique.iter().filter(|id| id.starts_with("b0")).count(), 60, "a loss: {ids:?}");
        }
    }
    writing.abort();
}
