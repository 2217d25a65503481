//! Whatever breaks a pull off, no file under its final name lacks a batch, and `--resume` ends with the bytes of a pull
//! that nothing disturbed.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::crashes::Chance;
use crate::program::{Outcome, Running, wait};
use crate::relay::{End, Plan, Relay};
use crate::scans;
use crate::service::Service;
use crate::site::Site;
use crate::user::User;

const BATCHES: u64 = 1_000;
const PAGE_ROWS: u64 = 200;
/// Cuts of pulls that grow in place, and of those that are made at the end.
const CUTS: u64 = 200;
const MADE_CUTS: u64 = 24;
/// Pulls that are cut side by side.
const LANES: usize = 3;
/// By so many bytes two conversations about the same batches may differ, for the numbers in their headers.
const VARIATION: u64 = 100;
const SEED: u64 = 20_260_131;
/// How long a pull that was told to stop may take to do so.
const END_LIMIT: Duration = Duration::from_secs(20);

const GROWN: [&str; 2] = ["csv", "ndjson"];
const MADE: [&str; 3] = ["json", "parquet", "xlsx"];

/// A service of five pages.
fn five_pages() -> (Site, Service) {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..BATCHES, "as scanned")));
    let service = site.serve(&["--page-size", &PAGE_ROWS.to_string()]);
    (site, service)
}

/// What a pull in each format makes when nothing disturbs it, and how many bytes the service sends for one.
struct Undisturbed {
    files: BTreeMap<&'static str, Vec<u8>>,
    conversation: u64,
}

impl Undisturbed {
    fn of(user: &User<'_>, relay: &Relay) -> Self {
        let user = user.in_folder("undisturbed").at(&relay.url());
        let pull = |format| (format, user.pulled(&format!("a.{format}"), &[]));
        let files = GROWN.into_iter().chain(MADE).map(pull).collect();
        relay.plan(Plan::Pass);
        user.pulled("again.csv", &[]);
        Self { files, conversation: relay.passed() }
    }

    /// Some byte of the conversation.
    fn part(&self, tenths: u64) -> u64 {
        self.conversation * tenths / 10
    }
}

/// One pull, and how it is cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    format: &'static str,
    after: u64,
    end: End,
    later_pass: bool,
}

fn cuts(conversation: u64) -> Vec<Cut> {
    let mut chance = Chance(SEED);
    let cut = |number: u64| {
        let lot = |formats: &[&'static str]| formats[usize::try_from(number).unwrap() % formats.len()];
        Cut {
            format: if number < CUTS { lot(&GROWN) } else { lot(&MADE) },
            after: chance.next() % conversation,
            end: if (number / 2).is_multiple_of(2) { End::Closed } else { End::Reset },
            later_pass: (number / 4).is_multiple_of(2),
        }
    };
    (0..CUTS + MADE_CUTS).map(cut).collect()
}

/// How the pulls that were cut went.
#[derive(Debug, Default)]
struct Tally {
    completed: u64,
    failed: u64,
    /// Pulls that failed and had something to go on from.
    kept: u64,
}

impl Tally {
    /// Cuts a pull, and resumes it if it failed.
    fn take(&mut self, cut: Cut, user: &User<'_>, relay: &Relay, whole: &[u8]) {
        let Cut { format, after, end, later_pass } = cut;
        let (file, seed) = (format!("{after}.{format}"), SEED);
        relay.plan(Plan::Cut { after, end, later_pass });
        let outcome = user.pull(&file, &["--retry-for", "0s"]);
        if outcome.code == Some(0) {
            // Between two answers a cut may go unnoticed.
            self.completed += 1;
        } else {
            let Outcome { code, out, err } = &outcome;
            assert_eq!((*code, out.as_str()), (Some(1), ""), "{cut:?} {err}");
            assert!(err.starts_with("error: ") && err.lines().count() == 1, "{cut:?} {err}");
            assert!(!user.path(&file).exists(), "seed {seed}, {cut:?}: a file that lacks batches");
            let is_kept = err.contains("the same command with --resume goes on from there");
            assert_eq!(user.files().is_empty(), !is_kept, "seed {seed}, {cut:?}: {err} {:?}", user.files());
            (self.failed, self.kept) = (self.failed + 1, self.kept + u64::from(is_kept));
            relay.plan(Plan::Pass);
            let said = user.pull(&file, &["--resume"]).done();
            assert_eq!(said.contains(" of them before), all time, into "), is_kept, "{cut:?} {err} {said}");
        }
        assert!(user.read(&file) == whole, "seed {seed}, {cut:?}: the bytes are not the same");
        assert_eq!(user.files(), [file.as_str()], "seed {seed}, {cut:?}");
        std::fs::remove_file(user.path(&file)).unwrap();
    }
}

#[test]
fn a_pull_that_is_cut_at_any_byte_is_whole_or_not_there_and_can_be_resumed() {
    let (site, service) = five_pages();
    let user = User::of(&site, &service);
    let undisturbed = Undisturbed::of(&user, &Relay::to(&service));
    let cuts = cuts(undisturbed.conversation);
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let lane = |lane: usize| {
            let (user, cuts, undisturbed) = (user.in_folder(&format!("lane-{lane}")), &cuts, &undisturbed);
            let relay = Relay::to(&service);
            scope.spawn(move || {
                let (user, mut tally) = (user.at(&relay.url()), Tally::default());
                for cut in cuts.iter().skip(lane).step_by(LANES) {
                    tally.take(*cut, &user, &relay, &undisturbed.files[cut.format]);
                }
                tally
            })
        };
        let lanes: Vec<_> = (0..LANES).map(lane).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).collect()
    });
    let sum = |part: fn(&Tally) -> u64| tallies.iter().map(part).sum::<u64>();
    let (completed, failed, kept) = (sum(|t| t.completed), sum(|t| t.failed), sum(|t| t.kept));
    println!(
        "{} cuts in {} bytes: {failed} pulls failed, {kept} of them had pages to go on from, {completed} completed",
        completed + failed,
        undisturbed.conversation
    );
    assert_eq!(completed + failed, CUTS + MADE_CUTS);
    assert!(failed > CUTS && kept > CUTS / 2, "the cuts came too late");
}

