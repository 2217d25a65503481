//! Files that cannot be imported: the error names file, line, field, found and expected. Nothing is imported.

use std::io::{BufWriter, Write};

use snapbox::{file, str};

use crate::program::{Outcome, clean, executable};
use crate::scans;
use crate::site::{ORG, Site};

/// A valid line with a change.
fn changed(from: &str, to: &str) -> String {
    let line = scans::line(1, "x");
    assert!(line.contains(from));
    line.replace(from, to)
}

/// Imports files of the folder with a snapshot of the errors, then checks that nothing was imported.
macro_rules! rejected {
    ($site:expr, [$($file:expr),*], $snapshot:expr) => {
        let lines = [$(format!("import --org '{ORG}' {}", $file)),*];
        $site.transcript(&lines.iter().map(String::as_str).collect::<Vec<_>>(), $snapshot);
        assert!($site.run(&["org", "list"]).succeeds().contains("Green Valley  0 "), "something was imported");
    };
}

#[test]
fn a_file_that_cannot_be_read_or_has_no_known_format_is_named() {
    let site = Site::new();
    std::fs::create_dir(site.path("folder.csv")).unwrap();
    for name in ["scans", "scans.xlsx", "scans.ods", "scans.csv.gz"] {
        site.write(name, "x");
    }
    rejected!(
        site,
        [
            "missing.csv",
            "scans.db/a.csv",
            "folder.csv",
            "scans",
            "scans.xlsx",
            "scans.ods",
            "scans.csv.gz",
            "-"
        ],
        file!["snapshots/unreadable_files.txt"]
    );
    site.transcript(
        &["import --org 'green valley' no-such-file.csv"],
        file!["snapshots/a_file_that_cannot_be_read_or_has_no_known_format_is_named.txt"],
    );
}

/// Decision 039.
#[test]
fn an_invalid_value_is_reported_with_line_field_found_and_expected() {
    let site = Site::new();
    let lines = [
        scans::line(0, "valid"),
        changed("\"comment\"", "\"coment\""),
        changed("\"Lettuce\"", "7"),
        changed(":12,", ":\"12\","),
        changed(":12,", ":-1,"),
        changed(":12,", ":12.5,"),
        changed(":128,", ":99999999999999999999,"),
        changed("\"92.50\"", "\"92,5\""),
        changed("\"92.50\"", "1000000000000"),
        changed("2026-01-01T00:00:02Z", "2026-01-01T00:00:02"),
        changed("2026-01-01T00:00:02Z", "2026-02-30T00:00:02Z"),
        changed("https://app.example.org/analysis/1", "/analysis/1"),
        changed("\"Tray 1\"", "\"\""),
        changed("\"scan-0000001\"", "\"\""),
        changed("\"warnings\":false", "\"warnings\":\"no\""),
        changed("\"warnings\":false", "\"warnings\":false,\"warnings\":true"),
        changed(",\"warnings\":false", ""),
    ];
    site.write("a.ndjson", lines.join("\n"));
    rejected!(site, ["a.ndjson"], file!["snapshots/invalid_fields.txt"]);
}

#[test]
fn invalid_json_is_reported_with_its_position() {
    let site = Site::new();
    let valid = scans::line(0, "x");
    let mut bytes = format!("{valid}\n{{\"batch_id\": NaN}}\n{}\n", &valid[..20]).into_bytes();
    bytes.extend(b"{\"batch_id\":\"\xE4\"}\n[]\n");
    site.write("a.ndjson", bytes);
    let array = scans::array(0..3, "x");
    site.write("a.json", &array[..array.len() - 1]);
    site.write("b.json", &array[..array.len() - 40]);
    rejected!(
        site,
        ["a.ndjson", "a.json", "b.json"],
        file!["snapshots/invalid_json_is_reported_with_its_position.txt"]
    );
}

