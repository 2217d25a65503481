//! `batchscan pull`: every format has the batches of v1.

use std::fs::File;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use serde_json::{Value, json};

use crate::http::{get, token};
use crate::program::Outcome;
use crate::scans;
use crate::service::Service;
use crate::site::{ORG, Site};
use crate::user::{User, untimed};

/// Usual batches, before the special ones.
const PLAIN: u64 = 3_000;
const ALL: usize = PLAIN as usize + 4;

const HEADER: &str = "batch_id,batch_name,batch_creation_date,crop_type,number_of_images,total_cells_per_tray,\
    avg_germinated_seedlings,avg_non_germinated_seedlings,avg_germination_rate,avg_usable_seedlings,\
    avg_non_usable_cells,avg_usable_seedling_rate,avg_coefficient_of_variation,avg_median_seedling_size_mm2,\
    scanned_by_email,analysis_link,comment,warnings\r\n";

/// Batches in February with special values, as NDJSON.
fn special() -> String {
    let batch = |day: u32, name: &str, more: Value| {
        let date = format!("2026-02-0{day}T08:00:00Z");
        let mut batch = json!({
            "batch_id": format!("odd-{day}"), "batch_name": name, "batch_creation_date": date,
            "number_of_images": 1, "warnings": day.is_multiple_of(2),
        });
        batch.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("{batch}\n")
    };
    [
        batch(1, "bare", json!({})),
        batch(
            2,
            "=1+1",
            json!({ "crop_type": "+49 30 1", "comment": "@SUM(A1:A9)", "scanned_by_email": "-x" }),
        ),
        batch(
            3,
            "Tray \"7\"; early, <2> & more",
            json!({ "comment": "a,b;c\r\nd", "avg_germination_rate": "100.00" }),
        ),
        batch(
            4,
            "Fußball 番茄 🍅",
            json!({
                "batch_creation_date": "2026-02-04T08:00:00.123456Z", "avg_germination_rate": "7.05",
                "avg_median_seedling_size_mm2": "1234567.80", "total_cells_per_tray": 128,
            }),
        ),
    ]
    .concat()
}

/// A service with pages of 700 batches, a user, and the v1 response.
fn all_kinds(site: &Site) -> (Service, User<'_>, String) {
    site.import(&site.write("plain.ndjson", scans::ndjson(0..PLAIN, "as scanned")));
    site.import(&site.write("special.ndjson", special()));
    let service = site.serve(&["--page-size", "700"]);
    let user = User::of(site, &service);
    let all = v1(&service, &user, "");
    (service, user, all)
}

fn v1(service: &Service, user: &User<'_>, query: &str) -> String {
    let target = format!("/v1/batches{query}");
    String::from_utf8(get(service, &target, &token(service, &user.credential)).ok()).unwrap()
}

#[test]
fn json_and_ndjson_have_the_bytes_of_v1_whatever_the_file_is_called() {
    let site = Site::new();
    let (_service, user, all) = all_kinds(&site);
    let lines = String::from_utf8(user.pulled("a.ndjson", &[])).unwrap();
    assert_eq!(format!("[{}]", lines.trim_end().replace('\n', ",")), all);
    assert_eq!(lines.lines().count(), ALL);
    let array = String::from_utf8(user.pulled("a.json", &[])).unwrap();
    // One batch per line, unlike v1.
    assert_eq!(array.strip_suffix('\n').unwrap().replace(",\n", ","), all);
    assert_eq!(user.pulled("a.JSONL", &[]), lines.as_bytes());
    for file in ["b.json", "no ending"] {
        assert_eq!(user.pulled(file, &["--format", "ndjson"]), lines.as_bytes(), "{file}");
    }
}

