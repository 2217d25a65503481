//! `batchscan backup` and `batchscan doctor`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use snapbox::file;

use crate::http::{auth, get, token};
use crate::program::{Outcome, clean, executable};
use crate::scans;
use crate::site::Site;

#[test]
fn a_backup_serves_the_same_data_and_accepts_tokens_and_cursors() {
    for site in [Site::new, Site::on_postgres] {
        check_backup(&site());
    }
}

fn check_backup(site: &Site) {
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_500, "x")));
    let credential = site.credential();
    let service = site.serve(&[]);
    let token = token(&service, &credential);
    let target = site.name("copy.db");
    let text = site.run(&["backup", &target]).succeeds();
    let expected = format!("backed up {} to {target} (", site.database);
    assert!(text.starts_with(&expected) && text.ends_with(" MiB)\n"), "{text}");
    assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
    let restored = site.serve_database("copy.db", &[]);
    let page = get(&service, "/v2/batches", &token);
    assert_eq!(get(&restored, "/v2/batches", &token).header("etag"), page.header("etag"));
    let next = format!("/v2/batches?next_token={}", page.json()["next_token"].as_str().unwrap());
    for target in ["/v1/batches", &next] {
        assert_eq!(get(&restored, target, &token).ok(), get(&service, target, &token).ok());
    }
    assert_eq!(auth(&restored, &credential).status, 200);
    // The two are independent.
    site.run(&["credential", "revoke", &credential.id]).succeeds();
    assert_eq!((auth(&service, &credential).status, auth(&restored, &credential).status), (401, 200));
    let doctor = ["doctor", "--database", &site.url("copy.db")];
    assert!(site.run(&doctor).succeeds().ends_with("1 organisation, 1,500 batches\nno problems found\n"));
}

#[test]
fn a_backup_does_not_overwrite_and_leaves_no_partial_file() {
    let site = Site::new();
    let existing = site.write("there.db", "precious");
    site.transcript(
        &["backup there.db", "backup nowhere/copy.db", "backup there.db/copy.db"],
        file!["snapshots/a_backup_does_not_overwrite_and_leaves_no_partial_file.txt"],
    );
    assert_eq!(std::fs::read(&existing).unwrap(), b"precious");
    // SQLite cannot open a path of more than 512 bytes. The error names the backup, not its temporary file.
    let deep = site.name(&["x".repeat(200), "y".repeat(200), "z".repeat(200)].join("/"));
    std::fs::create_dir_all(&deep).unwrap();
    let target = format!("{deep}/copy.db");
    let error = site.run(&["backup", &target]).err;
    assert!(error.starts_with(&format!("error: cannot write {target}: ")), "{error}");
    assert!(!error.contains("partial"), "{error}");
    for folder in [site.path(""), deep.into()] {
        assert_eq!(partial_files(&folder), 0, "{folder:?}");
    }
}

/// A limit on the file size simulates a full disk.
#[test]
fn a_backup_on_a_full_disk_leaves_no_files() {
    let site = Site::new();
    // More than SQLite caches: it writes before the end, and leaves a journal.
    site.import(&site.write("a.ndjson", scans::ndjson(0..20_000, "x")));
    let mut limited = clean("bash");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 512; exec \"$0\" backup copy.db"]).arg(executable());
    limited.current_dir(site.path("")).env("BATCHSCAN_DATABASE", &site.database);
    let outcome = Outcome::run(&mut limited);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let names = std::fs::read_dir(site.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("copy.db")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// SQLite would apply the write-ahead log of a file that is gone to the new one.
#[test]
fn a_backup_next_to_the_log_of_another_file_is_rejected() {
    let site = Site::new();
    for left in ["copy.db-wal", "copy.db-journal"] {
        let path = site.write(left, "of another file");
        let error = site.run(&["backup", &site.name("copy.db")]).err;
        assert!(error.contains(left) && error.contains("already exists"), "{error}");
        std::fs::remove_file(path).unwrap();
    }
    site.run(&["backup", &site.name("copy.db")]).succeeds();
}

#[test]
fn the_next_backup_in_a_folder_removes_what_a_killed_one_has_left() {
    let site = Site::new();
    site.write("old.db.batchscan-partial", "left by a process that was killed");
    site.write("old.db.batchscan-partial-wal", "");
    let busy = std::fs::File::create(site.path("busy.db.batchscan-partial")).unwrap();
    busy.lock().unwrap();
    std::os::unix::fs::symlink(site.path("scans.db"), site.path("link.batchscan-partial")).unwrap();
    site.run(&["backup", &site.name("new.db")]).succeeds();
    assert_eq!(partial_files(&site.path("")), 2, "the one being written, and the link");
    let error = site.run(&["backup", &site.name("busy.db")]).err;
    assert!(error.contains("another process is writing it"), "{error}");
    site.run(&["doctor"]).succeeds();
}

fn partial_files(folder: &Path) -> usize {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_str().unwrap().contains("-partial")).count()
}

#[test]
fn a_backup_during_an_import_is_a_consistent_snapshot() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..5_000, "first")));
    let second = site.write("b.ndjson", scans::ndjson(0..10_000, "second"));
    let credential = site.credential();
    std::thread::scope(|scope| {
        let importing = scope.spawn(|| site.import(&second));
        for round in 0..3 {
            site.run(&["backup", &site.name(&format!("copy-{round}.db"))]).succeeds();
        }
        importing.join().unwrap();
    });
    for round in 0..3 {
        let name = format!("copy-{round}.db");
        let service = site.serve_database(&name, &[]);
        let token = token(&service, &credential);
        let all = get(&service, "/v1/batches", &token).ok();
        let states = [scans::array(0..5_000, "first"), scans::array(0..10_000, "second")];
        assert!(states.iter().any(|state| state.as_bytes() == all), "{name} is a mixture");
    }
}

