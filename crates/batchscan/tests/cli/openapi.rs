//! `batchscan openapi` (decision 046).

use serde_json::{Value, json};

use crate::http::request;
use crate::program::{Outcome, batchscan};
use crate::site::Site;

/// Decision 046.
#[test]
fn it_needs_no_database_and_creates_none() {
    let site = Site::without_org();
    let mut command = batchscan(&["openapi"]);
    command.env("BATCHSCAN_DATABASE", "postgres://user@127.0.0.1:1/none");
    let printed = Outcome::run(command.current_dir(site.path(""))).succeeds();
    assert_eq!(serde_json::from_str::<Value>(&printed).unwrap()["openapi"], "3.1.0");
    assert!(!site.path("batchscan.db").exists());
}

/// Decision 046.
#[test]
fn it_has_the_public_url_and_equals_the_one_of_the_service() {
    let site = Site::new();
    let flags = ["--public-url", "https://scans.example.org/"];
    let printed = Outcome::run(&mut batchscan(&[&["openapi"], &flags[..]].concat())).succeeds();
    let document: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(document["servers"], json!([{ "url": "https://scans.example.org" }]));
    let service = site.serve(&flags);
    let served = request(&service, "GET /openapi.json HTTP/1.1", "");
    assert_eq!((served.status, served.text()), (200, printed.as_str()));
}
