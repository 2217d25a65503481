//! Reads the XML of the workbooks, which shows the type of each cell.

use std::collections::HashMap;
use std::io::{Cursor, Read as _, Seek as _};

use proptest::prelude::*;

use super::*;
use crate::testing::{any_batch, bare, full};

/// The texts of a workbook's files, by name.
type Parts = HashMap<String, String>;

fn write_bytes(batches: &[Batch], rows_max: u32) -> (Vec<u8>, CutTexts) {
    let folder = tempfile::tempdir().unwrap();
    let mut file = tempfile::tempfile().unwrap();
    let mut batches = batches.iter().cloned().map(Ok);
    let cut = write_sheets(&mut batches, &Columns::All, file.try_clone().unwrap(), folder.path(), rows_max)
        .unwrap();
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "no temporary file is left");
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    (bytes, cut)
}

fn workbook(batches: &[Batch], rows_max: u32) -> Parts {
    unzip(&write_bytes(batches, rows_max).0)
}

/// The sheet of one batch.
fn sheet(batch: Batch) -> String {
    workbook(&[batch], SHEET_ROWS_MAX).remove("xl/worksheets/sheet1.xml").unwrap()
}

fn unzip(bytes: &[u8]) -> Parts {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let count = archive.len();
    let read = |index| {
        let file = archive.by_index(index).unwrap();
        (file.name().unwrap().into_owned(), std::io::read_to_string(file).unwrap())
    };
    (0..count).map(read).collect()
}

/// The XML of a cell without its style, if the cell is there.
fn cell(sheet: &str, place: &str) -> Option<String> {
    let (_, rest) = sheet.split_once(&format!("<c r=\"{place}\""))?;
    let (attributes, rest) = rest.split_once('>').unwrap();
    let attributes: String = attributes.split(' ').filter(|part| !part.starts_with("s=")).collect();
    Some(format!("{attributes}|{}", rest.split_once("</c>").unwrap().0))
}

/// The number of a cell's style.
fn style<'s>(sheet: &'s str, place: &str) -> &'s str {
    let (_, rest) = sheet.split_once(&format!("<c r=\"{place}\" s=\"")).unwrap();
    rest.split_once('"').unwrap().0
}

fn rows(sheet: &str) -> usize {
    sheet.matches("<row ").count()
}

fn created(text: &str) -> Batch {
    Batch { batch_creation_date: UtcInstant::parse_any_offset(text).unwrap(), ..full() }
}

#[test]
fn every_cell_has_the_type_of_its_field() {
    let sheet = sheet(full());
    let expect = |place: &str, xml: &str| assert_eq!(cell(&sheet, place).as_deref(), Some(xml), "{place}");
    expect("A1", "t=\"inlineStr\"|<is><t>batch_id</t></is>");
    expect("R1", "t=\"inlineStr\"|<is><t>warnings</t></is>");
    expect("B2", "t=\"inlineStr\"|<is><t>Tray 7 \"early\"</t></is>");
    expect("C2", "|<v>46053.33333912037</v>");
    expect("E2", "|<v>12</v>");
    expect("I2", "|<v>92.5</v>");
    expect("N2", "|<v>-0.5</v>");
    expect("P2", "t=\"inlineStr\"|<is><t>https://reports.example.org/b-000123</t></is>");
    expect("R2", "t=\"b\"|<v>0</v>");
    assert!(!sheet.contains("<hyperlink") && !sheet.contains("<f>"));
    // A null has no cell.
    let sheet = self::sheet(bare("b"));
    for column in "DFGHIJKLMNOPQ".chars() {
        assert_eq!(cell(&sheet, &format!("{column}2")), None);
    }
}

