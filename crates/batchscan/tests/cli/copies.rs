//! `batchscan copy`: from a file to PostgreSQL and back, all that a client has goes on working, and an interrupted copy
//! is finished by the next.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::crashes::Chance;
use crate::organisations::listed;
use crate::program::{Outcome, Running, batchscan, is_optimised};
use crate::scans;
use crate::service::Service;
use crate::site::{Credential, ORG, Site, fresh_database, postgres};
use crate::wire::{auth, get, token};

/// Copies that are killed, half of them into PostgreSQL.
const KILLS: u64 = 10;
/// Organisations of such a copy: with several, a kill leaves some of them whole.
const KILLED_ORGS: u64 = 6;

/// Organisations and their batches: 200,000 in all.
fn sizes() -> [(&'static str, u64); 4] {
    let unit = if is_optimised() { 1_000 } else { 20 };
    [(ORG, 120 * unit), ("Nord", 60 * unit), ("Süd \"alt\"", 20 * unit), ("Leer", 0)]
}

/// What a copy says of each organisation: batches, digest, and whether it was there.
type Report = BTreeMap<String, (u64, String, bool)>;

fn copy(from: &str, to: &str) -> Report {
    let text = Outcome::of(&mut batchscan(&["copy", "--from", from, "--to", to, "--json"])).done();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report.as_object().unwrap().len(), 1, "{text}");
    let org = |org: &Value| {
        let digest = org["digest"].as_str().unwrap().to_owned();
        assert!(digest.len() == 64 && org.as_object().unwrap().len() == 4, "{org}");
        let name = org["organisation"].as_str().unwrap().to_owned();
        (name, (org["batches"].as_u64().unwrap(), digest, org["was_there"].as_bool().unwrap()))
    };
    report["organisations"].as_array().unwrap().iter().map(org).collect()
}

fn refused(from: &str, to: &str, message: &str) {
    Outcome::of(&mut batchscan(&["copy", "--from", from, "--to", to])).fails(message);
}

/// The number that an organisation has in a database of either kind.
fn number(url: &str, org: &str) -> i64 {
    let ask = format!("SELECT id FROM organisation WHERE name = '{org}'");
    match url.strip_prefix("sqlite:") {
        Some(path) => {
            rusqlite::Connection::open(path).unwrap().query_row(&ask, [], |row| row.get(0)).unwrap()
        }
        None => postgres().sql(url.rsplit_once('/').unwrap().1, &ask).unwrap().parse().unwrap(),
    }
}

/// What a client of an organisation has.
struct Client {
    credential: Credential,
    token: String,
}

impl Client {
    fn of(site: &Site, service: &Service, org: &str) -> Self {
        let issue = ["credential", "issue", "--org", org, "--label", "ERP", "--json"];
        let credential = Credential::from_json(&site.run(&issue).done());
        Self { token: token(service, &credential), credential }
    }
}

/// A database with a past: organisations that went, batches that moved, secrets that were rotated.
struct Source {
    site: Site,
    service: Service,
    clients: Vec<Client>,
    revoked: Client,
    /// From before the batches moved.
    cursor: String,
    last_number: i64,
}

impl Source {
    fn new() -> Self {
        let site = Site::empty();
        for (name, batches) in sizes() {
            site.run(&["org", "add", name]).done();
            let file = site.write("a.ndjson", scans::ndjson(0..batches, "x"));
            site.run(&["import", "--org", name, &file]).done();
        }
        site.run(&["org", "add", "Gone"]).done();
        let last_number = number(&site.database, "Gone");
        site.run(&["org", "remove", "Gone", "--yes"]).done();
        let service = site.serve(&[]);
        let clients: Vec<Client> =
            sizes().iter().map(|(name, _)| Client::of(&site, &service, name)).collect();
        let revoked = Client::of(&site, &service, ORG);
        site.run(&["credential", "revoke", &revoked.credential.id]).done();
        site.run(&["credential", "rotate", &clients[1].credential.id]).done();
        let page = get(&service, "/v2/batches", &clients[0].token).json();
        let cursor = page["next_token"].as_str().unwrap().to_owned();
        // Met by the walk already, and now before it once more.
        let moved =
            (0..50).map(|number| scans::line(number, "moved").replace("2026-01-01T", "2026-01-31T") + "\n");
        site.import(&site.write("moved.ndjson", moved.collect::<String>()));
        Self { site, service, clients, revoked, cursor, last_number }
    }

