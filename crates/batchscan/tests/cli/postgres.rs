//! PostgreSQL: what differs from SQLite, and the errors of a database that cannot be used. No error has a password.

use std::time::{Duration, Instant};

use batchscan_testbed::ports;
use snapbox::file;

use crate::organisations::listed;
use crate::program::{Outcome, batchscan};
use crate::site::{Site, postgres};
use crate::snapshot::assert_snapshot;

/// Opening a database waits 10 s for a host.
const GIVES_UP_AFTER: Duration = Duration::from_secs(9);
/// In every URL of these tests, and in no error.
const PASSWORD: &str = "canary-Pa55word";

/// Commands that open a database in different ways.
const COMMANDS: [&str; 5] =
    ["org list", "org add X", "import --org X missing.ndjson", "doctor", "serve --listen 127.0.0.1:0"];

fn on(url: &str, words: &[&str]) -> Outcome {
    let outcome = Outcome::run(batchscan(words).args(["--database", url]));
    assert!(!outcome.err.contains(PASSWORD), "{}", outcome.err);
    outcome
}

/// The name of a database in its URL.
fn name_of(url: &str) -> &str {
    url.rsplit_once('/').unwrap().1
}

fn url(user: &str, name: &str) -> String {
    format!("postgres://{user}:{PASSWORD}@127.0.0.1:{}/{name}", postgres().port())
}

/// Every command fails with the same error, which is returned. `serve` may log before it.
#[track_caller]
fn error_of_all(url: &str) -> String {
    let errors = COMMANDS.map(|line| {
        let outcome = on(url, &line.split(' ').collect::<Vec<_>>());
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(1), ""), "{outcome:?}");
        outcome.err.lines().last().unwrap().to_owned() + "\n"
    });
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    errors[0].clone()
}

#[test]
fn an_empty_database_gets_its_tables_from_org_add() {
    let site = Site::empty_on_postgres();
    site.transcript(
        &["org list", "key list", "backup a.db", "doctor", "org add Nord", "doctor"],
        file!["snapshots/an_empty_database_gets_its_tables_from_org_add.txt"],
    );
    // Sorted by bytes, whatever the locale of the server is.
    for name in ["Ärger", "Süd"] {
        site.run(&["org", "add", name]).succeeds();
    }
    let names: Vec<String> = listed(&site).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["Nord", "Süd", "Ärger"]);
}

#[test]
fn a_command_says_what_it_waits_for() {
    let _site = Site::without_org();
    // Accepts connections and never responds.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let started = Instant::now();
    let outcome = on(&format!("postgres://ann:{PASSWORD}@127.0.0.1:{port}/scans"), &["org", "list"]);
    assert!(started.elapsed() >= GIVES_UP_AFTER, "{:?}", started.elapsed());
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(1), ""), "{outcome:?}");
    assert_snapshot(
        &(outcome.waiting_note.unwrap() + &outcome.err),
        file!["snapshots/a_command_says_what_it_waits_for.txt"],
    );
}

#[test]
fn an_unreachable_database_is_retried_for_ten_seconds() {
    let _site = Site::without_org();
    let port = ports::free().unwrap();
    let url = format!("postgres://ann:{PASSWORD}@127.0.0.1:{port}/scans");
    std::thread::scope(|scope| {
        for words in [&["serve", "--listen", "127.0.0.1:0"][..], &["org", "list"]] {
            let url = &url;
            scope.spawn(move || {
                let started = Instant::now();
                let outcome = on(url, words);
                assert_eq!((outcome.code, outcome.out.as_str()), (Some(1), ""), "{outcome:?}");
                // `serve` logs before that the host is down.
                assert_snapshot(
                    outcome.err.lines().last().unwrap(),
                    file!["snapshots/an_unreachable_database_is_retried_for_ten_seconds.txt"],
                );
                assert!(started.elapsed() >= GIVES_UP_AFTER, "{:?}", started.elapsed());
            });
        }
    });
}

