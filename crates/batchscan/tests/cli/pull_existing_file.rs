//! Pulls into an existing file: `--force`, `--if-changed`, and two pulls at once.

use std::process::Stdio;
use std::time::SystemTime;

use serde_json::Value;
use snapbox::str;

use crate::http::{get, token};
use crate::program::{HANG_LIMIT, Running, wait};
use crate::proxy::{Plan, Proxy};
use crate::scans;
use crate::service::Service;
use crate::site::Site;
use crate::user::User;

const BATCHES: u64 = 500;

/// A service of five pages.
fn five_pages(site: &Site) -> Service {
    site.import(&site.write("a.ndjson", scans::ndjson(0..BATCHES, "first")));
    site.serve(&["--page-size", "100"])
}

/// Half of the bytes of a pull: two and a half pages.
fn half(user: &User<'_>, proxy: &Proxy) -> u64 {
    proxy.plan(Plan::Pass);
    user.at(&proxy.url()).piped(&["--format", "csv"]);
    proxy.passed() / 2
}

/// A pull that is stalled in its middle.
fn stalled(user: &User<'_>, proxy: &Proxy, words: &[&str]) -> Running {
    let half = half(user, proxy);
    proxy.plan(Plan::Hold { after: half });
    let mut command = user.at(&proxy.url()).command(&[&["pull"], words].concat());
    let pull = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    proxy.wait_until_passed(half);
    pull
}

#[test]
fn force_replaces_a_file_only_when_the_new_one_is_complete() {
    let site = Site::new();
    let service = five_pages(&site);
    let (user, proxy) = (User::of(&site, &service), Proxy::to(&service));
    for file in ["a.csv", "a.parquet"] {
        std::fs::write(user.path(file), "old").unwrap();
        assert_eq!(user.pull(file, &[]).code, Some(1));
        let pull = stalled(&user, &proxy, &["-o", file, "--force"]);
        assert_eq!(user.read(file), b"old");
        // Kills it.
        drop(pull);
        proxy.plan(Plan::Pass);
        assert_eq!(user.read(file), b"old");
        user.at(&proxy.url()).pull(file, &["--force"]).succeeds();
        let fresh = format!("fresh.{file}");
        assert!(user.read(file) == user.pulled(&fresh, &[]));
        std::fs::remove_file(user.path(file)).unwrap();
        std::fs::remove_file(user.path(&fresh)).unwrap();
        assert_eq!(user.files(), [""; 0]);
    }
}

#[test]
fn a_file_that_appears_during_a_pull_is_not_replaced() {
    let site = Site::new();
    let service = five_pages(&site);
    let (user, proxy) = (User::of(&site, &service), Proxy::to(&service));
    for file in ["a.csv", "a.xlsx"] {
        let mut pull = stalled(&user, &proxy, &["-o", file]);
        std::fs::write(user.path(file), "mine").unwrap();
        proxy.plan(Plan::Pass);
        assert_eq!(wait(&mut pull.0, HANG_LIMIT), Some(1));
        assert_eq!(user.read(file), b"mine");
        assert_eq!(user.files(), [file]);
        std::fs::remove_file(user.path(file)).unwrap();
    }
}

#[test]
fn a_link_is_followed_and_stays_a_link() {
    let site = Site::new();
    let service = five_pages(&site);
    let user = User::of(&site, &service);
    std::fs::create_dir(user.path("elsewhere")).unwrap();
    std::fs::write(user.path("elsewhere/real.csv"), "old").unwrap();
    std::os::unix::fs::symlink("elsewhere/real.csv", user.path("a.csv")).unwrap();
    user.pull("a.csv", &["--force"]).succeeds();
    assert!(user.path("a.csv").is_symlink());
    assert!(user.read("elsewhere/real.csv") == user.pulled("b.csv", &[]));
    assert_eq!(std::fs::read_dir(user.path("elsewhere")).unwrap().count(), 1);
}

