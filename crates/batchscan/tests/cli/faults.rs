//! Every call that changes a file fails with EIO or ENOSPC, or kills the process, one at a time (`strace`). Afterwards
//! the data is exactly as before or as if nothing had failed, and the next command works.
//!
//! A sample runs each time. `FAULTS=all cargo test --test cli faults` runs all.
//!
//! The same for threads that cannot be started, and for a standard error that is full or closed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use rusqlite::Connection;

use crate::program::{Outcome, batchscan, clean, executable};
use crate::scans;
use crate::site::{ORG, Site};

/// `write` is not among them: it also wakes the threads of this program, and such a write never fails. SQLite uses
/// `pwrite64`.
const CALLS: &str = "pwrite64,fsync,fdatasync,ftruncate,fallocate,rename,renameat2,link,linkat,unlink";
const FAULTS: [&str; 3] = ["signal=SIGKILL", "error=EIO", "error=ENOSPC"];
/// Points of a sample, spread evenly.
const SAMPLE: usize = 12;
const OLD: u64 = 300;
const NEW: u64 = 700;

/// Runs a command with each fault, each time on a copy of the prepared folder. `check` fails if the state is neither old
/// nor new.
fn sweep(site: &Site, prepare: impl Fn(&Path), words: &[&str], check: impl Fn(&Path, &str)) {
    let work = tempfile::tempdir_in(site.path("")).unwrap();
    let [prepared, folder, log] = ["prepared", "folder", "calls"].map(|name| work.path().join(name));
    std::fs::create_dir(&prepared).unwrap();
    prepare(&prepared);
    copy_folder(&prepared, &folder);
    Outcome::run(&mut traced(&folder, &log, CALLS, None, words)).succeeds();
    let points = points(&std::fs::read_to_string(&log).unwrap());
    let is_all = std::env::var_os("FAULTS").is_some_and(|which| which == "all");
    let step = if is_all { 1 } else { points.len().div_ceil(SAMPLE) };
    let (mut runs, mut faults) = (0, 0);
    for ((call, number), fault) in
        points.iter().step_by(step).flat_map(|point| FAULTS.map(|fault| (point, fault)))
    {
        std::fs::remove_dir_all(&folder).unwrap();
        copy_folder(&prepared, &folder);
        let inject = format!("--inject={call}:{fault}:when={number}");
        let mut command = traced(&folder, &log, call, Some(&inject), words);
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        let traced = std::fs::read_to_string(&log).unwrap();
        runs += 1;
        faults += usize::from(traced.contains("(INJECTED)") || traced.contains("killed by SIGKILL"));
        check(&folder, &format!("{call} {number}, {fault}"));
    }
    println!("{words:?}: {} points, {runs} runs, {faults} faults", points.len());
    // A thread may make fewer calls than in the first run.
    assert!(faults * 10 >= runs * 9, "{faults} faults in {runs} runs");
}

/// strace counts the calls of each name in each thread: here are the names, each with the numbers that some thread
/// reaches.
fn points(log: &str) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (thread, call) in log.lines().filter_map(|line| line.split_once(' ')) {
        if let Some((name, _)) = call.trim_start().split_once('(') {
            *counts.entry((name, thread)).or_default() += 1;
        }
    }
    let mut longest: BTreeMap<&str, usize> = BTreeMap::new();
    for ((name, _), count) in counts {
        let known = longest.entry(name).or_default();
        *known = (*known).max(count);
    }
    let mut points = Vec::new();
    for (name, count) in longest {
        points.extend((1..=count).map(|number| (name.to_owned(), number)));
    }
    points
}

fn traced(folder: &Path, log: &Path, calls: &str, inject: Option<&str>, words: &[&str]) -> Command {
    let mut command = clean("strace");
    command.args(["-f", "-qq", &format!("--trace={calls}"), "-o"]).arg(log).args(inject);
    command.arg(executable()).args(words);
    command.env("BATCHSCAN_DATABASE", "sqlite:scans.db").current_dir(folder);
    command
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn run(folder: &Path, words: &[&str]) -> Outcome {
    Outcome::run(batchscan(words).env("BATCHSCAN_DATABASE", "sqlite:scans.db").current_dir(folder))
}

/// The database is valid, and its batches are one of these: their comment and number.
#[track_caller]
fn is_sound(folder: &Path, database: &str, expected: &[(&str, u64)], fault: &str) {
    let outcome = run(folder, &["doctor", "--database", &format!("sqlite:{database}")]);
    assert_eq!(outcome.code, Some(0), "{fault}: {outcome:?}");
    let connection = Connection::open(folder.join(database)).unwrap();
    let mut batches =
        connection.prepare("SELECT json ->> 'comment', count(*) FROM batch GROUP BY 1").unwrap();
    let found =
        batches.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()))).unwrap();
    let found: Vec<(String, u64)> = found.map(Result::unwrap).collect();
    let is_found = |(comment, count): &(&str, u64)| found == [((*comment).to_owned(), *count)];
    assert!(expected.iter().any(is_found) || expected.is_empty() && found.is_empty(), "{fault}: {found:?}");
}

fn with_batches(folder: &Path) {
    run(folder, &["org", "add", ORG]).succeeds();
    std::fs::write(folder.join("old.ndjson"), scans::ndjson(0..OLD, "old")).unwrap();
    std::fs::write(folder.join("new.ndjson"), scans::ndjson(0..NEW, "new")).unwrap();
    run(folder, &["import", "--org", ORG, "old.ndjson"]).succeeds();
}

