//! Databases that are missing, foreign, damaged, or of a newer version.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use rusqlite::Connection;
use snapbox::{file, str};

use crate::http::{get, token};
use crate::program::{Outcome, batchscan, clean, executable, wait_until};
use crate::scans;
use crate::site::{ORG, Site};
use crate::snapshot::{assert_snapshot, transcript};

/// In every PostgreSQL URL of these tests, and in no error.
pub(crate) const PASSWORD: &str = "canary-Pa55word";

/// Commands that open a database in different ways.
const COMMANDS: [&str; 6] = [
    "org list",
    "org add X",
    "import --org X missing.ndjson",
    "credential list --org X",
    "doctor",
    "serve --listen 127.0.0.1:0",
];

pub(crate) fn on(url: &str, words: &[&str]) -> Outcome {
    let outcome = Outcome::run(batchscan(words).args(["--database", url]));
    assert!(!outcome.err.contains(PASSWORD), "{}", outcome.err);
    outcome
}

/// Every command fails with the same error, which is returned. `serve` may log before it.
#[track_caller]
pub(crate) fn error_of_all(url: &str) -> String {
    let errors = COMMANDS.map(|line| {
        let outcome = on(url, &line.split(' ').collect::<Vec<_>>());
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(1), ""), "{line}: {outcome:?}");
        let logged = if line.starts_with("serve") { outcome.err.lines().count() - 1 } else { 0 };
        outcome.err.split_inclusive('\n').skip(logged).collect::<String>()
    });
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    errors[0].clone()
}

#[test]
fn a_missing_database_is_not_created_by_accident() {
    let site = Site::without_org();
    site.write("a.ndjson", scans::line(0, "x"));
    let lines = [
        "org list",
        "org rename a b",
        "org remove a --yes",
        "credential issue --org a",
        "credential revoke bs_a",
        "import --org a a.ndjson",
        "backup copy.db",
        "doctor",
    ];
    let text = transcript(&lines, |words| site.command(words));
    assert_eq!(text.matches("error: ").count(), lines.len(), "{text}");
    site.transcript(
        &["org list", "doctor"],
        file!["snapshots/a_missing_database_is_not_created_by_accident.txt"],
    );
    assert!(!Path::new(&site.name("scans.db")).exists());
}

/// A file that was truncated must not pass for a healthy database.
#[test]
fn an_empty_file_becomes_a_database_only_where_one_is_created() {
    let site = Site::without_org();
    Connection::open(site.path("empty.db")).unwrap().execute_batch("VACUUM").unwrap();
    site.write("scans.db", "");
    for name in ["scans.db", "empty.db"] {
        let (before, url) = (std::fs::read(site.path(name)).unwrap(), site.url(name));
        let to = site.url("copy.db");
        for words in [
            &["doctor"][..],
            &["org", "list"],
            &["backup", "copy.db"],
            &["copy", "--from", &url, "--to", &to],
        ] {
            let outcome = Outcome::run(site.command(words).env("BATCHSCAN_DATABASE", &url));
            let expected = format!("error: {url} has no batchscan tables: check the URL");
            assert!(outcome.code == Some(1) && outcome.err.starts_with(&expected), "{words:?}: {outcome:?}");
        }
        assert_eq!(std::fs::read(site.path(name)).unwrap(), before, "{name} was changed");
    }
    let created = format!("created the database {}", site.database);
    let outcome = site.run(&["org", "add", "A"]);
    assert_eq!((outcome.code, outcome.err), (Some(0), format!("{created}\n")));
    assert_eq!(site.run(&["org", "add", "B"]).err, "");
    let service = site.serve_database("new.db", &[]);
    let created = format!("created the database {}", site.url("new.db"));
    wait_until("the creation is logged", || service.log().contains(&created));
}

#[test]
fn a_path_that_cannot_be_used_is_named() {
    let site = Site::without_org();
    let missing = error_of_all(&site.url("missing/scans.db"));
    site.write("file", "");
    let file = error_of_all(&site.url("file/scans.db"));
    let read_only = on("sqlite:/proc/scans.db", &["org", "add", "X"]).err;
    assert_snapshot(
        &(missing + &file + &read_only),
        file!["snapshots/a_path_that_cannot_be_used_is_named.txt"],
    );
}

