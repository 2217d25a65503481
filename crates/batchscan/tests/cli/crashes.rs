//! An import that is killed at any moment leaves the old state whole or the new one, and never a mixture.
//!
//! Generation `n` of the data is batches 0 to a number that grows with `n`, all with a comment that tells `n`: going
//! from one to the next corrects every batch and adds new ones, so that any mixture shows.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{Running, is_optimised};
use crate::scans;
use crate::service::Service;
use crate::site::{ORG, Site};
use crate::wire::{get, token};

/// How many batches a generation has.
#[derive(Clone, Copy)]
pub(crate) struct Growth {
    /// Batches of generation 0.
    pub(crate) first: u64,
    /// What each generation adds.
    pub(crate) added: u64,
}

impl Growth {
    fn count(self, generation: u64) -> u64 {
        self.first + generation * self.added
    }
}

const KILLS: u64 = 50;
/// Kills with nobody else at the file, so that the next to open it has to recover it.
const LONELY_KILLS: u64 = 6;
/// The batches that the reader looks at, new ones among them: few enough for one read of the store.
const WATCHED: u64 = 300;
const WATCHED_OLD: u64 = 200;

fn growth() -> Growth {
    if is_optimised() { Growth { first: 60_000, added: 500 } } else { Growth { first: 6_000, added: 200 } }
}

fn comment(generation: u64) -> String {
    format!("generation {generation}")
}

/// A repeatable sequence (SplitMix64).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 8
    }

    /// Moments spread over a time, one in each part of it, in a random order.
    pub(crate) fn moments(&mut self, parts: u64, time: Duration) -> Vec<Duration> {
        let mut order: Vec<u64> = (0..parts).collect();
        for place in (1..order.len()).rev() {
            order.swap(place, usize::try_from(self.next() % (place as u64 + 1)).unwrap());
        }
        let part = time / u32::try_from(parts).unwrap();
        let micros = u64::try_from(part.as_micros()).unwrap().max(1);
        let moment = |nth| part * u32::try_from(nth).unwrap() + Duration::from_micros(self.next() % micros);
        order.into_iter().map(moment).collect()
    }
}

/// The database under fire.
pub(crate) struct Range {
    pub(crate) site: Site,
    pub(crate) token: String,
    pub(crate) growth: Growth,
    generation: u64,
    /// What v1 answers in this generation and in the next.
    states: [Vec<u8>; 2],
    pub(crate) import_time: Duration,
}

impl Range {
    pub(crate) fn on(site: Site, growth: Growth) -> Self {
        let token = token(&site.serve(&[]), &site.credential());
        let (states, import_time) = (Default::default(), Duration::MAX);
        let mut range = Self { site, token, growth, generation: 0, states, import_time };
        range.site.import(&range.site.write("first.ndjson", scans::ndjson(0..growth.count(0), &comment(0))));
        // The quicker of two: another test may be busy beside one of them.
        for generation in [0, 1] {
            range.begin(generation);
            let started = Instant::now();
            range.site.import("next.ndjson");
            range.import_time = started.elapsed().min(range.import_time);
        }
        range.begin(2);
        range
    }

    /// Makes the next generation's file.
    fn begin(&mut self, generation: u64) {
        self.generation = generation;
        let numbers = |generation| 0..self.growth.count(generation);
        let state = |generation| scans::array(numbers(generation), &comment(generation)).into_bytes();
        self.states = [state(generation), state(generation + 1)];
        self.site.write("next.ndjson", scans::ndjson(numbers(generation + 1), &comment(generation + 1)));
    }

    /// Imports the next generation, and kills that after a while.
    pub(crate) fn import_and_kill(&self, after: Duration) {
        let mut command = self.site.command(&["import", "--org", ORG, "next.ndjson"]);
        let doomed = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        std::thread::sleep(after);
        // This is the kill.
        drop(doomed);
    }

    /// Finds the state that a service gives out to be one of two.
    #[track_caller]
    pub(crate) fn settle(&mut self, service: &Service) -> bool {
        let found = get(service, "/v1/batches", &self.token).ok();
        let committed = found == self.states[1];
        assert!(committed || found == self.states[0], "a mixture, after generation {}", self.generation);
        if committed {
            self.begin(self.generation + 1);
        }
        let doctor = self.site.run(&["doctor"]).done();
        assert!(doctor.ends_with("\nall is well\n"), "{doctor}");
        committed
    }
}

/// Reads a window through both versions until told to stop. Every answer is of one generation.
pub(crate) fn watch(reader: (&Service, &str), growth: Growth, stop: &AtomicBool, answers: &AtomicU64) {
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
            answers.fetch_add(1, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_import_that_is_killed_leaves_the_old_state_or_the_new_one() {
    let mut range = Range::on(Site::new(), growth());
    let service = range.site.serve(&[]);
    // Past its usual end, too: the moments around the commit and after it are of interest as well.
    let moments = Chance(20_260_131).moments(KILLS, range.import_time.mul_f64(1.3));
    let (stop, answers, token) = (AtomicBool::new(false), AtomicU64::new(0), range.token.clone());
    let mut committed = 0;
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch((&service, &token), growth(), &stop, &answers));
        let _stops = StopWhenDropped(&stop);
        for moment in moments {
            range.import_and_kill(moment);
            committed += u64::from(range.settle(&service));
            assert!(!watching.is_finished(), "the reader beside it failed");
        }
    });
    let answers = answers.into_inner();
    println!(
        "{KILLS} kills over {:?}: {committed} after the commit, {answers} answers meanwhile",
        range.import_time
    );
    assert!(committed < KILLS, "every kill came too late");
    assert!(answers > KILLS, "{answers} answers");
}

#[test]
fn a_file_that_a_killed_import_left_behind_is_recovered_by_whoever_opens_it_next() {
    let mut range = Range::on(Site::new(), growth());
    for moment in Chance(7).moments(LONELY_KILLS, range.import_time) {
        range.import_and_kill(moment);
        let service = range.site.serve(&[]);
        range.settle(&service);
    }
}

/// Lets the reader go, also when the test fails.
pub(crate) struct StopWhenDropped<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
