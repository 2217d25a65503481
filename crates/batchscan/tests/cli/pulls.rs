//! `batchscan pull`: what it makes in every format is what v1 answers, no more and no less.

use serde_json::{Value, json};

use crate::scans;
use crate::service::Service;
use crate::site::{ORG, Site};
use crate::user::{User, untimed};
use crate::wire::{get, token};
use crate::workbook::{self, Cell};

/// Batches of every day, three thousand of them, before those that formats stumble over.
const PLAIN: u64 = 3_000;
const ALL: usize = PLAIN as usize + 4;

const HEADER: &str = "batch_id,batch_name,batch_creation_date,crop_type,number_of_images,total_cells_per_tray,\
    avg_germinated_seedlings,avg_non_germinated_seedlings,avg_germination_rate,avg_usable_seedlings,\
    avg_non_usable_cells,avg_usable_seedling_rate,avg_coefficient_of_variation,avg_median_seedling_size_mm2,\
    scanned_by_email,analysis_link,comment,warnings\r\n";

/// Batches of February that formats stumble over, as lines of NDJSON.
fn odd() -> String {
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

/// A service of some thousand batches in pages of 700, a user of it, and what v1 answers.
fn all_kinds(site: &Site) -> (Service, User<'_>, String) {
    site.import(&site.write("plain.ndjson", scans::ndjson(0..PLAIN, "as scanned")));
    site.import(&site.write("odd.ndjson", odd()));
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
fn json_and_ndjson_are_v1_byte_for_byte() {
    let site = Site::new();
    let (_service, user, all) = all_kinds(&site);
    let lines = String::from_utf8(user.pulled("a.ndjson", &[])).unwrap();
    assert_eq!(format!("[{}]", lines.trim_end().replace('\n', ",")), all);
    assert_eq!(lines.lines().count(), ALL);
    let array = String::from_utf8(user.pulled("a.json", &[])).unwrap();
    // A batch stands on a line of its own, which v1 has no need of.
    assert_eq!(array.strip_suffix('\n').unwrap().replace(",\n", ","), all);
    assert_eq!(user.pulled("a.JSONL", &[]), lines.as_bytes());
}

#[test]
fn what_is_pulled_and_imported_again_is_served_with_the_same_bytes() {
    let site = Site::new();
    let (_service, user, all) = all_kinds(&site);
    for format in ["csv", "ndjson", "json", "parquet"] {
        let file = format!("a.{format}");
        let said = user.pull(&file, &[]).done();
        assert!(said.starts_with(&format!("pulled 3,004 batches, all time, into {file}: ")), "{said}");
        let copy = site.url(&format!("{format}.db"));
        let file = user.path(&file).display().to_string();
        let on_copy = |words: &[&str]| user.bare(words).env("BATCHSCAN_DATABASE", &copy).output().unwrap();
        on_copy(&["org", "add", ORG]);
        on_copy(&["import", "--org", ORG, &file]);
        let issued = on_copy(&["credential", "issue", "--org", ORG, "--json"]).stdout;
        let credential = crate::site::Credential::from_json(&String::from_utf8(issued).unwrap());
        let service = site.serve_url(&copy, &[]);
        assert!(v1(&service, &User::with(&site, &service.url, credential), "") == all, "{format}");
    }
}

/// The cells that a workbook must have for a batch of v1.
fn assert_row(row: &std::collections::BTreeMap<String, Cell>, batch: &serde_json::Map<String, Value>) {
    const EPOCH_DAYS: f64 = 25_569.0;
    for (field, value) in batch {
        let cell = row.get(field);
        match (value, cell) {
            (Value::Null, cell) => assert_eq!(cell, None, "{field}"),
            (Value::Bool(flag), cell) => assert_eq!(cell, Some(&Cell::Flag(*flag)), "{field}"),
            (Value::Number(number), cell) => assert_eq!(cell, Some(&Cell::Number(number.as_f64().unwrap()))),
            (Value::String(text), Some(Cell::Number(days))) if field == "batch_creation_date" => {
                let instant: jiff::Timestamp = text.parse().unwrap();
                let micros = ((days - EPOCH_DAYS) * 86_400_000_000.0).round();
                #[expect(clippy::cast_precision_loss, reason = "microseconds of this century fit a double")]
                let expected = instant.as_microsecond() as f64;
                assert!((micros - expected).abs() <= 1.0, "{text} {days}");
            }
            (Value::String(text), Some(Cell::Number(number))) if field.starts_with("avg_") => {
                assert_eq!(*number, text.parse::<f64>().unwrap(), "{field}");
            }
            (Value::String(text), cell) => assert_eq!(cell, Some(&Cell::Text(text.clone())), "{field}"),
            other => panic!("{other:?}"),
        }
    }
    let filled = batch.values().filter(|value| !value.is_null()).count();
    assert_eq!(row.len(), filled);
}

#[test]
fn a_workbook_holds_every_batch_in_cells_of_its_own_kind() {
    let site = Site::new();
    let (_service, user, all) = all_kinds(&site);
    let workbook = user.pulled("a.xlsx", &[]);
    assert!(workbook::part(&workbook, "xl/workbook.xml").contains("<sheet name=\"Batches\" "));
    let sheet = workbook::part(&workbook, "xl/worksheets/sheet1.xml");
    assert!(sheet.contains("<pane ySplit=\"1\" topLeftCell=\"A2\" "), "the header stays in sight");
    let (head, rows) = workbook::rows(&workbook);
    assert_eq!(head.join(",") + "\r\n", HEADER);
    let batches: Vec<serde_json::Map<String, Value>> = serde_json::from_str(&all).unwrap();
    assert_eq!((rows.len(), batches.len()), (ALL, ALL));
    for (row, batch) in rows.iter().zip(&batches) {
        assert_row(row, batch);
    }
}

#[test]
fn plain_csv_is_rfc_4180_with_every_value_as_the_interface_prints_it() {
    let site = Site::new();
    let (_service, user, _) = all_kinds(&site);
    let text = String::from_utf8(user.pulled("a.csv", &[])).unwrap();
    let first = "scan-0000000,Tray 0,2026-01-01T00:00:00Z,Lettuce,12,128,118.40,9.60,92.50,110.25,17.75,86.13,14.02,\
        412.90,scanner@example.org,https://app.example.org/analysis/0,as scanned,false\r\n";
    assert!(text.starts_with(&format!("{HEADER}{first}")), "{}", &text[..800]);
    let odd = "odd-1,bare,2026-02-01T08:00:00Z,,1,,,,,,,,,,,,,false\r\n\
        odd-2,=1+1,2026-02-02T08:00:00Z,+49 30 1,1,,,,,,,,,,-x,,@SUM(A1:A9),true\r\n\
        odd-3,\"Tray \"\"7\"\"; early, <2> & more\",2026-02-03T08:00:00Z,,1,,,,100.00,,,,,,,,\"a,b;c\r\nd\",false\r\n\
        odd-4,Fußball 番茄 🍅,2026-02-04T08:00:00.123456Z,,1,128,,,7.05,,,,,1234567.80,,,,true\r\n";
    assert!(text.ends_with(odd), "{}", &text[text.len() - 600..]);
    assert_eq!(text.matches("\r\n").count(), ALL + 2);
}

#[test]
fn csv_for_excel_has_a_mark_its_separator_and_no_text_that_acts_as_a_formula() {
    let site = Site::new();
    let (_service, user, _) = all_kinds(&site);
    let semicolons = "odd-1;bare;2026-02-01 08:00:00;;1;;;;;;;;;;;;;false\r\n\
        odd-2;'=1+1;2026-02-02 08:00:00;'+49 30 1;1;;;;;;;;;;'-x;;'@SUM(A1:A9);true\r\n\
        odd-3;\"Tray \"\"7\"\"; early, <2> & more\";2026-02-03 08:00:00;;1;;;;100,00;;;;;;;;\"a,b;c\r\nd\";false\r\n\
        odd-4;Fußball 番茄 🍅;2026-02-04 08:00:00,123;;1;128;;;7,05;;;;;1234567,80;;;;true\r\n";
    let commas = "odd-1,bare,2026-02-01 08:00:00,,1,,,,,,,,,,,,,false\r\n\
        odd-2,'=1+1,2026-02-02 08:00:00,'+49 30 1,1,,,,,,,,,,'-x,,'@SUM(A1:A9),true\r\n\
        odd-3,\"Tray \"\"7\"\"; early, <2> & more\",2026-02-03 08:00:00,,1,,,,100.00,,,,,,,,\"a,b;c\r\nd\",false\r\n\
        odd-4,Fußball 番茄 🍅,2026-02-04 08:00:00.123,,1,128,,,7.05,,,,,1234567.80,,,,true\r\n";
    let february = ["--start-date", "2026-02"];
    for (flag, file, header, lines) in [
        ("--excel", "a.csv", HEADER.replace(',', ";"), semicolons),
        ("--excel=semicolon", "b.csv", HEADER.replace(',', ";"), semicolons),
        ("--excel=comma", "c.csv", HEADER.to_owned(), commas),
    ] {
        let text = String::from_utf8(user.pulled(file, &[&february[..], &[flag]].concat())).unwrap();
        assert_eq!(text, format!("\u{FEFF}{header}{lines}"), "{flag}");
    }
}

#[test]
fn standard_output_gets_the_same_bytes_as_a_file_and_the_last_line_stands_beside() {
    let site = Site::new();
    let (_service, user, _) = all_kinds(&site);
    for format in ["csv", "ndjson", "json", "parquet", "xlsx"] {
        let into_file = user.pull(&format!("a.{format}"), &[]).done();
        let (piped, said) = user.piped(&["--format", format]);
        assert!(piped == user.read(&format!("a.{format}")), "{format}");
        assert_eq!(
            untimed(&said),
            untimed(&into_file).replace(&format!("a.{format}"), "standard output"),
            "{format}"
        );
        assert!(!said.trim_end().contains('\n'), "{said}");
    }
    let (_, said) = user.piped(&["--format", "csv", "--json"]);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said["file"], &said["batches"]), (&Value::Null, &ALL.into()));
}

