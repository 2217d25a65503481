//! Watchers and services that are killed lose no file and import none twice.
//!
//! Files are written in pieces, renamed into place, copied, corrected, and truncated and later fixed. `WATCH_FILES` is
//! their number.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, rename};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use batchscan_testbed::Random;

use crate::http::token;
use crate::import_kills::StopOnDrop;
use crate::scans;
use crate::watch::{Inbox, SOON, To, comments, holds_within};

const FILES: u64 = 60;
const KILLS_MIN: u64 = 4;
/// A file is complete after 2 s, so that a watcher imports nothing before.
const RUN_TIME_MIN: Duration = Duration::from_millis(1_800);
const RUN_TIME_MAX: Duration = Duration::from_secs(4);
/// The writing of all files takes about this long, but each file at most [`PAUSE_MAX`].
const WRITING_TIME: Duration = Duration::from_secs(120);
const PAUSE_MAX: Duration = Duration::from_millis(130);

/// Writes files, and knows what is expected in the end.
struct Writer<'i> {
    inbox: &'i Inbox,
    random: Random,
    /// The comment of every batch.
    expected: BTreeMap<String, String>,
    corrections: u64,
    /// Contents of valid files.
    valid: BTreeSet<String>,
    /// Truncated files, and what they should be.
    truncated: Vec<(String, String)>,
}

impl<'i> Writer<'i> {
    fn new(inbox: &'i Inbox, seed: u64) -> Self {
        let (expected, valid, truncated) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        Self { inbox, random: Random(seed), expected, corrections: 0, valid, truncated }
    }

    fn pause(&mut self, max: Duration) {
        let micros = u64::try_from(max.as_micros()).unwrap().max(1);
        std::thread::sleep(Duration::from_micros(self.random.below(micros)));
    }

    fn expect(&mut self, number: u64, content: &str, comment: &str) {
        self.valid.insert(content.to_owned());
        for batch in 2 * number..2 * number + 2 {
            self.expected.insert(format!("scan-{batch:07}"), comment.to_owned());
        }
    }

    fn write(&mut self, number: u64) {
        let content = scans::array(2 * number..2 * number + 2, "first");
        let name = format!("{number}.json");
        self.expect(number, &content, "first");
        match self.random.below(5) {
            0 => {
                let mut file = File::create(self.inbox.path(&name)).unwrap();
                for piece in content.as_bytes().chunks(500) {
                    file.write_all(piece).unwrap();
                    self.pause(Duration::from_millis(100));
                }
            }
            1 => {
                self.inbox.write(&format!(".{name}"), &content);
                rename(self.inbox.path(&format!(".{name}")), self.inbox.path(&name)).unwrap();
            }
            2 => {
                self.inbox.write(&name, &content);
                self.pause(2 * PAUSE_MAX);
                self.inbox.write(&format!("copy of {name}"), &content);
            }
            3 => {
                // Often with the same modification time.
                self.inbox.write(&name, &content);
                let corrected = scans::array(2 * number..2 * number + 2, "corrected");
                self.inbox.write(&format!("{number} corrected.json"), &corrected);
                self.expect(number, &corrected, "corrected");
                self.corrections += 2;
            }
            _ => {
                let length = 1 + usize::try_from(self.random.below(content.len() as u64 - 1)).unwrap();
                self.inbox.write(&name, &content[..length]);
                self.truncated.push((name, content));
            }
        }
    }

    /// Writes the complete versions of truncated files when those were taken.
    fn fix_truncated(&mut self) {
        for (name, content) in &self.truncated {
            assert!(holds_within(2 * SOON, || !self.inbox.path(name).exists()), "{name} was not taken");
            self.inbox.write(name, content);
        }
    }
}

