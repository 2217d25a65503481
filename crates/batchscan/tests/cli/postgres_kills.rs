//! Imports into PostgreSQL: constant memory, and a killed import leaves the old state or the new one, and no lock.

use std::process::Stdio;
use std::time::{Duration, Instant};

use batchscan_testbed::Random;

use crate::import_kills::{Generations, Growth, kill_imports};
use crate::memory::{BATCHES, EXTRA_MIB_MAX, import_peak_kib, within};
use crate::organisations::listed;
use crate::program::{Running, wait_until};
use crate::scans;
use crate::site::{ORG, Site, postgres};

const KILLS: u32 = 8;
const OTHER: &str = "Nord";

#[test]
fn memory_of_an_import_into_postgresql_does_not_grow() {
    let site = Site::alone_on_postgres();
    let one = site.write("one.ndjson", scans::ndjson(0..1, "as scanned"));
    let idle = import_peak_kib(&site, &one);
    let large = site.name("large.ndjson");
    scans::write_ndjson(large.as_ref(), BATCHES);
    let peak = import_peak_kib(&site, &large);
    within("import into PostgreSQL", peak, idle, EXTRA_MIB_MAX);
    assert_eq!(listed(&site), [(ORG.into(), BATCHES, 0)]);
    a_killed_import_stops_its_merge(&site, &large);
}

/// The server cancels the merge of a killed import.
fn a_killed_import_stops_its_merge(site: &Site, large: &str) {
    site.run(&["org", "add", OTHER]).succeeds();
    let mut import = site.command(&["import", "--org", OTHER, large]);
    let import_process = Running(import.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let (_, name) = site.database.rsplit_once('/').unwrap();
    let merging = format!(
        "select count(*) from pg_stat_activity where datname = '{name}' and state = 'active' and query ~ '^\\s*INSERT INTO batch'"
    );
    wait_until("the merge begins", || postgres().sql("postgres", &merging).unwrap() == "1");
    drop(import_process);
    let waited = wait_for_the_lock(site, OTHER);
    println!("after a kill in the merge the next import waited {waited:?}");
    assert_eq!(
        listed(site).into_iter().map(|(_, batches, _)| batches).min(),
        Some(0),
        "nothing was imported"
    );
}

#[test]
fn a_killed_import_into_postgresql_leaves_one_state_and_no_lock() {
    let mut generations = Generations::on(Site::on_postgres(), Growth { first: 12_000, added: 200 });
    let moments = Random(20_260_131).moments(KILLS, generations.import_time.mul_f64(1.2));
    let mut longest_wait = Duration::ZERO;
    kill_imports(&mut generations, moments, |site| {
        longest_wait = longest_wait.max(wait_for_the_lock(site, ORG));
    });
    println!("the next import waited {longest_wait:?} at most");
}

/// The time of an import into the same organisation that changes nothing.
#[track_caller]
fn wait_for_the_lock(site: &Site, org: &str) -> Duration {
    let file = site.write("one.ndjson", scans::line(0, "as scanned"));
    let started = Instant::now();
    site.run(&["import", "--org", org, "--dry-run", &file]).succeeds();
    started.elapsed()
}