    /// A service on a copy answers as the one on the source does.
    #[track_caller]
    fn is_answered_alike_by(&self, copy: &Service) {
        for client in &self.clients {
            for target in ["/v1/batches", "/v2/batches"] {
                let (ours, theirs) =
                    (get(&self.service, target, &client.token), get(copy, target, &client.token));
                assert_eq!(ours.header("etag").unwrap(), theirs.header("etag").unwrap());
                assert!(ours.ok() == theirs.ok(), "{target} differs");
            }
            assert_eq!(auth(copy, &client.credential).status, 200);
        }
        assert_eq!(get(copy, "/v1/batches", &self.revoked.token).status, 401);
        assert_eq!(auth(copy, &self.revoked.credential).status, 401);
        assert_eq!(self.rest_of_the_walk(&self.service), self.rest_of_the_walk(copy));
    }

    /// What a walk that began before the batches moved still meets: none of them.
    #[track_caller]
    fn rest_of_the_walk(&self, service: &Service) -> Vec<String> {
        let (mut ids, mut cursor) = (Vec::new(), Some(self.cursor.clone()));
        while let Some(next) = cursor {
            let page = get(service, &format!("/v2/batches?next_token={next}"), &self.clients[0].token).json();
            ids.extend(page["data"].as_array().unwrap().iter().map(|batch| batch["batch_id"].to_string()));
            cursor = page["next_token"].as_str().map(str::to_owned);
        }
        assert_eq!(ids.len() as u64, sizes()[0].1 - 1_000, "a page of 1000 was met before");
        assert!(!ids.iter().any(|id| id == "\"scan-0000007\""), "a batch is met twice");
        ids
    }
}

#[test]
fn everything_goes_from_a_file_to_postgresql_and_back_while_it_is_served() {
    let source = Source::new();
    let site = &source.site;
    let (cluster, back) = (fresh_database(), site.url("back.db"));
    let mut digests = Vec::new();
    for (from, to) in [(&site.database, &cluster), (&cluster, &back)] {
        let started = Instant::now();
        let report = copy(from, to);
        println!("{} batches to {}: {:.1} s", total(&report), scheme(to), started.elapsed().as_secs_f64());
        assert!(report.values().all(|(_, _, was_there)| !was_there));
        let counts: Vec<_> = report.iter().map(|(name, (batches, ..))| (name.as_str(), *batches)).collect();
        let mut expected = sizes();
        expected.sort_unstable();
        assert_eq!(counts, expected);
        digests.push(report);
    }
    assert_eq!(digests[0], digests[1]);
    for url in [&cluster, &back] {
        let copied = site.serve_url(url, &[]);
        source.is_answered_alike_by(&copied);
        let doctor = site.run(&["doctor", "--database", url]).done();
        assert!(doctor.ends_with("\nall is well\n"), "{doctor}");
        // A number that was ever used would open what its first owner gave out.
        site.run(&["org", "add", "Neu", "--database", url]).done();
        assert!(number(url, "Neu") > source.last_number);
    }
}

fn total(report: &Report) -> u64 {
    report.values().map(|(batches, ..)| batches).sum()
}

fn scheme(url: &str) -> &str {
    url.split(':').next().unwrap()
}

#[test]
fn a_copy_that_was_killed_is_finished_by_the_next_which_keeps_what_is_whole() {
    let site = Site::empty();
    let batches = if is_optimised() { 6_000 } else { 300 };
    for org in 0..KILLED_ORGS {
        site.run(&["org", "add", &org.to_string()]).done();
        let file = site.write("a.ndjson", scans::ndjson(org..org + batches, "x"));
        site.run(&["import", "--org", &org.to_string(), &file]).done();
    }
    // The quicker of two: another test may be busy beside one of them.
    let timed = |target: String| {
        let started = Instant::now();
        let whole = copy(&site.database, &target);
        (started.elapsed(), whole)
    };
    let ((one, whole), (other, _)) = (timed(fresh_database()), timed(fresh_database()));
    // Most of the second half is the verification, when all is there.
    let moments = Chance(20_260_131).moments(KILLS, one.min(other).mul_f64(0.6));
    let mut partly = 0;
    for (round, moment) in moments.into_iter().enumerate() {
        let target = if round % 2 == 0 { fresh_database() } else { site.url(&format!("{round}.db")) };
        copy_and_kill(&site.database, &target, moment);
        let there = names_in(&site, &target, batches);
        let finished = copy(&site.database, &target);
        let kept: Vec<&String> =
            finished.iter().filter(|(_, (.., was_there))| *was_there).map(|(name, _)| name).collect();
        println!("killed after {moment:?}: {} of {KILLED_ORGS} there", there.len());
        assert!(there.iter().all(|name| kept.contains(&name)), "{there:?} were there, {kept:?} were kept");
        partly += u64::from(!kept.is_empty() && kept.len() < finished.len());
        let contents = |report: &Report| -> Vec<(String, u64, String)> {
            report
                .iter()
                .map(|(name, (batches, digest, _))| (name.clone(), *batches, digest.clone()))
                .collect()
        };
        assert_eq!(contents(&finished), contents(&whole));
        assert!(copy(&site.database, &target).values().all(|(.., was_there)| *was_there));
    }
    assert!(partly > 0, "no kill came between two organisations");
}

