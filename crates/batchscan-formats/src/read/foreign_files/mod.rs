//! Files as they come from nurseries, each with its batches or its errors: `cases.txt`. `SNAPSHOTS=overwrite`
//! updates the results.

use std::fmt::Write as _;
use std::io::{Cursor, Read as _, Write as _};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;

use batchscan_model::{Batch, Field, UtcInstant, Zone};
use proptest::prelude::*;
use rust_xlsxwriter::{ExcelDateTime, Format as CellFormat, Workbook, Worksheet};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use super::{Implausible, Mapping, RateUnit, RateUnits, ReadError, ReadOptions, preview, read};
use crate::Format;
use crate::testing::{any_batch, temporary_file};
use crate::write::{Columns, CsvStyle, TextWriter};

const CASES: &str = include_str!("cases.txt");

/// A case up to its result: a name, a line of options, then parts that begin with `--- NAME`.
struct Case<'t> {
    text: &'t str,
    options: &'t str,
    parts: Vec<(&'t str, &'t str)>,
}

impl<'t> Case<'t> {
    fn parse(text: &'t str) -> Self {
        let text = text.split("--- result\n").next().unwrap();
        let (head, parts) = text.split_once("--- ").unwrap();
        let parts = parts.split("--- ").map(|part| part.split_once('\n').unwrap()).collect();
        Self { text, options: head.split_once('\n').unwrap().1, parts }
    }

    fn part(&self, name: &str) -> Option<&'t str> {
        self.parts.iter().find(|part| part.0 == name).map(|part| part.1)
    }

    fn read_options(&self) -> ReadOptions {
        let zone = self.options.split_whitespace().find_map(|word| word.strip_prefix("timezone="));
        ReadOptions {
            implausible: if self.options.contains("strict") {
                Implausible::Reject
            } else {
                Implausible::Warn
            },
            mapping: Mapping::parse(self.part("mapping").unwrap_or_default()).unwrap(),
            timezone: zone.map(|name| Zone::parse(name).unwrap()),
            now: Some(UtcInstant::parse_any_offset("2026-11-18T08:00:00Z").unwrap()),
            ..ReadOptions::default()
        }
    }

    fn file(&self) -> (Format, Vec<u8>) {
        match self.part("csv") {
            Some(text) => (Format::Csv, encode(&text.replace('→', "\t"), self.options)),
            None if self.options.contains("1904") => (Format::Xlsx, since_1904(&workbook(&self.parts))),
            None => (Format::Xlsx, workbook(&self.parts)),
        }
    }

    fn result(&self) -> String {
        let result = self.import();
        if self.options.contains("preview") { result + &self.preview() } else { result }
    }

    fn preview(&self) -> String {
        let (format, bytes) = self.file();
        let shown = preview(format, temporary_file(Cursor::new(bytes)), &self.read_options());
        let mut lines = String::new();
        if let Some((name, words)) = shown.encoding {
            let _ = writeln!(lines, "preview of {name}: {}", words.join(" | "));
        }
        for column in shown.columns.into_iter().filter(|column| !column.examples.is_empty()) {
            let field = column.field.map_or("ignored", Field::name);
            let example = |(before, after): (String, Result<String, String>)| match after {
                Ok(after) if after == before => before,
                Ok(after) => format!("{before} → {after}"),
                Err(error) => format!("{before} → error: {error}"),
            };
            let examples: Vec<String> = column.examples.into_iter().map(example).collect();
            let conversion =
                if column.conversion.is_empty() { "" } else { &format!(", {}", column.conversion) };
            let _ = writeln!(lines, "preview of {field}{conversion}: {}", examples.join(" | "));
        }
        lines
    }

    fn import(&self) -> String {
        let (format, bytes) = self.file();
        let mut lines = String::new();
        let mut accept = |batch: Batch, _| {
            lines.push_str(&summarise(&batch));
            ControlFlow::Continue(())
        };
        let file = temporary_file(Cursor::new(bytes));
        match read(format, file, &self.read_options(), &AtomicU64::new(0), &mut accept) {
            Ok(summary) => {
                for warning in summary.warnings.first {
                    let _ = writeln!(lines, "warning: {warning}");
                }
                lines
            }
            Err(error @ ReadError::Invalid { .. }) => format!("{error}\n"),
            Err(error) => panic!("{error}"),
        }
    }
}

