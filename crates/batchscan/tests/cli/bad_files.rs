//! Files that cannot be imported: each refusal names the file, the line, the field, what stood there and what was
//! expected. Nothing of such a file is kept.

use std::io::{BufWriter, Write};

use crate::program::Outcome;
use crate::scans;
use crate::site::{ORG, Site};

fn import(site: &Site, file: &str) -> Outcome {
    site.run(&["import", "--org", ORG, file])
}

/// The import names these faults, in this order, and keeps nothing.
#[track_caller]
fn refused(site: &Site, file: &str, faults: &[&str]) {
    let outcome = import(site, file);
    let mut expected: String = faults.iter().map(|fault| format!("{file}: {fault}\n")).collect();
    let list = if faults.iter().any(|fault| fault.contains("an unknown field")) {
        " (`batchscan import --help` lists the fields)"
    } else {
        ""
    };
    let count = if faults.len() == 1 { "1 fault".into() } else { format!("{} faults", faults.len()) };
    expected += &format!(
        "error: {file} has {count}: nothing of it was imported; mend the file and import it again{list}\n"
    );
    assert_eq!((outcome.code, outcome.out.as_str(), outcome.err), (Some(1), "", expected));
    assert!(site.run(&["org", "list"]).done().contains("Green Valley  0 "), "something was imported");
}

/// A sound line, changed.
fn changed(from: &str, to: &str) -> String {
    let line = scans::line(1, "x");
    assert!(line.contains(from));
    line.replace(from, to)
}

#[test]
fn a_file_that_is_not_there_or_is_a_folder_is_named() {
    let site = Site::new();
    let missing = site.name("missing.csv");
    import(&site, &missing).fails(&format!("there is no file {missing}"));
    let within = site.name("scans.db/a.csv");
    import(&site, &within).fails(&format!("cannot read {within}: Not a directory (os error 20)"));
    std::fs::create_dir(site.path("folder.csv")).unwrap();
    let folder = site.name("folder.csv");
    import(&site, &folder).fails(&format!("{folder} is a folder: name the files in it"));
}

#[test]
fn a_file_whose_ending_tells_nothing_wants_a_format() {
    let site = Site::new();
    for (name, told) in [
        ("scans", "the ending does not tell what it holds: add --format ndjson, json, csv or parquet"),
        ("scans.xlsx", "is a spreadsheet: save the sheet as \"CSV UTF-8\" and import that"),
        (
            "scans.csv.gz",
            "is packed: unpack it first, such as `zcat FILE | batchscan import --format csv … -`",
        ),
    ] {
        let file = site.write(name, "x");
        import(&site, &file).fails(&format!("{file}: {told}"));
    }
    import(&site, "-")
        .fails("standard input has no ending: say what it holds with --format ndjson, json, csv or parquet");
}

#[test]
fn an_unknown_organisation_is_named_before_anything_is_read() {
    let site = Site::new();
    let message = "there is no organisation named \"green valley\": `batchscan org list` shows them, `batchscan org add` adds one";
    site.run(&["import", "--org", "green valley", "no-such-file.csv"]).fails(message);
}

