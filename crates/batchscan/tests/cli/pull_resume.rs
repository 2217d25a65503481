//! Pulls into an existing or partial file: `--force`, `--resume`, `--if-changed`, and two pulls at once.

use std::process::Stdio;
use std::time::SystemTime;

use serde_json::Value;
use snapbox::{file, str};

use crate::http::{get, token};
use crate::program::{Outcome, Running, clean, executable};
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

/// The same, with a user who reaches it through a proxy.
fn proxied(site: &Site) -> (Service, Proxy, User<'_>) {
    let service = five_pages(site);
    let proxy = Proxy::to(&service);
    let user = User::of(site, &service).at(&proxy.url());
    (service, proxy, user)
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

/// Leaves a partial file.
fn interrupt(user: &User<'_>, proxy: &Proxy, words: &[&str]) {
    let half = half(user, proxy);
    let end = crate::proxy::End::Closed;
    proxy.plan(Plan::Cut { after: half, end, later_pass: false });
    let outcome = user.at(&proxy.url()).run(&[&["pull", "--retry-for", "0s"], words].concat());
    let message = ".csv.part: add --resume to continue\n";
    assert!(
        outcome.err.contains("; 200 batches are kept in ") && outcome.err.ends_with(message),
        "{outcome:?}"
    );
    proxy.plan(Plan::Pass);
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
        user.at(&proxy.url()).pull(file, &["--force", "--resume"]).succeeds();
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
        assert_eq!(crate::program::wait(&mut pull.0, crate::program::HANG_LIMIT), Some(1));
        assert_eq!(user.read(file), b"mine");
        assert_eq!(user.files(), [file.to_owned(), format!("{file}.part"), format!("{file}.part.json")]);
        let done = user.at(&proxy.url()).pull(file, &["--resume", "--force"]).succeeds();
        assert!(done.starts_with("pulled 500 batches (500 of them earlier)"), "{done}");
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
    for flags in [&[][..], &["--resume"], &["--force"]] {
        user.at(&proxy.url()).pull("a.csv", flags).fails(str![[r#"
error: a.csv.part is locked by another pull; wait until it ends

"#]]);
    }
    proxy.plan(Plan::Pass);
    assert_eq!(crate::program::wait(&mut first.0, crate::program::HANG_LIMIT), Some(0));
    assert!(user.read("a.csv") == user.pulled("b.csv", &[]));
    assert_eq!(user.files(), ["a.csv", "b.csv"]);
}

#[test]
fn a_foreign_part_file_is_not_changed() {
    let site = Site::new();
    let service = five_pages(&site);
    let user = User::of(&site, &service);
    std::fs::write(user.path("a.csv.part"), "mine").unwrap();
    for flags in [&[][..], &["--resume"], &["--force"]] {
        user.pull("a.csv", flags).fails(str![[r#"
error: a.csv.part already exists and is not a partial pull; move it away

"#]]);
        assert_eq!(user.read("a.csv.part"), b"mine");
        assert_eq!(user.files(), ["a.csv.part"]);
    }
}

#[test]
fn resume_needs_the_same_options() {
    let site = Site::new();
    let service = five_pages(&site);
    let (user, proxy) = (User::of(&site, &service), Proxy::to(&service));
    let url = proxy.url();
    let user = user.at(&url);
    let begun = ["-o", "a.csv", "--start-date", "2026", "--end-date", "2026-12"];
    interrupt(&user, &proxy, &begun);
    let left = user.files();
    let dates = "--start-date 2026 --end-date 2026-12";
    user.transcript(
        &[
            "pull -o a.csv --resume",
            "pull -o a.csv --resume --start-date 2026",
            "pull -o a.csv --resume --start-date 2026-01 --end-date 2026-12",
            &format!("pull -o a.csv --resume {dates} --format ndjson"),
            &format!("pull -o a.csv --resume {dates} --excel"),
            &format!("pull -o a.csv --resume {dates} --url {}", service.url),
            &format!("pull -o a.csv --resume {dates} --crop Lettuce --warnings"),
            &format!("pull -o a.csv --resume {dates} --columns batch_name,comment"),
        ],
        file!["snapshots/resume_needs_the_same_options.txt"],
    );
    let other = site.credential();
    let mut command = user.command(&[&["pull", "--resume"], &begun[..]].concat());
    command.env("BATCHSCAN_CLIENT_ID", &other.id).env("BATCHSCAN_CLIENT_SECRET", &other.secret);
    Outcome::run(&mut command).fails(str![[r#"
error: a.csv.part belongs to another pull: its client id is [CLIENT_ID], not [CLIENT_ID]; use the same options, or --force instead of --resume to start over

"#]]);
    assert_eq!(user.files(), left);
    let summary = user.run(&[&["pull", "--resume"], &begun[..]].concat()).succeeds();
    assert!(
        summary.starts_with("pulled 500 batches (200 of them earlier), 2026-01-01T00:00:00Z to 2026-12-31"),
        "{summary}"
    );
    assert!(user.read("a.csv") == user.pulled("b.csv", &[]));
    assert_eq!(user.files(), ["a.csv", "b.csv"]);
    // Without a partial file it starts from the beginning.
    assert!(user.pulled("c.csv", &["--resume"]) == user.read("b.csv"));
}

#[test]
fn an_interrupted_pull_is_not_discarded_silently() {
    let site = Site::new();
    let (_service, proxy, user) = proxied(&site);
    interrupt(&user, &proxy, &["-o", "a.csv"]);
    let part = user.read("a.csv.part");
    user.transcript(
        &["pull -o a.csv", "pull -o a.csv --crop lettuce"],
        file!["snapshots/an_interrupted_pull_is_not_discarded_silently.txt"],
    );
    assert_eq!(user.read("a.csv.part"), part);
    let done = user.pull("a.csv", &["--force"]).succeeds();
    assert!(done.starts_with("pulled 500 batches, "), "{done}");
    // A scheduled job is not stopped by it.
    interrupt(&user, &proxy, &["-o", "b.csv"]);
    let outcome = user.pull("b.csv", &["--if-changed"]);
    let note = "note: discarding 200 batches of an interrupted pull; --resume would have continued it\n";
    assert!(outcome.out.starts_with("pulled 500 batches, ") && outcome.err == note, "{outcome:?}");
    assert_eq!(user.files(), ["a.csv", "b.csv", "b.csv.pulled.json"]);
}

/// `script` runs it in a terminal.
#[test]
fn on_a_terminal_the_user_decides_about_an_interrupted_pull() {
    let site = Site::new();
    let (_service, proxy, user) = proxied(&site);
    let reply = |reply: &str| {
        let pull = user.command(&["pull"]);
        let mut script = clean("script");
        script.args(["-qec", "\"$BATCHSCAN\" pull -o a.csv", "/dev/null"]).env("BATCHSCAN", executable());
        for (name, value) in pull.get_envs().filter_map(|(name, value)| Some((name, value?))) {
            script.env(name, value);
        }
        script.current_dir(user.path(""));
        Outcome::with_input(&mut script, reply.into())
    };
    for (answer, code, expected) in [
        ("\n", 1, "error: cancelled; nothing was changed"),
        ("x\n", 1, "error: cancelled; nothing was changed"),
        ("r\n", 0, "pulled 500 batches (200 of them earlier), "),
        ("s\n", 0, "pulled 500 batches, "),
    ] {
        if !user.path("a.csv.part").exists() {
            interrupt(&user, &proxy, &["-o", "a.csv"]);
        }
        let outcome = reply(answer);
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        let question =
            "a.csv.part has 200 batches of an interrupted pull. Resume it, start over or cancel? [r/s/C] ";
        assert!(outcome.out.contains(question) && outcome.out.contains(expected), "{outcome:?}");
        assert_eq!(user.path("a.csv").exists(), code == 0);
        let _ = std::fs::remove_file(user.path("a.csv"));
    }
}

#[test]
fn a_changed_part_file_is_not_resumed() {
    let site = Site::new();
    let (_service, proxy, user) = proxied(&site);
    interrupt(&user, &proxy, &["-o", "a.csv"]);
    let part = user.read("a.csv.part");
    let mut changed = part.clone();
    changed[part.len() / 2] ^= 1;
    for tampered in [&changed[..], &part[..part.len() - 1], b""] {
        std::fs::write(user.path("a.csv.part"), tampered).unwrap();
        user.pull("a.csv", &["--resume"]).fails(str![[r#"
error: a.csv.part does not match its journal; use --force instead of --resume to start over: bytes are missing or changed

"#]]);
        assert_eq!(user.read("a.csv.part"), tampered);
    }
    // Bytes after the last page in the journal are cut off.
    std::fs::write(user.path("a.csv.part"), [&part[..], b"half a li"].concat()).unwrap();
    let whole = user.pulled("a.csv", &["--resume"]);
    assert_eq!(user.files(), ["a.csv"]);
    std::fs::remove_file(user.path("a.csv")).unwrap();
    interrupt(&user, &proxy, &["-o", "a.csv"]);
    std::fs::write(user.path("a.csv.part.json"), "{").unwrap();
    let outcome = user.pull("a.csv", &["--resume"]);
    assert!(outcome.code == Some(1) && outcome.err.contains("a.csv.part.json is damaged; "), "{outcome:?}");
    assert!(user.pulled("a.csv", &[]) == whole);
    assert_eq!(user.files(), ["a.csv"]);
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
