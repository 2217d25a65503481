//! Memory does not grow with the data: the peaks of the processes, measured by the system. Runs alone.

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::program::{Running, is_optimised};
use crate::scans;
use crate::service::peak_kib;
use crate::site::{ORG, Site};
use crate::wire::{get_head, send, token};

/// What an import or a pull may take above an idle process.
pub(crate) const EXTRA_MIB_MAX: u64 = 64;
/// What four readers may take who each stop now and then.
const EXTRA_MIB_MAX_FOR_FOUR: u64 = 96;
/// Far below what any machine does, so that noise cannot break it.
const IMPORTED_PER_SEC_MIN: f64 = 50_000.0;

#[test]
fn a_million_batches_go_in_and_out_in_constant_memory() {
    let site = Site::alone();
    let count = if is_optimised() { 1_000_000 } else { 50_000 };
    if !is_optimised() {
        println!("BATCHSCAN_EXE is not set: {count} batches instead of 1000000");
    }
    let one = site.write("one.ndjson", scans::ndjson(0..1, "as scanned"));
    let idle_import = import_peak_kib(&site, &one);
    let large = site.name("large.ndjson");
    scans::write_ndjson(large.as_ref(), count);
    let length = std::fs::metadata(&large).unwrap().len();
    let started = Instant::now();
    let peak = import_peak_kib(&site, &large);
    #[expect(clippy::cast_precision_loss, reason = "a rate is for people to read")]
    let rate = count as f64 / started.elapsed().as_secs_f64();
    println!("import of {count} batches ({} MB): {rate:.0} batches/s", length / 1_000_000);
    std::fs::remove_file(&large).unwrap();
    within("import", peak, idle_import, EXTRA_MIB_MAX);
    if is_optimised() {
        assert!(rate > IMPORTED_PER_SEC_MIN, "{rate:.0} batches/s");
    }
    // The array has two brackets and a comma between; the file has a line end after each.
    pulls(&site, length + 1);
}

fn pulls(site: &Site, length: u64) {
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
            scope.spawn(|| read_in_fits(&mut send(&service, &head, "")));
        }
    });
    within("four slow v1 readers", service.peak_kib(), idle, EXTRA_MIB_MAX_FOR_FOUR);
}

/// Reads a piece, pauses, and so on for a while; then goes away.
fn read_in_fits(body: &mut impl Read) {
    let mut piece = vec![0; 1_000_000];
    for _ in 0..20 {
        body.read_exact(&mut piece).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The most memory an import held.
pub(crate) fn import_peak_kib(site: &Site, file: &str) -> u64 {
    let mut command = site.command(&["import", "--org", ORG, file]);
    let mut import = Running(command.stdout(Stdio::null()).spawn().unwrap());
    let mut peak = 0;
    loop {
        peak = peak_kib(&import.0).unwrap_or(0).max(peak);
        if let Some(status) = import.0.try_wait().unwrap() {
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