#[test]
fn a_named_format_goes_before_the_files_ending() {
    let site = Site::new();
    let (_service, user, _) = all_kinds(&site);
    let csv = user.pulled("a.csv", &[]);
    assert!(user.pulled("a.json", &["--format", "csv"]) == csv);
    assert!(user.pulled("no ending", &["--format", "csv"]) == csv);
    assert!(user.pulled("a.b.CSV", &[]) == csv);
}

#[test]
fn a_window_without_batches_makes_a_file_without_rows() {
    let site = Site::new();
    let (_service, user, _) = all_kinds(&site);
    let nothing = ["--start-date", "2027"];
    for (format, text) in [("csv", HEADER), ("ndjson", ""), ("json", "[]\n")] {
        let file = format!("a.{format}");
        let said = untimed(&user.pull(&file, &nothing).done());
        let bytes = crate::user::size(text.len());
        assert_eq!(
            said,
            format!("pulled 0 batches, from 2027-01-01T00:00:00Z, into {file}: {bytes}, 0 retries")
        );
        assert_eq!(user.read(&file), text.as_bytes(), "{format}");
    }
    let (head, rows) = workbook::rows(&user.pulled("a.xlsx", &nothing));
    assert_eq!((head.len(), rows.len()), (18, 0));
    user.pulled("a.parquet", &nothing);
    let file = user.path("a.parquet").display().to_string();
    let said = site.run(&["import", "--org", ORG, "--dry-run", &file]).done();
    assert!(said.starts_with("would import 0 batches from "), "{said}");
}

#[test]
fn the_summary_as_json_tells_everything_in_numbers() {
    let site = Site::new();
    let (_service, user, _) = all_kinds(&site);
    let said =
        user.pull("a.csv", &["--start-date", "2026-02-01", "--end-date", "2026-02-02", "--json"]).done();
    let mut said: Value = serde_json::from_str(&said).unwrap();
    assert!(said["seconds"].take().as_f64().unwrap() > 0.0);
    assert_eq!(
        said,
        json!({
            "changed": true, "batches": 2, "resumed_batches": 0, "start_date": "2026-02-01T00:00:00Z",
            "end_date": "2026-02-02T23:59:59.999999Z", "file": "a.csv", "bytes": user.read("a.csv").len(),
            "seconds": null, "retries": 0,
        })
    );
}