#[test]
fn a_rejected_connection_is_reported_at_once() {
    let _site = Site::without_org();
    let server = postgres();
    server.sql("postgres", "create role ann login password 'right' in role guarded").unwrap();
    let failure = "password authentication failed for user \"ann\"";
    let failures = || server.log().matches(failure).count();
    on(&url("ann", "postgres"), &["org", "list"]);
    assert_eq!(failures(), 1, "it is not retried");
    let errors = [
        error_of_all(&url("ann", "postgres")),
        error_of_all(&url("postgres", "missing")),
        on(&format!("postgres://ann@127.0.0.1:{}/postgres", server.port()), &["org", "list"]).err,
        on(&format!("{}?sslmode=require", server.url("postgres")), &["org", "list"]).err,
    ];
    assert_snapshot(&errors.concat(), file!["snapshots/a_rejected_connection_is_reported_at_once.txt"]);
    let name = server.fresh_database().unwrap();
    server.sql("postgres", &format!("alter database {name} owner to ann")).unwrap();
    let right = format!("postgres://ann:right@127.0.0.1:{}/{name}", server.port());
    on(&right, &["org", "add", "X"]).succeeds();
}

#[test]
fn a_database_with_foreign_tables_is_not_changed() {
    let _site = Site::without_org();
    let server = postgres();
    let history = "create table schema_history (version int4 primary key, name text, applied_at text)";
    for tables in [
        "create table batch (id int)".to_owned(),
        "create table organisation (id int)".to_owned(),
        // Another program's migrations, with the same numbers.
        format!("{history}; insert into schema_history values (1, 'seeds', ''); create table seed (id int)"),
    ] {
        let name = server.fresh_database().unwrap();
        server.sql(&name, &tables).unwrap();
        let inside = || {
            let query = "select relname from pg_class where relnamespace = 'public'::regnamespace order by 1";
            server.sql(&name, query).unwrap()
        };
        let before = inside();
        assert_snapshot(
            &error_of_all(&url("postgres", &name)),
            file!["snapshots/a_database_with_foreign_tables_is_not_changed.txt"],
        );
        assert_eq!(inside(), before, "{tables}");
    }
}

#[test]
fn a_database_with_another_encoding_or_a_newer_schema_is_rejected() {
    let site = Site::on_postgres();
    let create = "create database latin encoding 'LATIN1' locale 'C' template template0";
    postgres().sql("postgres", create).unwrap();
    let encoding = error_of_all(&url("postgres", "latin"));
    let later = "insert into schema_history values (99, 'later', '')";
    postgres().sql(name_of(&site.database), later).unwrap();
    assert_snapshot(
        &(encoding + &error_of_all(&site.database)),
        file!["snapshots/a_database_with_another_encoding_or_a_newer_schema_is_rejected.txt"],
    );
}

#[test]
fn missing_privileges_are_named() {
    let site = Site::on_postgres();
    let server = postgres();
    server.sql("postgres", "create role guest login").unwrap();
    let empty = url("guest", &server.fresh_database().unwrap());
    let created = on(&empty, &["org", "add", "X"]).err;
    let served = on(&empty, &["serve", "--listen", "127.0.0.1:0"]).err;
    assert!(served.ends_with(&created), "{served}");
    assert_snapshot(
        &(created + &error_of_all(&url("guest", name_of(&site.database)))),
        file!["snapshots/missing_privileges_are_named.txt"],
    );
}

#[test]
fn an_invalid_postgresql_url_is_reported_without_its_password() {
    let site = Site::without_org();
    let hosts = vec!["h"; 17].join(",");
    let rest = [
        "@h/db?sslmode=maybe",
        "@b@h/db",
        "@h/db?prepare=1",
        "@h",
        "@h/",
        &format!("@{hosts}/db"),
        "@h/db?colour=red",
        "@h:port/db",
    ];
    let mut errors = String::new();
    for rest in rest {
        let url = format!("postgres://ann:{PASSWORD}{rest}");
        let outcome = on(&url, &["org", "list"]);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        errors += &format!("{rest}\n{}\n", outcome.err.lines().next().unwrap());
        for (option, other) in [("--from", "--to"), ("--to", "--from")] {
            let copy = Outcome::run(&mut site.command(&["copy", option, &url, other, "sqlite:a.db"]));
            assert!(!copy.err.contains(PASSWORD), "{}", copy.err);
            let first_line = |text: &str| text.lines().next().unwrap().to_owned();
            assert_eq!(first_line(&copy.err), first_line(&outcome.err.replace("--database", option)));
        }
    }
    assert_snapshot(
        &errors,
        file!["snapshots/an_invalid_postgresql_url_is_reported_without_its_password.txt"],
    );
}
