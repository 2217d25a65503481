//! Peak memory does not grow with the data. Runs alone.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http::{get_head, send, token};
use crate::program::Running;
use crate::scans;
use crate::service::peak_kib;
use crate::site::{ORG, Site};
use crate::user::User;

/// Limit of an import or a v1 response above an idle process.
pub(crate) const EXTRA_MIB_MAX: u64 = 64;
/// Limit of four slow readers.
const EXTRA_MIB_MAX_FOR_FOUR: u64 = 96;
/// Limit of `batchscan pull`, in every format.
const PULL_MIB_MAX: u64 = 96;
/// As a file or a response, these are larger than each limit.
pub(crate) const BATCHES: u64 = 200_000;

#[test]
fn memory_does_not_grow_with_the_number_of_batches() {
    let site = Site::alone();
    let one = site.write("one.ndjson", scans::ndjson(0..1, "as scanned"));
    let idle_import = import_peak_kib(&site, &one);
    let large = site.name("large.ndjson");
    scans::write_ndjson(large.as_ref(), BATCHES);
    let length = std::fs::metadata(&large).unwrap().len();
    let started = Instant::now();
    let peak = import_peak_kib(&site, &large);
    println!("import of {} MB: {:.1} s", length / 1_000_000, started.elapsed().as_secs_f64());
    std::fs::remove_file(&large).unwrap();
    within("import", peak, idle_import, EXTRA_MIB_MAX);
    // Two brackets and a comma between, instead of a line end after each.
    v1_responses(&site, length + 1);
    user_pulls(&site);
}

/// Pulls all batches in every format.
fn user_pulls(site: &Site) {
    let service = site.serve(&[]);
    let user = User::of(site, &service);
    for format in ["csv", "ndjson", "json", "parquet", "xlsx"] {
        let file = format!("a.{format}");
        let mut command = user.command(&["pull", "--json", "--output", &file]);
        let summary = File::create(site.path("summary")).unwrap();
        let started = Instant::now();
        let peak = peak_of(command.stdout(summary));
        let secs = started.elapsed().as_secs_f64();
        let summary: Value = serde_json::from_slice(&std::fs::read(site.path("summary")).unwrap()).unwrap();
        assert_eq!(summary["batches"], BATCHES, "{format}");
        let mb = std::fs::metadata(user.path(&file)).unwrap().len() / 1_000_000;
        println!("pull to {format}: {} MiB at its peak, {secs:.1} s, {mb} MB", peak / 1_024);
        assert!(peak < PULL_MIB_MAX * 1_024, "a pull to {format} took {} MiB", peak / 1_024);
        std::fs::remove_file(user.path(&file)).unwrap();
    }
}

fn v1_responses(site: &Site, length: u64) {
    let credential = site.credential();
    let service = site.serve(&[]);
    let head = get_head("/v1/batches", &token(&service, &credential));
    let idle = service.peak_kib();
    let started = Instant::now();
    assert_eq!(std::io::copy(&mut send(&service, &head, ""), &mut std::io::sink()).unwrap(), length);
    println!("v1 pull of {} MB: {:.1} s", length / 1_000_000, started.elapsed().as_secs_f64());
    within("v1 pull", service.peak_kib(), idle, EXTRA_MIB_MAX);
    drop(service);

    let service = site.serve(&[]);
    let idle = service.peak_kib();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| read_slowly(&mut send(&service, &head, "")));
        }
    });
    within("four slow v1 readers", service.peak_kib(), idle, EXTRA_MIB_MAX_FOR_FOUR);
}

/// Reads slowly for a while, then closes the connection.
fn read_slowly(body: &mut impl Read) {
    let mut piece = vec![0; 1_000_000];
    for _ in 0..20 {
        body.read_exact(&mut piece).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The peak memory of an import.
pub(crate) fn import_peak_kib(site: &Site, file: &str) -> u64 {
    peak_of(site.command(&["import", "--org", ORG, file]).stdout(Stdio::null()))
}

/// The peak memory of a command.
fn peak_of(command: &mut Command) -> u64 {
    let mut running = Running(command.spawn().unwrap());
    let mut peak = 0;
    loop {
        peak = peak_kib(&running.0).unwrap_or(0).max(peak);
        if let Some(status) = running.0.try_wait().unwrap() {
            assert!(status.success());
            return peak;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[track_caller]
pub(crate) fn within(what: &str, peak_kib: u64, idle_kib: u64, extra_mib_max: u64) {
    let extra = peak_kib.saturating_sub(idle_kib) / 1_024;
    println!("{what}: {} MiB, {extra} MiB above idle ({} MiB)", peak_kib / 1_024, idle_kib / 1_024);
    assert!(extra < extra_mib_max, "{what} took {extra} MiB more than an idle process");
}