fn copy_and_kill(from: &str, to: &str, after: Duration) {
    let mut command = batchscan(&["copy", "--from", from, "--to", to]);
    let doomed = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    std::thread::sleep(after);
    // This is the kill.
    drop(doomed);
}

/// The organisations in a target, each of which must be whole. A copy may have been killed before it made any.
#[track_caller]
fn names_in(site: &Site, target: &str, batches: u64) -> Vec<String> {
    let outcome = site.run(&["org", "list", "--json", "--database", target]);
    if outcome.err.contains("was not finished") {
        return names_in_half(target, batches);
    }
    if outcome.code != Some(0) {
        let is_empty = ["holds no batchscan tables yet", "there is no database at"];
        assert!(is_empty.iter().any(|words| outcome.err.contains(words)), "{outcome:?}");
        return Vec::new();
    }
    let orgs: Vec<Value> = serde_json::from_str(&outcome.out).unwrap();
    assert!(orgs.iter().all(|org| org["batches"] == batches), "{}", outcome.out);
    orgs.iter().map(|org| org["name"].as_str().unwrap().to_owned()).collect()
}

/// The same of a target that no command opens.
#[track_caller]
fn names_in_half(target: &str, batches: u64) -> Vec<String> {
    let ask =
        "SELECT o.name || '|' || (SELECT count(*) FROM batch b WHERE b.org_id = o.id) FROM organisation o";
    let rows: Vec<String> = match target.strip_prefix("sqlite:") {
        Some(path) => {
            let file = rusqlite::Connection::open(path).unwrap();
            let mut all = file.prepare(ask).unwrap();
            all.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        }
        None => {
            let rows = postgres().sql(target.rsplit_once('/').unwrap().1, ask).unwrap();
            rows.lines().map(str::to_owned).collect()
        }
    };
    let name = |row: &String| {
        let (name, found) = row.rsplit_once('|').unwrap();
        assert_eq!(found, batches.to_string(), "{row}");
        name.to_owned()
    };
    rows.iter().map(name).collect()
}

#[test]
fn a_copy_tells_what_it_copied_and_what_was_there() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_200, "x")));
    let target = fresh_database();
    for note in ["copied", "was there already"] {
        let words = ["copy", "--from", &site.database, "--to", &target];
        let text = Outcome::of(&mut batchscan(&words)).done();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["ORGANISATION", "BATCHES", "DIGEST"]);
        assert!(
            lines[1].starts_with("Green Valley  1,200    ") && lines[1].ends_with(&format!("  {note}")),
            "{text}"
        );
        let said = format!(
            "copied and verified 1 organisation with 1,200 batches from {} to {target} in ",
            site.database
        );
        assert!(lines[2].starts_with(&said) && lines[2].ends_with(" s") && lines.len() == 3, "{text}");
    }
    // A copy that was finished may be in use: what came to the source since then does not go over it.
    site.import(&site.write("b.ndjson", scans::ndjson(1_000..1_300, "later")));
    let message = "the target is in use: its \"Green Valley\" is not what it is in the source; copy into an empty database";
    refused(&site.database, &target, message);
}

#[test]
fn a_target_in_use_is_refused_and_left_as_it_is() {
    let site = Site::new();
    let in_use = |what: &str| format!("the target is in use: {what}; copy into an empty database");
    for with_keys in [false, true] {
        let target = fresh_database();
        let on_target = |words: &[&str]| Outcome::of(batchscan(words).args(["--database", &target])).done();
        on_target(&["org", "add", "Other"]);
        if with_keys {
            site.credential();
            on_target(&["credential", "issue", "--org", "Other"]);
        }
        let before = on_target(&["org", "list"]);
        // Both have a first organisation, and nothing else in common.
        let what = "it holds an organisation \"Other\" that the source does not have";
        refused(&site.database, &target, &in_use(what));
        assert_eq!(on_target(&["org", "list"]), before);
    }
    assert_eq!(listed(&site).len(), 1);
}

