//! Databases that are not there, are not ours, are damaged, or are of a later program.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use rusqlite::Connection;

use crate::program::{Outcome, batchscan, clean, executable};
use crate::scans;
use crate::site::{ORG, Site};
use crate::wire::{get, token};

/// Commands that need a database, each with a different way to open it.
const COMMANDS: [&[&str]; 5] = [
    &["org", "list"],
    &["org", "add", "X"],
    &["credential", "list", "--org", "X"],
    &["doctor"],
    &["serve", "--listen", "127.0.0.1:0"],
];

fn on(url: &str, words: &[&str]) -> Outcome {
    Outcome::of(batchscan(words).args(["--database", url]))
}

#[track_caller]
fn all_refuse(url: &str, message: &str) {
    for words in COMMANDS {
        on(url, words).fails(message);
    }
}

#[test]
fn a_database_that_is_not_there_is_not_made_by_accident() {
    let site = Site::empty();
    let path = site.name("scans.db");
    let message = format!(
        "there is no database at {path}: `batchscan serve` and `batchscan org add` make one; or name another with --database"
    );
    let file = site.write("a.ndjson", scans::line(0, "x"));
    for words in [
        &["org", "list"][..],
        &["org", "rename", "a", "b"],
        &["org", "remove", "a", "--yes"],
        &["credential", "issue", "--org", "a"],
        &["credential", "revoke", "bs_a"],
        &["import", "--org", "a", &file],
        &["backup", &site.name("copy.db")],
        &["doctor"],
    ] {
        site.run(words).fails(&message);
        assert!(!Path::new(&path).exists(), "{words:?} made it");
    }
}

#[test]
fn a_folder_that_is_missing_or_none_is_named() {
    let site = Site::empty();
    let folder = site.name("missing");
    let message = format!("{folder} is not a folder: make it first, or name another place with --database");
    all_refuse(&format!("sqlite:{folder}/scans.db"), &message);
    let file = site.write("file", "");
    let message = format!("{file} is not a folder: make it first, or name another place with --database");
    all_refuse(&format!("sqlite:{file}/scans.db"), &message);
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let message = "cannot write /proc/scans.db: No such file or directory (os error 2); check the permissions of the \
        file and its folder";
    on("sqlite:/proc/scans.db", &["org", "add", "X"]).fails(message);
    on("sqlite:/proc/scans.db", &["serve", "--listen", "127.0.0.1:0"]).fails(message);
}

