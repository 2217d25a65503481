//! `batchscan credential`: issue, list, rotate, revoke, and the effect on tokens.

use std::process::{Command, Stdio};

use serde_json::Value;
use snapbox::file;

use crate::http::{auth, get, token};
use crate::program::{Outcome, wait_until};
use crate::service::Service;
use crate::site::{Credential, ORG, Site};
use crate::snapshot::assert_snapshot;

fn listed(site: &Site) -> Vec<Value> {
    let text = site.run(&["credential", "list", "--org", ORG, "--json"]).succeeds();
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
    let names =
        "client_id,created_at,expires_at,label,last_used_at,old_secret_until,organisation,revoked_at,state";
    for one in &all {
        assert_eq!(one.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(","), names);
    }
    all
}

#[track_caller]
fn rejected(service: &Service, credential: &Credential) {
    let response = auth(service, credential);
    assert_eq!((response.status, response.json()["error"].as_str()), (401, Some("invalid_client")));
}

/// Decision 004: ids and secrets need no escaping.
#[test]
fn an_issued_credential_is_shown_once_and_works() {
    let site = Site::new();
    site.transcript(
        &["credential list --org 'Green Valley'"],
        file!["snapshots/an_issued_credential_is_shown_once_and_works.txt"],
    );
    let text = site.run(&["credential", "issue", "--org", ORG, "--label", "ERP"]).succeeds();
    assert_snapshot(&text, file!["snapshots/an_issued_credential_is_shown_once_and_works_2.txt"]);
    let word = |line: usize| text.lines().nth(line).unwrap().split_whitespace().last().unwrap().to_owned();
    let credential = Credential { id: word(0), secret: word(1) };
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    assert!(plain(&credential.id) && plain(&credential.secret), "{credential:?}");
    let service = site.serve(&[]);
    assert_eq!(get(&service, "/v1/batches", &token(&service, &credential)).ok(), b"[]");
    site.transcript(
        &["credential list --org 'Green Valley'"],
        file!["snapshots/an_issued_credential_is_shown_once_and_works_3.txt"],
    );
}

#[test]
fn the_last_use_is_saved_when_the_service_stops() {
    let site = Site::new();
    let (used, unused) = (site.credential(), site.credential());
    let mut service = site.serve(&[]);
    token(&service, &used);
    service.stop();
    for one in listed(&site) {
        assert_eq!(one["last_used_at"].is_string(), one["client_id"] == used.id.as_str(), "{one}");
    }
    let text = site.run(&["credential", "list", "--org", ORG, "--json"]).succeeds();
    assert!(!text.contains(&used.secret) && !text.contains(&unused.secret), "{text}");
}

/// Decision 008.
#[test]
fn tokens_expire() {
    let site = Site::new();
    let service = site.serve(&["--token-ttl", "2s"]);
    let granted = auth(&service, &site.credential()).json();
    assert_eq!(granted["expires_in"], 2);
    let token = granted["access_token"].as_str().unwrap();
    wait_until("the token expires", || get(&service, "/v1/batches", token).status == 401);
}

#[test]
fn an_old_secret_is_listed_until_it_retires() {
    let site = Site::new();
    let rotate = ["credential", "rotate", &site.credential().id, "--retire-after", "1d", "--json"];
    Credential::from_json(&site.run(&rotate).succeeds());
    assert!(listed(&site)[0]["old_secret_until"].is_string());
    // As if a day had passed.
    site.sql().execute("UPDATE secret SET retires_at = retires_at - 86400000000", []).unwrap();
    assert_eq!(listed(&site)[0]["old_secret_until"], Value::Null);
}

/// Sets the clock of a process by an offset in a file, without that of its timers (libfaketime).
fn with_clock<'c>(command: &'c mut Command, offset_file: &str) -> &'c mut Command {
    let name = "faketime/libfaketimeMT.so.1";
    let mut folders = std::fs::read_dir("/usr/lib").unwrap().map(|folder| folder.unwrap().path().join(name));
    let library =
        folders.find(|path| path.exists()).unwrap_or_else(|| panic!("install the package libfaketime"));
    let set = [("FAKETIME_NO_CACHE", "1"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")];
    command.envs(set).env("FAKETIME_TIMESTAMP_FILE", offset_file).env("LD_PRELOAD", library)
}

/// Also if the clock is set forward and back while the service runs.
#[test]
fn a_credential_expires_after_a_year() {
    let site = Site::new();
    let issue = ["credential", "issue", "--org", ORG, "--expires", "365d", "--json"];
    let credential = Credential::from_json(&site.run(&issue).succeeds());
    let offset = site.write("offset", "+0d");
    let mut command = site.command(&["serve", "--listen", "127.0.0.1:0"]);
    let service = Service::start(with_clock(&mut command, &offset));
    let issued = token(&service, &credential);
    assert_eq!(get(&service, "/v1/batches", &issued).status, 200);
    for (days, is_valid) in [("+364d", true), ("+366d", false), ("+1d", true)] {
        std::fs::rename(site.write("next", days), &offset).unwrap();
        assert_eq!(auth(&service, &credential).status == 200, is_valid, "{days}");
        // It was valid for an hour.
        assert_eq!(get(&service, "/v1/batches", &issued).status, 401, "{days}");
        let listed =
            Outcome::run(with_clock(&mut site.command(&["credential", "list", "--org", ORG]), &offset));
        assert_eq!(listed.succeeds().contains("expired"), !is_valid, "{days}");
    }
}

#[test]
fn a_rotation_can_end_the_old_secret_at_once() {
    let site = Site::new();
    let first = site.credential();
    let service = site.serve(&[]);
    let text = site.run(&["credential", "rotate", &first.id, "--retire-after", "0s"]).succeeds();
    assert!(text.ends_with("until the credential is revoked.\n"), "{text}");
    rejected(&service, &first);
}

/// Decision 010.
#[test]
fn a_revoked_credential_stops_working_in_every_process() {
    let site = Site::new();
    let (credential, other) = (site.credential(), site.credential());
    let services = [site.serve(&[]), site.serve(&[])];
    let tokens = [&credential, &other].map(|credential| token(&services[0], credential));
    let id = &credential.id;
    site.transcript(
        &[&format!("credential revoke {id}"), &format!("credential rotate {id}")],
        file!["snapshots/a_revoked_credential_stops_working_in_every_process.txt"],
    );
    for service in &services {
        rejected(service, &credential);
        let statuses = tokens.each_ref().map(|token| get(service, "/v2/batches", token).status);
        assert_eq!(statuses, [401, 200]);
    }
    assert_eq!(listed(&site)[0]["state"], "revoked");
}

#[test]
fn an_unknown_credential_is_rejected() {
    Site::new().transcript(
        &[
            "credential revoke bs_unknown",
            "credential rotate bs_unknown",
            "credential revoke 'a b'",
            "credential rotate 'a b'",
        ],
        file!["snapshots/an_unknown_credential_is_rejected.txt"],
    );
}

#[test]
fn a_credential_whose_secret_cannot_be_printed_is_revoked() {
    let site = Site::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    for stdout in [Stdio::from(full), Stdio::from(closed)] {
        let mut command = site.command(&["credential", "issue", "--org", ORG]);
        let output = command.stdout(stdout).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && error.contains("the credential was revoked"), "{error}");
    }
    assert!(listed(&site).iter().all(|credential| credential["state"] == "revoked"));
}
