//! `batchscan key`: what is out goes on working after a rotation, and stops after one with `--now`. The same on a file
//! and on PostgreSQL.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::Value;

use crate::credentials::{DEATH_LIMIT, within};
use crate::scans;
use crate::service::Service;
use crate::site::{Credential, Site, postgres};
use crate::wire::{auth, get, token};

/// A new key signs after a minute, so that every process knows it by then.
const SETTLED_SECS: u64 = 61;
const DAY_SECS: u64 = 86_400;

/// A service with more than a page of batches, and what a client of it has.
struct Scene {
    site: Site,
    service: Service,
    credential: Credential,
    token: String,
    cursor: String,
}

impl Scene {
    fn on(site: Site) -> Self {
        site.import(&site.write("a.ndjson", scans::ndjson(0..30, "x")));
        let (service, credential) = (site.serve(&["--page-size", "10"]), site.credential());
        let token = token(&service, &credential);
        let cursor = cursor(&service, &token);
        Self { site, service, credential, token, cursor }
    }

    /// How the service answers to a token, and to a cursor with another token.
    fn statuses(&self, token: &str, cursor: &str, reader: &str) -> (u16, u16) {
        let next = format!("/v2/batches?next_token={cursor}");
        (get(&self.service, "/v1/batches", token).status, get(&self.service, &next, reader).status)
    }

    /// Lets all keys have been made this much earlier.
    fn age(&self, secs: u64) {
        self.change(&format!("UPDATE service_key SET created_at = created_at - {secs}000000"));
    }

    fn change(&self, statement: &str) {
        match self.site.database.rsplit_once('/') {
            Some((server, name)) if server.starts_with("postgres:") => {
                drop(postgres().sql(name, statement).unwrap());
            }
            _ => drop(self.site.sql().execute(statement, []).unwrap()),
        }
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
    let keys: Vec<Value> = serde_json::from_str(&site.run(&["key", "list", "--json"]).done()).unwrap();
    let of_purpose = keys.iter().filter(|key| key["for"] == purpose);
    of_purpose.map(|key| key["key"].as_str().unwrap().to_owned()).collect()
}

fn both() -> [fn() -> Site; 2] {
    [Site::new, Site::on_postgres]
}

#[test]
fn the_list_names_every_key_and_shows_none() {
    let site = Site::new();
    // The first who needs keys makes them.
    site.credential();
    let (table, json) = (site.run(&["key", "list"]).done(), site.run(&["key", "list", "--json"]).done());
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["KEY", "FOR", "MADE", "STATE"]);
    let mut purposes: Vec<&str> = rows[1..].iter().map(|row| row[1]).collect();
    purposes.sort_unstable();
    assert_eq!(purposes, ["cursor", "secret", "token"]);
    let listed: Vec<Value> = serde_json::from_str(&json).unwrap();
    for (row, key) in rows[1..].iter().zip(&listed) {
        assert_eq!((key.as_object().unwrap().len(), &key["state"]), (4, &Value::from("in use")), "{key}");
        let [name, purpose, made] =
            [&key["key"], &key["for"], &key["made"]].map(|value| value.as_str().unwrap());
        assert_eq!([name, purpose, made, "in", "use"], row[..]);
        assert!(row[2].starts_with("20") && row[2].ends_with('Z'), "{table}");
    }
    let sql = site.sql();
    let mut all = sql.prepare("SELECT bytes FROM service_key").unwrap();
    let all: Vec<Vec<u8>> = all.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(all.len(), 3);
    for bytes in all {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        for form in [hex, STANDARD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes), format!("{bytes:?}")] {
            // A part of a key would be too much as well.
            let part = &form[1..12];
            assert!(!table.contains(part) && !json.contains(part), "a key shows");
        }
    }
}

