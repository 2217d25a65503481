//! The operator's day on PostgreSQL: every command does what it does on a file, and a database that cannot be used is
//! told apart by its message. No message shows a password.

use std::time::{Duration, Instant};

use batchscan_testbed::ports;
use serde_json::{Value, json};

use crate::credentials::{DEATH_LIMIT, within};
use crate::imports::untimed;
use crate::organisations::listed;
use crate::program::{Outcome, batchscan};
use crate::scans;
use crate::service::Service;
use crate::site::{Credential, ORG, Site, postgres};
use crate::wire::{ask, auth, get, get_head, token};

/// An opening waits 10 s for a host; a busy machine may need a little more to say so.
const GIVES_UP_AFTER: std::ops::Range<Duration> = Duration::from_secs(9)..Duration::from_secs(13);
/// What is in every URL of this file that is refused, and in no message.
const PASSWORD: &str = "canary-Pa55word";

/// Commands that need a database, each with a different way to open it.
const COMMANDS: [&[&str]; 5] = [
    &["org", "list"],
    &["org", "add", "X"],
    &["import", "--org", "X", "missing.ndjson"],
    &["doctor"],
    &["serve", "--listen", "127.0.0.1:0"],
];

#[test]
fn organisations_are_added_listed_renamed_and_removed() {
    let site = Site::empty_on_postgres();
    let message = format!(
        "{} holds no batchscan tables yet: `batchscan serve` and `batchscan org add` make them",
        site.database
    );
    for words in [&["org", "list"][..], &["doctor"], &["key", "list"], &["backup", &site.name("a.db")]] {
        site.run(words).fails(&message);
    }
    assert_eq!(site.run(&["org", "add", "Nord"]).done(), "added organisation \"Nord\"\n");
    assert_eq!(site.run(&["org", "add", "Ärger"]).done(), "added organisation \"Ärger\"\n");
    let taken = "there is an organisation named \"Nord\" already: `batchscan org list` shows all";
    site.run(&["org", "add", "Nord"]).fails(taken);
    site.run(&["org", "rename", "Ärger", "Nord"]).fails(taken);
    assert_eq!(site.run(&["org", "rename", "Nord", "Süd"]).done(), "renamed \"Nord\" to \"Süd\"\n");
    site.run(&["credential", "issue", "--org", "Süd"]).done();
    // By bytes, as in a file, whatever the language of the server is.
    assert_eq!(listed(&site), [("Süd".into(), 0, 1), ("Ärger".into(), 0, 0)]);
    let removed = "removed organisation \"Süd\" with 0 batches and 1 credential\n";
    assert_eq!(site.run(&["org", "remove", "Süd", "--yes"]).done(), removed);
    assert_eq!(listed(&site), [("Ärger".into(), 0, 0)]);
}

/// Decisions 037 and 040.
#[test]
fn an_import_counts_new_corrected_unchanged_and_superseded() {
    let site = Site::on_postgres();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_200, "first")));
    let lines = [
        scans::line(5_000, "new, then again"),
        scans::line(5_000, "new"),
        scans::line(1, "corrected"),
        scans::line(0, "first").replace("2026-01-01T00:00:00Z", "2026-01-30T00:00:00+02:00"),
        scans::line(2, "first"),
        scans::line(3, "there and"),
        scans::line(3, "first"),
    ];
    let file = site.write("b.ndjson", lines.join("\n"));
    let counts = format!(
        "7 batches from {file} into \"Green Valley\": 1 new, 2 corrected, 2 unchanged, 2 superseded by a later line,"
    );
    let tried = site.run(&["import", "--org", ORG, "--dry-run", &file]).done();
    assert_eq!(untimed(&tried), format!("would import {counts}"));
    assert_eq!(listed(&site), [(ORG.into(), 1_200, 0)]);
    assert_eq!(untimed(&site.import(&file)), format!("imported {counts}"));
    let again = format!(
        "imported 7 batches from {file} into \"Green Valley\": 0 new, 0 corrected, 5 unchanged, 2 superseded by a later line,"
    );
    assert_eq!(untimed(&site.import(&file)), again);
    let faulty = site.write("c.ndjson", scans::line(6_000, "x") + "\n{}\n");
    assert_eq!(site.run(&["import", "--org", ORG, &faulty]).code, Some(1));
    let service = site.serve(&[]);
    let all = get(&service, "/v1/batches", &token(&service, &site.credential())).json();
    let all = all.as_array().unwrap();
    assert_eq!((all.len(), &all[0]["comment"]), (1_201, &"corrected".into()));
    assert_eq!(all[1_200]["batch_creation_date"], "2026-01-29T22:00:00Z", "a batch may move");
}

