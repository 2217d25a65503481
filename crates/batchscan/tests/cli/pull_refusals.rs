//! What a pull cannot do, it says in one clear line, and leaves nothing behind.

use std::net::TcpListener;

use crate::program::{Outcome, clean, executable};
use crate::scans;
use crate::service::Service;
use crate::site::{Credential, Site};
use crate::stranger::Stranger;
use crate::user::User;

/// A service of a few batches.
fn few(site: &Site) -> Service {
    site.import(&site.write("a.ndjson", scans::ndjson(0..50, "x")));
    site.serve(&["--page-size", "20"])
}

/// A pull from this address fails with this line, in a text format and in one that is made at the end.
#[track_caller]
fn refused(user: &User<'_>, url: &str, flags: &[&str], message: &str) {
    for file in ["a.csv", "a.xlsx"] {
        user.at(url).pull(file, flags).fails(message);
        assert_eq!(user.files(), [""; 0], "{message}");
    }
}

#[test]
fn a_wrong_secret_is_told_and_not_tried_again() {
    let site = Site::new();
    let service = few(&site);
    let user = User::of(&site, &service);
    let message = "the service rejected the credentials (The client_id or client_secret is wrong); check the \
        client id and secret";
    let Credential { id, .. } = user.credential.clone();
    let wrong = User::with(&site, &service.url, Credential { id, secret: "hush".into() });
    refused(&wrong, &service.url, &[], message);
    let unknown = Credential { id: "bs_nobody".into(), ..user.credential.clone() };
    refused(&User::with(&site, &service.url, unknown), &service.url, &[], message);
    site.run(&["credential", "revoke", &user.credential.id]).done();
    refused(&user, &service.url, &[], message);
}

#[test]
fn a_host_that_is_not_there_is_named() {
    let site = Site::new();
    let user = User::with(&site, "", site.credential());
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    refused(
        &user,
        &format!("http://{closed}"),
        &[],
        &format!(
            "cannot reach {closed}: connection refused; check the address, and that the service is running"
        ),
    );
    let Outcome { code, out, err } = user.at("https://nothing.invalid").pull("a.csv", &[]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    // A machine without a resolver cannot tell that there is no such host.
    let whys = ["no such host", "host name lookup failed"];
    let lines = whys.map(|why| {
        format!(
            "error: cannot reach nothing.invalid: {why}; check the address, and that the service is running\n"
        )
    });
    assert!(lines.contains(&err), "{err}");
    assert_eq!(user.files(), [""; 0]);
}

#[test]
fn a_certificate_that_is_not_to_be_trusted_is_told_and_ca_cert_makes_it_work() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..50, "x")));
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (
        site.write("cert.pem", certified.cert.pem()),
        site.write("key.pem", certified.signing_key.serialize_pem()),
    );
    let service = site.serve(&["--tls-cert", &cert, "--tls-key", &key]);
    let user = User::of(&site, &service);
    let port = service.address().rsplit(':').next().unwrap();
    let (named, by_number) = (format!("https://localhost:{port}"), service.url.clone());
    refused(
        &user,
        &named,
        &[],
        &format!("cannot trust localhost:{port}: the certificate is not from a known authority"),
    );
    let trusting = ["--ca-cert", cert.as_str()];
    let message = format!("cannot trust 127.0.0.1:{port}: the certificate is for another host name");
    refused(&user, &by_number, &trusting, &message);
    let message = format!(
        "http://127.0.0.1:{port}/v2/auth does not respond like a batch scan service: it does not speak HTTP (try \
         https://); check the address"
    );
    refused(&user, &format!("http://127.0.0.1:{port}"), &[], &message);
    let missing = site.name("missing.pem");
    let message = format!("cannot read {missing}: No such file or directory (os error 2)");
    refused(&user, &named, &["--ca-cert", &missing], &message);
    let message = "cannot read the added root certificate: no certificate in PEM format";
    refused(&user, &named, &["--ca-cert", &site.name("a.ndjson")], message);
    user.at(&named).pull("a.csv", &trusting).done();
    assert_eq!(user.read("a.csv").iter().filter(|byte| **byte == b'\n').count(), 51);
}

#[test]
fn tls_to_a_port_without_it_is_told() {
    let site = Site::new();
    let service = few(&site);
    let user = User::of(&site, &service);
    let address = service.address();
    let message = format!("cannot trust {address}: it does not speak TLS (try http://)");
    refused(&user, &format!("https://{address}"), &[], &message);
}

