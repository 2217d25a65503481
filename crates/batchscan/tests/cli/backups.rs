//! `batchscan backup` and `batchscan doctor`.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::scans;
use crate::site::{ORG, Site};
use crate::wire::{auth, get, token};

#[test]
fn a_restored_backup_serves_the_same_bytes_and_old_tokens_and_cursors_still_work() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_500, "x")));
    let credential = site.credential();
    let service = site.serve(&[]);
    let token = token(&service, &credential);
    let target = site.name("copy.db");
    let text = site.run(&["backup", &target]).done();
    let expected = format!("backed up {} to {target} (", site.url("scans.db"));
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
    // What happens to one has nothing to do with the other.
    site.run(&["credential", "revoke", &credential.id]).done();
    assert_eq!((auth(&service, &credential).status, auth(&restored, &credential).status), (401, 200));
    let doctor = ["doctor", "--database", &site.url("copy.db")];
    assert!(site.run(&doctor).done().ends_with("1 organisation, 1,500 batches\nall is well\n"));
}

#[test]
fn a_backup_never_overwrites_and_leaves_nothing_behind_when_it_cannot_be_made() {
    let site = Site::new();
    let there = site.write("there.db", "precious");
    let message = format!("{there} exists already: choose another name, or remove it first");
    site.run(&["backup", &there]).fails(&message);
    assert_eq!(std::fs::read(&there).unwrap(), b"precious");
    let nowhere = site.name("nowhere/copy.db");
    let message = format!("cannot write {nowhere}: No such file or directory (os error 2)");
    site.run(&["backup", &nowhere]).fails(&message);
    let within_a_file = site.name("there.db/copy.db");
    let message = format!("cannot write {within_a_file}: Not a directory (os error 20)");
    site.run(&["backup", &within_a_file]).fails(&message);
    let folder = std::fs::read_dir(site.path("")).unwrap();
    assert_eq!(folder.filter(|entry| entry.as_ref().unwrap().path().ends_with(".partial")).count(), 0);
}

#[test]
fn a_backup_taken_while_an_import_runs_is_one_moment() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..5_000, "first")));
    let second = site.write("b.ndjson", scans::ndjson(0..10_000, "second"));
    let credential = site.credential();
    std::thread::scope(|scope| {
        let importing = scope.spawn(|| site.import(&second));
        for round in 0..4 {
            site.run(&["backup", &site.name(&format!("copy-{round}.db"))]).done();
        }
        importing.join().unwrap();
    });
    for round in 0..4 {
        let name = format!("copy-{round}.db");
        let service = site.serve_database(&name, &[]);
        let token = token(&service, &credential);
        let all = get(&service, "/v1/batches", &token).ok();
        let is_one_moment = [scans::array(0..5_000, "first"), scans::array(0..10_000, "second")];
        assert!(is_one_moment.iter().any(|moment| moment.as_bytes() == all), "{name} is a mixture");
    }
}

#[test]
fn the_doctor_finds_a_sound_database_well() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_200, "x")));
    let expected =
        format!("{}: schema 3, 1 organisation, 1,200 batches\nall is well\n", site.url("scans.db"));
    assert_eq!(site.run(&["doctor"]).done(), expected);
    let json: Value = serde_json::from_str(&site.run(&["doctor", "--json"]).done()).unwrap();
    let expected = serde_json::json!(
        { "ok": true, "schema": 3, "organisations": 1, "batches": 1_200, "findings": [] }
    );
    assert_eq!(json, expected);
}

#[test]
fn the_doctor_names_what_is_damaged() {
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
    let outcome = site.run(&["doctor"]);
    assert_eq!((outcome.code, outcome.err.as_str()), (Some(1), ""));
    let found: Vec<&str> = outcome.out.lines().skip(1).collect();
    let of = |number: u64| format!("  batch \"scan-{number:07}\" of \"Green Valley\": ");
    assert_eq!(found[0], "4 findings:");
    assert_eq!(found[1], of(2) + "its text is not the text of the batch it holds; import it again");
    assert_eq!(found[2], of(3) + "its text is that of another batch; import it again");
    assert!(found[3].starts_with(&(of(5) + "found EOF while parsing a string")), "{}", found[3]);
    assert_eq!(
        found[4],
        of(6) + "warnings: found null, expected a value: this field is required; import it again"
    );
    let json = site.run(&["doctor", "--json"]);
    let report: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        (json.code, &report["ok"], report["findings"].as_array().unwrap().len()),
        (Some(1), &false.into(), 4)
    );
}

#[test]
fn the_doctor_sees_a_file_that_others_can_open_and_batches_without_an_organisation() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..3, "x")));
    site.sql().execute("UPDATE batch SET org_id = 7 WHERE batch_id > 'scan-0000000'", []).unwrap();
    let path = site.name("scans.db");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let outcome = site.run(&["doctor"]);
    let expected = format!(
        "sqlite:{path}: schema 3, 1 organisation, 3 batches\n2 findings:\n  \
         {path} can be opened by other users: run `chmod 600 {path}`\n  \
         batches that belong to no organisation: 2\n"
    );
    assert_eq!((outcome.code, outcome.out), (Some(1), expected));
}

#[test]
fn the_database_is_private_from_its_first_moment() {
    let site = Site::new();
    let service = site.serve(&[]);
    token(&service, &site.credential());
    for name in ["scans.db", "scans.db-wal", "scans.db-shm"] {
        let mode = std::fs::metadata(site.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert!(site.run(&["org", "list"]).done().contains(ORG));
}
