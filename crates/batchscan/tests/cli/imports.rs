//! `batchscan import`: formats, the summary, and what clients see.

use serde_json::Value;
use snapbox::file;

use crate::http::{self, get};
use crate::program::{Outcome, clean, executable};
use crate::scans;
use crate::service::Service;
use crate::site::{ORG, Site};

/// The summary without its time.
#[track_caller]
fn untimed(summary: &str) -> &str {
    let (text, time) = summary.rsplit_once(" in ").unwrap();
    let secs = time.strip_suffix(" s\n").unwrap();
    assert!(secs.parse::<f64>().is_ok() && secs.contains('.'), "{summary}");
    text
}

fn served(site: &Site) -> (Service, String) {
    let service = site.serve(&[]);
    let token = http::token(&service, &site.credential());
    (service, token)
}

/// Decisions 034 and 035.
#[test]
fn every_format_becomes_the_same_bytes() {
    let site = Site::without_org();
    let files = [
        site.write("a.ndjson", scans::ndjson(0..300, "as scanned")),
        site.write("a.JSONL", scans::ndjson(0..300, "as scanned").replace('\n', "\r\n")),
        site.write("a.json", scans::array(0..300, "as scanned")),
        site.write("a.csv", scans::csv(0..300, "as scanned")),
        site.write("a.parquet", scans::parquet(0..300, "as scanned")),
    ];
    for file in files {
        site.run(&["org", "add", ORG]).succeeds();
        let summary = site.import(&file);
        let expected = format!(
            "imported 300 batches from {file} into \"Green Valley\": 300 new, 0 corrected, 0 unchanged"
        );
        assert_eq!(untimed(&summary), expected);
        let (service, token) = served(&site);
        assert_eq!(get(&service, "/v1/batches", &token).text(), scans::array(0..300, "as scanned"), "{file}");
        site.run(&["org", "remove", ORG, "--yes"]).succeeds();
    }
}

#[test]
fn a_dash_reads_standard_input() {
    let site = Site::new();
    for (format, bytes) in [
        ("ndjson", scans::ndjson(0..50, "x").into_bytes()),
        ("json", scans::array(0..50, "x").into_bytes()),
        ("csv", scans::csv(0..50, "x").into_bytes()),
        ("parquet", scans::parquet(0..50, "x")),
    ] {
        let mut command = site.command(&["import", "--org", ORG, "--format", format, "--json", "-"]);
        let summary: Value =
            serde_json::from_str(&Outcome::with_input(&mut command, bytes).succeeds()).unwrap();
        let new = if format == "ndjson" { 50 } else { 0 };
        assert_eq!((&summary["batches"], &summary["new"]), (&50.into(), &new.into()), "{format}");
        assert_eq!((&summary["file"], &summary["organisation"]), (&"-".into(), &ORG.into()));
        assert_eq!((&summary["duplicates"], &summary["dry_run"]), (&0.into(), &false.into()));
        assert!(summary["seconds"].is_f64());
    }
}

#[test]
fn a_named_pipe_is_read_like_a_file() {
    let site = Site::new();
    let file = site.write("a.ndjson", scans::ndjson(0..50, "x"));
    let line = format!("exec \"$0\" import --org '{ORG}' --format ndjson --json <(cat '{file}')");
    let mut bash = clean("bash");
    bash.args(["-c", &line]).arg(executable()).env("BATCHSCAN_DATABASE", site.url("scans.db"));
    let summary: Value = serde_json::from_str(&Outcome::run(&mut bash).succeeds()).unwrap();
    assert_eq!(summary["new"], 50);
}

/// Lines that change an import of batches with the comment "first": 1 new, 2 corrected, 2 unchanged, 2 repeated.
fn all_kinds_of_changes() -> String {
    let lines = [
        scans::line(5_000, "new, then again"),
        scans::line(5_000, "new"),
        scans::line(1, "corrected"),
        scans::line(0, "first").replace("2026-01-01T00:00:00Z", "2026-01-30T00:00:00+02:00"),
        scans::line(2, "first"),
        scans::line(3, "there and"),
        scans::line(3, "first"),
    ];
    lines.join("\n")
}

/// Decisions 037 and 040.
#[test]
fn the_summary_counts_new_corrected_unchanged_and_duplicates() {
    for site in [Site::new, Site::on_postgres] {
        let site = site();
        site.import(&site.write("a.ndjson", scans::ndjson(0..1_200, "first")));
        site.write("b.ndjson", all_kinds_of_changes());
        let import = "import --org 'Green Valley' b.ndjson";
        site.transcript(
            &["import --org 'Green Valley' b.ndjson --dry-run", import, import],
            file!["snapshots/the_summary_counts_new_corrected_unchanged_and_duplicates.txt"],
        );
        let (service, token) = served(&site);
        let all = get(&service, "/v1/batches", &token).json();
        let all = all.as_array().unwrap();
        assert_eq!(all.len(), 1_201);
        assert_eq!(all[0]["comment"], "corrected");
        assert_eq!(
            (&all[1_199]["comment"], &all[1_199]["batch_id"]),
            (&"new".into(), &"scan-0005000".into())
        );
        assert_eq!(all[1_200]["batch_creation_date"], "2026-01-29T22:00:00Z", "a batch may move");
    }
}