#[test]
fn credentials_are_issued_listed_rotated_and_revoked() {
    let site = Site::on_postgres();
    let first = site.credential();
    let service = site.serve(&[]);
    let rotate = ["credential", "rotate", &first.id, "--retire-after", "0s", "--json"];
    let second = Credential::from_json(&site.run(&rotate).done());
    assert_eq!((auth(&service, &first).status, auth(&service, &second).status), (401, 200));
    let list = site.run(&["credential", "list", "--org", ORG, "--json"]).done();
    assert!(!list.contains(&first.secret) && !list.contains(&second.secret), "{list}");
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!((&list[0]["client_id"], &list[0]["state"]), (&first.id.as_str().into(), &"active".into()));
    let revoked =
        format!("revoked {}: no new tokens, and those that are out stop working within 5 s\n", first.id);
    assert_eq!(site.run(&["credential", "revoke", &first.id]).done(), revoked);
    let message = format!(
        "the credential {} is revoked already: issue a new one with `batchscan credential issue --org NAME`",
        first.id
    );
    site.run(&rotate).fails(&message);
    assert_eq!(auth(&service, &second).status, 401);
    let list = site.run(&["credential", "list", "--org", ORG]).done();
    assert!(list.contains("  revoked  "), "{list}");
}

#[test]
fn two_services_on_one_database_give_the_same_bytes_and_etags() {
    let site = Site::on_postgres();
    site.import(&site.write("a.ndjson", scans::ndjson(0..2_500, "first")));
    let credential = site.credential();
    let (one, other) = (site.serve(&[]), site.serve(&[]));
    let token = token(&one, &credential);
    let mut etags = Vec::new();
    for import in [None, Some(scans::ndjson(2_400..3_000, "second"))] {
        import.map(|lines| site.import(&site.write("b.ndjson", lines)));
        for target in ["/v1/batches", "/v2/batches", "/v2/batches?start_date=2026-01-01T00:10:00Z"] {
            let (mine, theirs) = (get(&one, target, &token), get(&other, target, &token));
            let etag = mine.header("etag").unwrap().to_owned();
            assert_eq!(theirs.header("etag"), Some(etag.as_str()), "{target}");
            assert_eq!(mine.ok(), theirs.ok(), "{target}");
            // An ETag of one service spares the other the body.
            let known = format!("{}\r\nIf-None-Match: {etag}", get_head(target, &token));
            let unchanged = ask(&other, &known, "");
            assert_eq!((unchanged.status, unchanged.body.len()), (304, 0), "{target}");
            etags.push(etag);
        }
        assert_eq!(get(&one, "/v1/batches", &token).json(), Value::Array(walked(&[&one, &other], &token)));
    }
    etags.sort();
    etags.dedup();
    assert_eq!(etags.len(), 6, "another state or window has another ETag");
}

/// All batches of v2, each page from another service.
fn walked(services: &[&Service], token: &str) -> Vec<Value> {
    let (mut all, mut target) = (Vec::new(), "/v2/batches".to_owned());
    for service in services.iter().cycle() {
        let mut page = get(service, &target, token).json();
        all.append(page["data"].as_array_mut().unwrap());
        match page["next_token"].as_str() {
            Some(next) => target = format!("/v2/batches?next_token={next}"),
            None => break,
        }
    }
    all
}

