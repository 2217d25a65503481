//! Wrong command lines (exit status 2), and services that cannot start.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;

use snapbox::{file, str};

use crate::program::{Outcome, batchscan, clean, executable, wait_until};
use crate::service::Service;
use crate::site::Site;

#[test]
fn a_wrong_value_names_its_option_and_what_is_expected() {
    Site::without_org().transcript(
        &[
            "serve --page-size 0",
            "serve --page-size ten",
            "serve --token-ttl 25h",
            "serve --token-ttl 0s",
            "serve --token-ttl soon",
            "serve --drain 5",
            "serve --rate-limit 0/s",
            "serve --rate-limit 5",
            "serve --cors-origin app.example.org",
            "serve --public-url app.example.org",
            "serve --public-url https://ann:word@example.org",
            "serve --public-url https://example.org/scans",
            "serve --v1-sunset soon",
            "serve --log-format xml",
            "import --format xml",
            "demo --fail-rate 2",
            "completions tcl",
            "pull --url localhost:8080",
            "pull --url https:///scans",
            "pull --retry-for 5",
            "pull --format xml",
            "pull --output postgres://ann:word@127.0.0.1/nursery",
            "pull --columns batch_nam",
            "pull --crop ''",
            "pull --start-date tomorrow",
            "pull --start-date 31.01.2026",
            "pull --start-date -30d",
            "pull --end-date 2026-02-30",
            "pull --end-date 2026-01-31T08:00:00+02:00",
            "pull -o a.csv --start-date 2026-02 --end-date 2026-01-31T08:00:00Z",
            "list --start-date tomorrow",
            "list --start-date 2026 --end-date 2025",
            "list --limit 0",
            "list --limit=10001",
            "list --limit=many",
            "summary --end-date tomorrow",
            "summary --start-date 2026 --end-date 2025",
            "login --profile a/b",
            "logout --profile a/b",
        ],
        file!["snapshots/invalid_values.txt"],
    );
}

#[test]
fn a_wrong_command_line_is_rejected() {
    Site::without_org().transcript(
        &[
            "frobnicate",
            "serve --prot 80",
            "demo --batches -1",
            "serve --tls-cert a.pem",
            "serve --tls-key a.pem",
            "import --org A",
            "org rename A",
            "credential issue",
            "pull",
            "pull -o a.txt",
            "pull -o a.xls",
            "pull -o a.csv --columns batch_id,comment,batch_id",
            "pull -o -",
            "pull -o a.xlsx --excel",
            "pull -o a.json --excel=comma",
            "pull -o - --format csv --if-changed",
            "pull -o - --format csv --force",
        ],
        file!["snapshots/invalid_command_lines.txt"],
    );
    let outcome = Outcome::run(&mut batchscan(&[]));
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""));
    assert!(outcome.err.contains("Usage: batchscan <COMMAND>"), "{}", outcome.err);
    let mut not_utf8 = batchscan(&["org", "add"]);
    let outcome = Outcome::run(not_utf8.arg(OsStr::from_bytes(b"\xFF\xFE")));
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.err.starts_with("error: invalid UTF-8"), "{}", outcome.err);
}

#[test]
fn an_invalid_database_url_is_not_repeated() {
    let site = Site::without_org();
    site.transcript(
        &[
            "org list --database scans.db",
            "copy --from sqlite: --to sqlite:a.db",
            "doctor --database scans.db",
        ],
        file!["snapshots/an_invalid_database_url_is_not_repeated.txt"],
    );
    let outcome = site.run(&["doctor", "--database", "scans.db"]);
    assert!(outcome.err.contains("\nUsage: batchscan doctor [OPTIONS]\n"), "{outcome:?}");
    for url in ["scans.db", "sqlite:", "mysql://localhost/scans", "sqlite//scans.db"] {
        let outcome = Outcome::run(batchscan(&["org", "list"]).env("BATCHSCAN_DATABASE", url));
        assert!(outcome.code == Some(2) && !outcome.err.contains(&format!("'{url}'")), "{outcome:?}");
    }
}

