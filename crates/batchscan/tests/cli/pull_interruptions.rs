//! An interrupted pull leaves no incomplete file under its final name, and `--resume` completes it.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use batchscan_testbed::Random;
use rustix::process::{Pid, Signal, kill_process};

use crate::program::{HANG_LIMIT, Outcome, Running, wait};
use crate::proxy::{End, Plan, Proxy};
use crate::scans;
use crate::service::Service;
use crate::site::Site;
use crate::user::User;

const BATCHES: u64 = 1_000;
const PAGE_ROWS: u64 = 200;
/// Cut pulls of text formats, and of the others.
const CUTS: u64 = 48;
const BINARY_CUTS: u64 = 12;
/// Two pulls of the same batches differ by a few bytes in their headers.
const VARIATION: u64 = 100;
const SEED: u64 = 20_260_131;

const TEXT: [&str; 2] = ["csv", "ndjson"];
const OTHERS: [&str; 3] = ["json", "parquet", "xlsx"];

/// A service of five pages.
fn five_pages() -> (Site, Service) {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..BATCHES, "as scanned")));
    let service = site.serve(&["--page-size", &PAGE_ROWS.to_string()]);
    (site, service)
}

/// The files of complete pulls, and the bytes that the service sends for one.
struct Complete {
    files: BTreeMap<&'static str, Vec<u8>>,
    traffic: u64,
}

impl Complete {
    fn of(user: &User<'_>, proxy: &Proxy) -> Self {
        let user = user.in_folder("complete").at(&proxy.url());
        let pull = |format| (format, user.pulled(&format!("a.{format}"), &[]));
        let files = TEXT.into_iter().chain(OTHERS).map(pull).collect();
        proxy.plan(Plan::Pass);
        user.pulled("again.csv", &[]);
        Self { files, traffic: proxy.passed() }
    }

    /// A share of the traffic.
    fn part(&self, tenths: u64) -> u64 {
        self.traffic * tenths / 10
    }
}

/// A pull and how it is cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    format: &'static str,
    after: u64,
    end: End,
    later_pass: bool,
}