#[test]
fn a_server_that_is_something_else_is_told_apart() {
    let site = Site::new();
    let user = User::with(&site, "", site.credential());
    let unlike = |stranger: &Stranger, why: &str| {
        let url = stranger.url();
        let message =
            format!("{url}/v2/auth does not respond like a batch scan service: {why}; check the address");
        refused(&user, &url, &[], &message);
    };
    unlike(&Stranger::with_html("200 OK"), "the response has no access_token");
    unlike(&Stranger::with_html("404 Not Found"), "it returned 404 Not Found");
    unlike(&Stranger::with_html("403 Forbidden"), "it returned 403 Forbidden");
    let no_http = "it does not speak HTTP (try https://)";
    unlike(&Stranger::saying("SSH-2.0-OpenSSH_9.6\r\n"), no_http);
    unlike(
        &Stranger::saying("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"),
        "the response has no access_token",
    );
    let silent = Stranger::saying("");
    let message = format!("lost the connection to {}: it closed the connection", silent.address());
    refused(&user, &silent.url(), &[], &message);
    let moved = Stranger::saying(
        "HTTP/1.1 301 Moved\r\nLocation: https://scans.example.org/v2/auth\r\nContent-Length: 0\r\n\r\n",
    );
    let message = format!(
        "{}/v2/auth redirects to https://scans.example.org/v2/auth; use that address if you trust it",
        moved.url()
    );
    refused(&user, &moved.url(), &[], &message);
}

/// A limit on the size of files stands in for a full disk: to the program both are writes that fail.
#[test]
fn a_full_disk_is_told_and_nothing_is_left_on_it() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_000, "x")));
    let service = site.serve(&["--page-size", "200"]);
    let user = User::of(&site, &service);
    let limited = |file: &str, kib: u32| {
        let mut bash = clean("bash");
        let line = format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" pull --output '{file}'");
        let ready = user.command(&[]);
        bash.args(["-c", &line]).arg(executable()).current_dir(user.path(""));
        bash.envs(ready.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Outcome::of(&mut bash)
    };
    for format in ["csv", "ndjson", "json", "parquet", "xlsx"] {
        let file = format!("a.{format}");
        let message = format!("cannot write {file}.part: File too large (os error 27)");
        limited(&file, 100).fails(&message);
        assert_eq!(user.files(), [""; 0], "{format}");
    }
    // All batches fit, and the sheet that is made of them does not.
    let spool = user.pulled("a.ndjson", &[]).len() as u32 / 1_024 + 1;
    std::fs::remove_file(user.path("a.ndjson")).unwrap();
    let Outcome { code, out, err } = limited("a.xlsx", spool);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.starts_with("error: cannot write ") && err.lines().count() == 1, "{err}");
    assert!(err.contains("File too large"), "{err}");
    assert_eq!(user.files(), [""; 0]);
}