#[test]
fn a_pulled_file_can_be_imported_and_pulled_again() {
    let site = Site::new();
    let (_service, user, all) = all_kinds(&site);
    for (name, flags) in [
        ("a.csv", &[][..]),
        ("a.ndjson", &[]),
        ("a.json", &[]),
        ("a.parquet", &[]),
        ("a.xlsx", &["--force"]),
        ("semicolon.csv", &["--excel"]),
        ("comma.csv", &["--excel=comma"]),
    ] {
        let pulled = user.pulled(name, flags);
        let copy = site.url(&format!("{name}.db"));
        let file = user.path(name).display().to_string();
        let on_copy = |words: &[&str]| user.bare(words).env("BATCHSCAN_DATABASE", &copy).output().unwrap();
        on_copy(&["org", "add", ORG]);
        on_copy(&["import", "--org", ORG, &file]);
        let issued = on_copy(&["credential", "issue", "--org", ORG, "--json"]).stdout;
        let credential = crate::site::Credential::from_json(&String::from_utf8(issued).unwrap());
        let service = site.serve_url(&copy, &[]);
        let again = User::with(&site, &service.url, credential);
        assert!(again.pulled(&format!("again-{name}"), flags) == pulled, "{name}");
        // Excel has milliseconds only.
        assert!(!flags.is_empty() || v1(&service, &again, "") == all, "{name}");
    }
}

#[test]
fn a_workbook_can_be_imported_from_standard_input() {
    let site = Site::new();
    let (_service, user, _) = all_kinds(&site);
    let (workbook, _) = user.piped(&["--format", "xlsx"]);
    let import = ["import", "--org", ORG, "--dry-run", "--format", "xlsx", "-"];
    let summary = Outcome::with_input(&mut site.command(&import), workbook).succeeds();
    assert!(summary.starts_with("would import 3,004 batches from standard input "), "{summary}");
    let other = Outcome::with_input(&mut site.command(&import), b"batch_id\n".to_vec());
    other.fails("error: cannot read standard input: it is not an Excel workbook. Nothing was imported\n");
}

/// The writers' own tests have the details of each format.
#[test]
fn excel_chooses_the_separator_of_csv() {
    let site = Site::new();
    let (_service, user, _) = all_kinds(&site);
    let text = |file: &str, flags: &[&str]| {
        let flags = [&["--start-date", "2026-02-02", "--end-date", "2026-02-02"], flags].concat();
        String::from_utf8(user.pulled(file, &flags)).unwrap()
    };
    let plain = "odd-2,=1+1,2026-02-02T08:00:00Z,+49 30 1,1,,,,,,,,,,-x,,@SUM(A1:A9),true\r\n";
    let excel = "odd-2,'=1+1,2026-02-02 08:00:00,'+49 30 1,1,,,,,,,,,,'-x,,'@SUM(A1:A9),true\r\n";
    assert_eq!(text("a.csv", &[]), format!("{HEADER}{plain}"));
    let header = HEADER.replace("_date,", "_date (UTC),").replace("_rate,", "_rate (%),");
    let header = header.replace("_variation,", "_variation (%),");
    assert_eq!(text("b.csv", &["--excel=comma"]), format!("\u{FEFF}{header}{excel}"));
    for (file, flag) in [("c.csv", "--excel"), ("d.csv", "--excel=semicolon")] {
        assert_eq!(text(file, &[flag]), format!("\u{FEFF}{header}{excel}").replace(',', ";"));
    }
}