#[test]
fn a_file_that_is_not_a_database_is_not_changed() {
    let site = Site::without_org();
    let noise: Vec<u8> = (0..40_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    site.write("notes.txt", "buy seeds\n");
    site.write("noise.db", noise);
    let other = Connection::open(site.path("other.db")).unwrap();
    other.execute_batch("CREATE TABLE batch (id); INSERT INTO batch VALUES (1)").unwrap();
    other.close().unwrap();
    let mut errors = error_of_all(&site.url(""));
    for name in ["notes.txt", "noise.db", "other.db"] {
        let before = std::fs::read(site.path(name)).unwrap();
        errors += &error_of_all(&site.url(name));
        assert_eq!(std::fs::read(site.path(name)).unwrap(), before, "{name} was changed");
    }
    assert_snapshot(&errors, file!["snapshots/a_file_that_is_not_a_database_is_not_changed.txt"]);
}

#[test]
fn a_database_of_a_newer_version_is_rejected() {
    let site = Site::new();
    let insert = "INSERT INTO schema_history (version, name, applied_at) VALUES (99, 'later', '')";
    site.sql().execute(insert, []).unwrap();
    assert_snapshot(
        &error_of_all(&site.database),
        file!["snapshots/a_database_of_a_newer_version_is_rejected.txt"],
    );
}

#[test]
fn a_damaged_database_is_reported_without_a_panic() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..3_000, "x")));
    let whole = std::fs::read(site.path("scans.db")).unwrap();
    // Truncated, as by a full disk.
    site.write("cut.db", &whole[..whole.len() / 2]);
    let outcome = on(&site.url("cut.db"), &["doctor"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let text = outcome.out + &outcome.err;
    assert!(text.contains("malformed") || text.contains("SQLite: "), "{text}");
    assert!(on(&site.url("cut.db"), &["org", "list"]).code.is_some());
    // A valid header with overwritten pages.
    site.write("overwritten.db", &whole);
    let mut file = std::fs::OpenOptions::new().write(true).open(site.path("overwritten.db")).unwrap();
    for page in (4..whole.len() as u64 / 16_384).step_by(3) {
        file.seek(SeekFrom::Start(page * 16_384)).unwrap();
        file.write_all(&[0xA5; 16_384]).unwrap();
    }
    drop(file);
    let outcome = on(&site.url("overwritten.db"), &["doctor"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    for line in COMMANDS.iter().filter(|line| !line.starts_with("serve")) {
        let outcome = on(&site.url("overwritten.db"), &line.split(' ').collect::<Vec<_>>());
        assert!(matches!(outcome.code, Some(0 | 1)), "{outcome:?}");
        assert!(outcome.err.is_empty() || outcome.err.starts_with("error: "), "{outcome:?}");
        assert!(outcome.err.lines().count() <= 1, "{outcome:?}");
    }
}

/// Decisions 026 and 029: a client can detect an incomplete response.
#[test]
fn a_service_on_a_damaged_database_sends_errors_or_truncated_responses() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..3_000, "x")));
    let credential = site.credential();
    let whole = std::fs::read(site.path("scans.db")).unwrap();
    let mut damaged = whole.clone();
    // The pages of the batches.
    for page in whole.len() / 16_384 / 2..whole.len() / 16_384 {
        damaged[page * 16_384..][..16_384].fill(0xA5);
    }
    site.write("scans.db", damaged);
    let service = site.serve(&[]);
    let token = token(&service, &credential);
    let mut body = crate::http::send(&service, &crate::http::get_head("/v1/batches", &token), "");
    let read = body.rest();
    let text = read.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    assert!(read.is_err() || text.starts_with("{\"detail\":"), "{text}");
    let response = get(&service, "/v2/batches?start_date=2026-01-01T01:30:00Z", &token);
    assert_eq!(response.status, 503, "{}", response.text());
    let id = response.header("x-request-id").unwrap();
    wait_until("the cause is logged", || {
        service.log().lines().any(|line| line.contains(id) && line.contains("malformed"))
    });
}

/// A limit on the file size simulates a full disk.
#[test]
fn an_import_on_a_full_disk_imports_nothing_and_the_next_one_works() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..500, "first")));
    let before = std::fs::metadata(site.path("scans.db")).unwrap().len();
    let file = site.write("b.ndjson", scans::ndjson(0..60_000, "second"));
    let line = format!("trap '' XFSZ; ulimit -f 8192; exec \"$0\" import --org '{ORG}' '{file}'");
    let mut limited = clean("bash");
    limited.args(["-c", &line]).arg(executable()).env("BATCHSCAN_DATABASE", site.url("scans.db"));
    Outcome::run(&mut limited).fails(str![[r#"
error: the database file cannot be read or written: disk I/O error; run `batchscan doctor`

"#]]);
    assert!(before < 8_192 * 1_024, "the limit is below the size before the import");
    let service = site.serve(&[]);
    let token = token(&service, &site.credential());
    assert_eq!(get(&service, "/v1/batches", &token).text(), scans::array(0..500, "first"));
    assert!(site.run(&["doctor"]).succeeds().ends_with("no problems found\n"));
    site.import(&file);
    assert_eq!(get(&service, "/v1/batches", &token).text(), scans::array(0..60_000, "second"));
}
