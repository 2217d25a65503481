//! A user's secret appears only in the saved profile: not in output, errors or other files.

use batchscan_testbed::ScriptedServer;
use batchscan_testbed::scripted_server::Response;

use crate::program::Outcome;
use crate::proxy::{End, Plan, Proxy};
use crate::scans;
use crate::secrets::Canaries;
use crate::site::{Credential, Site};
use crate::user::User;

/// As long as a real secret.
const WRONG: &str = "canaryWrongUserSecret-0123456789_abcdefghij";

/// The secrets, and half of each.
fn canaries(credential: &Credential) -> Canaries {
    let all = [credential.secret.as_str(), WRONG];
    let halves = all.map(|secret| secret[secret.len() / 2..].to_owned());
    Canaries(all.into_iter().map(str::to_owned).chain(halves).collect())
}

/// Runs a command with all logs and checks its output. Returns the exit status.
#[track_caller]
fn prints_no_secret(user: &User<'_>, secret: &str, words: &[&str]) -> Option<i32> {
    let mut command = user.command(words);
    command.env("BATCHSCAN_LOG", "trace").env("RUST_LOG", "trace").env("BATCHSCAN_CLIENT_SECRET", secret);
    let Outcome { code, out, err, .. } = Outcome::run(&mut command);
    let canaries = canaries(&user.credential);
    canaries.are_absent_from(&format!("{words:?} on standard output"), out.as_bytes());
    canaries.are_absent_from(&format!("{words:?} on standard error"), err.as_bytes());
    code
}

#[test]
fn no_command_prints_or_writes_a_secret() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..300, "x")));
    let service = site.serve(&["--page-size", "100"]);
    let (user, proxy) = (User::of(&site, &service), Proxy::to(&service));
    let secret = user.credential.secret.as_str();
    for words in [
        &["login"][..],
        &["login", "--profile", "north"],
        &["login", "--list"],
        &["login", "--help"],
        &["pull", "--help"],
        &["pull", "-o", "a.csv"],
        &["pull", "-o", "a.xlsx", "--json"],
        &["pull", "-o", "b.csv", "--if-changed"],
        &["pull", "-o", "b.csv", "--if-changed"],
        &["pull", "-o", "-", "--format", "json"],
        &["list"],
        &["list", "--json"],
        &["summary"],
        &["logout", "--profile", "north"],
    ] {
        assert_eq!(prints_no_secret(&user, secret, words), Some(0), "{words:?}");
        if words[0] != "logout" {
            prints_no_secret(&user, WRONG, words);
        }
    }
    proxy.plan(Plan::Cut { after: 150_000, end: End::Reset, later_pass: false });
    let cut = user.at(&proxy.url());
    assert_eq!(prints_no_secret(&cut, secret, &["pull", "-o", "c.csv", "--retry-for", "0s"]), Some(1));
    let files = user.files();
    assert!(files.iter().any(|file| file == "b.csv.pulled.json"), "{files:?}");
    for file in files {
        canaries(&user.credential).are_absent_from(&file, &user.read(&file));
    }
    let profiles = std::fs::read_to_string(site.path("config/batchscan/profiles.json")).unwrap();
    assert!(profiles.contains(secret) && !profiles.contains(WRONG));
}

#[test]
fn a_secret_echoed_by_the_service_is_not_printed() {
    let site = Site::new();
    let user = User::with(&site, "", site.credential());
    let secret = user.credential.secret.as_str();
    for status in [400, 401, 403, 404, 422, 429, 500, 503, 200] {
        let server = ScriptedServer::start(move |request| Response::error(status, &request.text()));
        let user = user.at(&server.url());
        for words in [&["pull", "-o", "a.csv"][..], &["list"], &["summary"], &["login"]] {
            let words = [words, &["--retry-for", "0s"]].concat();
            assert_eq!(prints_no_secret(&user, secret, &words), Some(1), "{status} {words:?}");
        }
        let received = server.requests();
        assert!(received.iter().any(|request| request.text().contains(secret)), "it received the secret");
        assert_eq!(user.files(), [""; 0]);
    }
}

#[test]
fn the_password_in_an_address_is_not_printed() {
    let site = Site::new();
    let user = User::with(&site, "", site.credential());
    for url in
        [format!("https://ann:{WRONG}@scans.example.org"), format!("https://{WRONG}@scans.example.org")]
    {
        let user = user.at(&url);
        for words in [&["pull", "-o", "a.csv"][..], &["list"], &["login"]] {
            assert!(matches!(prints_no_secret(&user, "x", words), Some(1 | 2)), "{words:?}");
        }
    }
}
