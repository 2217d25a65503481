//! `batchscan credential`: issued, listed, rotated, revoked, and what each does to tokens.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::service::Service;
use crate::site::{Credential, ORG, Site};
use crate::wire::{auth, get, token};

/// How soon tokens that are out die (decision 010).
pub(crate) const DEATH_LIMIT: Duration = Duration::from_secs(5);
/// "Last used" is written every 5 s; a busy machine may need a little more.
const LAST_USED_LIMIT: Duration = Duration::from_secs(8);

fn listed(site: &Site) -> Vec<Value> {
    let text = site.run(&["credential", "list", "--org", ORG, "--json"]).done();
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
    let names = "client_id,created_at,expires_at,label,last_used_at,old_secret_until,revoked_at,state";
    for one in &all {
        assert_eq!(one.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(","), names);
    }
    all
}

/// Waits for a condition, and fails if it does not come true in time.
#[track_caller]
pub(crate) fn within(limit: Duration, what: &str, is_true: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[track_caller]
fn refused(service: &Service, credential: &Credential) {
    let answer = auth(service, credential);
    assert_eq!(answer.status, 401);
    assert_eq!(answer.json()["detail"], "The client_id or client_secret is wrong");
}

/// Decision 004: ids and secrets need no escaping.
#[test]
fn an_issued_credential_is_shown_once_and_opens_the_service() {
    let site = Site::new();
    let text = site.run(&["credential", "issue", "--org", ORG, "--label", "ERP"]).done();
    let lines: Vec<&str> = text.lines().collect();
    let (id, secret) = (lines[0].split_once("  ").unwrap(), lines[1].split_once("  ").unwrap());
    assert_eq!((id.0, secret.0, lines[2]), ("client id", "client secret", ""));
    assert_eq!(lines[3], "The secret is shown this once: it is not kept in a form that can be read.");
    let credential = Credential { id: id.1.trim().into(), secret: secret.1.into() };
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    assert!(plain(&credential.id) && plain(&credential.secret), "{credential:?}");
    let service = site.serve(&[]);
    assert_eq!(get(&service, "/v1/batches", &token(&service, &credential)).ok(), b"[]");
    let table = site.run(&["credential", "list", "--org", ORG]).done();
    let head: Vec<&str> = table.lines().next().unwrap().split("  ").filter(|cell| !cell.is_empty()).collect();
    let names = ["CLIENT ID", "LABEL", "STATE", "ISSUED", "EXPIRES", "LAST USED", "OLD SECRET UNTIL"];
    assert_eq!(head.iter().map(|cell| cell.trim()).collect::<Vec<_>>(), names);
    assert!(
        table.lines().nth(1).unwrap().starts_with(&format!("{}  ERP    active  20", credential.id)),
        "{table}"
    );
    assert!(!table.contains(&credential.secret));
}

#[test]
fn without_credentials_the_list_says_how_to_begin() {
    let out = Site::new().run(&["credential", "list", "--org", ORG]).done();
    let expected = "no credentials yet: issue one with `batchscan credential issue --org \"Green Valley\"`\n";
    assert_eq!(out, expected);
}

#[test]
fn the_list_tells_when_a_credential_was_last_used_and_never_a_secret() {
    let site = Site::new();
    let (used, idle) = (site.credential(), site.credential());
    let service = site.serve(&[]);
    token(&service, &used);
    let last_used = |credential: &Credential| {
        let all = listed(&site);
        all.iter().find(|one| one["client_id"] == credential.id.as_str()).unwrap()["last_used_at"].clone()
    };
    within(LAST_USED_LIMIT, "last used", || last_used(&used).is_string());
    assert_eq!(last_used(&idle), Value::Null);
    let text = site.run(&["credential", "list", "--org", ORG, "--json"]).done();
    assert!(!text.contains(&used.secret) && !text.contains("secret\":\""), "{text}");
}

#[test]
fn a_use_just_before_the_end_of_the_service_is_written_down_too() {
    let site = Site::new();
    let credential = site.credential();
    let mut service = site.serve(&[]);
    token(&service, &credential);
    service.stop();
    assert!(listed(&site)[0]["last_used_at"].is_string());
}

#[test]
fn after_a_rotation_two_secrets_live_until_the_first_retires() {
    let site = Site::new();
    let first = site.credential();
    let service = site.serve(&[]);
    let rotate = ["credential", "rotate", &first.id, "--retire-after", "3s", "--json"];
    let second = Credential::from_json(&site.run(&rotate).done());
    let rotated = Instant::now();
    assert_eq!(second.id, first.id);
    assert_ne!(second.secret, first.secret);
    let (token_of_first, _) = (token(&service, &first), token(&service, &second));
    assert!(listed(&site)[0]["old_secret_until"].is_string());
    within(Duration::from_secs(6), "the first retires", || auth(&service, &first).status == 401);
    assert!(rotated.elapsed() > Duration::from_secs(2), "it retired too early: {:?}", rotated.elapsed());
    refused(&service, &first);
    token(&service, &second);
    // The credential is the same: what its first secret got goes on working until it expires.
    assert_eq!(get(&service, "/v1/batches", &token_of_first).status, 200);
    assert_eq!(listed(&site)[0]["old_secret_until"], Value::Null);
}

#[test]
fn a_rotation_may_end_the_first_secret_at_once() {
    let site = Site::new();
    let first = site.credential();
    let service = site.serve(&[]);
    let text = site.run(&["credential", "rotate", &first.id, "--retire-after", "0s"]).done();
    assert!(text.lines().last().unwrap().starts_with("The secret before it works until 20"), "{text}");
    refused(&service, &first);
}

/// Decision 010.
#[test]
fn a_revoked_credential_gets_no_token_at_once_and_its_tokens_die_within_seconds_in_every_process() {
    let site = Site::new();
    let credential = site.credential();
    let services = [site.serve(&[]), site.serve(&[])];
    let tokens = services.each_ref().map(|service| token(service, &credential));
    let text = site.run(&["credential", "revoke", &credential.id]).done();
    let expected =
        format!("revoked {}: no new tokens, and those that are out stop working within 5 s\n", credential.id);
    assert_eq!(text, expected);
    let revoked = Instant::now();
    services.iter().for_each(|service| refused(service, &credential));
    let answers = || {
        services.iter().flat_map(|service| tokens.each_ref().map(|token| get(service, "/v2/batches", token)))
    };
    while answers().any(|answer| answer.status != 401) {
        assert!(revoked.elapsed() < DEATH_LIMIT);
    }
    assert_eq!(listed(&site)[0]["state"], "revoked");
    let id = &credential.id;
    let message = format!(
        "the credential {id} is revoked already: issue a new one with `batchscan credential issue --org NAME`"
    );
    site.run(&["credential", "rotate", id]).fails(&message);
}

/// Decision 010.
#[test]
fn a_credential_ends_by_itself_when_it_expires() {
    let site = Site::new();
    let issue = ["credential", "issue", "--org", ORG, "--expires", "3s", "--json"];
    let credential = Credential::from_json(&site.run(&issue).done());
    let service = site.serve(&[]);
    let token = token(&service, &credential);
    assert_eq!(get(&service, "/v1/batches", &token).status, 200);
    assert_eq!(listed(&site)[0]["state"], "active");
    assert!(listed(&site)[0]["expires_at"].is_string());
    within(Duration::from_secs(6), "no new token", || auth(&service, &credential).status == 401);
    assert_eq!(get(&service, "/v1/batches", &token).status, 401);
    assert_eq!(listed(&site)[0]["state"], "expired");
}

/// Decision 008.
#[test]
fn a_token_lives_as_long_as_the_operator_says_and_no_longer() {
    let site = Site::new();
    let credential = site.credential();
    let service = site.serve(&["--token-ttl", "2s"]);
    let answer = auth(&service, &credential).json();
    assert_eq!(answer["expires_in"], 2);
    let token = answer["access_token"].as_str().unwrap();
    assert_eq!(get(&service, "/v1/batches", token).status, 200);
    std::thread::sleep(Duration::from_millis(2_100));
    let answer = get(&service, "/v1/batches", token);
    assert_eq!(answer.status, 401);
    assert_eq!(answer.json()["detail"], "The access token has expired: get a new one");
}

#[test]
fn an_unknown_credential_is_named() {
    let site = Site::new();
    let message = "there is no credential bs_nobody: `batchscan credential list --org NAME` shows them";
    site.run(&["credential", "revoke", "bs_nobody"]).fails(message);
    site.run(&["credential", "rotate", "bs_nobody"]).fails(message);
    let message = "\"a b\" is not a client id: `batchscan credential list --org NAME` shows them";
    site.run(&["credential", "revoke", "a b"]).fails(message);
    site.run(&["credential", "rotate", "a b"]).fails(message);
}
