//! Imports into PostgreSQL: a million batches in constant memory, and kills at any moment that leave the old state whole
//! or the new one, and no lock.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use crate::crashes::{Chance, Growth, Range, StopWhenDropped, watch};
use crate::credentials::within as until;
use crate::memory::{EXTRA_MIB_MAX, import_peak_kib, within};
use crate::organisations::listed;
use crate::program::{Running, is_optimised};
use crate::scans;
use crate::site::{ORG, Site, postgres};

const KILLS: u64 = 20;
/// The server looks twice a second whether an import still lives; the rest is for undoing it, and for a busy machine.
const LOCK_LIMIT: Duration = Duration::from_secs(3);
/// A million batches are staged before they are merged.
const MERGE_LIMIT: Duration = Duration::from_secs(60);
const OTHER: &str = "Nord";
/// Far below what any machine does, so that noise cannot break it.
const IMPORTED_PER_SEC_MIN: f64 = 15_000.0;

#[test]
fn a_million_batches_go_into_postgresql_in_constant_memory() {
    let site = Site::alone_on_postgres();
    let count = if is_optimised() { 1_000_000 } else { 50_000 };
    let one = site.write("one.ndjson", scans::ndjson(0..1, "as scanned"));
    let idle = import_peak_kib(&site, &one);
    let large = site.name("large.ndjson");
    scans::write_ndjson(large.as_ref(), count);
    let started = Instant::now();
    let peak = import_peak_kib(&site, &large);
    #[expect(clippy::cast_precision_loss, reason = "a rate is for people to read")]
    let rate = count as f64 / started.elapsed().as_secs_f64();
    println!("import of {count} batches into PostgreSQL: {rate:.0} batches/s");
    within("import into PostgreSQL", peak, idle, EXTRA_MIB_MAX);
    if is_optimised() {
        assert!(rate > IMPORTED_PER_SEC_MIN, "{rate:.0} batches/s");
    }
    assert_eq!(listed(&site), [(ORG.into(), count, 0)]);
    a_merge_ends_with_its_import(&site, &large);
}

/// The server has seconds of work left for an import that was killed, and drops it.
fn a_merge_ends_with_its_import(site: &Site, large: &str) {
    site.run(&["org", "add", OTHER]).done();
    let mut import = site.command(&["import", "--org", OTHER, large]);
    let doomed = Running(import.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let (_, name) = site.database.rsplit_once('/').unwrap();
    let merging = format!(
        "select count(*) from pg_stat_activity where datname = '{name}' and state = 'active' and query ~ '^\\s*INSERT INTO batch'"
    );
    until(MERGE_LIMIT, "the merge begins", || postgres().sql("postgres", &merging).unwrap() == "1");
    drop(doomed);
    let waited = wait_for_the_lock(site, OTHER);
    println!("after a kill in the merge the next import waited {waited:?}");
    assert_eq!(
        listed(site).into_iter().map(|(_, batches, _)| batches).min(),
        Some(0),
        "nothing of it is there"
    );
}

#[test]
fn an_import_into_postgresql_that_is_killed_leaves_the_old_state_or_the_new_one_and_no_lock() {
    let first = if is_optimised() { 12_000 } else { 2_000 };
    let growth = Growth { first, added: 200 };
    let mut range = Range::on(Site::on_postgres(), growth);
    let service = range.site.serve(&[]);
    let moments = Chance(20_260_131).moments(KILLS, range.import_time.mul_f64(1.2));
    let (stop, answers, token) = (AtomicBool::new(false), AtomicU64::new(0), range.token.clone());
    let (mut committed, mut longest_wait) = (0, Duration::ZERO);
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch((&service, &token), growth, &stop, &answers));
        let _stops = StopWhenDropped(&stop);
        for moment in moments {
            range.import_and_kill(moment);
            longest_wait = longest_wait.max(wait_for_the_lock(&range.site, ORG));
            committed += u64::from(range.settle(&service));
            assert!(!watching.is_finished(), "the reader beside it failed");
        }
    });
    let answers = answers.into_inner();
    println!(
        "{KILLS} kills over {:?}: {committed} after the commit, {answers} answers meanwhile, the next import waited {longest_wait:?} at most",
        range.import_time
    );
    assert!(committed < KILLS, "every kill came too late");
    assert!(answers > KILLS, "{answers} answers");
}

/// How long an import takes that wants the same organisation and changes nothing.
#[track_caller]
fn wait_for_the_lock(site: &Site, org: &str) -> Duration {
    let file = site.write("one.ndjson", scans::line(0, "as scanned"));
    let started = Instant::now();
    site.run(&["import", "--org", org, "--dry-run", &file]).done();
    let waited = started.elapsed();
    assert!(waited < LOCK_LIMIT, "the next import waited {waited:?} for a dead one");
    waited
}