/// Decision 010.
#[test]
fn a_revocation_holds_on_every_service_within_five_seconds() {
    let site = Site::on_postgres();
    site.import(&site.write("a.ndjson", scans::ndjson(0..10, "x")));
    let (doomed, spared) = (site.credential(), site.credential());
    let services = [site.serve(&[]), site.serve(&[])];
    let tokens = [token(&services[0], &doomed), token(&services[0], &spared)];
    for service in &services {
        assert_eq!(tokens.each_ref().map(|token| get(service, "/v1/batches", token).status), [200, 200]);
    }
    site.run(&["credential", "revoke", &doomed.id]).done();
    for service in &services {
        within(DEATH_LIMIT, "the token dies", || get(service, "/v1/batches", &tokens[0]).status == 401);
        assert_eq!(auth(service, &doomed).status, 401);
        assert_eq!(get(service, "/v1/batches", &tokens[1]).status, 200);
    }
}

#[test]
fn a_backup_is_a_file_that_serves_the_same_with_the_same_tokens() {
    let site = Site::on_postgres();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_500, "x")));
    let credential = site.credential();
    let service = site.serve(&[]);
    let token = token(&service, &credential);
    let target = site.name("copy.db");
    let text = site.run(&["backup", &target]).done();
    let expected = format!("backed up {} to {target} (", site.database);
    assert!(text.starts_with(&expected) && text.ends_with(" MiB)\n"), "{text}");
    let exists = format!("{target} exists already: choose another name, or remove it first");
    site.run(&["backup", &target]).fails(&exists);
    let restored = site.serve_database("copy.db", &[]);
    let page = get(&service, "/v2/batches", &token);
    assert_eq!(get(&restored, "/v2/batches", &token).header("etag"), page.header("etag"));
    let next = format!("/v2/batches?next_token={}", page.json()["next_token"].as_str().unwrap());
    for target in ["/v1/batches", &next] {
        assert_eq!(get(&restored, target, &token).ok(), get(&service, target, &token).ok());
    }
    assert_eq!(auth(&restored, &credential).status, 200);
    let doctor = site.run(&["doctor", "--database", &site.url("copy.db")]).done();
    assert!(doctor.ends_with(": schema 3, 1 organisation, 1,500 batches\nall is well\n"), "{doctor}");
    let left: Vec<_> = std::fs::read_dir(site.path("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.iter().all(|path| !path.to_str().unwrap().contains(".partial")), "{left:?}");
}

#[test]
fn the_doctor_finds_a_sound_database_well_and_names_what_is_damaged() {
    let site = Site::on_postgres();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_200, "x")));
    let expected = format!("{}: schema 3, 1 organisation, 1,200 batches\nall is well\n", site.database);
    assert_eq!(site.run(&["doctor"]).done(), expected);
    let report: Value = serde_json::from_str(&site.run(&["doctor", "--json"]).done()).unwrap();
    let expected = json!({ "ok": true, "schema": 3, "organisations": 1, "batches": 1_200, "findings": [] });
    assert_eq!(report, expected);
    let damage =
        "update batch set json = replace(json, '\"92.50\"', '\"92.5\"') where batch_id = 'scan-0000002'";
    postgres().sql(name_of(&site.database), damage).unwrap();
    let outcome = site.run(&["doctor"]);
    let expected = format!(
        "{}: schema 3, 1 organisation, 1,200 batches\n1 finding:\n  batch \"scan-0000002\" of \"Green Valley\": \
         its text is not the text of the batch it holds; import it again\n",
        site.database
    );
    assert_eq!((outcome.code, outcome.out), (Some(1), expected));
}

