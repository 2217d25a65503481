//! A failed pull prints one line and leaves no files.

use snapbox::{file, str};

use crate::program::{Outcome, clean, executable};
use crate::scans;
use crate::service::Service;
use crate::site::{Credential, Site};
use crate::user::User;

/// A service with 50 batches.
fn serve(site: &Site) -> Service {
    site.import(&site.write("a.ndjson", scans::ndjson(0..50, "x")));
    site.serve(&["--page-size", "20"])
}

/// A pull from this address fails, in a text format and in a binary one.
#[track_caller]
fn fails(user: &User<'_>, url: &str, flags: &[&str], error: &str) {
    for file in ["a.csv", "a.xlsx"] {
        user.at(url).pull(file, flags).fails(format!("error: {error}\n"));
        assert_eq!(user.files(), [""; 0]);
    }
}

#[test]
fn wrong_credentials_are_reported_and_not_retried() {
    let site = Site::new();
    let service = serve(&site);
    let user = User::of(&site, &service);
    let Credential { id, secret } = user.credential.clone();
    let wrong = [
        User::with(&site, &service.url, Credential { id, secret: "hush".into() }),
        User::with(&site, &service.url, Credential { id: "bs_unknown".into(), secret }),
        user.at(&service.url),
    ];
    site.run(&["credential", "revoke", &user.credential.id]).succeeds();
    for user in wrong {
        fails(
            &user,
            &service.url,
            &[],
            "the service rejected the credentials (The client_id or client_secret is wrong); check the client id and secret",
        );
    }
}

#[test]
fn an_untrusted_certificate_is_reported_and_ca_cert_trusts_it() {
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
    let (named, trusting) = (format!("https://localhost:{port}"), ["--ca-cert", cert.as_str()]);
    fails(
        &user,
        &named,
        &[],
        "cannot trust localhost:[PORT]: its certificate is not from a known authority; if you trust that authority, add its certificate (--ca-cert FILE)",
    );
    fails(
        &user,
        &named,
        &["--ca-cert", &site.name("missing.pem")],
        "cannot read [SITE]/missing.pem: No such file or directory (os error 2)",
    );
    fails(
        &user,
        &named,
        &["--ca-cert", &site.name("a.ndjson")],
        "cannot read [SITE]/a.ndjson: no certificate in PEM format",
    );
    user.at(&named).pull("a.csv", &trusting).succeeds();
    let untrusted = user.run(&["check", &named]);
    let expected =
        format!("error: cannot trust localhost:{port}: its certificate is not from a known authority; ");
    assert!(untrusted.code == Some(1) && untrusted.err.starts_with(&expected), "{untrusted:?}");
    let checked = user.run(&["check", &named, "--ca-cert", &cert]);
    assert!(checked.code == Some(0), "{checked:?}");
    assert_eq!(user.read("a.csv").iter().filter(|byte| **byte == b'\n').count(), 51);
    // A login saves the path, for commands in any folder.
    user.at(&named).run(&["login", "--ca-cert", "../cert.pem"]).succeeds();
    let other = user.in_folder("other/folder");
    for command in ["list", "check", "pull -o b.csv"] {
        let words: Vec<&str> = command.split(' ').collect();
        Outcome::run(&mut other.bare(&words)).succeeds();
    }
    let overridden = Outcome::run(&mut other.bare(&["list", "--ca-cert", "missing.pem"]));
    assert!(overridden.err.starts_with("error: cannot read missing.pem: "), "{overridden:?}");
}

/// A limit on the file size simulates a full disk.
#[test]
fn a_full_disk_is_reported_and_no_file_remains() {
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
        Outcome::run(&mut bash)
    };
    for format in ["csv", "ndjson", "json", "parquet", "xlsx"] {
        let file = format!("a.{format}");
        let outcome = limited(&file, 100);
        assert_eq!(outcome.code, Some(1));
        assert_eq!(outcome.err, format!("error: cannot write {file}: File too large (os error 27)\n"));
        assert_eq!(user.files(), [""; 0], "{format}");
    }
    // The batches fit, but the Excel file does not.
    let spool = user.pulled("a.ndjson", &[]).len() as u32 / 1_024 + 1;
    std::fs::remove_file(user.path("a.ndjson")).unwrap();
    let Outcome { code, out, err, .. } = limited("a.xlsx", spool);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.starts_with("error: cannot write ") && err.lines().count() == 1, "{err}");
    assert!(err.contains("File too large"), "{err}");
    assert_eq!(user.files(), [""; 0]);
}