fn encode(text: &str, options: &str) -> Vec<u8> {
    let utf16 =
        |bytes: fn(u16) -> [u8; 2]| format!("\u{FEFF}{text}").encode_utf16().flat_map(bytes).collect();
    match options {
        _ if options.contains("utf-16le") => utf16(u16::to_le_bytes),
        _ if options.contains("utf-16be") => utf16(u16::to_be_bytes),
        _ if options.contains("windows-12") => {
            let name = options.split(' ').find(|word| word.starts_with("windows")).unwrap();
            super::mapping::parse_encoding(name).unwrap().encode(text).0.into_owned()
        }
        _ if options.contains("twice") => super::mapping::parse_encoding("windows-1252")
            .unwrap()
            .decode(text.as_bytes())
            .0
            .into_owned()
            .into(),
        _ if options.contains("bom") => format!("\u{FEFF}{text}").into_bytes(),
        _ => text.into(),
    }
}

fn workbook(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut workbook = Workbook::new();
    for (name, text) in parts.iter().filter(|part| part.0.starts_with("sheet ")) {
        let sheet = workbook.add_worksheet();
        sheet.set_name(&name["sheet ".len()..]).unwrap();
        for (row, line) in (0..).zip(text.lines()) {
            for (column, cell) in (0..).zip(line.split('|')) {
                write_cell(sheet, row, column, cell);
            }
        }
    }
    workbook.save_to_buffer().unwrap()
}