/// Waits of 3 to 5 seconds, side by side.
#[test]
fn a_pull_that_is_cut_goes_on_by_itself() {
    let (site, service) = five_pages();
    let user = User::of(&site, &service);
    let undisturbed = Undisturbed::of(&user, &Relay::to(&service));
    let kinds = [("csv", 2), ("ndjson", 3), ("json", 5), ("parquet", 6), ("xlsx", 8), ("csv", 9)];
    std::thread::scope(|scope| {
        for (number, (format, tenths)) in kinds.into_iter().enumerate() {
            let (relay, undisturbed) = (Relay::to(&service), &undisturbed);
            let user = user.in_folder(&format!("cut-{number}")).at(&relay.url());
            scope.spawn(move || {
                let end = if number % 2 == 0 { End::Reset } else { End::Closed };
                relay.plan(Plan::Cut { after: undisturbed.part(tenths), end, later_pass: true });
                let file = format!("a.{format}");
                let said = user.pull(&file, &[]).done();
                assert!(said.ends_with(" s, 1 retry\n"), "{said}");
                assert!(user.read(&file) == undisturbed.files[format], "{format}");
                assert_eq!(user.files(), [file]);
            });
        }
    });
}

#[test]
fn a_service_that_is_killed_and_started_again_in_mid_pull_costs_a_wait_and_nothing_else() {
    let (site, mut service) = five_pages();
    let user = User::of(&site, &service);
    let relay = Relay::to(&service);
    let undisturbed = Undisturbed::of(&user, &relay);
    let half = undisturbed.part(5);
    relay.plan(Plan::Hold { after: half });
    let user = user.at(&relay.url());
    let said = std::thread::scope(|scope| {
        let pulling = scope.spawn(|| user.pull("a.csv", &[]).done());
        relay.wait_until_passed(half);
        service.signal(Signal::KILL);
        assert_eq!(service.ends(), None, "it was killed");
        relay.plan(Plan::Pass);
        let address = service.address().to_owned();
        let mut again = site.command(&["serve", "--listen", &address, "--page-size", &PAGE_ROWS.to_string()]);
        let _service = Service::start(&mut again);
        pulling.join().unwrap()
    });
    assert!(said.starts_with("pulled 1,000 batches, all time, into a.csv: "), "{said}");
    let retries = said.trim_end().rsplit(", ").next().unwrap();
    assert!(matches!(retries, "1 retry" | "2 retries" | "3 retries"), "{said}");
    assert!(user.read("a.csv") == undisturbed.files["csv"]);
    assert_eq!(user.files(), ["a.csv"]);
}

/// Starts a pull that nobody waits for.
fn begun(user: &User<'_>, file: &str, flags: &[&str]) -> Running {
    let mut command = user.command(&["pull", "--output", file]);
    command.args(flags).stdout(Stdio::null()).stderr(Stdio::null());
    Running(command.spawn().unwrap())
}