#[test]
fn implausible_values_are_warnings_unless_strict() {
    let site = Site::new();
    let wrong = scans::line(1, "x").replace("\"92.50\"", "\"250\"");
    let lines = [scans::line(0, "x"), wrong].join("\n");
    site.write("mixed.ndjson", format!("{lines}\n7\n"));
    site.write("a.ndjson", lines);
    site.transcript(
        &[
            "import --org 'Green Valley' a.ndjson --strict",
            "import --org 'Green Valley' mixed.ndjson --strict",
            "import --org 'Green Valley' a.ndjson",
        ],
        file!["snapshots/implausible_values_are_warnings_unless_strict.txt"],
    );
    let many = (0..9).map(|number| scans::line(number, "x").replace("\"92.50\"", "\"-5\"") + "\n");
    let file = site.write("b.ndjson", many.collect::<String>());
    let outcome = site.run(&["import", "--org", ORG, "--json", &file]);
    let summary: Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(summary["warnings"], 9);
    assert_eq!(outcome.err.lines().count(), 6);
    assert!(outcome.err.ends_with(": 4 more\n"), "{}", outcome.err);
}

/// Decision 056.
#[test]
fn a_foreign_file_is_previewed_mapped_and_imported() {
    let site = Site::new();
    let rows = "Roma;16.11.2026 08:00;12;nein;0,925;x\nCherry;16.11.2026 09:30;8;ja;0,88;\n";
    site.write(
        "scans.csv",
        format!("Woche 47;;;;;\n\nName;Gescannt;Bilder;Warnungen;Keimquote;Notizen\n{rows}"),
    );
    site.write("wrong.toml", "timezone = \"Berlin\"\n\n[columns]\nKeimquote = \"germination_rate\"\n");
    let edited = "timezone = \"Europe/Berlin\"\nrates = \"fraction\"\nignore = [\"Notizen\"]\n\
                  batch_id = \"{batch_name} {batch_creation_date}\"\n[columns]\nKeimquote = \"avg_germination_rate\"\n";
    site.write("edited.toml", edited);
    site.transcript(
        &[
            "import --org 'Green Valley' scans.csv",
            "import --org 'Green Valley' scans.csv --write-mapping recognised.toml --timezone Europe/Berlin",
            "import --org 'Green Valley' scans.csv --mapping wrong.toml",
            "import --org 'Green Valley' scans.csv --mapping edited.toml --preview",
            "import --org 'Green Valley' scans.csv --mapping edited.toml",
            "import --org 'Green Valley' scans.csv --timezone CET+1",
        ],
        file!["snapshots/a_foreign_file_is_previewed_mapped_and_imported.txt"],
    );
}

#[test]
fn a_preview_that_the_database_fails_does_not_blame_the_file() {
    let site = Site::new();
    site.write("a.ndjson", scans::ndjson(0..2, "x"));
    let trigger = "CREATE TRIGGER full BEFORE INSERT ON batch BEGIN SELECT RAISE(ABORT, 'full'); END";
    site.sql().execute_batch(trigger).unwrap();
    let outcome = site.run(&["import", "--org", ORG, "a.ndjson", "--write-mapping", "a.toml"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.err.contains("full") && !outcome.out.contains("rejected"), "{outcome:?}");
}

/// Decision 031.
#[test]
fn an_import_without_changes_keeps_the_etag() {
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
        let head = format!("{}\r\nIf-None-Match: {etag}", http::get_head(target, &token));
        let response = http::request(&service, &head, "");
        assert_eq!((response.status, response.body.len()), (304, 0));
    }
    site.import(&site.write("b.ndjson", scans::line(7, "another")));
    assert!(etags().iter().zip(&before).all(|(after, before)| after != before));
}

#[test]
fn a_dry_run_changes_nothing() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..10, "first")));
    let (service, token) = served(&site);
    let before = get(&service, "/v1/batches", &token);
    site.write("b.csv", scans::csv(5..25, "second"));
    site.write("c.ndjson", scans::ndjson(0..3, "x") + "{\"batch_id\":1}\n");
    site.transcript(
        &["import --org 'Green Valley' --dry-run b.csv", "import --org 'Green Valley' --dry-run c.ndjson"],
        file!["snapshots/a_dry_run_changes_nothing.txt"],
    );
    let after = get(&service, "/v1/batches", &token);
    assert_eq!(after.header("etag"), before.header("etag"));
    assert_eq!(after.body, before.body);
}

#[test]
fn each_file_is_a_transaction() {
    let site = Site::new();
    site.write("a.ndjson", scans::ndjson(0..10, "x"));
    site.write("b.ndjson", "7\n");
    site.write("c.ndjson", scans::ndjson(10..20, "x"));
    site.transcript(
        &["import --org 'Green Valley' a.ndjson b.ndjson c.ndjson"],
        file!["snapshots/each_file_is_a_transaction.txt"],
    );
    let (service, token) = served(&site);
    assert_eq!(get(&service, "/v1/batches", &token).json().as_array().unwrap().len(), 10);
}
