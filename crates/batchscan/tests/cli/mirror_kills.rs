//! A killed mirror continues where it was: nothing is lost, whenever it is killed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use batchscan_testbed::Random;

use crate::http::token;
use crate::import_kills::StopOnDrop;
use crate::mirror::{Lines, Target, moved, served};
use crate::program::Running;
use crate::scans;
use crate::site::{ORG, Site};
use crate::user::User;

const KILLS: u32 = 15;
/// The mirror is compared after each round.
const ROUND_KILLS: u32 = 5;
/// A mirror runs for less than this: about three times as long as it needs to start.
const RUN_TIME: Duration = Duration::from_millis(300);
const BATCHES: u64 = 60;

/// Imports, corrects, moves and removes batches.
struct Writer<'s> {
    site: &'s Site,
    random: Random,
    present: BTreeSet<u64>,
    changes: u64,
}

impl Writer<'_> {
    fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            self.changes += 1;
            let (number, comment) = (self.random.below(BATCHES), self.changes.to_string());
            let removed = self.present.range(number..).next().copied();
            match (self.random.below(3), removed) {
                (0, Some(number)) => {
                    let id = format!("scan-{number:07}");
                    self.site.run(&["batch", "remove", "--yes", "--org", ORG, &id]).succeeds();
                    self.present.remove(&number);
                }
                (1, _) => {
                    let to = BATCHES + self.random.below(1_000);
                    self.site.import(&self.site.write("change.ndjson", moved(number, to, &comment)));
                    self.present.insert(number);
                }
                _ => {
                    let text = scans::ndjson(number..number + 9, &comment);
                    self.site.import(&self.site.write("change.ndjson", text));
                    self.present.extend(number..number + 9);
                }
            }
        }
    }
}

fn a_killed_mirror_is_complete_in_the_end(mut target: Target, seed: u64) {
    let site = Site::new();
    // Small, so that there are many responses.
    let service = site.serve(&["--page-size", "4"]);
    let user = User::of(&site, &service);
    let token = token(&service, &user.credential);
    let kills = std::env::var("MIRROR_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let mut writer = Writer { site: &site, random: Random(seed), present: BTreeSet::new(), changes: 0 };
    for moments in Random(!seed).moments(kills, RUN_TIME).chunks(usize::try_from(ROUND_KILLS).unwrap()) {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| writer.run(&stop));
            let _stops = StopOnDrop(&stop);
            for moment in moments {
                let killed = Running(target.command(&user, &["--follow"]).spawn().unwrap());
                std::thread::sleep(*moment);
                drop(killed);
                target.read_lines(&user);
                assert!(!writing.is_finished(), "the writer failed");
            }
        });
        target.update(&user);
        assert_eq!(target.batches(&user), served(&service, &token));
    }
    println!("{kills} kills, {} changes, {} batches", writer.changes, target.batches(&user).len());
}

#[test]
fn a_killed_mirror_in_a_file_is_complete_in_the_end() {
    a_killed_mirror_is_complete_in_the_end(Target::File, 1);
}

#[test]
fn a_killed_mirror_on_postgresql_is_complete_in_the_end() {
    a_killed_mirror_is_complete_in_the_end(Target::database(), 2);
}

#[test]
fn the_lines_of_a_killed_mirror_are_complete_in_the_end() {
    a_killed_mirror_is_complete_in_the_end(Target::Lines(Lines::default()), 3);
}
