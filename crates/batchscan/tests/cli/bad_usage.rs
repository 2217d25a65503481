//! Wrong command lines: exit status 2, and a first line that says what is wrong. And services that cannot start.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;

use crate::program::{Outcome, batchscan, clean, executable};
use crate::site::Site;

const DURATION: &str = "write a number and a unit, such as 30s, 15m, 1h or 365d";
const RATE: &str = "write a number from 1 to 1000000 and a unit, such as 50/s, 600/m or 10000/h";
const PROFILE: &str = "1 to 40 letters, digits, underscores, dots and hyphens";
const ORIGIN: &str = "write a scheme and a host without a path, such as https://app.example.org";

/// A command, a flag of it and what it takes; a value it does not take, and what is said then.
const WRONG_VALUES: [[&str; 4]; 19] = [
    ["serve", "--page-size <N>", "0", "0 is not in 1..=10000"],
    ["serve", "--page-size <N>", "10001", "10001 is not in 1..=10000"],
    ["serve", "--page-size <N>", "ten", "invalid digit found in string"],
    ["serve", "--token-ttl <TIME>", "25h", "from 1s to 24h"],
    ["serve", "--token-ttl <TIME>", "0s", "from 1s to 24h"],
    ["serve", "--token-ttl <TIME>", "soon", DURATION],
    ["serve", "--drain <TIME>", "5", DURATION],
    ["serve", "--rate-limit <N/UNIT>", "0/s", RATE],
    ["serve", "--rate-limit <N/UNIT>", "5", RATE],
    ["serve", "--cors-origin <ORIGIN>", "app.example.org", ORIGIN],
    ["serve", "--public-url <URL>", "app.example.org", "write a URL such as https://scans.example.org"],
    [
        "serve",
        "--public-url <URL>",
        "https://ann:word@example.org",
        "leave out user, query and fragment: https://scans.example.org",
    ],
    ["serve", "--v1-sunset <DATE>", "soon", "write a date such as 2027-12-31 or 2027-12-31T12:00:00Z"],
    ["import", "--format <FORMAT>", "xml", "expected ndjson, json, csv or parquet"],
    ["demo", "--fail-rate <SHARE>", "2", "a number from 0 to 1, such as 0.1"],
    ["pull", "--url <URL>", "scans.example.org", "write a URL such as https://scans.example.org"],
    ["pull", "--retry-for <TIME>", "5", DURATION],
    ["login", "--profile <NAME>", "a/b", PROFILE],
    ["logout", "--profile <NAME>", "a/b", PROFILE],
];

#[test]
fn a_wrong_value_names_its_flag_and_says_what_is_right() {
    let site = Site::empty();
    for [command, flag, value, why] in WRONG_VALUES {
        let name = flag.split(' ').next().unwrap();
        let words = format!("{command} {name} {value}");
        let message = format!("invalid value '{value}' for '{flag}': {why}");
        site.run(&words.split(' ').collect::<Vec<_>>()).misused(&message);
    }
}

#[test]
fn a_wrong_command_line_says_what_is_wrong() {
    let missing = "the following required arguments were not provided:\n ";
    let cases = [
        ("frobnicate", "unrecognized subcommand 'frobnicate'".to_owned()),
        ("serve --prot 80", "unexpected argument '--prot' found".into()),
        ("demo --batches -1", "unexpected argument '-1' found".into()),
        ("serve --tls-cert a.pem", format!("{missing} --tls-key <FILE>")),
        ("serve --tls-key a.pem", format!("{missing} --tls-cert <FILE>")),
        ("import --org A", format!("{missing} <FILE>...")),
        ("org rename A", format!("{missing} <NEW_NAME>")),
        ("credential issue", format!("{missing} --org <NAME>")),
    ];
    let site = Site::empty();
    for (line, message) in cases {
        site.run(&line.split(' ').collect::<Vec<_>>()).misused(&message);
    }
    let one_of = "invalid value 'xml' for '--log-format <FORM>'\n  [possible values: text, json]";
    site.run(&["serve", "--log-format", "xml"]).misused(one_of);
}