#[test]
fn numbers_and_dates_have_formats() {
    let parts = workbook(&[full()], SHEET_ROWS_MAX);
    let styles = &parts["xl/styles.xml"];
    for shown in ["yyyy-mm-dd hh:mm:ss", "yyyy-mm-dd hh:mm:ss.000", "0", "0.00"] {
        assert!(styles.contains(&format!("formatCode=\"{shown}\"")), "{shown}");
    }
    let sheet = &parts["xl/worksheets/sheet1.xml"];
    assert_eq!(style(sheet, "G2"), style(sheet, "N2"));
    assert_ne!(style(sheet, "C2"), style(sheet, "E2"));
    // Only an instant with a fraction has a format with one.
    let date_style = |text: &str| style(&self::sheet(created(text)), "C2").to_owned();
    assert_eq!(date_style("2026-01-31T08:00:00Z"), date_style("2026-01-31T08:00:01Z"));
    assert_ne!(date_style("2026-01-31T08:00:00Z"), date_style("2026-01-31T08:00:00.5Z"));
}

#[test]
fn the_header_is_bold_frozen_and_filterable() {
    let parts = workbook(&[full(), bare("b-2")], SHEET_ROWS_MAX);
    let sheet = &parts["xl/worksheets/sheet1.xml"];
    assert!(sheet.contains("<pane ySplit=\"1\" topLeftCell=\"A2\"") && sheet.contains("state=\"frozen\""));
    assert!(sheet.contains("<autoFilter ref=\"A1:R3\"/>"));
    assert!(parts["xl/styles.xml"].contains("<b/>"));
}

#[test]
fn a_text_is_never_a_formula_number_or_link() {
    for text in
        ["=1+1", "+1", "@A1", "{=1}", "42", "TRUE", "https://example.org", "mailto:a@b.c", "2026-01-31"]
    {
        let sheet = sheet(Batch { comment: Some(text.into()), ..full() });
        assert_eq!(cell(&sheet, "Q2").unwrap(), format!("t=\"inlineStr\"|<is><t>{text}</t></is>"));
        assert!(!sheet.contains("<f>") && !sheet.contains("<hyperlink"));
    }
}

#[test]
fn characters_that_xml_lacks_are_escaped_as_in_excel() {
    let comment = Some(" <&> \u{1} \u{FFFF} \r\n _x0041_ ".into());
    let sheet = sheet(Batch { comment, ..full() });
    let expected = " &lt;&amp;&gt; _x0001_ _xFFFF_ _x000D_\n _x005F_x0041_ ";
    assert!(cell(&sheet, "Q2").unwrap().ends_with(&format!("<t xml:space=\"preserve\">{expected}</t></is>")));
}

#[test]
fn an_instant_outside_excels_calendar_is_a_text() {
    let shown = |text: &str| cell(&sheet(created(text)), "C2").unwrap();
    for text in ["1900-02-28T23:59:59.999999Z", "1800-01-01T00:00:00Z", "9999-12-31T23:59:59.999001Z"] {
        assert_eq!(shown(text), format!("t=\"inlineStr\"|<is><t>{text}</t></is>"));
    }
    assert_eq!(shown("1900-03-01T00:00:00Z"), "|<v>61</v>");
    assert_eq!(shown("1970-01-01T12:00:00Z"), "|<v>25569.5</v>");
    assert_eq!(shown("1969-12-31T18:00:00Z"), "|<v>25568.75</v>");
    assert!(shown("9999-12-31T23:59:59.999Z").starts_with("|<v>2958465.99999"));
}

#[test]
fn rows_beyond_a_sheet_continue_in_the_next_one_with_its_own_header() {
    let batches = ["a", "b", "c", "d", "e"].map(bare);
    let parts = workbook(&batches, 3);
    let names: Vec<&str> = parts["xl/workbook.xml"].split("<sheet name=\"").skip(1).collect();
    let names: Vec<&str> = names.iter().map(|rest| rest.split_once('"').unwrap().0).collect();
    assert_eq!(names, ["Batches", "Batches 2", "Batches 3"]);
    let sheets = [1, 2, 3].map(|number| &parts[&format!("xl/worksheets/sheet{number}.xml")]);
    assert_eq!(sheets.map(|sheet| rows(sheet)), [3, 3, 2]);
    for sheet in sheets {
        assert!(cell(sheet, "A1").unwrap().contains(">batch_id<"));
    }
    assert!(cell(sheets[1], "A2").unwrap().contains(">c<"));
    assert!(cell(sheets[2], "A2").unwrap().contains(">e<"));
    assert!(sheets[2].contains("<autoFilter ref=\"A1:R2\"/>"));
}