/// Decision 039.
#[test]
fn a_fault_of_a_value_names_line_field_what_stood_there_and_what_was_expected() {
    let site = Site::new();
    let lines = [
        scans::line(0, "sound"),
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
    let file = site.write("a.ndjson", lines.join("\n"));
    let faults = [
        "line 2: coment: found an unknown field, expected a field of a batch; did you mean comment?",
        "line 3: crop_type: found 7, expected text",
        "line 4: number_of_images: found \"12\", expected a whole number",
        "line 5: number_of_images: found -1, expected a whole number that is not negative",
        "line 6: number_of_images: found 12.5, expected a whole number that is not negative",
        "line 7: total_cells_per_tray: found 99999999999999999999, expected a whole number of at most 9007199254740991",
        "line 8: avg_germination_rate: found \"92,5\", expected a decimal number such as 92.50",
        "line 9: avg_germination_rate: found 1000000000000, expected a decimal number below 1000000000000 in size",
        "line 10: batch_creation_date: found \"2026-01-01T00:00:02\", expected a date and time with an offset at the end, such as \
         2026-01-31T08:00:00Z or 2026-01-31T09:00:00+01:00",
        "line 11: batch_creation_date: found \"2026-02-30T00:00:02Z\", expected a date and time with its offset, such as \
         2026-01-31T08:00:00Z",
        "line 12: analysis_link: found \"/analysis/1\", expected an absolute http or https URL",
        "line 13: batch_name: found \"\", expected text that is not empty",
        "line 14: batch_id: found \"\", expected 1 to 128 bytes of text without control characters",
        "line 15: warnings: found \"no\", expected true or false",
        "line 16: warnings: found it twice, expected each field once",
        "line 17: warnings: found nothing, expected a value: this field is required",
    ];
    refused(&site, &file, &faults);
}

#[test]
fn text_that_is_no_json_is_told_in_words() {
    let site = Site::new();
    let sound = scans::line(0, "x");
    let mut bytes = format!("{sound}\n{{\"batch_id\": NaN}}\n{}\n", &sound[..20]).into_bytes();
    bytes.extend(b"{\"batch_id\":\"\xE4\"}\n[]\n");
    let file = site.write("a.ndjson", bytes);
    let faults = [
        "line 2: found `NaN}` at column 14, expected a JSON value: text in double quotes, a number, true, false or null",
        "line 3: found the end of the line at column 21, expected the closing \" of a text",
        "line 4: found the byte 0xE4, not UTF-8, at column 14, expected UTF-8; save the file as UTF-8",
        "line 5: found [], expected a batch as a JSON object",
    ];
    refused(&site, &file, &faults);
    let cut = scans::array(0..3, "x");
    let file = site.write("a.json", &cut[..cut.len() - 1]);
    refused(&site, &file, &["line 1: found that the file ends inside the array, expected the whole of it"]);
    let file = site.write("b.json", &cut[..cut.len() - 40]);
    refused(
        &site,
        &file,
        &["line 1: found that the file ends inside the element that begins here, expected the whole of it"],
    );
}

/// Decision 039: a typo in a column name must not become a silent null.
#[test]
fn faults_of_tables_name_columns_and_rows() {
    let site = Site::new();
    let file = site.write("a.csv", scans::csv(0..2, "x").replace("crop_type", "crop"));
    refused(&site, &file, &["line 1: crop: found an unknown field, expected a field of a batch"]);
    let file = site.write("b.csv", scans::csv(0..2, "x").replace(";12;", ";twelve;"));
    let fault = |line| {
        format!(
            "line {line}: number_of_images: found \"twelve\", expected a whole number that is not negative"
        )
    };
    refused(&site, &file, &[&fault(2), &fault(3)]);
    let file = site.write("c.csv", "PK\u{3}\u{4} a workbook");
    refused(
        &site,
        &file,
        &["found a workbook or an archive, expected UTF-8 text; save the sheet as \"CSV UTF-8\""],
    );
    let parquet = scans::parquet(0..2, "x");
    let file = site.write("a.parquet", &parquet[..parquet.len() - 9]);
    let outcome = import(&site, &file);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.err.starts_with(&format!("{file}: found ")), "{}", outcome.err);
    let file = site.write("b.parquet", scans::ndjson(0..2, "x"));
    let outcome = import(&site, &file);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.err.starts_with(&format!("{file}: found ")), "{}", outcome.err);
}

#[test]
fn an_empty_file_is_told_where_its_format_cannot_be_empty() {
    let site = Site::new();
    let header = "line 1: found an empty file, expected a header with the names of the fields";
    refused(&site, &site.write("a.csv", ""), &[header]);
    refused(
        &site,
        &site.write("a.json", ""),
        &["line 1: found an empty file, expected a JSON array of batches"],
    );
    for (name, text) in [("a.ndjson", ""), ("b.json", "[]")] {
        let file = site.write(name, text);
        let expected = format!(
            "imported 0 batches from {file} into \"Green Valley\": 0 new, 0 corrected, 0 unchanged in "
        );
        assert!(site.import(&file).starts_with(&expected));
    }
}

#[test]
fn a_pipe_that_the_temporary_folder_cannot_hold_is_told() {
    let site = Site::new();
    let mut command = site.command(&["import", "--org", ORG, "--format", "ndjson", "-"]);
    let outcome =
        Outcome::with_input(command.env("TMPDIR", site.name("missing")), scans::ndjson(0..2, "x").into());
    let message = format!(
        "cannot read standard input: the temporary folder {} cannot hold it (No such file or directory (os error 2)): set TMPDIR; \
         nothing of it was imported",
        site.name("missing")
    );
    outcome.fails(&message);
}

#[test]
fn twenty_faults_are_told_at_once_and_that_there_are_more() {
    let site = Site::new();
    let file = site.write("a.ndjson", "7\n".repeat(500));
    let outcome = import(&site, &file);
    let mut expected: String = (1..=20)
        .map(|line| format!("{file}: line {line}: found 7, expected a batch as a JSON object\n"))
        .collect();
    expected += &format!(
        "error: {file} has 20 faults or more: nothing of it was imported; mend the file and import it again\n"
    );
    assert_eq!((outcome.code, outcome.err), (Some(1), expected));
}

#[test]
fn a_fault_on_the_last_line_of_many_keeps_all_of_them_out() {
    let site = Site::new();
    let file = site.write("a.ndjson", scans::ndjson(0..20_000, "x") + "{}\n");
    let fault =
        |field: &str| format!("line 20001: {field}: found nothing, expected a value: this field is required");
    let fields = ["batch_id", "batch_name", "batch_creation_date", "number_of_images", "warnings"].map(fault);
    refused(&site, &file, &fields.each_ref().map(String::as_str));
}

#[test]
fn a_line_of_a_hundred_megabytes_is_one_fault() {
    let site = Site::new();
    let file = site.name("a.ndjson");
    let mut out = BufWriter::new(std::fs::File::create(&file).unwrap());
    out.write_all(scans::ndjson(0..1, "x").as_bytes()).unwrap();
    for _ in 0..100 {
        out.write_all(&[b'x'; 1_000_000]).unwrap();
    }
    drop(out);
    refused(
        &site,
        &file,
        &["line 2: found a line of more than 1048576 bytes, expected one batch a line, far shorter"],
    );
}