#[test]
fn an_unknown_variable_is_a_warning() {
    let site = Site::new();
    let set = [
        ("BATCHSCAN_TLS_CERTS", "x"),
        ("BATCHSCAN_COLOUR_SCHEME", "x"),
        // Of another command, of tests, and of Kubernetes.
        ("BATCHSCAN_RETRY_FOR", "1m"),
        ("BATCHSCAN_EXE", "x"),
        ("BATCHSCAN_SERVICE_PORT", "80"),
        ("BATCHSCAN_PORT_80_TCP", "tcp://10.0.0.1:80"),
    ];
    let outcome = Outcome::run(site.command(&["org", "list"]).envs(set));
    let mut lines: Vec<&str> = outcome.err.lines().collect();
    lines.sort_unstable();
    let unknown = "ignoring unknown environment variable BATCHSCAN_";
    let tls = format!("{unknown}TLS_CERTS: did you mean BATCHSCAN_TLS_CERT?");
    assert_eq!(lines, [format!("warning: {unknown}COLOUR_SCHEME"), format!("warning: {tls}")]);
    assert_eq!(outcome.code, Some(0));
    let mut serve = site.command(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    let service = Service::start(serve.envs(set));
    let logged = format!("\"level\":\"WARN\",\"message\":\"{tls}\"");
    wait_until("the warning is logged", || service.log().contains(&logged));
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_is_not() {
    let site = Site::new();
    let run = |line: &str| {
        let mut bash = clean("bash");
        bash.args(["-c", line]).arg(executable()).env("BATCHSCAN_DATABASE", site.url("scans.db"));
        Outcome::run(&mut bash)
    };
    run("\"$0\" org list > /dev/full").fails(str![[r#"
error: cannot write to standard output: No space left on device (os error 28)

"#]]);
    assert_eq!(run("exec 3> >(:); wait $!; \"$0\" --help >&3; echo $? >&2").err, "0\n");
}

#[test]
fn an_address_that_cannot_be_used_is_named() {
    let site = Site::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    site.transcript(
        &[
            &format!("serve --listen {address}"),
            &format!("demo --listen {address}"),
            &format!("serve --listen 127.0.0.1:0 --operator-listen {address}"),
            "serve --listen 8080",
            "serve --operator-listen :9090",
        ],
        file!["snapshots/an_address_that_cannot_be_used_is_named.txt"],
    );
    for address in ["127.0.0.1", "localhost:", "localhost:65536"] {
        let outcome = site.run(&["serve", "--listen", address]);
        let begins = format!("error: invalid value '{address}' for '--listen <HOST:PORT>': ");
        assert!(outcome.code == Some(2) && outcome.err.starts_with(&begins), "{outcome:?}");
    }
}

#[test]
fn a_certificate_that_cannot_be_used_is_named() {
    let site = Site::new();
    let certified = || rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (one, other) = (certified(), certified());
    site.write("cert.pem", one.cert.pem());
    site.write("key.pem", one.signing_key.serialize_pem());
    site.write("foreign.pem", other.signing_key.serialize_pem());
    site.write("junk.pem", "not a certificate");
    for (name, form) in [("encrypted.pem", "pkcs8"), ("old.pem", "ec")] {
        let mut openssl = clean("openssl");
        openssl.args([form, "-in", "key.pem", "-out", name, "-passout", "pass:word"]);
        openssl.args(if form == "ec" { ["-aes256"] } else { ["-topk8"] }).current_dir(site.path(""));
        assert_eq!(Outcome::run(&mut openssl).code, Some(0));
    }
    site.transcript(
        &[
            "serve --tls-cert missing.pem --tls-key key.pem",
            "serve --tls-cert cert.pem --tls-key missing.pem",
            "serve --tls-cert junk.pem --tls-key key.pem",
            "serve --tls-cert cert.pem --tls-key junk.pem",
            "serve --tls-cert cert.pem --tls-key cert.pem",
            "serve --tls-cert key.pem --tls-key cert.pem",
            "serve --tls-cert cert.pem --tls-key encrypted.pem",
            "serve --tls-cert cert.pem --tls-key old.pem",
            "serve --tls-cert cert.pem --tls-key foreign.pem",
        ],
        file!["snapshots/a_certificate_that_cannot_be_used_is_named.txt"],
    );
}