fn cuts(traffic: u64) -> Vec<Cut> {
    let mut chance = Random(SEED);
    let cut = |number: u64| {
        let lot = |formats: &[&'static str]| formats[usize::try_from(number).unwrap() % formats.len()];
        Cut {
            format: if number < CUTS { lot(&TEXT) } else { lot(&OTHERS) },
            after: chance.below(traffic),
            end: if (number / 2).is_multiple_of(2) { End::Closed } else { End::Reset },
            later_pass: (number / 4).is_multiple_of(2),
        }
    };
    (0..CUTS + BINARY_CUTS).map(cut).collect()
}

/// The results of the cut pulls.
#[derive(Debug, Default)]
struct Tally {
    completed: u64,
    failed: u64,
    /// Failed pulls that can be resumed.
    kept: u64,
}

impl Tally {
    /// Cuts a pull, and resumes it if it failed.
    fn take(&mut self, cut: Cut, user: &User<'_>, proxy: &Proxy, complete: &[u8]) {
        let Cut { format, after, end, later_pass } = cut;
        let (file, seed) = (format!("{after}.{format}"), SEED);
        proxy.plan(Plan::Cut { after, end, later_pass });
        let outcome = user.pull(&file, &["--retry-for", "0s"]);
        if outcome.code == Some(0) {
            // The cut was between two responses.
            self.completed += 1;
        } else {
            let Outcome { code, out, err, .. } = &outcome;
            assert_eq!((*code, out.as_str()), (Some(1), ""), "{cut:?} {err}");
            assert!(err.starts_with("error: ") && err.lines().count() == 1, "{cut:?} {err}");
            assert!(!user.path(&file).exists(), "seed {seed}, {cut:?}: an incomplete file");
            let is_kept = err.contains("add --resume to continue");
            assert_eq!(user.files().is_empty(), !is_kept, "seed {seed}, {cut:?}: {err} {:?}", user.files());
            (self.failed, self.kept) = (self.failed + 1, self.kept + u64::from(is_kept));
            proxy.plan(Plan::Pass);
            let summary = user.pull(&file, &["--resume"]).succeeds();
            assert_eq!(
                summary.contains(" of them earlier), all dates, into "),
                is_kept,
                "{cut:?} {err} {summary}"
            );
        }
        assert!(user.read(&file) == complete, "seed {seed}, {cut:?}: the bytes differ");
        assert_eq!(user.files(), [file.as_str()], "seed {seed}, {cut:?}");
        std::fs::remove_file(user.path(&file)).unwrap();
    }
}

#[test]
fn a_pull_cut_at_any_byte_is_complete_or_can_be_resumed() {
    let (site, service) = five_pages();
    let proxy = Proxy::to(&service);
    let complete = Complete::of(&User::of(&site, &service), &proxy);
    let user = User::of(&site, &service).in_folder("cut").at(&proxy.url());
    let mut tally = Tally::default();
    for cut in cuts(complete.traffic) {
        tally.take(cut, &user, &proxy, &complete.files[cut.format]);
    }
    println!("{} cuts: {tally:?}", CUTS + BINARY_CUTS);
    assert!(tally.failed > CUTS && tally.kept > CUTS / 2, "the cuts came too late: {tally:?}");
}

/// The client waits 3 to 5 seconds; all in parallel.
#[test]
fn a_cut_pull_is_retried() {
    let (site, service) = five_pages();
    let user = User::of(&site, &service);
    let complete = Complete::of(&user, &Proxy::to(&service));
    let kinds = [("csv", 2), ("json", 5), ("xlsx", 8)];
    std::thread::scope(|scope| {
        for (number, (format, tenths)) in kinds.into_iter().enumerate() {
            let (proxy, complete) = (Proxy::to(&service), &complete);
            let user = user.in_folder(&format!("cut-{number}")).at(&proxy.url());
            scope.spawn(move || {
                let end = if number % 2 == 0 { End::Reset } else { End::Closed };
                proxy.plan(Plan::Cut { after: complete.part(tenths), end, later_pass: true });
                let file = format!("a.{format}");
                let summary = user.pull(&file, &[]).succeeds();
                assert!(summary.ends_with(" s, 1 retry\n"), "{summary}");
                assert!(user.read(&file) == complete.files[format], "{format}");
                assert_eq!(user.files(), [file]);
            });
        }
    });
}

#[test]
fn a_service_that_is_killed_and_restarted_delays_the_pull() {
    let (site, mut service) = five_pages();
    let user = User::of(&site, &service);
    let proxy = Proxy::to(&service);
    let complete = Complete::of(&user, &proxy);
    let half = complete.part(5);
    proxy.plan(Plan::Hold { after: half });
    let user = user.at(&proxy.url());
    let summary = std::thread::scope(|scope| {
        let pulling = scope.spawn(|| user.pull("a.csv", &[]).succeeds());
        proxy.wait_until_passed(half);
        service.signal(Signal::KILL);
        assert_eq!(service.wait(), None, "it was killed");
        proxy.plan(Plan::Pass);
        let address = service.address().to_owned();
        let mut again = site.command(&["serve", "--listen", &address, "--page-size", &PAGE_ROWS.to_string()]);
        let _service = Service::start(&mut again);
        pulling.join().unwrap()
    });
    assert!(summary.starts_with("pulled 1,000 batches, all dates, into a.csv: "), "{summary}");
    let retries = summary.trim_end().rsplit(", ").next().unwrap();
    assert!(matches!(retries, "1 retry" | "2 retries" | "3 retries"), "{summary}");
    assert!(user.read("a.csv") == complete.files["csv"]);
    assert_eq!(user.files(), ["a.csv"]);
}

/// Starts a pull.
fn start(user: &User<'_>, file: &str, flags: &[&str]) -> Running {
    let mut command = user.command(&["pull", "--output", file]);
    command.args(flags).stdout(Stdio::null()).stderr(Stdio::null());
    Running(command.spawn().unwrap())
}

#[test]
fn a_killed_pull_is_complete_or_can_be_resumed() {
    let (site, service) = five_pages();
    let user = User::of(&site, &service);
    let proxy = Proxy::to(&service);
    let complete = Complete::of(&user, &proxy);
    let user = user.at(&proxy.url());
    let mut chance = Random(SEED);
    // Killed while pages are written, and after the last byte while the file is converted and renamed.
    let bytes = (0..6).map(|_| (chance.below(complete.traffic), Duration::ZERO)).collect::<Vec<_>>();
    let moments = [0, 2, 7, 16, 36, 70].map(Duration::from_millis);
    let after_last_byte = moments.map(|moment| (complete.traffic, moment));
    let mut left = [0; 3];
    for (number, (after, moment)) in bytes.into_iter().chain(after_last_byte).enumerate() {
        let format = ["xlsx", "csv", "parquet", "ndjson"][number % 4];
        let file = format!("a.{format}");
        let is_all = after == complete.traffic;
        proxy.plan(if is_all { Plan::Pass } else { Plan::Hold { after } });
        let pull = start(&user, &file, &[]);
        proxy.wait_until_passed(after.min(complete.traffic - VARIATION));
        std::thread::sleep(moment);
        // Kills it.
        drop(pull);
        proxy.plan(Plan::Pass);
        left[if user.path(&file).exists() { 2 } else { usize::from(!user.files().is_empty()) }] += 1;
        if user.path(&file).exists() {
            assert!(user.read(&file) == complete.files[format], "after {after} bytes and {moment:?}");
            std::fs::remove_file(user.path(&file)).unwrap();
            user.pull(&file, &[]).succeeds();
        } else {
            user.pull(&file, &["--resume"]).succeeds();
        }
        assert!(user.read(&file) == complete.files[format], "after {after} bytes and {moment:?}");
        assert_eq!(user.files(), [file.as_str()], "after {after} bytes and {moment:?}");
        std::fs::remove_file(user.path(&file)).unwrap();
    }
    println!("12 kills: {} left nothing, {} a partial file, {} the complete file", left[0], left[1], left[2]);
    assert!(left[1] >= 4, "the kills came too late");
}

#[test]
fn an_interrupted_pull_prints_how_to_resume() {
    let (site, service) = five_pages();
    let user = User::of(&site, &service);
    let proxy = Proxy::to(&service);
    let complete = Complete::of(&user, &proxy);
    let user = user.at(&proxy.url());
    for (signal, format) in [(Signal::INT, "csv"), (Signal::TERM, "ndjson")] {
        let file = format!("a.{format}");
        let half = complete.part(5);
        proxy.plan(Plan::Hold { after: half });
        let mut command = user.command(&["pull", "--output", &file]);
        let stderr = site.path("stderr");
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&stderr).unwrap());
        let mut pull = Running(command.spawn().unwrap());
        proxy.wait_until_passed(half);
        kill_process(Pid::from_child(&pull.0), signal).unwrap();
        assert_eq!(wait(&mut pull.0, HANG_LIMIT), Some(1));
        // Two pages are complete.
        let summary =
            format!("error: interrupted; 400 batches are kept in {file}.part: add --resume to continue\n");
        assert_eq!(std::fs::read_to_string(&stderr).unwrap(), summary);
        assert_eq!(user.files(), [format!("{file}.part"), format!("{file}.part.json")]);
        proxy.plan(Plan::Pass);
        let summary = user.pull(&file, &["--resume"]).succeeds();
        assert!(
            summary.starts_with("pulled 1,000 batches (400 of them earlier), all dates, into a."),
            "{summary}"
        );
        assert!(user.read(&file) == complete.files[format]);
        std::fs::remove_file(user.path(&file)).unwrap();
    }
    assert!(user.files().is_empty());
}

#[test]
fn a_pull_interrupted_before_its_first_page_leaves_no_file() {
    let (site, service) = five_pages();
    let proxy = Proxy::to(&service);
    let user = User::of(&site, &service).at(&proxy.url());
    proxy.plan(Plan::Hold { after: 0 });
    let mut pull = start(&user, "a.csv", &[]);
    // Wait until it handles signals.
    while user.files().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    kill_process(Pid::from_child(&pull.0), Signal::INT).unwrap();
    assert_eq!(wait(&mut pull.0, HANG_LIMIT), Some(1));
    assert_eq!(user.files(), [""; 0]);
}
