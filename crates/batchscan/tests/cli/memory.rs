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
use crate::site::{ORG, Site, fresh_database, postgres};
use crate::user::User;

/// Limit of an import or a v1 response above an idle process.
pub(crate) const EXTRA_MIB_MAX: u64 = 64;
/// Limit of four slow readers.
const EXTRA_MIB_MAX_FOR_FOUR: u64 = 96;
/// Limit of `batchscan pull`, in every format.
const PULL_MIB_MAX: u64 = 96;
/// Limit of a copy or a backup above one of an almost empty database: the page cache of SQLite's writer, and some rows.
const COPY_MIB_MAX: u64 = 64;
/// With all versions of an organisation in memory, a copy takes more than the limit.
const CHANGES: u64 = 300_000;
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

/// Each of them leaves a version, a record of an import and an entry of the audit log.
#[test]
fn memory_does_not_grow_with_the_number_of_changes() {
    let changes = std::env::var("CHANGES").map_or(CHANGES, |count| count.parse().unwrap());
    let sites: [(fn() -> Site, String); 2] = [
        (
            Site::alone,
            format!(
                "(WITH RECURSIVE n (v) AS (SELECT 2 UNION ALL SELECT v + 1 FROM n WHERE v < {changes}) SELECT v FROM n)"
            ),
        ),
        (Site::alone_on_postgres, format!("generate_series(2, {changes}) AS n (v)")),
    ];
    for (new_site, numbers) in sites {
        let site = new_site();
        site.import(&site.write("one.ndjson", scans::ndjson(0..1, "as scanned")));
        let idle = copy_peaks_kib(&site, "before");
        add_changes(&site, &numbers, changes);
        let peaks = copy_peaks_kib(&site, "after");
        for ((what, peak), (_, idle)) in peaks.into_iter().zip(idle) {
            within(&format!("{what} with {changes} changes"), peak, idle, COPY_MIB_MAX);
        }
        let counts = format!("SELECT count(*) FROM import WHERE version <= {changes}");
        let copied = rusqlite::Connection::open(site.path("after-copy.db")).unwrap();
        assert_eq!(copied.query_row(&counts, [], |row| row.get::<_, i64>(0)).unwrap(), changes.cast_signed());
    }
}

/// The rows that as many changes of the only batch would have left.
fn add_changes(site: &Site, numbers: &str, changes: u64) {
    let statements = format!(
        "INSERT INTO data_version SELECT 1, v, v, 0 FROM {numbers};
         INSERT INTO import SELECT 1, v, 0, 'op_1', '10.0.0.7', NULL, NULL, NULL, 0, 1, 0, 0, 0, v, 0, 0, NULL FROM {numbers};
         INSERT INTO audit SELECT v + 2, 0, 'op_1', '10.0.0.7', 'import', '{ORG}', NULL,
                                  '0 new, 1 corrected, 0 unchanged' FROM {numbers};
         UPDATE batch SET version = {changes};
         UPDATE organisation SET version = {changes}, version_mark = {changes};"
    );
    match site.database.strip_prefix("sqlite:") {
        Some(_) => site.sql().execute_batch(&statements).unwrap(),
        None => drop(postgres().sql(site.database.rsplit('/').next().unwrap(), &statements).unwrap()),
    }
}

/// The peak memory of a backup and of copies into both databases.
fn copy_peaks_kib(site: &Site, name: &str) -> Vec<(&'static str, u64)> {
    let (copy, backup) = (site.url(&format!("{name}-copy.db")), site.name(&format!("{name}-backup.db")));
    let (source, cluster) = (site.database.as_str(), fresh_database());
    let commands = [
        ("copy to SQLite", vec!["copy", "--from", source, "--to", &copy]),
        ("copy to PostgreSQL", vec!["copy", "--from", source, "--to", &cluster]),
        ("backup", vec!["backup", &backup]),
    ];
    let peak = |(what, words): (_, Vec<&str>)| (what, peak_of(site.command(&words).stdout(Stdio::null())));
    commands.into_iter().map(peak).collect()
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
