//! `batchscan import`: every format, what the summary counts, and what clients see of it.

use serde_json::Value;

use crate::program::{Outcome, clean, executable};
use crate::scans;
use crate::service::Service;
use crate::site::{ORG, Site};
use crate::wire::{self, get};

/// The summary without its last words, which tell how long it took.
#[track_caller]
pub(crate) fn untimed(summary: &str) -> &str {
    let (said, time) = summary.rsplit_once(" in ").unwrap();
    let secs = time.strip_suffix(" s\n").unwrap();
    assert!(secs.parse::<f64>().is_ok() && secs.contains('.'), "{summary}");
    said
}

fn served(site: &Site) -> (Service, String) {
    let service = site.serve(&[]);
    let token = wire::token(&service, &site.credential());
    (service, token)
}

/// Decisions 034 and 035: whatever the file held, the answer is the interface's form.
#[test]
fn every_format_becomes_the_same_bytes() {
    let site = Site::empty();
    let files = [
        site.write("a.ndjson", scans::ndjson(0..300, "as scanned")),
        site.write("a.JSONL", scans::ndjson(0..300, "as scanned").replace('\n', "\r\n")),
        site.write("a.json", scans::array(0..300, "as scanned")),
        site.write("a.csv", scans::csv(0..300, "as scanned")),
        site.write("a.parquet", scans::parquet(0..300, "as scanned")),
    ];
    for file in files {
        site.run(&["org", "add", ORG]).done();
        let summary = site.import(&file);
        let expected = format!(
            "imported 300 batches from {file} into \"Green Valley\": 300 new, 0 corrected, 0 unchanged"
        );
        assert_eq!(untimed(&summary), expected);
        let (service, token) = served(&site);
        assert_eq!(get(&service, "/v1/batches", &token).text(), scans::array(0..300, "as scanned"), "{file}");
        site.run(&["org", "remove", ORG, "--yes"]).done();
    }
}

#[test]
fn standard_input_is_read_where_a_dash_stands() {
    let site = Site::new();
    for (format, bytes) in [
        ("ndjson", scans::ndjson(0..50, "x").into_bytes()),
        ("json", scans::array(0..50, "x").into_bytes()),
        ("csv", scans::csv(0..50, "x").into_bytes()),
        ("parquet", scans::parquet(0..50, "x")),
    ] {
        let mut command = site.command(&["import", "--org", ORG, "--format", format, "--json", "-"]);
        let summary: Value = serde_json::from_str(&Outcome::with_input(&mut command, bytes).done()).unwrap();
        let new = if format == "ndjson" { 50 } else { 0 };
        assert_eq!((&summary["batches"], &summary["new"]), (&50.into(), &new.into()), "{format}");
        assert_eq!((&summary["file"], &summary["organisation"]), (&"-".into(), &ORG.into()));
        assert_eq!((&summary["repeated"], &summary["dry_run"]), (&0.into(), &false.into()));
        assert!(summary["seconds"].is_f64());
    }
}

#[test]
fn a_pipe_that_the_shell_made_is_read_like_a_file() {
    let site = Site::new();
    let file = site.write("a.ndjson", scans::ndjson(0..50, "x"));
    let line = format!("exec \"$0\" import --org '{ORG}' --format ndjson --json <(cat '{file}')");
    let mut bash = clean("bash");
    bash.args(["-c", &line]).arg(executable()).env("BATCHSCAN_DATABASE", site.url("scans.db"));
    let summary: Value = serde_json::from_str(&Outcome::of(&mut bash).done()).unwrap();
    assert_eq!(summary["new"], 50);
}

/// Decisions 037 and 040.
#[test]
fn the_summary_counts_new_corrected_unchanged_and_superseded() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_200, "first")));
    let moved = scans::line(0, "first").replace("2026-01-01T00:00:00Z", "2026-01-30T00:00:00+02:00");
    let lines = [
        scans::line(5_000, "new, then again"),
        scans::line(5_000, "new"),
        scans::line(1, "corrected"),
        moved,
        scans::line(2, "first"),
        scans::line(3, "there and"),
        scans::line(3, "first"),
    ];
    let file = site.write("b.ndjson", lines.join("\n"));
    let summary = site.import(&file);
    let expected = format!(
        "imported 7 batches from {file} into \"Green Valley\": 1 new, 2 corrected, 2 unchanged, 2 superseded by a later line,"
    );
    assert_eq!(untimed(&summary), expected);
    let (service, token) = served(&site);
    let all = get(&service, "/v1/batches", &token).json();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 1_201);
    assert_eq!(all[0]["comment"], "corrected");
    assert_eq!((&all[1_199]["comment"], &all[1_199]["batch_id"]), (&"new".into(), &"scan-0005000".into()));
    assert_eq!(all[1_200]["batch_creation_date"], "2026-01-29T22:00:00Z", "a batch may move");
}

