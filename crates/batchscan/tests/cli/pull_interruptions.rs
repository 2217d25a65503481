//! An interrupted pull leaves nothing behind, and the next one is complete.

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

/// Decision 045.
#[test]
fn a_pull_cut_at_any_byte_is_complete_or_leaves_no_file() {
    let (site, service) = five_pages();
    let proxy = Proxy::to(&service);
    let complete = Complete::of(&User::of(&site, &service), &proxy);
    let user = User::of(&site, &service).in_folder("cut").at(&proxy.url());
    let mut failed = 0;
    for cut in cuts(complete.traffic) {
        let Cut { format, after, end, later_pass } = cut;
        let file = format!("{after}.{format}");
        proxy.plan(Plan::Cut { after, end, later_pass });
        let Outcome { code, out, err, .. } = user.pull(&file, &["--retry-for", "0s"]);
        if code == Some(0) {
            // The cut was between two responses.
            assert!(user.read(&file) == complete.files[format], "seed {SEED}, {cut:?}: the bytes differ");
            std::fs::remove_file(user.path(&file)).unwrap();
        } else {
            failed += 1;
            assert_eq!((code, out.as_str()), (Some(1), ""), "{cut:?} {err}");
            assert!(err.starts_with("error: ") && err.lines().count() == 1, "{cut:?} {err}");
        }
        assert_eq!(user.files(), [""; 0], "seed {SEED}, {cut:?}: {err}");
    }
    assert!(failed > CUTS, "the cuts came too late: {failed}");
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

/// Starts a pull. Its messages go to a file.
fn start(site: &Site, user: &User<'_>, file: &str) -> Running {
    let mut command = user.command(&["pull", "--output", file]);
    command.stdout(Stdio::null()).stderr(std::fs::File::create(site.path("stderr")).unwrap());
    Running(command.spawn().unwrap())
}

#[test]
fn a_killed_pull_is_complete_or_the_next_one_cleans_up() {
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
    for (number, (after, moment)) in bytes.into_iter().chain(after_last_byte).enumerate() {
        let format = ["xlsx", "csv", "parquet", "ndjson"][number % 4];
        let file = format!("a.{format}");
        let is_all = after == complete.traffic;
        proxy.plan(if is_all { Plan::Pass } else { Plan::Hold { after } });
        let pull = start(&site, &user, &file);
        proxy.wait_until_passed(after.min(complete.traffic - VARIATION));
        std::thread::sleep(moment);
        // Kills it.
        drop(pull);
        proxy.plan(Plan::Pass);
        if user.path(&file).exists() {
            assert!(is_all && user.read(&file) == complete.files[format], "{after} bytes and {moment:?}");
        }
        user.pull(&file, &["--force"]).succeeds();
        assert!(user.read(&file) == complete.files[format], "after {after} bytes and {moment:?}");
        assert_eq!(user.files(), [file.as_str()], "after {after} bytes and {moment:?}");
        std::fs::remove_file(user.path(&file)).unwrap();
    }
}

#[test]
fn an_interrupted_pull_leaves_no_file_and_prints_what_to_do() {
    let (site, service) = five_pages();
    let user = User::of(&site, &service);
    let proxy = Proxy::to(&service);
    let half = Complete::of(&user, &proxy).part(5);
    let user = user.at(&proxy.url());
    for (signal, file, after) in
        [(Signal::INT, "a.csv", half), (Signal::TERM, "a.parquet", half), (Signal::INT, "a.csv", 0)]
    {
        proxy.plan(Plan::Hold { after });
        let mut pull = start(&site, &user, file);
        proxy.wait_until_passed(after);
        // Wait until it handles signals.
        while user.files().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        kill_process(Pid::from_child(&pull.0), signal).unwrap();
        assert_eq!(wait(&mut pull.0, HANG_LIMIT), Some(1));
        let message = "error: interrupted; no file was written: run the command again\n";
        assert_eq!(std::fs::read_to_string(site.path("stderr")).unwrap(), message);
        assert_eq!(user.files(), [""; 0]);
    }
}
