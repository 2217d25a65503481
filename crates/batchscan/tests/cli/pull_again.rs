//! A pull into a file that is there already, wholly or in part: `--force`, `--resume`, `--if-changed`, and two at once.

use std::process::Stdio;
use std::time::SystemTime;

use serde_json::Value;

use crate::program::Running;
use crate::relay::{Plan, Relay};
use crate::scans;
use crate::service::Service;
use crate::site::Site;
use crate::user::User;
use crate::wire::{get, token};

const BATCHES: u64 = 500;

/// A service of five pages.
fn five_pages(site: &Site) -> Service {
    site.import(&site.write("a.ndjson", scans::ndjson(0..BATCHES, "first")));
    site.serve(&["--page-size", "100"])
}

/// As many bytes as two and a half pages and what comes before them.
fn half(user: &User<'_>, relay: &Relay) -> u64 {
    relay.plan(Plan::Pass);
    user.at(&relay.url()).piped(&["--format", "csv"]);
    relay.passed() / 2
}

/// A pull that is held in its middle.
fn held(user: &User<'_>, relay: &Relay, words: &[&str]) -> Running {
    let half = half(user, relay);
    relay.plan(Plan::Hold { after: half });
    let mut command = user.at(&relay.url()).command(&[&["pull"], words].concat());
    let pull = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    relay.wait_until_passed(half);
    pull
}

/// Leaves the first pages of `a.csv`, as a pull that was cut leaves them. It has come through the relay.
fn cut_off(user: &User<'_>, relay: &Relay, words: &[&str]) {
    let half = half(user, relay);
    let end = crate::relay::End::Closed;
    relay.plan(Plan::Cut { after: half, end, later_pass: false });
    let outcome = user.at(&relay.url()).run(&[&["pull", "--retry-for", "0s"], words].concat());
    let message = "; 200 batches are kept in a.csv.part: the same command with --resume goes on from there\n";
    assert!(outcome.code == Some(1) && outcome.err.ends_with(message), "{outcome:?}");
    relay.plan(Plan::Pass);
}

#[test]
fn force_replaces_a_file_and_until_the_new_one_is_whole_the_old_one_stays() {
    let site = Site::new();
    let service = five_pages(&site);
    let (user, relay) = (User::of(&site, &service), Relay::to(&service));
    for file in ["a.csv", "a.parquet"] {
        std::fs::write(user.path(file), "the old one").unwrap();
        user.pull(file, &[]).fails(&format!("{file} exists; --force replaces it"));
        let pull = held(&user, &relay, &["-o", file, "--force"]);
        assert_eq!(user.read(file), b"the old one");
        // This is the kill.
        drop(pull);
        relay.plan(Plan::Pass);
        assert_eq!(user.read(file), b"the old one");
        user.at(&relay.url()).pull(file, &["--force", "--resume"]).done();
        let anew = format!("anew.{file}");
        assert!(user.read(file) == user.pulled(&anew, &[]));
        std::fs::remove_file(user.path(file)).unwrap();
        std::fs::remove_file(user.path(&anew)).unwrap();
        assert_eq!(user.files(), [""; 0]);
    }
}