#[test]
fn the_doctor_finds_no_problems_in_a_valid_database() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_200, "x")));
    site.transcript(
        &["doctor", "doctor --json"],
        file!["snapshots/the_doctor_finds_no_problems_in_a_valid_database.txt"],
    );
}

#[test]
fn the_doctor_finds_invalid_rows() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..10, "x")));
    let sql = site.sql();
    let damage = |change: &str, number: u64| {
        sql.execute(&format!("UPDATE batch SET {change} WHERE batch_id = 'scan-{number:07}'"), []).unwrap();
    };
    damage("json = replace(json, '\"92.50\"', '\"92.5\"')", 2);
    damage("json = replace(json, 'scan-0000003', 'scan-0000004')", 3);
    damage("json = substr(json, 1, 100)", 5);
    damage("json = replace(json, '\"warnings\":false', '\"warnings\":null')", 6);
    drop(sql);
    site.transcript(&["doctor", "doctor --json"], file!["snapshots/the_doctor_finds_invalid_rows.txt"]);
}

#[test]
fn the_doctor_finds_wrong_permissions_and_batches_without_an_organisation() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..3, "x")));
    site.sql().execute("UPDATE batch SET org_id = 7 WHERE batch_id > 'scan-0000000'", []).unwrap();
    let path = site.name("scans.db");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    site.transcript(
        &["doctor"],
        file!["snapshots/the_doctor_finds_wrong_permissions_and_batches_without_an_organisation.txt"],
    );
}

#[test]
fn the_doctor_repairs_versions() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..3, "x")));
    site.sql().execute("UPDATE organisation SET version = version + 1", []).unwrap();
    site.sql().execute("UPDATE batch SET version = 7 WHERE batch_id > 'scan-0000000'", []).unwrap();
    site.transcript(
        &["doctor", "doctor --repair", "doctor --repair --json"],
        file!["snapshots/the_doctor_repairs_versions.txt"],
    );
    let entry = site.run(&["audit", "--json"]).succeeds();
    assert!(entry.lines().last().unwrap().contains("doctor repair"), "{entry}");
}

#[test]
fn a_restore_replaces_the_database_and_keeps_the_old_one() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..5, "x")));
    let credential = site.credential();
    let backup = site.name("backup.db");
    site.run(&["backup", &backup]).succeeds();
    site.import(&site.write("b.ndjson", scans::ndjson(5..9, "y")));
    let service = site.serve(&[]);
    let error = site.run(&["restore", &backup]).err;
    assert!(error.contains("the database is in use: stop the service"), "{error}");
    assert_eq!(auth(&service, &credential).status, 200);
    drop(service);
    let text = site.run(&["restore", &backup]).succeeds();
    assert!(
        text.starts_with(&format!("restored {} from {backup}: 1 organisation, 5 batches\n", site.database)),
        "{text}"
    );
    let old = text.split_once("the old database is ").unwrap().1.split_once(": remove it").unwrap().0;
    let doctor = site.run(&["doctor", "--database", &format!("sqlite:{old}")]).succeeds();
    assert!(doctor.ends_with("1 organisation, 9 batches\nno problems found\n"), "{doctor}");
    assert!(site.run(&["doctor"]).succeeds().ends_with("1 organisation, 5 batches\nno problems found\n"));
    assert!(site.run(&["audit"]).succeeds().contains(" restore "));
    assert_eq!(auth(&site.serve(&[]), &credential).status, 200);
}

#[test]
fn a_restore_from_something_else_changes_nothing() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..5, "x")));
    site.run(&["backup", &site.name("damaged.db")]).succeeds();
    let damaged = std::fs::read(site.path("damaged.db")).unwrap();
    std::fs::write(site.path("damaged.db"), &damaged[..damaged.len() - 16_384]).unwrap();
    site.write("text.db", "no database");
    site.write("open.db", &damaged);
    site.write("open.db-wal", "changes");
    for (backup, problem) in [
        ("damaged.db", "damaged"),
        ("text.db", "is not a backup"),
        ("missing.db", "No such file"),
        ("open.db", "is open in another program"),
    ] {
        let error = site.run(&["restore", &site.name(backup)]).err;
        assert!(error.contains(problem), "{error}");
        assert!(site.run(&["doctor"]).succeeds().ends_with("1 organisation, 5 batches\nno problems found\n"));
        assert_eq!(partial_files(&site.path("")), 0, "{backup}");
    }
    let error = Site::on_postgres().run(&["restore", &site.name("damaged.db")]).err;
    assert!(error.contains("batchscan copy --from sqlite:"), "{error}");
}

/// As after the loss of a machine, and after damage to the file.
#[test]
fn a_restore_needs_no_old_database_and_no_readable_one() {
    let site = Site::new();
    site.run(&["backup", &site.name("backup.db")]).succeeds();
    for old in [None, Some("damaged")] {
        std::fs::remove_file(site.path("scans.db")).unwrap();
        if let Some(old) = old {
            site.write("scans.db", old);
            // Of the damaged database. It must not be applied to the restored one.
            site.write("scans.db-wal", "log");
        }
        let text = site.run(&["restore", &site.name("backup.db")]).succeeds();
        assert_eq!(text.contains("the old database is "), old.is_some(), "{text}");
        site.run(&["doctor"]).succeeds();
    }
}
