//! `batchscan key`: issued tokens keep working after a rotation, and stop after one with `--now`.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::Value;
use snapbox::file;

use crate::http::{auth, get, token};
use crate::program::wait_until;
use crate::scans;
use crate::service::Service;
use crate::site::{Credential, Site};

/// A new key is used after a minute, when every process has read it.
const SETTLED_SECS: u64 = 61;
const DAY_SECS: u64 = 86_400;

/// A service, and a token and a cursor from it.
struct Scene {
    site: Site,
    service: Service,
    credential: Credential,
    token: String,
    cursor: String,
}

impl Scene {
    fn new() -> Self {
        let site = Site::new();
        site.import(&site.write("a.ndjson", scans::ndjson(0..30, "x")));
        let (service, credential) = (site.serve(&["--page-size", "10"]), site.credential());
        let token = token(&service, &credential);
        let cursor = cursor(&service, &token);
        Self { site, service, credential, token, cursor }
    }

    /// The statuses for a token, and for a cursor with another token.
    fn statuses(&self, token: &str, cursor: &str, reader: &str) -> (u16, u16) {
        let next = format!("/v2/batches?next_token={cursor}");
        (get(&self.service, "/v1/batches", token).status, get(&self.service, &next, reader).status)
    }

    /// Makes all keys older.
    fn age(&self, secs: u64) {
        let statement = format!("UPDATE service_key SET created_at = created_at - {secs}000000");
        self.site.sql().execute(&statement, []).unwrap();
    }
}

fn cursor(service: &Service, token: &str) -> String {
    get(service, "/v2/batches", token).json()["next_token"].as_str().unwrap().to_owned()
}

/// The key that signed a token.
fn signer(token: &str) -> String {
    let header = URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
    serde_json::from_slice::<Value>(&header).unwrap()["kid"].as_str().unwrap().to_owned()
}

/// The names of the keys of a purpose, newest first.
fn names(site: &Site, purpose: &str) -> Vec<String> {
    let keys: Vec<Value> = serde_json::from_str(&site.run(&["key", "list", "--json"]).succeeds()).unwrap();
    let of_purpose = keys.iter().filter(|key| key["for"] == purpose);
    of_purpose.map(|key| key["key"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_list_has_no_key_material() {
    let site = Site::new();
    site.credential();
    let (table, json) =
        (site.run(&["key", "list"]).succeeds(), site.run(&["key", "list", "--json"]).succeeds());
    assert!(
        table.lines().next().unwrap().split_whitespace().eq(["KEY", "FOR", "CREATED", "STATE"]),
        "{table}"
    );
    let listed: Vec<Value> = serde_json::from_str(&json).unwrap();
    let mut purposes: Vec<&str> = listed.iter().map(|key| key["for"].as_str().unwrap()).collect();
    purposes.sort_unstable();
    assert_eq!(purposes, ["cursor", "secret", "token"]);
    assert!(
        listed.iter().all(|key| key.as_object().unwrap().len() == 4 && key["state"] == "in use"),
        "{json}"
    );
    let sql = site.sql();
    let mut all = sql.prepare("SELECT bytes FROM service_key").unwrap();
    let all: Vec<Vec<u8>> = all.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(all.len(), 3);
    for bytes in all {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        for form in [hex, STANDARD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes), format!("{bytes:?}")] {
            // Not even a part.
            assert!(!table.contains(&form[1..12]) && !json.contains(&form[1..12]), "a key is shown");
        }
    }
}

#[test]
fn after_a_rotation_issued_tokens_work_and_running_services_use_the_new_keys() {
    let scene = Scene::new();
    let (site, service) = (&scene.site, &scene.service);
    let secret_key = names(site, "secret");
    // A key is not replaced in its first minute.
    scene.age(2 * SETTLED_SECS);
    site.transcript(
        &["key rotate"],
        file!["snapshots/after_a_rotation_issued_tokens_work_and_running_services_use_the_new_keys.txt"],
    );
    let keys = names(site, "token");
    assert_eq!((keys.len(), names(site, "cursor").len()), (2, 2));
    assert_eq!(names(site, "secret"), secret_key, "all secrets would become invalid");
    assert_eq!(signer(&token(service, &scene.credential)), keys[1], "not every process has read the new key");
    scene.age(SETTLED_SECS);
    let newest = || signer(&token(service, &scene.credential)) == keys[0];
    wait_until("the new key signs", newest);
    let new_token = token(service, &scene.credential);
    assert_eq!(scene.statuses(&scene.token, &scene.cursor, &new_token), (200, 200));
    let new_cursor = cursor(service, &new_token);
    assert_eq!(scene.statuses(&new_token, &new_cursor, &scene.token), (200, 200));
}

#[test]
fn after_a_rotation_with_now_issued_tokens_stop_working() {
    let scene = Scene::new();
    let (site, service) = (&scene.site, &scene.service);
    let other = site.serve(&["--page-size", "10"]);
    let before = names(site, "token");
    site.transcript(
        &["key rotate --now"],
        file!["snapshots/after_a_rotation_with_now_issued_tokens_stop_working.txt"],
    );
    assert_eq!((names(site, "token").len(), names(site, "cursor").len()), (1, 1));
    assert_eq!(auth(service, &scene.credential).status, 200, "the secret stays");
    for service in [service, &other] {
        let is_rejected = || get(service, "/v1/batches", &scene.token).status == 401;
        wait_until("the old token is rejected", is_rejected);
    }
    let new_token = token(service, &scene.credential);
    assert_eq!(names(site, "token"), [signer(&new_token)]);
    assert_ne!(before, [signer(&new_token)]);
    assert_eq!(scene.statuses(&new_token, &scene.cursor, &new_token), (200, 422));
    assert_eq!(get(&other, "/v1/batches", &new_token).status, 200);
    let new_cursor = cursor(&other, &new_token);
    assert_eq!(scene.statuses(&new_token, &new_cursor, &new_token), (200, 200));
}

#[test]
fn a_key_is_removed_a_month_after_it_was_replaced() {
    let scene = Scene::new();
    let site = &scene.site;
    scene.age(9 * DAY_SECS);
    site.run(&["key", "rotate"]).succeeds();
    scene.age(31 * DAY_SECS);
    let replaced = names(site, "token");
    let text = site.run(&["key", "rotate"]).succeeds();
    assert!(text.contains("; removed 2 old keys; "), "{text}");
    let kept = names(site, "token");
    assert_eq!((kept.len(), &kept[1]), (2, &replaced[0]), "the first was replaced 31 days ago");
    assert_eq!(names(site, "secret").len(), 1);
}