#[test]
fn every_format_can_be_limited_to_crops_warnings_and_columns() {
    let site = Site::new();
    let (_service, user, _) = all_kinds(&site);
    let columns = ["--columns", "warnings,batch_id"];
    let warned = [&columns[..], &["--warnings"]].concat();
    for (format, text) in [
        ("csv", "warnings,batch_id\r\ntrue,odd-2\r\ntrue,odd-4\r\n"),
        (
            "ndjson",
            "{\"warnings\":true,\"batch_id\":\"odd-2\"}\n{\"warnings\":true,\"batch_id\":\"odd-4\"}\n",
        ),
        (
            "json",
            "[{\"warnings\":true,\"batch_id\":\"odd-2\"},\n{\"warnings\":true,\"batch_id\":\"odd-4\"}]\n",
        ),
    ] {
        let pulled = user.pulled(&format!("a.{format}"), &warned);
        assert_eq!(String::from_utf8(pulled).unwrap(), text);
    }
    user.pulled("a.parquet", &warned);
    let table = SerializedFileReader::new(File::open(user.path("a.parquet")).unwrap()).unwrap();
    let schema = table.metadata().file_metadata().schema_descr();
    let names: Vec<&str> = schema.columns().iter().map(|column| column.name()).collect();
    assert_eq!((names, table.metadata().file_metadata().num_rows()), (vec!["warnings", "batch_id"], 2));
    assert!(user.pulled("a.xlsx", &warned).starts_with(b"PK"));
    let summary = user.pull("b.csv", &["--crop", " LETTUCE"]).succeeds();
    assert!(summary.starts_with("pulled 3,000 batches, "), "{summary}");
    // The same selection, written in another way, is the same pull.
    user.pull("c.csv", &["--if-changed", "--crop", "lettuce", "--crop", "kale"]).succeeds();
    let again = user.pull("c.csv", &["--if-changed", "--crop", "Kale", "--crop", "Lettuce"]).succeeds();
    assert_eq!(again, "unchanged: c.csv has 3,000 batches\n");
    let other = user.pull("c.csv", &["--if-changed", "--crop", "kale"]);
    assert!(other.out.starts_with("no batches match: crop \"kale\""), "{other:?}");
    let note = "note: replacing c.csv: its selection is crop \"kale\", crop \"lettuce\", not crop \"kale\"\n";
    assert_eq!(other.err, note);
}

#[test]
fn standard_output_gets_the_same_bytes_as_a_file() {
    let site = Site::new();
    let (_service, user, _) = all_kinds(&site);
    for format in ["csv", "ndjson", "json", "parquet", "xlsx"] {
        let into_file = user.pull(&format!("a.{format}"), &[]).succeeds();
        let (piped, summary) = user.piped(&["--format", format]);
        assert!(piped == user.read(&format!("a.{format}")), "{format}");
        assert_eq!(
            untimed(&summary),
            untimed(&into_file).replace(&format!("a.{format}"), "standard output"),
            "{format}"
        );
        assert!(!summary.trim_end().contains('\n'), "{summary}");
    }
    let (_, summary) = user.piped(&["--format", "csv", "--json"]);
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!((&summary["file"], &summary["batches"]), (&Value::Null, &ALL.into()));
}

#[test]
fn a_date_range_without_batches_gives_an_empty_file() {
    let site = Site::new();
    let (_service, user, _) = all_kinds(&site);
    let nothing = ["--start-date", "2027"];
    for (format, text) in [("csv", HEADER), ("ndjson", ""), ("json", "[]\n")] {
        let file = format!("a.{format}");
        let summary = untimed(&user.pull(&file, &nothing).succeeds());
        let bytes = crate::user::size(text.len());
        assert_eq!(
            summary,
            format!("no batches match: from 2027-01-01T00:00:00Z; wrote {file}: {bytes}, 0 retries")
        );
        assert_eq!(user.read(&file), text.as_bytes(), "{format}");
    }
    assert!(user.pulled("a.xlsx", &nothing).starts_with(b"PK"));
    user.pulled("a.parquet", &nothing);
    let file = user.path("a.parquet").display().to_string();
    let outcome = site.run(&["import", "--org", ORG, "--dry-run", &file]);
    assert!(
        outcome.code == Some(0) && outcome.out.starts_with("would import 0 batches from "),
        "{outcome:?}"
    );
    assert!(outcome.err.ends_with("the file has no batches\n"), "{outcome:?}");
}

#[test]
fn the_json_summary_is_complete() {
    let site = Site::new();
    let (_service, user, _) = all_kinds(&site);
    let summary =
        user.pull("a.csv", &["--start-date", "2026-02-01", "--end-date", "2026-02-02", "--json"]).succeeds();
    let mut summary: Value = serde_json::from_str(&summary).unwrap();
    assert!(summary["seconds"].take().as_f64().unwrap() > 0.0);
    assert_eq!(
        summary,
        json!({
            "changed": true, "batches": 2, "start_date": "2026-02-01T00:00:00Z",
            "end_date": "2026-02-02T23:59:59.999999Z", "file": "a.csv", "bytes": user.read("a.csv").len(),
            "seconds": null, "retries": 0,
        })
    );
}