#[test]
fn a_database_that_is_away_is_waited_for_and_then_named() {
    let _site = Site::empty();
    let port = ports::free().unwrap();
    let url = format!("postgres://ann:{PASSWORD}@127.0.0.1:{port}/scans");
    let message = format!(
        "cannot reach postgres://ann@127.0.0.1:{port}/scans: 127.0.0.1:{port}: error connecting to server: Connection \
         refused (os error 111); is the server running, and are host, port and sslmode right?"
    );
    std::thread::scope(|scope| {
        for words in [&["serve", "--listen", "127.0.0.1:0"][..], &["org", "list"]] {
            let (url, message) = (&url, &message);
            scope.spawn(move || {
                let started = Instant::now();
                let outcome = on(url, words);
                assert_eq!((outcome.code, outcome.out.as_str()), (Some(1), ""), "{outcome:?}");
                // A service has logged before that the host is down.
                assert_eq!(last_line(&outcome.err), format!("error: {message}"));
                assert!(!outcome.err.contains(PASSWORD), "{}", outcome.err);
                assert!(GIVES_UP_AFTER.contains(&started.elapsed()), "{:?}", started.elapsed());
            });
        }
    });
}

#[test]
fn a_wrong_password_and_a_database_that_is_not_there_are_told_at_once() {
    let _site = Site::empty();
    let (server, started) = (postgres(), Instant::now());
    server.sql("postgres", "create role ann login password 'right' in role guarded").unwrap();
    let message = refusal("ann", "postgres", "password authentication failed for user \"ann\" (28P01)");
    all_refuse("ann", "postgres", &message);
    let message = refusal("postgres", "nosuch", "database \"nosuch\" does not exist (3D000)");
    all_refuse("postgres", "nosuch", &message);
    let missing = on(&format!("postgres://ann@127.0.0.1:{}/postgres", server.port()), &["org", "list"]);
    missing.fails(&refusal("ann", "postgres", "invalid configuration: password missing"));
    let no_tls = on(&format!("{}?sslmode=require", server.url("postgres")), &["org", "list"]);
    let cause = "error performing TLS handshake: server does not support TLS";
    no_tls.fails(&refusal("postgres", "postgres", cause));
    assert!(started.elapsed() < GIVES_UP_AFTER.start, "{:?}", started.elapsed());
    // The right one opens, and it is needed.
    let name = server.fresh_database().unwrap();
    server.sql("postgres", &format!("alter database {name} owner to ann")).unwrap();
    let url = format!("postgres://ann:right@127.0.0.1:{}/{name}", server.port());
    assert_eq!(on(&url, &["org", "add", "X"]).done(), "added organisation \"X\"\n");
}

#[test]
fn a_database_that_holds_something_else_is_left_alone() {
    let _site = Site::empty();
    let server = postgres();
    let history =
        "create table schema_history (version int4 primary key, name text, applied_on text, checksum text)";
    for tables in [
        "create table batch (id int)".to_owned(),
        "create table organisation (id int)".to_owned(),
        // Somebody else's, whose migrations have numbers like ours.
        format!(
            "{history}; insert into schema_history values (1, 'seeds', '', '1'); create table seed (id int)"
        ),
    ] {
        let name = server.fresh_database().unwrap();
        server.sql(&name, &tables).unwrap();
        let inside = || {
            server
                .sql(
                    &name,
                    "select relname from pg_class where relnamespace = 'public'::regnamespace order by 1",
                )
                .unwrap()
        };
        let before = inside();
        let message = format!(
            "{} holds tables that are not batchscan's: name another database with --database",
            server.url(&name)
        );
        all_refuse("postgres", &name, &message);
        assert_eq!(inside(), before, "{tables}");
    }
}

#[test]
fn a_database_that_cannot_hold_every_text_is_refused() {
    let _site = Site::empty();
    let make = "create database latin encoding 'LATIN1' locale 'C' template template0";
    postgres().sql("postgres", make).unwrap();
    let message =
        format!("{} has the encoding LATIN1: make it anew with ENCODING 'UTF8'", postgres().url("latin"));
    all_refuse("postgres", "latin", &message);
}

#[test]
fn a_database_of_a_later_program_is_refused() {
    let site = Site::on_postgres();
    let name = name_of(&site.database);
    let later = "insert into schema_history values (99, 'later', '', '1')";
    postgres().sql(name, later).unwrap();
    let message = "the database has schema 99, and this program knows up to 3: update batchscan";
    all_refuse("postgres", name, message);
}