#[test]
fn a_pull_that_is_killed_at_any_moment_is_whole_or_not_there_and_can_be_resumed() {
    let (site, service) = five_pages();
    let user = User::of(&site, &service);
    let relay = Relay::to(&service);
    let undisturbed = Undisturbed::of(&user, &relay);
    let user = user.at(&relay.url());
    let mut chance = Chance(SEED);
    // Held at a byte, the pages before it are being written; after the last byte the file is being made and named.
    let bytes =
        (0..12).map(|_| (chance.next() % undisturbed.conversation, Duration::ZERO)).collect::<Vec<_>>();
    let moments = [0, 1, 2, 4, 7, 11, 16, 24, 36, 50, 70, 100].map(Duration::from_millis);
    let after_last_byte = moments.map(|moment| (undisturbed.conversation, moment));
    let mut left = [0; 3];
    for (number, (after, moment)) in bytes.into_iter().chain(after_last_byte).enumerate() {
        let format = ["xlsx", "csv", "parquet", "ndjson"][number % 4];
        let file = format!("a.{format}");
        let is_all = after == undisturbed.conversation;
        relay.plan(if is_all { Plan::Pass } else { Plan::Hold { after } });
        let pull = begun(&user, &file, &[]);
        relay.wait_until_passed(after.min(undisturbed.conversation - VARIATION));
        std::thread::sleep(moment);
        // This is the kill.
        drop(pull);
        relay.plan(Plan::Pass);
        left[if user.path(&file).exists() { 2 } else { usize::from(!user.files().is_empty()) }] += 1;
        if user.path(&file).exists() {
            assert!(user.read(&file) == undisturbed.files[format], "after {after} bytes and {moment:?}");
            std::fs::remove_file(user.path(&file)).unwrap();
            user.pull(&file, &[]).done();
        } else {
            user.pull(&file, &["--resume"]).done();
        }
        assert!(user.read(&file) == undisturbed.files[format], "after {after} bytes and {moment:?}");
        assert_eq!(user.files(), [file.as_str()], "after {after} bytes and {moment:?}");
        std::fs::remove_file(user.path(&file)).unwrap();
    }
    println!("24 kills: {} left nothing, {} a part, {} the whole file", left[0], left[1], left[2]);
    assert!(left[1] >= 10, "the kills came too late");
}

#[test]
fn a_pull_that_is_told_to_stop_says_how_to_go_on() {
    let (site, service) = five_pages();
    let user = User::of(&site, &service);
    let relay = Relay::to(&service);
    let undisturbed = Undisturbed::of(&user, &relay);
    let user = user.at(&relay.url());
    for (signal, format) in [(Signal::INT, "csv"), (Signal::TERM, "ndjson")] {
        let file = format!("a.{format}");
        let half = undisturbed.part(5);
        relay.plan(Plan::Hold { after: half });
        let mut command = user.command(&["pull", "--output", &file]);
        let stderr = site.path("stderr");
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&stderr).unwrap());
        let mut pull = Running(command.spawn().unwrap());
        relay.wait_until_passed(half);
        kill_process(Pid::from_child(&pull.0), signal).unwrap();
        assert_eq!(wait(&mut pull.0, END_LIMIT), Some(1));
        // Two pages had come, and the third was under way.
        let said = format!(
            "error: interrupted; 400 batches are kept in {file}.part: the same command with --resume goes on from \
             there\n"
        );
        assert_eq!(std::fs::read_to_string(&stderr).unwrap(), said);
        assert_eq!(user.files(), [format!("{file}.part"), format!("{file}.part.json")]);
        relay.plan(Plan::Pass);
        let said = user.pull(&file, &["--resume"]).done();
        assert!(said.starts_with("pulled 1,000 batches (400 of them before), all time, into a."), "{said}");
        assert!(user.read(&file) == undisturbed.files[format]);
        std::fs::remove_file(user.path(&file)).unwrap();
    }
    assert!(user.files().is_empty());
}

#[test]
fn a_pull_that_is_told_to_stop_before_its_first_page_leaves_nothing() {
    let (site, service) = five_pages();
    let relay = Relay::to(&service);
    let user = User::of(&site, &service).at(&relay.url());
    relay.plan(Plan::Hold { after: 0 });
    let mut pull = begun(&user, "a.csv", &[]);
    // The signal must not come before anybody listens for it.
    while user.files().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    kill_process(Pid::from_child(&pull.0), Signal::INT).unwrap();
    assert_eq!(wait(&mut pull.0, END_LIMIT), Some(1));
    assert_eq!(user.files(), [""; 0]);
}