#[test]
fn a_full_sheet_is_the_last_one_and_no_batches_produce_one_sheet() {
    for count in [0, 2] {
        let parts = workbook(&["a", "b"].map(bare)[..count], 3);
        assert_eq!(rows(&parts["xl/worksheets/sheet1.xml"]), count + 1);
        assert!(!parts.contains_key("xl/worksheets/sheet2.xml"));
    }
}

#[test]
fn a_text_too_long_for_a_cell_is_cut_between_characters_and_counted() {
    assert_eq!(cut_to_cell(&"x".repeat(CELL_UNITS_MAX)).len(), CELL_UNITS_MAX);
    assert_eq!(cut_to_cell(&"x".repeat(CELL_UNITS_MAX + 1)).len(), CELL_UNITS_MAX);
    assert_eq!(cut_to_cell(&"ß".repeat(CELL_UNITS_MAX)).len(), 2 * CELL_UNITS_MAX);
    // The emoji has two UTF-16 units, and the limit is odd.
    assert_eq!(cut_to_cell(&"🌱".repeat(CELL_UNITS_MAX)).chars().count(), CELL_UNITS_MAX / 2);

    let long = |id| Batch { comment: Some("ß".repeat(CELL_UNITS_MAX + 1)), ..bare(id) };
    let (bytes, cut) = write_bytes(&[bare("a"), long("b"), long("c")], SHEET_ROWS_MAX);
    assert_eq!(cut.count, 2);
    assert_eq!(cut.first.unwrap(), (long("b").batch_id, Field::Comment));
    let sheet = &unzip(&bytes)["xl/worksheets/sheet1.xml"];
    assert_eq!(sheet.matches('ß').count(), 2 * CELL_UNITS_MAX);
}

#[test]
fn the_same_batches_produce_the_same_bytes() {
    let batches = [full(), bare("b-2")];
    let (bytes, _) = write_bytes(&batches, 2);
    assert_eq!(bytes, write_bytes(&batches, 2).0);
    assert!(unzip(&bytes)["docProps/core.xml"].contains(">1980-01-01T00:00:00Z<"));
}

#[test]
fn an_error_of_the_source_is_returned() {
    let mut batches = [Ok(full()), Err("a broken disk".into())].into_iter();
    let file = tempfile::tempfile().unwrap();
    let error = write(&mut batches, &Columns::All, file, &std::env::temp_dir()).unwrap_err();
    assert_eq!(error.to_string(), "a broken disk");
}

#[test]
fn a_full_disk_is_reported_with_the_systems_message() {
    let full = std::io::Error::from_raw_os_error(28);
    let message = full.to_string().replace(" (os error 28)", "");
    let error = catch_panic::<()>(|| panic!("Couldn't write to xml file: {full:?}")).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot write the workbook's temporary file: {message}"));
    assert_eq!(system_message("something else"), "something else");
    assert_eq!(catch_panic(|| Ok(7)).unwrap(), 7);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_decimal_and_count_reads_back_from_its_cell(batch in any_batch()) {
        let sheet = sheet(batch.clone());
        for (column, value) in ('A'..).zip(batch.values()) {
            let written = cell(&sheet, &format!("{column}2"));
            let number = written.and_then(|xml| xml.strip_prefix("|<v>")?.strip_suffix("</v>").map(str::to_owned));
            match value {
                FieldValue::Decimal(decimal) => {
                    let read = batchscan_model::Hundredths::parse(&number.unwrap());
                    prop_assert_eq!(read, Ok(decimal));
                }
                FieldValue::Count(count) => prop_assert_eq!(number.unwrap(), count.to_string()),
                _ => {}
            }
        }
    }
}