/// The same cells in a workbook whose calendar begins in 1904.
fn since_1904(workbook: &[u8]) -> Vec<u8> {
    let mut parts = ZipArchive::new(Cursor::new(workbook)).unwrap();
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for index in 0..parts.len() {
        let mut part = parts.by_index(index).unwrap();
        let mut text = String::new();
        part.read_to_string(&mut text).unwrap();
        archive.start_file(part.name().unwrap(), SimpleFileOptions::default()).unwrap();
        let text = text.replace("<workbookPr", "<workbookPr date1904=\"1\"");
        archive.write_all(text.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// `#1.5` is a number, `~042` one with a leading zero, `&00-000=417` one with a format, `%0.5` a number shown as a percentage,
/// `@2026-11-16 08:00` a date, `→https://example.org Words` a link, `!true` a boolean, `=A1` a formula without a value, `<Title` is merged over three columns, `^Title` over three rows.
fn write_cell(sheet: &mut Worksheet, row: u32, column: u16, cell: &str) {
    let format = |code: &str| CellFormat::new().set_num_format(code);
    let number = |text: &str| text.parse::<f64>().unwrap();
    match cell.split_at(cell.chars().next().map_or(0, char::len_utf8)) {
        ("", _) => {}
        ("#", text) => drop(sheet.write(row, column, number(text)).unwrap()),
        ("%", text) => drop(sheet.write_with_format(row, column, number(text), &format("0.0%")).unwrap()),
        ("~", text) => {
            sheet.write_with_format(row, column, number(text), &format(&"0".repeat(text.len()))).unwrap();
        }
        ("&", text) => {
            let (code, text) = text.split_once('=').unwrap();
            sheet.write_with_format(row, column, number(text), &format(code)).unwrap();
        }
        ("@", text) => {
            let date = ExcelDateTime::parse_from_str(text).unwrap();
            sheet.write_with_format(row, column, &date, &format("dd.mm.yyyy hh:mm")).unwrap();
        }
        ("→", text) => {
            let (link, text) = text.split_once(' ').unwrap();
            sheet.write_url_with_text(row, column, link, text).unwrap();
        }
        ("!", text) => drop(sheet.write(row, column, text == "true").unwrap()),
        ("=", _) => drop(sheet.write_formula(row, column, cell).unwrap().set_formula_result(row, column, "")),
        ("<", text) => {
            sheet.merge_range(row, column, row, column + 2, text, &CellFormat::new()).unwrap();
        }
        ("^", text) => {
            sheet.merge_range(row, column, row + 2, column, text, &CellFormat::new()).unwrap();
        }
        _ => drop(sheet.write(row, column, cell).unwrap()),
    }
}

/// The required fields, then those that have a value.
fn summarise(batch: &Batch) -> String {
    let mut line = format!(
        "{} | {} | {} | {} | {}",
        batch.batch_id.as_str(),
        batch.batch_name,
        batch.batch_creation_date,
        batch.number_of_images,
        batch.warnings
    );
    let json: serde_json::Value = serde_json::from_str(&batch.to_json()).unwrap();
    for (name, value) in json.as_object().unwrap() {
        let is_listed = matches!(
            name.as_str(),
            "batch_id" | "batch_name" | "batch_creation_date" | "number_of_images" | "warnings"
        );
        if !is_listed && !value.is_null() {
            let _ = write!(line, " | {name} {}", value.to_string().trim_matches('"'));
        }
    }
    line + "\n"
}

fn cases() -> impl Iterator<Item = Case<'static>> {
    CASES.split("=== ").skip(1).map(Case::parse)
}

/// Decisions 056 and 039.
#[test]
fn foreign_files_are_read_or_rejected_as_listed() {
    let rendered: String =
        cases().map(|case| format!("=== {}--- result\n{}\n", case.text, case.result())).collect();
    if std::env::var_os("SNAPSHOTS").is_some_and(|mode| mode == "overwrite") {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/read/foreign_files/cases.txt");
        std::fs::write(path, rendered).unwrap();
        return;
    }
    for (found, expected) in rendered.split("=== ").zip(CASES.split("=== ")) {
        assert_eq!(found.trim_end(), expected.trim_end());
    }
    assert!(cases().count() >= 60);
}

/// A preview accepts exactly what an import does, and the mapping that it writes changes nothing.
#[test]
fn a_written_mapping_reads_each_file_as_before() {
    for case in cases() {
        let (format, bytes) = case.file();
        let options = case.read_options();
        let shown = preview(format, temporary_file(Cursor::new(bytes)), &options);
        let Ok(summary) = &shown.result else { continue };
        let mapping = Mapping::parse(&shown.to_toml()).unwrap();
        let again = Case { parts: case.parts.clone(), ..case };
        let (format, bytes) = again.file();
        let options = ReadOptions { mapping, ..options };
        let reread = preview(format, temporary_file(Cursor::new(bytes)), &options).result;
        assert_eq!(reread.unwrap().batches, summary.batches, "{}", again.text);
    }
}

#[test]
fn a_draft_of_a_mapping_suggests_each_field_once() {
    let text = "batch_id,batch_name,batch_creation_date,number_of_images,coment,commennt\n";
    let shown = preview(Format::Csv, temporary_file(Cursor::new(text)), &ReadOptions::default());
    let draft = shown.to_toml();
    assert!(draft.contains("# \"coment\" = \"comment\"\n# \"commennt\" = \"FIELD\"\n"), "{draft}");
}

#[test]
fn a_draft_of_a_mapping_says_all_that_the_file_needs() {
    let text = "Chargennummer;Name;Scan-Tag;Uhrzeit;Bilder;Warnungen;Keimrate;Brauchbar\n\
                1;Tisch 1;01/02/2026;07:30;2;nein;0,925;92 %\n2;Tisch 2;03/02/2026;08:00;2;nein;0,9;88 %\n";
    let file = || temporary_file(Cursor::new(text));
    let draft = preview(Format::Csv, file(), &ReadOptions::default()).to_toml();
    let (columns, needed) = draft.split_once("\n# With these columns").unwrap();
    for line in [
        "# \"Chargennummer\" = \"batch_id\"",
        "# \"Scan-Tag\" = \"batch_creation_date\"",
        "# \"Uhrzeit\" = \"batch_creation_date\"",
        "# \"Brauchbar\" = \"avg_usable_seedling_rate\"",
    ] {
        assert!(columns.contains(line), "{draft}");
    }
    for setting in ["date_format = \"%d/%m/%Y %H:%M\" or", "rates = \"percent\"", "rates = \"fraction\""] {
        assert!(needed.contains(setting), "{draft}");
    }
    let settings = "date_format = \"%d/%m/%Y %H:%M\"\nrates = \"fraction\"\ntimezone = \"Europe/Berlin\"\n";
    let mapping = Mapping::parse(&format!("{settings}{}", columns.replace("# \"", "\""))).unwrap();
    let options = ReadOptions { mapping, ..ReadOptions::default() };
    assert_eq!(preview(Format::Csv, file(), &options).result.unwrap().batches, 2, "{draft}");
}

/// A batch whose values every dialect can write, and whose rates are not ambiguous.
fn usual_batch() -> impl Strategy<Value = Batch> {
    (any_batch(), 101..=10_000i64, "[a-zA-Zäöüß ]{1,12}", 1_700_000_000i64..1_800_000_000).prop_map(
        |(batch, rate, name, secs)| {
            let decimal = batchscan_model::Hundredths::from_hundredths;
            Batch {
                batch_name: format!("n{name}x"),
                batch_creation_date: UtcInstant::from_micros(secs * 1_000_000).unwrap(),
                batch_id: batchscan_model::BatchId::new(format!("b {}", secs % 977)).unwrap(),
                comment: batch.comment.map(|_| format!("c{name}x")),
                crop_type: None,
                scanned_by_email: None,
                avg_germination_rate: decimal(rate),
                avg_germinated_seedlings: batch.avg_germinated_seedlings.and(decimal(rate * 7)),
                avg_usable_seedlings: batch.avg_usable_seedlings.and(decimal(-rate)),
                avg_non_usable_cells: None,
                ..batch
            }
        },
    )
}

/// Rewrites plain CSV without quotes: other order, delimiter, decimal mark, words and encoding.
fn in_dialect(plain: &str, order: &[usize], dialect: usize) -> Vec<u8> {
    let (delimiter, comma) = [(",", false), (";", true), ("\t", true), (";", false)][dialect];
    let mut out = String::new();
    for line in plain.lines() {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |index: &usize| match cells[*index] {
            number if comma && number.parse::<f64>().is_ok() => number.replace('.', ","),
            "true" if dialect == 2 => "ja".into(),
            "false" if dialect == 2 => "Nein".into(),
            text => text.to_owned(),
        };
        out.push_str(&order.iter().map(cell).collect::<Vec<_>>().join(delimiter));
        out.push_str("\r\n");
    }
    encode(&out, ["utf-8", "bom", "utf-16le", "windows-1252"][dialect])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_order_of_columns_and_the_dialect_make_no_difference(
        batches in prop::collection::vec(usual_batch(), 1..4),
        order in Just((0..18).collect::<Vec<usize>>()).prop_shuffle(),
        dialect in 0usize..4,
    ) {
        let plain = TextWriter::new(Format::Csv, CsvStyle::Plain, Columns::All).file(&batches);
        let mut read_back = Vec::new();
        let mut accept = |batch, _| {
            read_back.push(batch);
            ControlFlow::Continue(())
        };
        let file = temporary_file(Cursor::new(in_dialect(&plain, &order, dialect)));
        read(Format::Csv, file, &ReadOptions::default(), &AtomicU64::new(0), &mut accept).unwrap();
        prop_assert_eq!(read_back, batches);
    }

    /// Whatever the file is like: what could be a fraction, a local time or a thousand is rejected, and accepted with the
    /// setting that the error names.
    #[test]
    fn no_accepted_value_is_a_guess(rate in 1u32..=1_000, whole in 1u32..=999, rest in 0u32..=999, is_comma: bool) {
        let number = format!("{whole}{}{rest:03}", if is_comma { ',' } else { '.' });
        for (column, value, setting) in [
            ("avg_germination_rate", format!("0.{rate:04}"), "rates = \"fraction\""),
            ("avg_usable_seedlings", number, "decimal = \",\""),
            ("comment", String::new(), "timezone = \"Europe/Berlin\""),
        ] {
            let date = if column == "comment" { "2026-11-16 08:00" } else { "2026-11-16T08:00:00Z" };
            let text = format!("batch_id;batch_name;batch_creation_date;number_of_images;warnings;{column}\nb;n;{date};1;0;{value}\n");
            let outcome = |mapping: &str| {
                let options = ReadOptions { mapping: Mapping::parse(mapping).unwrap(), ..ReadOptions::default() };
                preview(Format::Csv, temporary_file(Cursor::new(text.clone())), &options).result
            };
            let error = outcome("").unwrap_err().to_string();
            prop_assert!(error.contains(setting), "{}", error);
            prop_assert!(outcome(setting).is_ok());
        }
    }
}

#[test]
fn a_fraction_becomes_a_percentage_exactly() {
    let mapping = Mapping { rates: RateUnits::All(RateUnit::Fraction), ..Mapping::default() };
    let options = ReadOptions { mapping, ..ReadOptions::default() };
    let rate = |format: Format, text: String| {
        let mut found = String::new();
        let mut accept = |batch: Batch, _| {
            found = batch.avg_germination_rate.unwrap().to_string();
            ControlFlow::Continue(())
        };
        read(format, temporary_file(Cursor::new(text)), &options, &AtomicU64::new(0), &mut accept)
            .map(|_| found)
    };
    for (fraction, percent) in
        [("0.925", "92.50"), ("0.00125", "0.13"), ("1", "100.00"), ("9.25e-1", "92.50"), ("0,07", "7.00")]
    {
        let text = format!(
            "batch_id;batch_name;batch_creation_date;number_of_images;warnings;avg_germination_rate\nb;n;2026-11-16T08:00:00Z;1;0;{fraction}\n"
        );
        assert_eq!(rate(Format::Csv, text).unwrap(), percent, "{fraction}");
    }
    // A text with two decimals is what the API sends.
    for (json, percent) in [
        ("0.92", Some("92.00")),
        ("\"0.925\"", Some("92.50")),
        ("\"92.50\"", Some("92.50")),
        ("\"0.92\"", None),
    ] {
        let text = format!(
            r#"{{"batch_id":"b","batch_name":"n","batch_creation_date":"2026-11-16T08:00:00Z","number_of_images":1,"warnings":true,"avg_germination_rate":{json}}}"#
        );
        assert_eq!(rate(Format::Ndjson, text).ok().as_deref(), percent, "{json}");
    }
}

#[test]
fn fields_that_no_row_and_no_mapping_gives_a_value_are_missing() {
    let missing = |mapping: &str, format, text: &str| {
        let options = ReadOptions { mapping: Mapping::parse(mapping).unwrap(), ..ReadOptions::default() };
        let file = temporary_file(Cursor::new(text.to_owned()));
        let summary = read(format, file, &options, &AtomicU64::new(0), &mut |_, _| ControlFlow::Continue(()));
        summary.unwrap().missing
    };
    let csv = "batch_id,batch_name,batch_creation_date,number_of_images,warnings,crop_type\nb,n,2026-11-16T08:00:00Z,1,no,Leek";
    let all = missing("", Format::Csv, csv);
    assert!(all.contains(&Field::Comment) && !all.contains(&Field::CropType), "{all:?}");
    assert!(all.iter().all(|field| field.is_nullable()), "{all:?}");
    assert!(missing("", Format::Csv, &csv.replace("Leek", "")).contains(&Field::CropType));
    let filled = missing("[values]\ncomment = \"none\"", Format::Csv, csv);
    assert!(filled.len() == all.len() - 1 && !filled.contains(&Field::Comment), "{filled:?}");
    let ndjson = r#"{"batch_id":"b","batch_name":"n","batch_creation_date":"2026-11-16T08:00:00Z","number_of_images":1,"warnings":true}"#;
    assert_eq!(missing("", Format::Ndjson, ndjson), []);
}