#[test]
fn a_fault_in_the_creation_of_a_database_leaves_none_or_a_valid_one() {
    sweep(
        &Site::without_org(),
        |_| {},
        &["org", "add", ORG],
        |folder, fault| {
            let again = run(folder, &["org", "add", ORG]);
            assert!(again.code == Some(0) || again.err.contains("already exists"), "{fault}: {again:?}");
            is_sound(folder, "scans.db", &[], fault);
        },
    );
}

#[test]
fn a_fault_in_an_import_leaves_the_old_batches_or_the_new_ones() {
    sweep(&Site::without_org(), with_batches, &["import", "--org", ORG, "new.ndjson"], |folder, fault| {
        is_sound(folder, "scans.db", &[("old", OLD), ("new", NEW)], fault);
    });
}

#[test]
fn a_fault_in_a_backup_leaves_none_or_a_complete_one() {
    sweep(&Site::without_org(), with_batches, &["backup", "backup.db"], |folder, fault| {
        if folder.join("backup.db").exists() {
            is_sound(folder, "backup.db", &[("old", OLD)], fault);
            std::fs::remove_file(folder.join("backup.db")).unwrap();
        }
        run(folder, &["backup", "backup.db"]).succeeds();
        is_sound(folder, "backup.db", &[("old", OLD)], fault);
        assert!(!folder.join("backup.db.batchscan-partial").exists(), "{fault}");
    });
}

#[test]
fn a_fault_in_a_copy_is_repaired_by_the_next_one() {
    let words = ["copy", "--from", "sqlite:scans.db", "--to", "sqlite:copy.db"];
    sweep(&Site::without_org(), with_batches, &words, |folder, fault| {
        let again = run(folder, &words);
        assert_eq!(again.code, Some(0), "{fault}: {again:?}");
        is_sound(folder, "copy.db", &[("old", OLD)], fault);
    });
}

#[test]
fn a_fault_in_a_mirror_is_repaired_by_the_next_run() {
    let site = Site::new();
    site.import(&site.write("old.ndjson", scans::ndjson(0..OLD, "old")));
    let (service, credential) = (site.serve(&[]), site.credential());
    let secret = site.write("secret", &credential.secret);
    let words = [
        &["mirror", "--url", &service.url, "--client-id", &credential.id][..],
        &["--client-secret-file", &secret, "--output", "copy.db"],
    ]
    .concat();
    let comments = |folder: &Path| -> Vec<(String, u64)> {
        let copy = Connection::open(folder.join("copy.db")).unwrap();
        let mut rows = copy.prepare("SELECT comment, count(*) FROM batches GROUP BY 1").unwrap();
        let rows =
            rows.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()))).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let (old, new) = (vec![("old".to_owned(), OLD)], vec![("new".to_owned(), NEW)]);
    let with_old_mirror = |folder: &Path| {
        run(folder, &words).succeeds();
        site.import(&site.write("new.ndjson", scans::ndjson(0..NEW, "new")));
    };
    sweep(&site, with_old_mirror, &words, |folder, fault| {
        let found = comments(folder);
        assert!(found == old || found == new, "{fault}: {found:?}");
        let again = run(folder, &words);
        assert_eq!((again.code, comments(folder)), (Some(0), new.clone()), "{fault}: {again:?}");
    });
    sweep(
        &site,
        |_| {},
        &words,
        |folder, fault| {
            let again = run(folder, &words);
            assert_eq!((again.code, comments(folder)), (Some(0), new.clone()), "{fault}: {again:?}");
        },
    );
}

#[test]
fn a_command_that_cannot_start_a_thread_fails_with_one_line() {
    const FIRST_FAULT_MAX: usize = 8;
    let site = Site::new();
    let (file, backup) = (site.write("scans.ndjson", scans::ndjson(0..NEW, "new")), site.name("backup.db"));
    for words in [&["org", "list"][..], &["import", "--org", ORG, &file], &["backup", &backup]] {
        let mut failed = 0;
        for first in 1..=FIRST_FAULT_MAX {
            let inject = format!("--inject=clone,clone3:error=EAGAIN:when={first}+");
            let mut command = clean("strace");
            command.args(["-f", "-qq", "-o", "/dev/null", "--trace=clone,clone3", &inject]);
            command.arg(executable()).args(words).env("BATCHSCAN_DATABASE", &site.database);
            let outcome = Outcome::run(&mut command);
            let has_one_error = outcome.err.matches("error: ").count() == 1 && outcome.err.ends_with('\n');
            assert!(
                outcome.code == Some(0) || outcome.code == Some(1) && has_one_error,
                "{words:?}, {first}: {outcome:?}"
            );
            failed += usize::from(outcome.code == Some(1));
        }
        assert!(failed > 0, "{words:?} starts no threads");
    }
}

#[test]
fn a_full_or_closed_standard_error_changes_no_exit_code() {
    let site = Site::new();
    for (words, code) in [("org list", 0), ("org rename Missing Other", 1), ("org add", 2)] {
        for target in ["2> /dev/full", "2>&-"] {
            let mut bash = clean("bash");
            bash.args(["-c", &format!("\"$0\" {words} {target}")]).arg(executable());
            bash.env("BATCHSCAN_DATABASE", &site.database);
            assert_eq!(Outcome::run(&mut bash).code, Some(code), "{words} {target}");
        }
    }
}
