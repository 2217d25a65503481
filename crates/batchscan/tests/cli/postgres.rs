//! PostgreSQL: what differs from SQLite, and the errors of a database that cannot be used. No error has a password.

use std::time::{Duration, Instant};

use batchscan_testbed::ports;
use snapbox::file;

use crate::database_errors::{PASSWORD, error_of_all, on};
use crate::organisations::listed;
use crate::program::Outcome;
use crate::site::{Site, postgres};
use crate::snapshot::assert_snapshot;

/// Opening a database waits 10 s for a host.
const GIVES_UP_AFTER: Duration = Duration::from_secs(9);

/// The name of a database in its URL.
fn name_of(url: &str) -> &str {
    url.rsplit_once('/').unwrap().1
}

fn url(user: &str, name: &str) -> String {
    format!("postgres://{user}:{PASSWORD}@127.0.0.1:{}/{name}", postgres().port())
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
    // Other places of the password; the last ones are not escaped.
    for url in [
        "postgress://ann:*@h/db",
        "host=h user=ann password=* dbname=db",
        "postgres://ann:*@/db",
        "postgres://ann:*@h:*/db",
        "postgres://ann:*",
        "postgres://ann:*/db",
        "postgres://ann:*@h/db?colour=*",
        "postgres://h/db?password=*&sslmode=*",
        "postgres://h/db?password=*&port=*",
        "postgres://ann:x@*@h/db",
        "postgres://ann:12?*@h/db",
        "postgres://ann:x?*@h/db",
        "postgres://ann:12/x?*=@h/db",
        "postgres://ann:x#*@h:x/db",
    ] {
        let outcome = on(&url.replace('*', PASSWORD), &["org", "list"]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{outcome:?}");
    }
}