#[test]
fn after_a_rotation_what_is_out_goes_on_working_and_a_running_service_takes_the_new_keys() {
    for site in both() {
        let scene = Scene::on(site());
        let (site, service) = (&scene.site, &scene.service);
        let secret_key = names(site, "secret");
        // The first keys are in use at once, and no key is replaced before it has settled.
        scene.age(2 * SETTLED_SECS);
        let told = "made new keys for tokens and cursors, in use in 60 s; removed 0 old keys; the others go on verifying\n";
        assert_eq!(site.run(&["key", "rotate"]).done(), told);
        let keys = names(site, "token");
        assert_eq!((keys.len(), names(site, "cursor").len()), (2, 2));
        assert_eq!(names(site, "secret"), secret_key, "credentials would die with it");
        assert_eq!(
            signer(&token(service, &scene.credential)),
            keys[1],
            "not every process knows the new key yet"
        );
        scene.age(SETTLED_SECS);
        let newest = || signer(&token(service, &scene.credential)) == keys[0];
        within(DEATH_LIMIT, "the new key signs", newest);
        let new_token = token(service, &scene.credential);
        assert_eq!(scene.statuses(&scene.token, &scene.cursor, &new_token), (200, 200));
        let new_cursor = cursor(service, &new_token);
        assert_eq!(scene.statuses(&new_token, &new_cursor, &scene.token), (200, 200));
    }
}

#[test]
fn after_a_rotation_with_now_what_was_out_is_dead_within_five_seconds() {
    for site in both() {
        let scene = Scene::on(site());
        let (site, service) = (&scene.site, &scene.service);
        let other = site.serve(&["--page-size", "10"]);
        let before = names(site, "token");
        let told = "made new keys for tokens and cursors, and removed 2 old keys: what is out stops working within 5 s\n";
        assert_eq!(site.run(&["key", "rotate", "--now"]).done(), told);
        let rotated = std::time::Instant::now();
        assert_eq!((names(site, "token").len(), names(site, "cursor").len()), (1, 1));
        assert_eq!(auth(service, &scene.credential).status, 200, "the secret stays");
        for service in [service, &other] {
            let is_dead = || get(service, "/v1/batches", &scene.token).status == 401;
            within(DEATH_LIMIT.saturating_sub(rotated.elapsed()), "the old token dies", is_dead);
        }
        let new_token = token(service, &scene.credential);
        assert_eq!(names(site, "token"), [signer(&new_token)]);
        assert_ne!(before, [signer(&new_token)]);
        assert_eq!(scene.statuses(&new_token, &scene.cursor, &new_token), (200, 422));
        assert_eq!(get(&other, "/v1/batches", &new_token).status, 200);
        let new_cursor = cursor(&other, &new_token);
        assert_eq!(scene.statuses(&new_token, &new_cursor, &new_token), (200, 200));
    }
}

/// A token that was signed by the new keys must be good wherever it is shown, also where they were not read yet.
#[test]
fn a_service_that_starts_after_a_rotation_gives_tokens_that_the_others_take() {
    for site in both() {
        let scene = Scene::on(site());
        let site = &scene.site;
        site.run(&["key", "rotate", "--now"]).done();
        let started = site.serve(&[]);
        let new_token = token(&started, &scene.credential);
        assert_eq!(get(&started, "/v1/batches", &new_token).status, 200);
        let is_taken = || get(&scene.service, "/v1/batches", &new_token).status == 200;
        within(DEATH_LIMIT, "the new token is taken", is_taken);
    }
}

#[test]
fn a_key_is_removed_a_month_after_another_followed_it() {
    for site in both() {
        let scene = Scene::on(site());
        let site = &scene.site;
        scene.age(9 * DAY_SECS);
        site.run(&["key", "rotate"]).done();
        scene.age(31 * DAY_SECS);
        let followed = names(site, "token");
        let told = site.run(&["key", "rotate"]).done();
        assert!(told.contains("; removed 2 old keys; "), "{told}");
        let kept = names(site, "token");
        assert_eq!((kept.len(), &kept[1]), (2, &followed[0]), "the first was followed 31 days ago");
        assert_eq!(names(site, "secret").len(), 1);
    }
}
