//! `batchscan copy`: tokens, secrets, cursors and positions keep working, and an interrupted copy is continued.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use batchscan_testbed::Random;
use rusqlite::OpenFlags;
use serde_json::Value;
use snapbox::{IntoData, file, str};

use crate::http::{auth, get, token};
use crate::organisations::listed;
use crate::program::{Outcome, Running, batchscan};
use crate::scans;
use crate::service::Service;
use crate::site::{Credential, ORG, Site, fresh_database, postgres};

/// Killed copies, half of them into PostgreSQL.
const KILLS: u32 = 6;
/// Further ones, until one was killed between two organisations.
const TRIES_MAX: usize = 50;
/// With several organisations, some are complete when the copy is killed.
const KILLED_ORGS: u64 = 6;

/// Organisations and their batches.
const SIZES: [(&str, u64); 4] = [(ORG, 12_000), ("Nord", 6_000), ("Süd \"alt\"", 2_000), ("Leer", 0)];

/// For each organisation: batches, digest, and whether it was already there.
type Report = BTreeMap<String, (u64, String, bool)>;

fn copy(from: &str, to: &str) -> Report {
    let text = Outcome::run(&mut batchscan(&["copy", "--from", from, "--to", to, "--json"])).succeeds();
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

#[track_caller]
fn fails(from: &str, to: &str, error: impl IntoData) {
    Outcome::run(&mut batchscan(&["copy", "--from", from, "--to", to])).fails(error);
}

/// The id of an organisation.
fn number(url: &str, org: &str) -> i64 {
    let query = format!("SELECT id FROM organisation WHERE name = '{org}'");
    match url.strip_prefix("sqlite:") {
        Some(path) => {
            rusqlite::Connection::open(path).unwrap().query_row(&query, [], |row| row.get(0)).unwrap()
        }
        None => postgres().sql(url.rsplit_once('/').unwrap().1, &query).unwrap().parse().unwrap(),
    }
}

/// A client of an organisation.
struct Client {
    credential: Credential,
    token: String,
}

impl Client {
    fn of(site: &Site, service: &Service, org: &str) -> Self {
        let issue = ["credential", "issue", "--org", org, "--label", "ERP", "--json"];
        let credential = Credential::from_json(&site.run(&issue).succeeds());
        Self { token: token(service, &credential), credential }
    }
}

/// A database with removed organisations, moved batches and rotated secrets.
struct Source {
    site: Site,
    service: Service,
    clients: Vec<Client>,
    revoked: Client,
    /// From before the batches moved.
    cursor: String,
    /// A position in the changes, also from then.
    since: String,
    last_number: i64,
}

impl Source {
    fn new() -> Self {
        let site = Site::without_org();
        for (name, batches) in SIZES {
            site.run(&["org", "add", name]).succeeds();
            let file = site.write("a.ndjson", scans::ndjson(0..batches, "x"));
            site.run(&["import", "--org", name, &file]).succeeds();
        }
        site.run(&["org", "add", "Gone"]).succeeds();
        let last_number = number(&site.database, "Gone");
        site.run(&["org", "remove", "Gone", "--yes"]).succeeds();
        let service = site.serve(&[]);
        let clients: Vec<Client> = SIZES.iter().map(|(name, _)| Client::of(&site, &service, name)).collect();
        let revoked = Client::of(&site, &service, ORG);
        site.run(&["credential", "revoke", &revoked.credential.id]).succeeds();
        site.run(&["credential", "rotate", &clients[1].credential.id]).succeeds();
        let page = get(&service, "/v2/batches", &clients[0].token).json();
        let cursor = page["next_token"].as_str().unwrap().to_owned();
        let changes = get(&service, "/v2/changes", &clients[0].token).json();
        let since = changes["since"].as_str().unwrap().to_owned();
        // Moved from before the cursor to after it.
        let moved =
            (0..50).map(|number| scans::line(number, "moved").replace("2026-01-01T", "2026-01-31T") + "\n");
        site.import(&site.write("moved.ndjson", moved.collect::<String>()));
        Self { site, service, clients, revoked, cursor, since, last_number }
    }

    /// A service on a copy sends the same responses as the one on the source.
    #[track_caller]
    fn assert_same_responses(&self, copy: &Service) {
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
        assert_eq!(self.remaining_pages(&self.service), self.remaining_pages(copy));
        assert_eq!(self.changes(&self.service), self.changes(copy));
    }

    /// The rest of the complete state after the position, and the changes since it began.
    #[track_caller]
    fn changes(&self, service: &Service) -> Vec<Value> {
        let (mut batches, mut since, mut more) = (Vec::new(), self.since.clone(), true);
        while more {
            let changes = get(service, &format!("/v2/changes?since={since}"), &self.clients[0].token).json();
            batches.extend_from_slice(changes["data"].as_array().unwrap());
            since = changes["since"].as_str().unwrap().to_owned();
            more = changes["more"].as_bool().unwrap();
        }
        assert_eq!(
            batches.len() as u64,
            SIZES[0].1 - 1_000 + 2 * 50,
            "those that moved, at their new place and as changes"
        );
        batches
    }

    /// The batches after the cursor, without those that moved.
    #[track_caller]
    fn remaining_pages(&self, service: &Service) -> Vec<String> {
        let (mut ids, mut cursor) = (Vec::new(), Some(self.cursor.clone()));
        while let Some(next) = cursor {
            let page = get(service, &format!("/v2/batches?next_token={next}"), &self.clients[0].token).json();
            ids.extend(page["data"].as_array().unwrap().iter().map(|batch| batch["batch_id"].to_string()));
            cursor = page["next_token"].as_str().map(str::to_owned);
        }
        assert_eq!(ids.len() as u64, SIZES[0].1 - 1_000, "without the first page");
        assert!(!ids.iter().any(|id| id == "\"scan-0000007\""), "a batch is sent twice");
        ids
    }
}

#[test]
fn everything_is_copied_from_sqlite_to_postgresql_and_back() {
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
        let mut expected = SIZES;
        expected.sort_unstable();
        assert_eq!(counts, expected);
        digests.push(report);
    }
    assert_eq!(digests[0], digests[1]);
    for url in [&cluster, &back] {
        let copied = site.serve_url(url, &[]);
        source.assert_same_responses(&copied);
        let doctor = site.run(&["doctor", "--database", url]).succeeds();
        assert!(doctor.ends_with("\nno problems found\n"), "{doctor}");
        // Ids are not reused: old tokens would be valid for them.
        site.run(&["org", "add", "Neu", "--database", url]).succeeds();
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
fn a_killed_copy_is_continued_by_the_next_one() {
    let site = Site::without_org();
    let batches = 3_000;
    for org in 0..KILLED_ORGS {
        site.run(&["org", "add", &org.to_string()]).succeeds();
        let file = site.write("a.ndjson", scans::ndjson(org..org + batches, "x"));
        site.run(&["import", "--org", &org.to_string(), &file]).succeeds();
    }
    // The faster of two, because other tests run in parallel.
    let timed = |target: String| {
        let started = Instant::now();
        let whole = copy(&site.database, &target);
        (started.elapsed(), whole)
    };
    let ((one, whole), (other, _)) = (timed(fresh_database()), timed(fresh_database()));
    // The rest is mostly the verification.
    let moments = Random(20_260_131).moments(KILLS, one.min(other).mul_f64(0.6));
    // On a busy machine they all may be too early or too late: then after the first organisation, until one is in time.
    let mut moments = moments.into_iter().map(Some).chain(std::iter::repeat_n(None, TRIES_MAX)).enumerate();
    let mut partly = 0;
    while let Some((round, moment)) = moments.next().filter(|(_, moment)| moment.is_some() || partly == 0) {
        let is_sqlite = moment.is_none() || round % 2 == 1;
        let target = if is_sqlite { site.url(&format!("{round}.db")) } else { fresh_database() };
        copy_and_kill(&site.database, &target, moment);
        let finished = copy(&site.database, &target);
        let kept: Vec<&String> =
            finished.iter().filter(|(_, (.., was_there))| *was_there).map(|(name, _)| name).collect();
        println!("killed after {moment:?}: {} of {KILLED_ORGS} complete", kept.len());
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
    assert!(partly > 0, "no copy was killed between two organisations");
}

/// Kills a copy after a time, or as soon as its SQLite file has an organisation.
fn copy_and_kill(from: &str, to: &str, after: Option<Duration>) {
    let mut command = batchscan(&["copy", "--from", from, "--to", to]);
    let mut copying = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    match after {
        Some(after) => std::thread::sleep(after),
        None => {
            let path = to.strip_prefix("sqlite:").unwrap();
            let count = |file: rusqlite::Connection| {
                file.query_row("SELECT count(*) FROM organisation", [], |row| row.get::<_, i64>(0)).ok()
            };
            let read = || rusqlite::Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok();
            while read().and_then(count).is_none_or(|count| count == 0)
                && copying.0.try_wait().unwrap().is_none()
            {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
    // Kills it.
    drop(copying);
}

#[test]
fn the_summary_lists_the_organisations() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_200, "x")));
    let target = fresh_database();
    let line = format!("copy --from {} --to {target}", site.database);
    site.transcript(&[&line, &line], file!["snapshots/the_summary_lists_the_organisations.txt"]);
}

#[test]
fn a_target_with_other_data_is_not_changed() {
    let site = Site::new();
    for with_keys in [false, true] {
        let target = fresh_database();
        let on_target =
            |words: &[&str]| Outcome::run(batchscan(words).args(["--database", &target])).succeeds();
        on_target(&["org", "add", "Other"]);
        if with_keys {
            site.credential();
            on_target(&["credential", "issue", "--org", "Other"]);
        }
        let before = on_target(&["org", "list"]);
        fails(
            &site.database,
            &target,
            str![[r#"
error: the target is in use: it has an organisation "Other" that is not in the source; copy into an empty database

"#]],
        );
        assert_eq!(on_target(&["org", "list"]), before);
    }
    assert_eq!(listed(&site).len(), 1);
}

#[test]
fn a_target_that_was_changed_after_the_copy_is_not_overwritten() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..10, "x")));
    let target = fresh_database();
    copy(&site.database, &target);
    let import = |url: &str, lines: String| {
        let file = site.write("b.ndjson", lines);
        site.run(&["import", "--org", ORG, &file, "--database", url]).succeeds();
    };
    let differs = || {
        fails(
            &site.database,
            &target,
            str![[r#"
error: the target is in use: its "Green Valley" differs from the source; copy into an empty database

"#]],
        );
    };
    import(&target, scans::ndjson(10..20, "on the target"));
    differs();
    // The same number of imports on both sides.
    import(&site.database, scans::ndjson(20..50, "on the source"));
    differs();
    let orgs: Value =
        serde_json::from_str(&site.run(&["org", "list", "--json", "--database", &target]).succeeds())
            .unwrap();
    assert_eq!(orgs[0]["batches"], 20);
}

#[test]
fn a_database_is_not_copied_onto_itself() {
    let site = Site::new();
    let cluster = fresh_database();
    let other_name = site.url("link.db");
    std::os::unix::fs::symlink(site.path("scans.db"), site.path("link.db")).unwrap();
    for (from, to) in [(&site.database, &site.database), (&site.database, &other_name), (&cluster, &cluster)]
    {
        fails(
            from,
            to,
            str![[r#"
error: --from and --to are the same database: nothing was copied

"#]],
        );
    }
}

#[test]
fn a_missing_source_creates_no_target() {
    let site = Site::without_org();
    fails(
        &site.database,
        &site.url("target.db"),
        str![[r#"
error: there is no database at [SITE]/scans.db: check the path, or create one with `batchscan org add`

"#]],
    );
    assert!(!site.path("target.db").exists());
}

#[test]
fn an_empty_source_is_copied_with_its_used_ids() {
    let site = Site::new();
    site.credential();
    site.run(&["org", "remove", ORG, "--yes"]).succeeds();
    let (cluster, back) = (fresh_database(), site.url("back.db"));
    for (from, to) in [(&site.database, &cluster), (&cluster, &back)] {
        let text = Outcome::run(&mut batchscan(&["copy", "--from", from, "--to", to])).succeeds();
        let summary = format!("copied and verified 0 organisations with 0 batches from {from} to {to} in ");
        assert!(text.lines().last().unwrap().starts_with(&summary), "{text}");
        assert_eq!(copy(from, to), Report::new());
    }
    let keys = |url: &str| Outcome::run(&mut batchscan(&["key", "list", "--database", url])).succeeds();
    assert_eq!((keys(&cluster), keys(&back)), (keys(&site.database), keys(&site.database)));
    for url in [&cluster, &back] {
        site.run(&["org", "add", "Neu", "--database", url]).succeeds();
        assert_eq!(number(url, "Neu"), 2);
    }
}

#[test]
fn an_unfinished_copy_is_not_opened_and_only_continued_from_its_source() {
    let site = Site::new();
    site.credential();
    for target in [fresh_database(), site.url("half.db")] {
        site.run(&["org", "add", "X", "--database", &target]).succeeds();
        site.run(&["org", "remove", "X", "--yes", "--database", &target]).succeeds();
        let mark = "INSERT INTO unfinished_copy VALUES ('another')";
        match target.strip_prefix("sqlite:") {
            Some(path) => rusqlite::Connection::open(path).unwrap().execute_batch(mark).unwrap(),
            None => drop(postgres().sql(target.rsplit_once('/').unwrap().1, mark).unwrap()),
        }
        for words in [&["org", "list"][..], &["org", "add", "Y"], &["doctor"]] {
            let outcome = site.run(&[words, &["--database", &target]].concat());
            assert!(outcome.code == Some(1) && outcome.err.contains("batchscan copy"), "{outcome:?}");
        }
        fails(
            &site.database,
            &target,
            str![[r#"
error: the target is in use: it is an unfinished copy of another database; copy into an empty database

"#]],
        );
    }
}