#[test]
fn a_bad_database_url_says_how_to_write_one_and_does_not_repeat_it() {
    let message = "invalid value for '--database <URL>': not a database URL: write sqlite:PATH, such as \
        sqlite:batchscan.db, or postgres://USER@HOST:PORT/DATABASE\n";
    for url in ["scans.db", "sqlite:", "mysql://localhost/scans", "sqlite//scans.db"] {
        Outcome::of(&mut batchscan(&["org", "list", "--database", url])).misused(message);
        Outcome::of(batchscan(&["org", "list"]).env("BATCHSCAN_DATABASE", url)).misused(message);
    }
}

#[test]
fn without_a_command_the_program_shows_its_help_and_fails() {
    let outcome = Outcome::of(&mut batchscan(&[]));
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""));
    assert!(outcome.err.contains("Usage: batchscan [OPTIONS] <COMMAND>"));
}

#[test]
fn words_that_are_no_text_are_refused() {
    let mut command = batchscan(&["org", "add"]);
    command.arg(OsStr::from_bytes(b"\xFF\xFE"));
    Outcome::of(&mut command).misused("invalid UTF-8 was detected in one or more arguments");
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure_and_a_reader_who_left_is_none() {
    let site = Site::new();
    let outcome = |line: &str| {
        let mut bash = clean("bash");
        bash.args(["-c", line]).arg(executable()).env("BATCHSCAN_DATABASE", site.url("scans.db"));
        Outcome::of(&mut bash)
    };
    let message = "cannot write to standard output: No space left on device (os error 28)";
    outcome("\"$0\" org list > /dev/full").fails(message);
    assert_eq!(outcome("(sleep 0.3; \"$0\" --help; echo $? >&2) | true").err, "0\n");
}

#[test]
fn a_port_in_use_is_named() {
    let site = Site::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let message = |flag| {
        format!("cannot listen on {address}: another program uses that port: choose another with {flag}")
    };
    for words in [["serve", "--listen", &address], ["demo", "--listen", &address]] {
        refuses_to_start(&site, &words, &message("--listen"));
    }
    let words = ["serve", "--listen", "127.0.0.1:0", "--operator-listen", &address];
    refuses_to_start(&site, &words, &message("--operator-listen"));
}

#[test]
fn an_address_that_is_none_is_named() {
    let site = Site::new();
    for address in ["8080", "127.0.0.1", "localhost:"] {
        let outcome = site.run(&["serve", "--listen", address]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(1), ""));
        let begins = format!("error: cannot listen on {address}: ");
        assert!(last_line(&outcome.err).starts_with(&begins), "{}", outcome.err);
    }
    let message =
        "cannot listen on 8080: it is no address of the form HOST:PORT: choose another with --listen";
    refuses_to_start(&site, &["serve", "--listen", "8080"], message);
}

#[test]
fn a_certificate_that_cannot_be_used_is_named() {
    let site = Site::new();
    let certified = || rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (one, other) = (certified(), certified());
    let cert = site.write("cert.pem", one.cert.pem());
    let key = site.write("key.pem", one.signing_key.serialize_pem());
    let foreign = site.write("foreign.pem", other.signing_key.serialize_pem());
    let junk = site.write("junk.pem", "not a certificate");
    let missing = site.name("missing.pem");
    let cases = [
        (&missing, &key, format!("cannot read {missing}: No such file or directory (os error 2)")),
        (&cert, &missing, format!("cannot read {missing}: No such file or directory (os error 2)")),
        (
            &junk,
            &key,
            format!("{junk} holds no certificate in PEM form: it should begin with -----BEGIN …-----"),
        ),
        (
            &cert,
            &junk,
            format!("{junk} holds no private key in PEM form: it should begin with -----BEGIN …-----"),
        ),
        (
            &cert,
            &cert,
            format!("{cert} holds no private key in PEM form: it should begin with -----BEGIN …-----"),
        ),
        (
            &cert,
            &foreign,
            format!(
                "the certificate {cert} and the key {foreign} cannot be used: keys may not be consistent: KeyMismatch"
            ),
        ),
    ];
    for (cert, key, message) in cases {
        refuses_to_start(
            &site,
            &["serve", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key],
            &message,
        );
    }
}

/// A service that cannot start may have logged before; its last line is the one that says why.
#[track_caller]
fn refuses_to_start(site: &Site, words: &[&str], message: &str) {
    let outcome = site.run(words);
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(1), ""), "{outcome:?}");
    assert_eq!(outcome.err, format!("error: {message}\n"));
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap()
}