/// Decision 039: a typo in a column name must not become a silent null.
#[test]
fn errors_of_tables_name_columns_and_rows() {
    let site = Site::new();
    site.write("a.csv", scans::csv(0..2, "x").replace("crop_type", "crop_tipe"));
    site.write("b.csv", scans::csv(0..2, "x").replace(";12;", ";twelve;"));
    site.write("c.csv", "PK\u{3}\u{4} a workbook");
    rejected!(
        site,
        ["a.csv", "b.csv", "c.csv"],
        file!["snapshots/errors_of_tables_name_columns_and_rows.txt"]
    );
    let parquet = scans::parquet(0..2, "x");
    site.write("a.parquet", &parquet[..parquet.len() - 9]);
    site.write("b.parquet", scans::ndjson(0..2, "x"));
    for file in ["a.parquet", "b.parquet"] {
        let outcome = site.run(&["import", "--org", ORG, file]);
        assert!(outcome.code == Some(1) && outcome.err.starts_with(&format!("{file}: ")), "{outcome:?}");
    }
}

#[test]
fn an_empty_file_is_rejected_if_its_format_needs_content() {
    let site = Site::new();
    for (name, text) in [("a.csv", ""), ("a.json", ""), ("a.ndjson", ""), ("b.json", "[]")] {
        site.write(name, text);
    }
    rejected!(
        site,
        ["a.csv", "a.json", "a.ndjson", "b.json"],
        file!["snapshots/an_empty_file_is_rejected_if_its_format_needs_content.txt"]
    );
}

#[test]
fn a_full_temporary_folder_is_reported() {
    let site = Site::new();
    let mut command = site.command(&["import", "--org", ORG, "--format", "ndjson", "-"]);
    let outcome =
        Outcome::with_input(command.env("TMPDIR", site.name("missing")), scans::ndjson(0..2, "x").into());
    outcome.fails(str![[r#"
error: cannot read standard input: cannot write to the temporary folder [SITE]/missing: No such file or directory (os error 2); set TMPDIR to another folder. Nothing was imported

"#]]);
}

#[test]
fn at_most_twenty_errors_are_listed() {
    let site = Site::new();
    site.write("a.ndjson", (0..500).map(|number| format!("{{\"batch_id\":{number}}}\n")).collect::<String>());
    let outcome = site.run(&["import", "--org", ORG, "a.ndjson"]);
    assert_eq!((outcome.code, outcome.err.lines().count()), (Some(1), 21));
    assert!(outcome.err.lines().last().unwrap().contains("20 errors or more"), "{}", outcome.err);
}

#[test]
fn an_error_on_the_last_line_rejects_the_whole_file() {
    let site = Site::new();
    site.write("a.ndjson", scans::ndjson(0..20_000, "x") + "{}\n");
    rejected!(site, ["a.ndjson"], file!["snapshots/an_error_on_the_last_line_rejects_the_whole_file.txt"]);
}

#[test]
fn a_line_of_a_hundred_megabytes_is_one_error() {
    let site = Site::new();
    let mut out = BufWriter::new(std::fs::File::create(site.path("a.ndjson")).unwrap());
    out.write_all(scans::ndjson(0..1, "x").as_bytes()).unwrap();
    for _ in 0..100 {
        out.write_all(&[b'x'; 1_000_000]).unwrap();
    }
    drop(out);
    rejected!(site, ["a.ndjson"], file!["snapshots/a_line_of_a_hundred_megabytes_is_one_error.txt"]);
}

/// A pipe may never end.
#[test]
fn an_endless_pipe_is_rejected_at_its_first_errors_or_its_limit() {
    let site = Site::new();
    let line = scans::ndjson(0..1, "x");
    for (script, error) in [
        ("yes | \"$0\" \"$@\" --format ndjson", "standard input has 5 errors or more"),
        ("yes a,b | \"$0\" \"$@\" --format csv", "standard input has"),
        ("yes | \"$0\" \"$@\" --format parquet", "it is not a Parquet file"),
        ("yes \"$LINE\" | \"$0\" \"$@\" --format ndjson --max-input 64K", "it is larger than --max-input"),
    ] {
        let mut command = clean("sh");
        command.args(["-c", script]).arg(executable()).args(["import", "--org", ORG, "-"]);
        command.env("BATCHSCAN_DATABASE", &site.database).env("LINE", line.trim_end());
        let outcome = Outcome::run(&mut command);
        assert!(outcome.code == Some(1) && outcome.err.contains(error), "{script}: {outcome:?}");
    }
}
