//! `openapi`: the document that clients are generated from (decision 046).

use serde_json::{Value, json};

use crate::program::{Outcome, batchscan};
use crate::site::Site;
use crate::wire::ask;

/// Read from where tests run, which is the crate's folder: a path compiled in could be another clone's.
const GOLDEN: &str = "../../docs/openapi.json";

/// Decision 046: a change of the interface shows in a diff that somebody reads.
#[test]
fn the_document_is_the_one_that_is_kept_in_docs() {
    let kept = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    let printed = Outcome::of(&mut batchscan(&["openapi"])).done();
    let differing = printed.lines().zip(kept.lines()).position(|(printed, kept)| printed != kept);
    let line = 1 + differing.unwrap_or_else(|| printed.lines().count().min(kept.lines().count()));
    assert!(
        printed == kept,
        "docs/openapi.json is not what the program prints, from line {line} on. If the interface was meant to change, \
         renew it with `cargo run -- openapi > docs/openapi.json` and commit the difference"
    );
}

/// Decision 046.
#[test]
fn it_is_printed_without_a_database_and_leaves_none() {
    let site = Site::empty();
    let mut command = batchscan(&["openapi", "--database", "postgres://nobody@127.0.0.1:1/none"]);
    let printed = Outcome::of(command.current_dir(site.path(""))).done();
    assert_eq!(serde_json::from_str::<Value>(&printed).unwrap()["openapi"], "3.1.0");
    let mut command = batchscan(&["openapi"]);
    assert_eq!(Outcome::of(command.current_dir(site.path(""))).done(), printed);
    assert!(!site.path("batchscan.db").exists());
}

/// Decision 046.
#[test]
fn it_names_the_address_that_is_given_and_a_service_prints_the_same() {
    let site = Site::new();
    let flags = ["--public-url", "https://scans.example.org/"];
    let printed = Outcome::of(&mut batchscan(&[&["openapi"], &flags[..]].concat())).done();
    let document: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(document["servers"], json!([{ "url": "https://scans.example.org" }]));
    let service = site.serve(&flags);
    let served = ask(&service, "GET /openapi.json HTTP/1.1", "");
    assert_eq!((served.status, served.text()), (200, printed.as_str()));
}