#[test]
fn a_file_that_appears_while_a_pull_is_under_way_is_not_replaced() {
    let site = Site::new();
    let service = five_pages(&site);
    let (user, relay) = (User::of(&site, &service), Relay::to(&service));
    for file in ["a.csv", "a.xlsx"] {
        let mut pull = held(&user, &relay, &["-o", file]);
        std::fs::write(user.path(file), "mine").unwrap();
        relay.plan(Plan::Pass);
        assert_eq!(crate::program::wait(&mut pull.0, std::time::Duration::from_secs(20)), Some(1));
        assert_eq!(user.read(file), b"mine");
        // What was pulled is not lost with the name.
        assert_eq!(user.files(), [file.to_owned(), format!("{file}.part"), format!("{file}.part.json")]);
        let done = user.at(&relay.url()).pull(file, &["--resume", "--force"]).done();
        assert!(done.starts_with("pulled 500 batches (500 of them before)"), "{done}");
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
    std::fs::write(user.path("elsewhere/real.csv"), "the old one").unwrap();
    std::os::unix::fs::symlink("elsewhere/real.csv", user.path("a.csv")).unwrap();
    user.pull("a.csv", &["--force"]).done();
    assert!(user.path("a.csv").is_symlink());
    assert!(user.read("elsewhere/real.csv") == user.pulled("b.csv", &[]));
    assert_eq!(std::fs::read_dir(user.path("elsewhere")).unwrap().count(), 1);
}

#[test]
fn only_one_pull_at_a_time_writes_a_file() {
    let site = Site::new();
    let service = five_pages(&site);
    let (user, relay) = (User::of(&site, &service), Relay::to(&service));
    let mut first = held(&user, &relay, &["-o", "a.csv"]);
    for flags in [&[][..], &["--resume"], &["--force"]] {
        user.at(&relay.url())
            .pull("a.csv", flags)
            .fails("another pull is writing a.csv.part; wait for its end");
    }
    relay.plan(Plan::Pass);
    assert_eq!(crate::program::wait(&mut first.0, std::time::Duration::from_secs(20)), Some(0));
    assert!(user.read("a.csv") == user.pulled("b.csv", &[]));
    assert_eq!(user.files(), ["a.csv", "b.csv"]);
}

#[test]
fn a_strangers_part_is_left_alone() {
    let site = Site::new();
    let service = five_pages(&site);
    let user = User::of(&site, &service);
    std::fs::write(user.path("a.csv.part"), "mine").unwrap();
    let message = "a.csv.part is in the way, and no pull has left it there; move it away";
    for flags in [&[][..], &["--resume"], &["--force"]] {
        user.pull("a.csv", flags).fails(message);
        assert_eq!(user.read("a.csv.part"), b"mine");
        assert_eq!(user.files(), ["a.csv.part"]);
    }
}

#[test]
fn resume_goes_on_with_the_same_pull_alone() {
    let site = Site::new();
    let service = five_pages(&site);
    let (user, relay) = (User::of(&site, &service), Relay::to(&service));
    let url = relay.url();
    let user = user.at(&url);
    let begun = ["-o", "a.csv", "--start-date", "2026", "--end-date", "2026-12"];
    cut_off(&user, &relay, &begun);
    let left = user.files();
    let differs = |words: &[&str], difference: &str| {
        let message = format!(
            "a.csv.part was begun by another pull: {difference}; repeat that one, or leave --resume out to begin anew"
        );
        user.run(&[&["pull", "-o", "a.csv", "--resume"], words].concat()).fails(&message);
        assert_eq!(user.files(), left, "{difference}");
    };
    let dates = ["--start-date", "2026", "--end-date", "2026-12"];
    differs(&[], "its start date is 2026, not none");
    differs(&["--start-date", "2026"], "its end date is 2026-12, not none");
    differs(&["--start-date", "2026-01", "--end-date", "2026-12"], "its start date is 2026, not 2026-01");
    differs(&[&dates[..], &["--format", "ndjson"]].concat(), "its format is csv, not ndjson");
    differs(&[&dates[..], &["--excel"]].concat(), "its format is csv, not csv for Excel with semicolons");
    differs(
        &[&dates[..], &["--url", &service.url]].concat(),
        &format!("its url is {url}, not {}", service.url),
    );
    let other = site.credential();
    let mut command = user.command(&[&["pull", "--resume"], &begun[..]].concat());
    command.env("BATCHSCAN_CLIENT_ID", &other.id).env("BATCHSCAN_CLIENT_SECRET", &other.secret);
    crate::program::Outcome::of(&mut command).fails(&format!(
        "a.csv.part was begun by another pull: its client id is {}, not {}; repeat that one, or leave --resume out to \
         begin anew",
        user.credential.id, other.id
    ));
    let said = user.run(&[&["pull", "--resume"], &begun[..]].concat()).done();
    assert!(
        said.starts_with("pulled 500 batches (200 of them before), 2026-01-01T00:00:00Z to 2026-12-31"),
        "{said}"
    );
    assert!(user.read("a.csv") == user.pulled("b.csv", &[]));
    assert_eq!(user.files(), ["a.csv", "b.csv"]);
    // With nothing to go on from, it begins.
    assert!(user.pulled("c.csv", &["--resume"]) == user.read("b.csv"));
}

#[test]
fn resume_trusts_no_part_that_was_tampered_with_and_a_new_pull_needs_none() {
    let site = Site::new();
    let service = five_pages(&site);
    let (user, relay) = (User::of(&site, &service), Relay::to(&service));
    let user = user.at(&relay.url());
    let message = "a.csv.part is not as its journal says; leave --resume out to begin anew: bytes are missing or changed";
    cut_off(&user, &relay, &["-o", "a.csv"]);
    let part = user.read("a.csv.part");
    let mut changed = part.clone();
    changed[part.len() / 2] ^= 1;
    for tampered in [&changed[..], &part[..part.len() - 1], b""] {
        std::fs::write(user.path("a.csv.part"), tampered).unwrap();
        user.pull("a.csv", &["--resume"]).fails(message);
        assert_eq!(user.read("a.csv.part"), tampered);
    }
    // What stands after the last page that was vouched for is nobody's.
    std::fs::write(user.path("a.csv.part"), [&part[..], b"half a li"].concat()).unwrap();
    let whole = user.pulled("a.csv", &["--resume"]);
    assert_eq!(user.files(), ["a.csv"]);
    std::fs::remove_file(user.path("a.csv")).unwrap();
    cut_off(&user, &relay, &["-o", "a.csv"]);
    std::fs::write(user.path("a.csv.part.json"), "{").unwrap();
    let outcome = user.pull("a.csv", &["--resume"]);
    let begins = "error: a.csv.part.json is damaged; leave --resume out to begin anew: ";
    assert!(outcome.code == Some(1) && outcome.err.starts_with(begins), "{outcome:?}");
    assert!(user.pulled("a.csv", &[]) == whole);
    assert_eq!(user.files(), ["a.csv"]);
}

fn modified(user: &User<'_>, file: &str) -> SystemTime {
    std::fs::metadata(user.path(file)).unwrap().modified().unwrap()
}

#[test]
fn if_changed_pulls_when_something_has_changed_and_else_leaves_the_file_alone() {
    let site = Site::new();
    let service = five_pages(&site);
    let user = User::of(&site, &service);
    let v1 = || {
        let all = get(&service, "/v1/batches", &token(&service, &user.credential)).ok();
        let lines = String::from_utf8(all).unwrap();
        format!("{}\n", lines.trim_matches(['[', ']']).replace("},{", "}\n{"))
    };
    let again = || user.pull("a.ndjson", &["--if-changed"]).done();
    assert!(again().starts_with("pulled 500 batches, all time, into a.ndjson: "));
    assert_eq!(user.files(), ["a.ndjson", "a.ndjson.pulled.json"]);
    let before = modified(&user, "a.ndjson");
    assert_eq!(again(), "nothing has changed: a.ndjson holds 500 batches\n");
    let said: Value =
        serde_json::from_str(&user.pull("a.ndjson", &["--if-changed", "--json"]).done()).unwrap();
    assert_eq!(said, serde_json::json!({ "changed": false, "batches": 500, "file": "a.ndjson" }));
    assert_eq!(modified(&user, "a.ndjson"), before);
    // One more batch, then one that was corrected.
    for (numbers, comment, count) in [(BATCHES..BATCHES + 1, "first", 501), (7..8, "corrected", 501)] {
        site.import(&site.write("b.ndjson", scans::ndjson(numbers, comment)));
        assert!(again().starts_with(&format!("pulled {count} batches, all time, into a.ndjson: ")));
        assert_eq!(user.read("a.ndjson"), v1().into_bytes());
        assert_eq!(again(), format!("nothing has changed: a.ndjson holds {count} batches\n"));
    }
    // Another window, and another format, are another file's content.
    let first = ["--if-changed", "--end-date", "2026-01-01T00:00:00Z"];
    assert!(
        user.pull("a.ndjson", &first).done().starts_with("pulled 1 batch, up to 2026-01-01T00:00:00Z, into")
    );
    assert_eq!(user.pull("a.ndjson", &first).done(), "nothing has changed: a.ndjson holds 1 batch\n");
    let as_csv = ["--if-changed", "--format", "csv"];
    assert!(user.pull("a.ndjson", &as_csv).done().starts_with("pulled 501 batches"));
    assert_eq!(user.files(), ["a.ndjson", "a.ndjson.pulled.json"]);
}

#[test]
fn if_changed_does_not_replace_what_no_pull_of_its_kind_has_made() {
    let site = Site::new();
    let service = five_pages(&site);
    let user = User::of(&site, &service);
    let refused = |message| user.pull("a.csv", &["--if-changed"]).fails(message);
    user.pull("a.csv", &[]).done();
    refused("a.csv exists; --force replaces it");
    user.pull("a.csv", &["--if-changed", "--force"]).done();
    assert_eq!(
        user.pull("a.csv", &["--if-changed"]).done(),
        "nothing has changed: a.csv holds 500 batches\n"
    );
    // Somebody worked on it.
    std::fs::write(user.path("a.csv"), "my notes").unwrap();
    refused("a.csv was changed since the last pull; --force replaces it");
    assert_eq!(user.read("a.csv"), b"my notes");
    user.pull("a.csv", &["--if-changed", "--force"]).done();
    // Without the file there is nothing to leave alone.
    std::fs::remove_file(user.path("a.csv")).unwrap();
    assert!(user.pull("a.csv", &["--if-changed"]).done().starts_with("pulled 500 batches"));
}