fn nothing_is_lost_or_doubled(to: To, seed: u64) {
    let inbox = Inbox::new(to);
    let mut service = Some(inbox.serve());
    let token = token(service.as_ref().unwrap(), &inbox.site.credential());
    let files = std::env::var("WATCH_FILES").map_or(FILES, |files| files.parse().unwrap());
    let pause = (2 * WRITING_TIME / u32::try_from(files).unwrap()).min(PAUSE_MAX);
    let (mut writer, mut random) = (Writer::new(&inbox, seed), Random(!seed));
    let mut kills = 0;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for number in 0..files {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                writer.write(number);
                writer.pause(pause);
            }
            writer.fix_truncated();
        });
        let _stops = StopOnDrop(&stop);
        while !writing.is_finished() || kills < KILLS_MIN {
            let watcher = inbox.watch();
            if random.below(2) == 0 {
                // In the middle of an import, however long it takes until there is one.
                holds_within(SOON, || !inbox.files("importing").is_empty() || inbox.files("").is_empty());
                std::thread::sleep(Duration::from_micros(random.below(8_000)));
            } else {
                let more = u64::try_from((RUN_TIME_MAX - RUN_TIME_MIN).as_micros()).unwrap();
                std::thread::sleep(RUN_TIME_MIN + Duration::from_micros(random.below(more)));
            }
            if to == To::Service && random.below(2) == 0 {
                drop(service.take());
                std::thread::sleep(Duration::from_millis(random.below(500)));
            }
            drop(watcher);
            service.get_or_insert_with(|| inbox.serve());
            kills += 1;
        }
        writing.join().unwrap();
    });
    let watcher = inbox.watch();
    let is_empty = || inbox.files("").is_empty() && inbox.files("importing").is_empty();
    assert!(holds_within(2 * SOON, is_empty), "{}", watcher.log());
    watcher.stop();
    println!("{to:?}: {files} files, {} truncated, {kills} kills", writer.truncated.len());
    check(&inbox, &writer, &comments(service.as_ref().unwrap(), &token));
}

fn check(inbox: &Inbox, writer: &Writer<'_>, found: &BTreeMap<String, String>) {
    for (id, comment) in &writer.expected {
        assert_eq!(found.get(id), Some(comment), "{id}");
    }
    assert_eq!(found.len(), writer.expected.len());
    let sums = "SELECT sum(added), sum(corrected) FROM import";
    let sums = inbox.site.sql().query_row(sums, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let added = i64::try_from(writer.expected.len()).unwrap();
    assert_eq!(sums, (added, writer.corrections.cast_signed()), "something was imported twice");
    let missing = "SELECT (SELECT count(*) FROM import WHERE added + corrected > 0)
                        - (SELECT count(*) FROM audit WHERE action = 'import')";
    let missing: i64 = inbox.site.sql().query_row(missing, [], |row| row.get(0)).unwrap();
    assert_eq!(missing, 0, "changes without an entry in the audit log");
    let read = |folder: &str, name: &String| std::fs::read_to_string(inbox.path(folder).join(name)).unwrap();
    let done: BTreeSet<String> = inbox.files("done").iter().map(|name| read("done", name)).collect();
    assert!(done == writer.valid, "files in done/ differ");
    // A killed watcher may leave a temporary file.
    let failed = inbox.files("failed").into_iter().filter(|name| !name.ends_with(".new"));
    let expected = writer.truncated.iter().flat_map(|(name, _)| [name.clone(), format!("{name}.txt")]);
    assert_eq!(failed.collect::<BTreeSet<_>>(), expected.collect::<BTreeSet<_>>());
    for (name, _) in &writer.truncated {
        let reason = read("failed", &format!("{name}.txt"));
        assert!(reason.contains("Nothing was imported; fix the file"), "{name}: {reason}");
    }
}

#[test]
fn killed_watchers_of_a_database_lose_and_double_nothing() {
    nothing_is_lost_or_doubled(To::Database, 5);
}

#[test]
fn killed_watchers_and_services_lose_and_double_nothing() {
    nothing_is_lost_or_doubled(To::Service, 6);
}