#[test]
fn only_one_pull_at_a_time_writes_a_file() {
    let site = Site::new();
    let service = five_pages(&site);
    let (user, proxy) = (User::of(&site, &service), Proxy::to(&service));
    let mut first = stalled(&user, &proxy, &["-o", "a.csv"]);
    user.at(&proxy.url()).pull("a.csv", &["--force"]).fails(str![[r#"
error: cannot write a.csv: another process is writing it

"#]]);
    proxy.plan(Plan::Pass);
    assert_eq!(wait(&mut first.0, HANG_LIMIT), Some(0));
    assert!(user.read("a.csv") == user.pulled("b.csv", &[]));
    assert_eq!(user.files(), ["a.csv", "b.csv"]);
}

fn modified(user: &User<'_>, file: &str) -> SystemTime {
    std::fs::metadata(user.path(file)).unwrap().modified().unwrap()
}

#[test]
fn if_changed_pulls_only_if_the_data_has_changed() {
    let site = Site::new();
    let service = five_pages(&site);
    let user = User::of(&site, &service);
    let v1 = || {
        let all = get(&service, "/v1/batches", &token(&service, &user.credential)).ok();
        let lines = String::from_utf8(all).unwrap();
        format!("{}\n", lines.trim_matches(['[', ']']).replace("},{", "}\n{"))
    };
    let again = || user.pull("a.ndjson", &["--if-changed"]).succeeds();
    assert!(again().starts_with("pulled 500 batches, all dates, into a.ndjson: "));
    assert_eq!(user.files(), ["a.ndjson", "a.ndjson.pulled.json"]);
    let before = modified(&user, "a.ndjson");
    assert_eq!(again(), "unchanged: a.ndjson has 500 batches\n");
    let summary: Value =
        serde_json::from_str(&user.pull("a.ndjson", &["--if-changed", "--json"]).succeeds()).unwrap();
    assert_eq!(summary, serde_json::json!({ "changed": false, "batches": 500, "file": "a.ndjson" }));
    assert_eq!(modified(&user, "a.ndjson"), before);
    // A new batch, then a corrected one.
    for (numbers, comment, count) in [(BATCHES..BATCHES + 1, "first", 501), (7..8, "corrected", 501)] {
        site.import(&site.write("b.ndjson", scans::ndjson(numbers, comment)));
        assert!(again().starts_with(&format!("pulled {count} batches, all dates, into a.ndjson: ")));
        assert_eq!(user.read("a.ndjson"), v1().into_bytes());
        assert_eq!(again(), format!("unchanged: a.ndjson has {count} batches\n"));
    }
    // Another date range or format replaces the file.
    let first = ["--if-changed", "--end-date", "2026-01-01T00:00:00Z"];
    let replaced = user.pull("a.ndjson", &first);
    assert!(replaced.out.starts_with("pulled 1 batch, up to 2026-01-01T00:00:00Z, into"), "{replaced:?}");
    let note = "note: replacing a.ndjson: its end date is none, not 2026-01-01T00:00:00Z\n";
    assert_eq!(replaced.err, note);
    assert_eq!(user.pull("a.ndjson", &first).succeeds(), "unchanged: a.ndjson has 1 batch\n");
    for (flags, note) in [
        (&["--format", "csv"][..], "its end date is 2026-01-01T00:00:00Z, not none"),
        (&["--format", "csv", "--crop", "x"], "its selection is all, not crop \"x\""),
        (&["--columns", "batch_id", "--crop", "x"], "its format is csv, not ndjson"),
        (&["--crop", "x"], "its list of columns is batch_id, not all"),
    ] {
        let outcome = user.pull("a.ndjson", &[&["--if-changed"], flags].concat());
        assert_eq!(outcome.err, format!("note: replacing a.ndjson: {note}\n"), "{outcome:?}");
        assert!(!outcome.out.contains("unchanged"), "{outcome:?}");
    }
    assert_eq!(user.files(), ["a.ndjson", "a.ndjson.pulled.json"]);
}

#[test]
fn if_changed_does_not_replace_other_files() {
    let site = Site::new();
    let service = five_pages(&site);
    let user = User::of(&site, &service);
    let again = || user.pull("a.csv", &["--if-changed"]);
    user.pull("a.csv", &[]).succeeds();
    again().fails(str![[r#"
error: a.csv already exists; use --force to replace it

"#]]);
    user.pull("a.csv", &["--if-changed", "--force"]).succeeds();
    assert_eq!(again().succeeds(), "unchanged: a.csv has 500 batches\n");
    std::fs::write(user.path("a.csv"), "my notes").unwrap();
    again().fails(str![[r#"
error: a.csv was changed since the last pull; use --force to replace it

"#]]);
    assert_eq!(user.read("a.csv"), b"my notes");
    user.pull("a.csv", &["--if-changed", "--force"]).succeeds();
    std::fs::write(user.path("a.csv.pulled.json"), "{").unwrap();
    again().fails(str![[r#"
error: a.csv.pulled.json, the state of the last pull, is damaged; use --force to replace it and a.csv: EOF while parsing an object at line 1 column 1

"#]]);
    user.pull("a.csv", &["--if-changed", "--force"]).succeeds();
    std::fs::remove_file(user.path("a.csv")).unwrap();
    assert!(user.pull("a.csv", &["--if-changed"]).succeeds().starts_with("pulled 500 batches"));
}
