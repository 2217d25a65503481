//! A killed import leaves the old state or the new one, never a mixture.
//!
//! Generation `n` has `n` in the comment of every batch, and more batches than the one before. So each import corrects
//! every batch and adds some, and a mixture of two generations is visible.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use batchscan_testbed::Random;
use serde_json::Value;

use crate::http::{get, token};
use crate::program::Running;
use crate::scans;
use crate::service::Service;
use crate::site::{ORG, Site};

/// The number of batches of a generation.
#[derive(Clone, Copy)]
pub(crate) struct Growth {
    /// Batches of generation 0.
    pub(crate) first: u64,
    /// New batches of each generation.
    pub(crate) added: u64,
}

impl Growth {
    fn count(self, generation: u64) -> u64 {
        self.first + generation * self.added
    }
}

const KILLS: u32 = 14;
/// Kills without another process, so that the next one recovers the file.
const RECOVERIES: u32 = 3;
/// The batches that the reader requests, including new ones.
const WATCHED: u64 = 300;
const WATCHED_OLD: u64 = 200;

const GROWTH: Growth = Growth { first: 30_000, added: 500 };

fn comment(generation: u64) -> String {
    format!("generation {generation}")
}

/// A database with generations.
pub(crate) struct Generations {
    pub(crate) site: Site,
    pub(crate) token: String,
    pub(crate) growth: Growth,
    generation: u64,
    /// The v1 responses of this generation and the next.
    states: [Vec<u8>; 2],
    pub(crate) import_time: Duration,
}

impl Generations {
    pub(crate) fn on(site: Site, growth: Growth) -> Self {
        let token = token(&site.serve(&[]), &site.credential());
        let (states, import_time) = (Default::default(), Duration::MAX);
        let mut range = Self { site, token, growth, generation: 0, states, import_time };
        range.site.import(&range.site.write("first.ndjson", scans::ndjson(0..growth.count(0), &comment(0))));
        // The faster of two, because other tests run in parallel.
        for generation in [0, 1] {
            range.begin(generation);
            let started = Instant::now();
            range.site.import("next.ndjson");
            range.import_time = started.elapsed().min(range.import_time);
        }
        range.begin(2);
        range
    }

    /// Writes the file of the next generation.
    fn begin(&mut self, generation: u64) {
        self.generation = generation;
        let numbers = |generation| 0..self.growth.count(generation);
        let state = |generation| scans::array(numbers(generation), &comment(generation)).into_bytes();
        self.states = [state(generation), state(generation + 1)];
        self.site.write("next.ndjson", scans::ndjson(numbers(generation + 1), &comment(generation + 1)));
    }

    /// Imports the next generation and kills the process.
    pub(crate) fn import_and_kill(&self, after: Duration) {
        let mut command = self.site.command(&["import", "--org", ORG, "next.ndjson"]);
        let import = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        std::thread::sleep(after);
        drop(import);
    }

    /// Checks that the data is one of the two generations. Returns whether it is the new one.
    #[track_caller]
    fn check(&mut self, service: &Service) -> bool {
        let found = get(service, "/v1/batches", &self.token).ok();
        let committed = found == self.states[1];
        assert!(committed || found == self.states[0], "a mixture, after generation {}", self.generation);
        if committed {
            self.begin(self.generation + 1);
        }
        let doctor = self.site.run(&["doctor"]).succeeds();
        assert!(doctor.ends_with("\nno problems found\n"), "{doctor}");
        committed
    }
}

/// Reads batches with both versions until `stop`. Every response has one generation.
fn read_continuously(reader: (&Service, &str), growth: Growth, stop: &AtomicBool, responses: &AtomicU64) {
    let old = growth.count(0) - WATCHED_OLD;
    let dates = format!("start_date={}&end_date={}", scans::created(old), scans::created(old + WATCHED - 1));
    while !stop.load(Ordering::Relaxed) {
        for version in ["v1", "v2"] {
            let body = get(reader.0, &format!("/{version}/batches?{dates}"), reader.1).ok();
            let body: Value = serde_json::from_slice(&body).unwrap();
            let batches = body.as_array().or_else(|| body["data"].as_array()).unwrap();
            let comment = batches[0]["comment"].as_str().unwrap();
            let generation: u64 = comment.strip_prefix("generation ").unwrap().parse().unwrap();
            let expected = WATCHED.min(growth.count(generation) - old);
            assert_eq!(batches.len() as u64, expected, "{comment}");
            assert!(batches.iter().all(|batch| batch["comment"] == comment), "a mixture");
            responses.fetch_add(1, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Kills imports at these moments, while a service reads the batches.
pub(crate) fn kill_imports(
    generations: &mut Generations,
    moments: Vec<Duration>,
    mut after_kill: impl FnMut(&Site),
) {
    let (kills, service) = (moments.len() as u64, generations.site.serve(&[]));
    let (token, growth) = (generations.token.clone(), generations.growth);
    let (stop, responses, mut committed) = (AtomicBool::new(false), AtomicU64::new(0), 0);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_continuously((&service, &token), growth, &stop, &responses));
        let _stops = StopOnDrop(&stop);
        for moment in moments {
            generations.import_and_kill(moment);
            after_kill(&generations.site);
            committed += u64::from(generations.check(&service));
            assert!(!reader.is_finished(), "the reader failed");
        }
    });
    let (responses, time) = (responses.into_inner(), generations.import_time);
    println!("{kills} kills over {time:?}: {committed} after the commit, {responses} responses meanwhile");
    assert!(committed < kills, "every kill came too late");
    assert!(responses > kills, "{responses} responses");
}

#[test]
fn a_killed_import_leaves_the_old_state_or_the_new_one() {
    let mut generations = Generations::on(Site::new(), GROWTH);
    // Also after its usual end, around the commit.
    let moments = Random(20_260_131).moments(KILLS, generations.import_time.mul_f64(1.3));
    kill_imports(&mut generations, moments, |_| ());
}

#[test]
fn the_database_of_a_killed_import_is_recovered_when_opened() {
    let mut range = Generations::on(Site::new(), GROWTH);
    for moment in Random(7).moments(RECOVERIES, range.import_time) {
        range.import_and_kill(moment);
        let service = range.site.serve(&[]);
        range.check(&service);
    }
}

/// Stops the reader, also when the test fails.
pub(crate) struct StopOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