#[test]
fn a_file_that_holds_something_else_is_left_alone() {
    let site = Site::empty();
    let refused = |name: &str, bytes: &[u8]| {
        let path = site.write(name, bytes);
        all_refuse(
            &site.url(name),
            &format!("{path} is not a batchscan database: name another file with --database"),
        );
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{name} was changed");
    };
    refused("notes.txt", b"buy seeds\n");
    refused(
        "noise.db",
        &(0..40_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<_>>(),
    );
    let other = Connection::open(site.path("other.db")).unwrap();
    other.execute_batch("CREATE TABLE batch (id); INSERT INTO batch VALUES (1)").unwrap();
    other.close().unwrap();
    refused("other.db", &std::fs::read(site.path("other.db")).unwrap());
    let folder = site.name("");
    let message = format!("{folder} is not a batchscan database: name another file with --database");
    all_refuse(&format!("sqlite:{folder}"), &message);
}

#[test]
fn a_database_of_a_later_program_is_left_alone() {
    let site = Site::new();
    let insert =
        "INSERT INTO schema_history (version, name, applied_on, checksum) VALUES (99, 'later', '', '1')";
    site.sql().execute(insert, []).unwrap();
    let message = "the database has schema 99, and this program knows up to 3: update batchscan";
    all_refuse(&site.url("scans.db"), message);
}

#[test]
fn a_damaged_database_is_told_and_nothing_panics() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..3_000, "x")));
    let whole = std::fs::read(site.path("scans.db")).unwrap();
    // Cut off in the middle, as a full disk or a broken copy leaves it.
    let cut = site.write("cut.db", &whole[..whole.len() / 2]);
    let outcome = on(&site.url("cut.db"), &["doctor"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let told = outcome.out + &outcome.err;
    assert!(told.contains("malformed") || told.contains("SQLite: "), "{told}");
    assert!(on(&site.url("cut.db"), &["org", "list"]).code.is_some(), "{cut}");
    // Overwritten in the middle: the header is sound, the pages are not.
    site.write("scribbled.db", &whole);
    let mut file = std::fs::OpenOptions::new().write(true).open(site.path("scribbled.db")).unwrap();
    for page in (4..whole.len() as u64 / 16_384).step_by(3) {
        file.seek(SeekFrom::Start(page * 16_384)).unwrap();
        file.write_all(&[0xA5; 16_384]).unwrap();
    }
    drop(file);
    let outcome = on(&site.url("scribbled.db"), &["doctor"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    for words in COMMANDS.iter().filter(|words| words[0] != "serve") {
        let outcome = on(&site.url("scribbled.db"), words);
        assert!(matches!(outcome.code, Some(0 | 1)), "{outcome:?}");
        assert!(outcome.err.is_empty() || outcome.err.starts_with("error: "), "{outcome:?}");
        assert!(outcome.err.lines().count() <= 1, "{outcome:?}");
    }
}

/// Decisions 026 and 029: what a client cannot be given whole is not given as if it were.
#[test]
fn a_service_on_a_damaged_database_answers_with_errors_or_cuts() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..3_000, "x")));
    let credential = site.credential();
    let whole = std::fs::read(site.path("scans.db")).unwrap();
    let mut damaged = whole.clone();
    // Every page of the second half, where the batches are.
    for page in whole.len() / 16_384 / 2..whole.len() / 16_384 {
        damaged[page * 16_384..][..16_384].fill(0xA5);
    }
    site.write("scans.db", damaged);
    let service = site.serve(&[]);
    let token = token(&service, &credential);
    let mut body = crate::wire::send(&service, &crate::wire::get_head("/v1/batches", &token), "");
    let read = body.rest();
    let text = read.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    assert!(read.is_err() || text == "{\"detail\":\"Internal Server Error\"}", "{text}");
    let answer = get(&service, "/v2/batches?start_date=2026-01-01T01:30:00Z", &token);
    assert_eq!((answer.status, answer.text()), (500, "{\"detail\":\"Internal Server Error\"}"));
    let id = answer.header("x-request-id").unwrap();
    assert!(
        service.log().lines().any(|line| line.contains(id) && line.contains("malformed")),
        "{}",
        service.log()
    );
}

/// A limit on the size of files stands in for a full disk: to the program both are writes that fail.
#[test]
fn an_import_that_runs_out_of_room_imports_nothing_and_the_next_one_works() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..500, "first")));
    let before = std::fs::metadata(site.path("scans.db")).unwrap().len();
    let file = site.write("b.ndjson", scans::ndjson(0..60_000, "second"));
    let line = format!("trap '' XFSZ; ulimit -f 8192; exec \"$0\" import --org '{ORG}' '{file}'");
    let mut limited = clean("bash");
    limited.args(["-c", &line]).arg(executable()).env("BATCHSCAN_DATABASE", site.url("scans.db"));
    Outcome::of(&mut limited).fails("the database cannot be reached: disk I/O error");
    assert!(before < 8_192 * 1_024, "the limit must not be reached before the import");
    let service = site.serve(&[]);
    let token = token(&service, &site.credential());
    assert_eq!(get(&service, "/v1/batches", &token).text(), scans::array(0..500, "first"));
    assert!(site.run(&["doctor"]).done().ends_with("all is well\n"));
    site.import(&file);
    assert_eq!(get(&service, "/v1/batches", &token).text(), scans::array(0..60_000, "second"));
}