/// Decision 031: a poller of unchanged data costs nothing.
#[test]
fn an_import_of_what_is_there_changes_nothing_and_keeps_the_etag() {
    let site = Site::new();
    let file = site.write("a.ndjson", scans::ndjson(0..1_500, "x"));
    site.import(&file);
    let (service, token) = served(&site);
    let targets = ["/v1/batches", "/v2/batches", "/v2/batches?start_date=2026-01-01T00:10:00Z"];
    let etags = || targets.map(|target| get(&service, target, &token).header("etag").unwrap().to_owned());
    let before = etags();
    let expected = format!(
        "imported 1,500 batches from {file} into \"Green Valley\": 0 new, 0 corrected, 1,500 unchanged"
    );
    assert_eq!(untimed(&site.import(&file)), expected);
    assert_eq!(etags(), before);
    for (target, etag) in targets.iter().zip(&before) {
        let head = format!("{}\r\nIf-None-Match: {etag}", wire::get_head(target, &token));
        let answer = wire::ask(&service, &head, "");
        assert_eq!((answer.status, answer.body.len()), (304, 0));
    }
    site.import(&site.write("b.ndjson", scans::line(7, "another")));
    assert!(etags().iter().zip(&before).all(|(after, before)| after != before));
}

#[test]
fn a_dry_run_counts_and_keeps_nothing() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..10, "first")));
    let (service, token) = served(&site);
    let before = get(&service, "/v1/batches", &token);
    let file = site.write("b.csv", scans::csv(5..25, "second"));
    let summary = site.run(&["import", "--org", ORG, "--dry-run", &file]).done();
    let expected = format!(
        "would import 20 batches from {file} into \"Green Valley\": 15 new, 5 corrected, 0 unchanged"
    );
    assert_eq!(untimed(&summary), expected);
    let after = get(&service, "/v1/batches", &token);
    assert_eq!(after.header("etag"), before.header("etag"));
    assert_eq!(after.body, before.body);
    let (mut bad, faulty) = (scans::ndjson(0..3, "x"), "{\"batch_id\":1}\n");
    bad.push_str(faulty);
    let outcome = site.run(&["import", "--org", ORG, "--dry-run", &site.write("c.ndjson", bad)]);
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome
            .err
            .starts_with(&format!("{}: line 4: batch_id: found 1, expected text\n", site.name("c.ndjson")))
    );
}

#[test]
fn several_files_are_a_transaction_each() {
    let site = Site::new();
    let good = site.write("a.ndjson", scans::ndjson(0..10, "x"));
    let bad = site.write("b.ndjson", "7\n");
    let never = site.write("c.ndjson", scans::ndjson(10..20, "x"));
    let outcome = site.run(&["import", "--org", ORG, &good, &bad, &never]);
    assert_eq!(outcome.code, Some(1));
    assert!(untimed(&outcome.out).starts_with("imported 10 batches"), "{}", outcome.out);
    let expected = format!(
        "{bad}: line 1: found 7, expected a batch as a JSON object\n\
         error: {bad} has 1 fault: nothing of it was imported; mend the file and import it again (the file before it \
         stays imported)\n"
    );
    assert_eq!(outcome.err, expected);
    let (service, token) = served(&site);
    assert_eq!(get(&service, "/v1/batches", &token).json().as_array().unwrap().len(), 10);
}

/// Decision 039.
#[test]
fn nullable_fields_may_be_missing_and_come_out_as_null() {
    let site = Site::new();
    let line = r#"{"warnings":true,"batch_id":"a","batch_name":"n","number_of_images":3,"batch_creation_date":"2026-02-01T00:00:00.250+01:00","avg_germination_rate":1.005}"#;
    site.import(&site.write("a.ndjson", line));
    let (service, token) = served(&site);
    let answer = get(&service, "/v1/batches", &token).json();
    let batch = answer[0].as_object().unwrap();
    assert_eq!(batch.len(), 18);
    assert_eq!(batch.values().filter(|value| value.is_null()).count(), 12);
    assert_eq!(batch["batch_creation_date"], "2026-01-31T23:00:00.25Z");
    assert_eq!(batch["avg_germination_rate"], "1.01");
}

/// Interface section 4: both versions give the same batches, windows included.
#[test]
fn what_was_imported_is_served_by_both_versions_and_within_a_window() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..2_500, "x")));
    let (service, token) = served(&site);
    let mut walked = Vec::new();
    let mut target = "/v2/batches".to_owned();
    let mut pages = 0;
    loop {
        let page = get(&service, &target, &token).json();
        walked.extend(page["data"].as_array().unwrap().clone());
        pages += 1;
        let Some(next) = page["next_token"].as_str() else { break };
        target = format!("/v2/batches?next_token={next}");
    }
    assert_eq!(pages, 3);
    assert_eq!(Value::from(walked), get(&service, "/v1/batches", &token).json());
    let window = format!("/v1/batches?start_date={}&end_date={}", scans::created(100), scans::created(199));
    assert_eq!(get(&service, &window, &token).text(), scans::array(100..200, "x"));
}
