//! Copies that follow `/v2/changes` end equal to `/v1/batches`, whatever happens meanwhile. A failure names its seed.
//!
//! `SEEDS=1000 cargo test -p batchscan-server changes_model` tries more seeds than the usual few, `SEED=7` only that one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use batchscan_model::BatchId;
use batchscan_store::KeyRotation;
use batchscan_testbed::Random;
use serde_json::value::RawValue;

use super::*;

const SEEDS: u64 = 12;
const OPERATIONS: usize = 40;
const READERS: u64 = 3;
/// Few ids and times, so that batches are corrected, moved, removed and imported again.
const IDS: u64 = 30;
const TIMES: u64 = 20;

/// The tables of an organisation's batches, besides its versions in `organisation`.
const TABLES: [&str; 3] = ["batch", "batch_tombstone", "data_version"];

fn random_id(random: &mut Random) -> String {
    format!("é{}", random.below(IDS))
}

#[derive(serde::Deserialize)]
struct Changes<'a> {
    #[serde(borrow)]
    data: Vec<&'a RawValue>,
    removed: Vec<String>,
    since: String,
    more: bool,
}

/// A client's copy: texts by id, and its position.
#[derive(Default)]
struct Mirror {
    since: Option<String>,
    batches: BTreeMap<String, String>,
}

impl Mirror {
    /// Reads once. Returns whether the copy is complete.
    async fn read(&mut self, app: &TestApp, client: &Client, random: &mut Random) -> bool {
        let token = app.token(client).await;
        let wait = ["", "&wait=0", "&wait=1"][usize::try_from(random.below(3)).unwrap()];
        let since = self.since.as_ref().map_or_else(String::new, |since| format!("since={since}{wait}"));
        let request = app.request("GET", &format!("/v2/changes?{since}")).bearer_auth(token);
        let response = request.send().await.unwrap();
        match response.status().as_u16() {
            // The database was restored.
            410 => *self = Self::default(),
            // The keys were rotated between the two requests.
            401 => {}
            // The response was lost: the position is the old one.
            200 if random.below(4) == 0 => {}
            200 => return self.apply(&serde_json::from_str(&response.text().await.unwrap()).unwrap()),
            _ => panic!("{}", response.text().await.unwrap()),
        }
        false
    }

    fn apply(&mut self, changes: &Changes<'_>) -> bool {
        for text in &changes.data {
            let id = id_of(text);
            assert!(!changes.removed.contains(&id), "{id} twice");
            self.batches.insert(id, text.get().to_owned());
        }
        self.batches.retain(|id, _| !changes.removed.contains(id));
        self.since = Some(changes.since.clone());
        !changes.more
    }
}

fn id_of(text: &RawValue) -> String {
    serde_json::from_str::<serde_json::Value>(text.get()).unwrap()["batch_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_end_equal_whatever_happens_meanwhile() {
    let number = |name| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let seeds = number("SEED").map_or(0..number("SEEDS").unwrap_or(SEEDS), |seed| seed..seed + 1);
    let app = Arc::new(TestApp::paged(7).await);
    for seed in seeds {
        println!("SEED={seed}");
        run(&app, seed).await;
    }
}

async fn run(app: &Arc<TestApp>, seed: u64) {
    let org = format!("Nursery {seed}");
    let client = app.org(&org).await;
    let is_done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (1..=READERS)
        .map(|reader| {
            let (app, client, is_done) = (app.clone(), client.clone(), is_done.clone());
            tokio::spawn(async move {
                let (mut mirror, mut random) = (Mirror::default(), Random(seed * 100 + reader));
                while !is_done.load(Ordering::SeqCst) {
                    mirror.read(&app, &client, &mut random).await;
                }
                while !mirror.read(&app, &client, &mut random).await {}
                mirror.batches
            })
        })
        .collect();
    write(app, &org, &mut Random(seed)).await;
    is_done.store(true, Ordering::SeqCst);
    let all = loop {
        let reply = app.get("/v1/batches", &app.token(&client).await).await;
        // The keys were rotated between the two requests.
        if reply.status != 401 {
            break reply;
        }
    };
    let all: Vec<&RawValue> = serde_json::from_str(all.text()).unwrap();
    let all: BTreeMap<_, _> = all.into_iter().map(|text| (id_of(text), text.get().to_owned())).collect();
    for reader in readers {
        assert_eq!(reader.await.unwrap(), all);
    }
    app.store.remove_org(&org, app.now()).await.unwrap();
}

async fn write(app: &TestApp, org: &str, random: &mut Random) {
    app.save();
    for _ in 0..OPERATIONS {
        match random.below(12) {
            0..=6 => {
                let first = instant("2026-01-01T00:00:00Z");
                let new = |_| {
                    let created = first.plus_secs(random.below(TIMES).cast_signed());
                    named(&random_id(random), &created.to_string(), &format!("{}", random.below(1_000)))
                };
                let batches: Vec<_> = (0..12).map(new).collect();
                app.import(org, &batches).await;
            }
            7..=9 => {
                let ids = vec![BatchId::new(random_id(random)).unwrap()];
                // It may not exist. All removals are forgotten now and then.
                let prune_before =
                    if random.below(4) == 0 { "2200-01-01T00:00:00Z" } else { "1970-01-01T00:00:00Z" };
                let _ = app.store.remove_batches(org, ids, instant(prune_before), app.now()).await;
            }
            10 if random.below(2) == 0 => app.save(),
            10 => app.restore(),
            _ => {
                let rotation = KeyRotation { now: app.now(), remove_before: app.now() };
                app.store.rotate_keys(rotation).await.unwrap();
                app.advance_secs(61);
            }
        }
    }
}

impl TestApp {
    /// Keeps the batches of all organisations for [`TestApp::restore`].
    fn save(&self) {
        let save = |table| {
            format!(
                "DROP TABLE IF EXISTS saved_{table}; CREATE TABLE saved_{table} AS SELECT * FROM {table};"
            )
        };
        let tables: String = TABLES.map(save).concat() + &save("organisation");
        self.sql(&format!("BEGIN; {tables} {} COMMIT;", save("block")), &format!("BEGIN; {tables} COMMIT;"));
    }

    /// Restores the batches of all organisations, as from a backup.
    fn restore(&self) {
        let restore =
            |table| format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM saved_{table};");
        let columns = "version, version_mark, moved_version, imported_at, pruned_version";
        let tables = TABLES.map(restore).concat()
            + &format!(
                "UPDATE organisation SET ({columns}) =
                     (SELECT {columns} FROM saved_organisation s WHERE s.id = organisation.id);"
            );
        self.sql(
            &format!("BEGIN IMMEDIATE; {tables} {} COMMIT;", restore("block")),
            &format!("BEGIN; {tables} COMMIT;"),
        );
    }
}