#[test]
fn a_full_standard_output_is_an_error_and_a_closed_pipe_is_not() {
    let site = Site::new();
    let service = serve(&site);
    let user = User::of(&site, &service);
    let piped = |format: &str, rest: &str| {
        let mut bash = clean("bash");
        let ready = user.command(&[]);
        bash.args(["-c", &format!("\"$0\" pull --output - --format {format} {rest}")]).arg(executable());
        bash.envs(ready.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Outcome::run(&mut bash)
    };
    for format in ["csv", "json", "parquet", "xlsx"] {
        piped(format, "> /dev/full").fails(str![[r#"
error: cannot write to standard output: No space left on device (os error 28)

"#]]);
        let closed = piped(format, "| true; exit ${PIPESTATUS[0]}");
        assert_eq!((closed.code, closed.out.as_str()), (Some(0), ""), "{closed:?}");
    }
}

#[test]
fn an_output_file_that_cannot_be_written_is_reported_before_any_request() {
    let site = Site::new();
    // Port 9 refuses connections, which would be another error.
    let user = User::with(&site, "http://127.0.0.1:9", site.credential());
    std::fs::create_dir(user.path("folder")).unwrap();
    std::fs::write(user.path("file.csv"), "mine").unwrap();
    std::os::unix::fs::symlink("nowhere", user.path("link.csv")).unwrap();
    let before = user.files();
    user.transcript(
        &[
            "pull --format csv -o file.csv",
            "pull --format csv -o folder",
            "pull --format csv -o .",
            "pull --format csv -o /dev/null",
            "pull --format csv -o missing/a.csv",
            "pull --format csv -o file.csv/a.csv",
            "pull --format csv -o link.csv",
            "pull --format csv -o /proc/a.csv",
            "pull --format csv -o folder --force",
        ],
        file!["snapshots/an_output_file_that_cannot_be_written_is_reported_before_any_request.txt"],
    );
    assert_eq!((user.files(), user.read("file.csv")), (before, b"mine".to_vec()));
}

#[test]
fn a_missing_address_id_or_secret_is_named() {
    let site = Site::new();
    let service = serve(&site);
    let user = User::of(&site, &service);
    let without = |name: &str, flags: &[&str]| {
        let mut command = user.command(&["pull", "--output", "a.csv"]);
        let outcome = Outcome::run(command.env_remove(name).args(flags));
        assert_eq!(user.files(), [""; 0], "{outcome:?}");
        outcome
    };
    let secret = "BATCHSCAN_CLIENT_SECRET";
    without("BATCHSCAN_URL", &[]).fails(str![[r#"
error: no service given: use --url and --client-id, or save them with `batchscan login`

"#]]);
    without("BATCHSCAN_CLIENT_ID", &[]).fails(str![[r#"
error: no client id given: use --client-id, or save it with `batchscan login`

"#]]);
    without(secret, &[]).fails(str![[r#"
error: no client secret given: set BATCHSCAN_CLIENT_SECRET or use --client-secret-file, or run `batchscan login`

"#]]);
    without(secret, &["--client-secret-file", "no.txt"]).fails(str![[r#"
error: cannot read the client secret from no.txt: No such file or directory (os error 2)

"#]]);
    without(secret, &["--client-secret-file", "-"]).fails(str![[r#"
error: standard input is empty: it must contain the client secret

"#]]);
    without(secret, &["--client-secret-file", &site.write("empty.txt", "\n")]).fails(str![[r#"
error: [SITE]/empty.txt is empty: it must contain the client secret

"#]]);
    without(secret, &["--profile", "north"]).fails(str![[r#"
error: profile north not found: no profiles are saved; save one with `batchscan login`

"#]]);
    let file = site.write("secret.txt", format!("{}\n", user.credential.secret));
    let mut by_file = user.command(&["pull", "-o", "a.csv", "--client-secret-file", &file]);
    Outcome::run(by_file.env_remove(secret)).succeeds();
    let mut by_pipe = user.command(&["pull", "-o", "b.csv", "--client-secret-file", "-"]);
    Outcome::with_input(by_pipe.env_remove(secret), user.credential.secret.clone().into_bytes()).succeeds();
    assert_eq!(user.read("a.csv"), user.read("b.csv"));
}
