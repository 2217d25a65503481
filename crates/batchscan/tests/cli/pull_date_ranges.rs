//! The summary of a pull, with its date range and retries.

use serde_json::Value;
use snapbox::file;

use crate::demo;
use crate::http::{get, token};
use crate::scans;
use crate::site::Site;
use crate::user::User;

#[test]
fn the_summary_has_count_date_range_size_and_retries() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_500, "x")));
    let service = site.serve(&[]);
    let user = User::of(&site, &service);
    user.transcript(
        &[
            "pull -o a.csv",
            "pull -o b.csv --start-date 2026-01-01T00:00:00Z --end-date 2026-01-01T00:00:00Z",
            "pull -o c.json --start-date 2026",
            "pull -o d.ndjson --end-date 2025",
        ],
        file!["snapshots/the_summary_has_count_date_range_size_and_retries.txt"],
    );
}

/// Four pulls of three pages each in parallel, so that some requests fail.
#[test]
fn failed_requests_are_retried_and_counted() {
    let site = Site::without_org();
    let (demo, _) = demo::start(&site, &["--batches", "2500", "--fail-rate", "0.3"]);
    assert!(demo.welcome.contains("\n30 of 100 batch requests fail with 503 (--fail-rate).\n"));
    let user = User::with(&site, &demo.url, demo::credential(&demo));
    let retries: Vec<u64> = std::thread::scope(|scope| {
        let pulling = ["a.csv", "b.ndjson", "c.ndjson", "d.csv"].map(|file| {
            let user = &user;
            scope.spawn(move || user.pull(file, &["--json"]).succeeds())
        });
        let summary = pulling.map(|pull| serde_json::from_str::<Value>(&pull.join().unwrap()).unwrap());
        summary
            .iter()
            .map(|summary| {
                (summary["batches"] == 2_500).then(|| summary["retries"].as_u64().unwrap()).unwrap()
            })
            .collect()
    });
    assert!(retries.iter().sum::<u64>() > 0, "{retries:?}");
    let token = token(&demo, &user.credential);
    let v1 = loop {
        let response = get(&demo, "/v1/batches", &token);
        if response.status == 200 {
            break response;
        }
    };
    let lines = String::from_utf8(user.read("b.ndjson")).unwrap();
    assert_eq!(format!("[{}]", lines.trim_end().replace('\n', ",")), v1.text());
    assert!(user.read("c.ndjson") == user.read("b.ndjson") && user.read("a.csv") == user.read("d.csv"));
}