#[test]
fn a_role_that_may_not_make_tables_or_read_them_is_told_what_it_lacks() {
    let site = Site::on_postgres();
    let server = postgres();
    server.sql("postgres", "create role guest login").unwrap();
    let empty = server.fresh_database().unwrap();
    let url = |name: &str| format!("postgres://guest:{PASSWORD}@127.0.0.1:{}/{name}", server.port());
    let message = refusal(
        "guest",
        &empty,
        "permission denied for schema public (42501): the role must own the database, or have CREATE on its schema",
    );
    on(&url(&empty), &["org", "add", "X"]).fails(&message);
    let served = on(&url(&empty), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!((served.code, last_line(&served.err)), (Some(1), format!("error: {message}").as_str()));
    assert!(!served.err.contains(PASSWORD), "{}", served.err);
    let name = name_of(&site.database);
    let message = refusal(
        "guest",
        name,
        "permission denied for table schema_history (42501): use the role that made batchscan's tables, or grant it this one",
    );
    all_refuse("guest", name, &message);
}

#[test]
fn a_postgresql_url_that_is_none_says_why_and_shows_no_password() {
    let hosts = vec!["h"; 17].join(",");
    let cases = [
        ("@h/db?sslmode=maybe".to_owned(), "sslmode must be disable, prefer, require or verify-full"),
        ("@b@h/db".into(), "an @, / or ? in a name or password is written %40, %2F or %3F"),
        ("@h/db?prepare=1".into(), "prepare must be on or off"),
        ("@h".into(), "name the database after the last host: postgres://USER@HOST:PORT/DATABASE"),
        ("@h/".into(), "name the database after the last host: postgres://USER@HOST:PORT/DATABASE"),
        (format!("@{hosts}/db"), "name from 1 to 16 hosts"),
        ("@h/db?colour=red".into(), "unknown option `colour`; write postgres://USER@HOST:PORT/DATABASE"),
        ("@h:port/db".into(), "invalid value for option `port`; write postgres://USER@HOST:PORT/DATABASE"),
    ];
    let _site = Site::empty();
    for (rest, why) in cases {
        let url = format!("postgres://ann:{PASSWORD}{rest}");
        let message = format!("invalid value for '--database <URL>': not a PostgreSQL URL: {why}\n");
        on(&url, &["org", "list"]).misused(&message);
        Outcome::of(batchscan(&["org", "list"]).env("BATCHSCAN_DATABASE", &url)).misused(&message);
        for (flag, other) in [("--from", "--to"), ("--to", "--from")] {
            let message = message.replace("--database", flag);
            Outcome::of(&mut batchscan(&["copy", flag, &url, other, "sqlite:a.db"])).misused(&message);
        }
    }
}

fn on(url: &str, words: &[&str]) -> Outcome {
    Outcome::of(batchscan(words).args(["--database", url]))
}

/// The name of a database in its URL.
fn name_of(url: &str) -> &str {
    url.rsplit_once('/').unwrap().1
}

fn refusal(user: &str, name: &str, cause: &str) -> String {
    format!("postgres://{user}@127.0.0.1:{}/{name} refuses: {cause}", postgres().port())
}

/// Every command fails with these words. A service has logged before that the server is up.
#[track_caller]
fn all_refuse(user: &str, name: &str, message: &str) {
    let url = format!("postgres://{user}:{PASSWORD}@127.0.0.1:{}/{name}", postgres().port());
    for words in COMMANDS {
        let outcome = on(&url, words);
        assert!(!outcome.err.contains(PASSWORD), "{}", outcome.err);
        if words[0] == "serve" {
            assert_eq!((outcome.code, outcome.out.as_str()), (Some(1), ""), "{outcome:?}");
            assert_eq!(last_line(&outcome.err), format!("error: {message}"));
        } else {
            outcome.fails(message);
        }
    }
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap()
}