#[test]
fn standard_output_that_takes_no_more_is_a_failure_and_a_reader_who_left_is_none() {
    let site = Site::new();
    let service = few(&site);
    let user = User::of(&site, &service);
    let piped = |format: &str, rest: &str| {
        let mut bash = clean("bash");
        let ready = user.command(&[]);
        bash.args(["-c", &format!("\"$0\" pull --output - --format {format} {rest}")]).arg(executable());
        bash.envs(ready.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Outcome::of(&mut bash)
    };
    for format in ["csv", "json", "parquet", "xlsx"] {
        let message = "cannot write to standard output: No space left on device (os error 28)";
        piped(format, "> /dev/full").fails(message);
        let reader_left = piped(format, "| true; exit ${PIPESTATUS[0]}");
        assert_eq!((reader_left.code, reader_left.out.as_str()), (Some(0), ""), "{reader_left:?}");
    }
}

#[test]
fn an_output_that_is_taken_or_cannot_be_made_is_told_before_anything_is_asked() {
    let site = Site::new();
    // Nobody listens: the answer would be another one if anybody were asked.
    let user = User::with(&site, "http://127.0.0.1:9", site.credential());
    std::fs::create_dir(user.path("folder")).unwrap();
    std::fs::write(user.path("file.csv"), "mine").unwrap();
    std::os::unix::fs::symlink("nowhere", user.path("link.csv")).unwrap();
    let before = user.files();
    let refused = |file: &str, message: &str| {
        user.pull(file, &["--format", "csv"]).fails(message);
        assert_eq!(user.files(), before, "{file}");
    };
    refused("file.csv", "file.csv exists; --force replaces it");
    refused("folder", "folder is a folder; name a file in it");
    refused(".", ". is a folder; name a file in it");
    refused("/dev/null", "/dev/null is not a regular file; use --output - and a pipe");
    refused("missing/a.csv", "there is no folder missing; make it first");
    refused("file.csv/a.csv", "cannot write file.csv/a.csv.part: Not a directory (os error 20)");
    refused("link.csv", "cannot follow the link link.csv: No such file or directory (os error 2)");
    // Not even the superuser makes files there.
    refused("/proc/a.csv", "cannot write /proc/a.csv.part: No such file or directory (os error 2)");
    assert_eq!(user.read("file.csv"), b"mine");
    user.pull("folder", &["--format", "csv", "--force"]).fails("folder is a folder; name a file in it");
}

#[test]
fn wrong_usage_is_told_with_what_would_be_right() {
    let site = Site::new();
    let user = User::with(&site, "http://127.0.0.1:9", site.credential());
    let misused = |words: &[&str], message: &str| {
        user.run(&[&["pull"], words].concat()).misused(message);
        assert_eq!(user.files(), [""; 0], "{message}");
    };
    misused(&[], "the following required arguments were not provided:\n  --output <FILE>");
    let formats = "add '--format csv', ndjson, json, parquet or xlsx";
    misused(&["-o", "a.txt"], &format!("'a.txt' does not tell a format; {formats}"));
    misused(&["-o", "-"], &format!("'-' does not tell a format; {formats}"));
    let excel = "'--excel' is for CSV; a file called .xlsx is Excel's own format already";
    misused(&["-o", "a.xlsx", "--excel"], excel);
    misused(&["-o", "a.json", "--excel=comma"], excel);
    for flag in ["--resume", "--if-changed", "--force"] {
        let message = format!("'{flag}' needs a file; '--output -' is none");
        misused(&["-o", "-", "--format", "csv", flag], &message);
    }
    let forms = "write 2026-01-31, 2026-01-31T08:00:00Z, 2026-01, 2026, now, today, yesterday, or a time before \
        today: 30d, 12w, 6m (months), 1y";
    for date in ["tomorrow", "31.01.2026", "2026-02-30", "2026-01-31T08:00:00+02:00", ""] {
        let message = format!("\"{date}\" is no date: {forms}");
        misused(&["-o", "a.csv", "--start-date", date], &message);
        misused(&["-o", "a.csv", "--end-date", date], &message);
    }
    misused(
        &["-o", "a.csv", "--start-date", "2026-02", "--end-date", "2026-01-31T08:00:00Z"],
        "the window ends before it begins: it is from 2026-02 (2026-02-01T00:00:00Z) to 2026-01-31T08:00:00Z",
    );
    misused(
        &["-o", "a.csv", "--format", "xml"],
        "invalid value 'xml' for '--format <FORMAT>'\n  [possible values: csv, ndjson, json, parquet, xlsx]",
    );
}

#[test]
fn an_address_id_or_secret_that_nobody_gave_is_asked_for_by_name() {
    let site = Site::new();
    let service = few(&site);
    let user = User::of(&site, &service);
    let without = |name: &str, flags: &[&str], message: &str| {
        let mut command = user.command(&["pull", "--output", "a.csv"]);
        Outcome::of(command.env_remove(name).args(flags)).fails(message);
        assert_eq!(user.files(), [""; 0], "{message}");
    };
    let secret = "BATCHSCAN_CLIENT_SECRET";
    without(
        "BATCHSCAN_URL",
        &[],
        "which service? Give --url and --client-id, or keep them with `batchscan login`",
    );
    without(
        "BATCHSCAN_CLIENT_ID",
        &[],
        "the client id is missing: give --client-id, or keep it with `batchscan login`",
    );
    let missing = "the client secret is missing: set BATCHSCAN_CLIENT_SECRET or give --client-secret-file, or run \
        `batchscan login`";
    without(secret, &[], missing);
    without(
        secret,
        &["--client-secret-file", "no.txt"],
        "cannot read the client secret from no.txt: No such file or directory (os error 2)",
    );
    without(
        secret,
        &["--client-secret-file", "-"],
        "standard input is empty: it should hold the client secret",
    );
    let empty = site.write("empty.txt", "\n");
    let message = format!("{empty} is empty: it should hold the client secret");
    without(secret, &["--client-secret-file", &empty], &message);
    let nobody = "there is no profile north, nor any other: `batchscan login` saves one";
    without(secret, &["--profile", "north"], nobody);
    let file = site.write("secret.txt", format!("{}\n", user.credential.secret));
    let mut by_file = user.command(&["pull", "-o", "a.csv", "--client-secret-file", &file]);
    Outcome::of(by_file.env_remove(secret)).done();
    let mut by_pipe = user.command(&["pull", "-o", "b.csv", "--client-secret-file", "-"]);
    Outcome::with_input(by_pipe.env_remove(secret), user.credential.secret.clone().into_bytes()).done();
    assert_eq!(user.read("a.csv"), user.read("b.csv"));
}