/// After the move to another database, the old one must not come back over it.
#[test]
fn a_target_that_went_on_after_it_was_copied_is_not_overwritten() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..10, "x")));
    let target = fresh_database();
    copy(&site.database, &target);
    let import = |url: &str, lines: String| {
        let file = site.write("b.ndjson", lines);
        site.run(&["import", "--org", ORG, &file, "--database", url]).done();
    };
    import(&target, scans::ndjson(10..20, "on the target"));
    let message = "the target is in use: its \"Green Valley\" is not what it is in the source; copy into an empty database";
    refused(&site.database, &target, message);
    // As many imports on both sides, and other ones.
    import(&site.database, scans::ndjson(20..50, "on the source"));
    refused(&site.database, &target, message);
    let orgs: Value =
        serde_json::from_str(&site.run(&["org", "list", "--json", "--database", &target]).done()).unwrap();
    assert_eq!(orgs[0]["batches"], 20);
}

#[test]
fn a_database_is_not_copied_onto_itself() {
    let site = Site::new();
    let cluster = fresh_database();
    for url in [&site.database, &cluster] {
        refused(url, url, "--from and --to name the same database: nothing was copied");
    }
}

#[test]
fn a_source_that_is_not_there_makes_no_target() {
    let site = Site::empty();
    let message = format!(
        "there is no database at {}: `batchscan serve` and `batchscan org add` make one; or name another with --database",
        site.name("scans.db")
    );
    refused(&site.database, &site.url("target.db"), &message);
    assert!(!site.path("target.db").exists());
}

#[test]
fn an_empty_source_is_copied_with_the_numbers_it_gave_out() {
    let site = Site::new();
    site.credential();
    site.run(&["org", "remove", ORG, "--yes"]).done();
    let (cluster, back) = (fresh_database(), site.url("back.db"));
    for (from, to) in [(&site.database, &cluster), (&cluster, &back)] {
        let text = Outcome::of(&mut batchscan(&["copy", "--from", from, "--to", to])).done();
        let said = format!("copied and verified 0 organisations with 0 batches from {from} to {to} in ");
        assert!(text.lines().last().unwrap().starts_with(&said), "{text}");
        assert_eq!(copy(from, to), Report::new());
    }
    let keys = |url: &str| Outcome::of(&mut batchscan(&["key", "list", "--database", url])).done();
    assert_eq!((keys(&cluster), keys(&back)), (keys(&site.database), keys(&site.database)));
    for url in [&cluster, &back] {
        site.run(&["org", "add", "Neu", "--database", url]).done();
        assert_eq!(number(url, "Neu"), 2);
    }
}

/// After the move, what was ended on the new database stays ended.
#[test]
fn a_credential_that_was_revoked_on_the_target_does_not_come_back() {
    let site = Site::new();
    let credential = site.credential();
    let target = fresh_database();
    copy(&site.database, &target);
    site.run(&["credential", "revoke", &credential.id, "--database", &target]).done();
    let message = "the target is in use: its \"Green Valley\" is not what it is in the source; copy into an empty database";
    refused(&site.database, &target, message);
    let list = site.run(&["credential", "list", "--org", ORG, "--database", &target]).done();
    assert!(list.contains("revoked"), "{list}");
}

#[test]
fn half_a_copy_is_not_served_and_is_nobody_elses_to_finish() {
    let site = Site::new();
    site.credential();
    for target in [fresh_database(), site.url("half.db")] {
        site.run(&["org", "add", "X", "--database", &target]).done();
        site.run(&["org", "remove", "X", "--yes", "--database", &target]).done();
        let mark = "INSERT INTO unfinished_copy VALUES ('another')";
        match target.strip_prefix("sqlite:") {
            Some(path) => rusqlite::Connection::open(path).unwrap().execute_batch(mark).unwrap(),
            None => drop(postgres().sql(target.rsplit_once('/').unwrap().1, mark).unwrap()),
        }
        let message = format!("a copy into {target} was not finished: run the same `batchscan copy` again");
        for words in [&["org", "list"][..], &["org", "add", "Y"], &["doctor"]] {
            site.run(&[words, &["--database", &target]].concat()).fails(&message);
        }
        let message =
            "the target is in use: it is an unfinished copy of another database; copy into an empty database";
        refused(&site.database, &target, message);
    }
}
