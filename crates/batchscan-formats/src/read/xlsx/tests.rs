//! Reads workbooks that the Excel library wrote, and damaged ones.

use std::io::{Cursor, Write as _};
use std::ops::ControlFlow;

use batchscan_model::{Batch, UtcInstant};
use proptest::prelude::*;
use rust_xlsxwriter::{ExcelDateTime, Format, Workbook, Worksheet};
use zip::write::SimpleFileOptions;

use super::*;
use crate::Format::Xlsx as XLSX;
use crate::read::ReadOptions;
use crate::testing::{any_batch, batches, errors, ids, read_all, read_back, temporary_file};
use crate::write::{Columns, write_file};

pub(super) const REQUIRED: [&str; 5] =
    ["batch_id", "batch_name", "batch_creation_date (UTC)", "number_of_images", "warnings"];

/// As `pull` writes it.
fn pulled(batches: &[Batch]) -> Vec<u8> {
    let mut file = tempfile::tempfile().unwrap();
    let mut batches = batches.iter().cloned().map(Ok);
    let copy = file.try_clone().unwrap();
    write_file(crate::Format::Xlsx, &mut batches, &Columns::All, copy, &std::env::temp_dir()).unwrap();
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

/// A workbook with one sheet: the header, and what `fill` writes.
fn sheet(header: &[&str], fill: impl FnOnce(&mut Worksheet)) -> Vec<u8> {
    let mut workbook = Workbook::new();
    add_sheet(&mut workbook, header, fill);
    workbook.save_to_buffer().unwrap()
}

fn add_sheet(workbook: &mut Workbook, header: &[&str], fill: impl FnOnce(&mut Worksheet)) {
    let sheet = workbook.add_worksheet();
    sheet.write_row(0, 0, header.iter().copied()).unwrap();
    fill(sheet);
}

/// A valid row.
fn write_row(sheet: &mut Worksheet, row: u32, id: &str) {
    sheet.write(row, 0, id).unwrap().write(row, 1, "n").unwrap();
    sheet.write(row, 2, 46_053.25).unwrap();
    sheet.write(row, 3, 12).unwrap().write(row, 4, true).unwrap();
}

/// A package with these parts, in addition to those that every workbook has or instead of them. The sheet is the last part.
pub(super) fn package(parts: &[(&str, &[u8])]) -> Vec<u8> {
    const NAMESPACE: &str = "http://schemas.openxmlformats.org";
    let rels = |target: &str, kind: &str| {
        format!(
            "<Relationships><Relationship Id=\"r1\" Target=\"{target}\" \
             Type=\"{NAMESPACE}/officeDocument/2006/relationships/{kind}\"/></Relationships>"
        )
    };
    let book = "<workbook><sheets><sheet name=\"a\" sheetId=\"1\" r:id=\"r1\"/></sheets></workbook>";
    let (package, sheets) =
        (rels("xl/workbook.xml", "officeDocument"), rels("worksheets/a.xml", "worksheet"));
    let usual = [
        ("_rels/.rels", package.as_bytes()),
        ("xl/_rels/workbook.xml.rels", sheets.as_bytes()),
        ("xl/workbook.xml", book.as_bytes()),
    ];
    let is_replaced = |(name, _): &(&str, &[u8])| parts.iter().any(|(other, _)| other == name);
    let kept = usual.into_iter().filter(|part| !is_replaced(part));
    zip(&kept.chain(parts.iter().copied()).collect::<Vec<_>>())
}

fn zip(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// The XML of a sheet with this content.
fn sheet_xml(content: &str) -> Vec<u8> {
    format!("<worksheet><sheetData>{content}</sheetData></worksheet>").into_bytes()
}

#[test]
fn cells_of_every_type_that_excel_makes_are_read() {
    let header = [&REQUIRED[..], &["avg_germination_rate", "comment"]].concat();
    let file = sheet(&header, |sheet| {
        let date = Format::new().set_num_format("dd.mm.yyyy hh:mm");
        sheet.write(2, 0, 7).unwrap().write(2, 1, 1.5).unwrap();
        let instant = ExcelDateTime::parse_from_str("2026-01-31 08:00:00.5").unwrap();
        sheet.write_with_format(2, 2, &instant, &date).unwrap();
        sheet.write(2, 3, "12").unwrap().write(2, 4, 0).unwrap();
        sheet.write(2, 5, 92.5).unwrap().write_formula(2, 6, "=\"a\"&1").unwrap();
        sheet.set_formula_result(2, 6, "a1");
        write_row(sheet, 4, "b");
        // An empty text looks like an empty cell.
        sheet.write_formula(6, 1, "=\"\"").unwrap();
        sheet.set_formula_result(6, 1, "");
        write_row(sheet, 7, "c");
        sheet.write_blank(9, 3, &date).unwrap();
    });
    let texts = batches(XLSX, file);
    let start = r#"{"batch_id":"7","batch_name":"1.5","batch_creation_date":"2026-01-31T08:00:00.5Z","#;
    assert!(texts[0].starts_with(start), "{}", texts[0]);
    for part in [
        "\"number_of_images\":12",
        "\"avg_germination_rate\":\"92.50\"",
        "\"comment\":\"a1\",\"warnings\":false",
    ] {
        assert!(texts[0].contains(part), "{}", texts[0]);
    }
    assert!(
        texts[1].contains(r#""batch_creation_date":"2026-01-31T06:00:00Z","crop_type":null"#),
        "{}",
        texts[1]
    );
    assert_eq!(texts.len(), 3);
}

/// Decision 039.
#[test]
fn errors_name_the_row_and_the_field() {
    let header = [&REQUIRED[..], &["avg_germination_rate", "coment"]].concat();
    let file = sheet(&header, |sheet| {
        let date = Format::new().set_num_format("yyyy-mm-dd");
        write_row(sheet, 1, "a");
        sheet.write_with_format(1, 5, 1.5, &date).unwrap();
        write_row(sheet, 2, "b");
        sheet.write(2, 2, 0.5).unwrap().write(2, 4, "yes").unwrap();
        write_row(sheet, 4, "d");
        sheet.write(4, 7, "x").unwrap();
    });
    let date = "expected a date and time with a UTC offset, such as 2026-01-31T08:00:00Z";
    let expected = format!(
        "row 1: coment: unknown field; did you mean comment? Then add \"coment\" = \"comment\" to [columns] of a mapping, or else add it to ignore\n\
        row 2: avg_germination_rate: expected a decimal such as 92.5, found a date\n\
        row 3: batch_creation_date: {date}, found a date before 1900-03-01 or after 9999\n\
        row 5: column 8: missing column name"
    );
    assert_eq!(errors(XLSX, file), expected);
}

#[test]
fn a_formula_without_a_stored_value_is_an_error() {
    let header: String = REQUIRED.iter().map(|name| format!("<c t=\"str\"><v>{name}</v></c>")).collect();
    for value in ["", "<v/>", "<v></v>"] {
        let rows = format!("<row>{header}</row><row><c t=\"str\"><v>a</v></c><c><f>B1</f>{value}</c></row>");
        let found = errors(XLSX, package(&[("xl/worksheets/a.xml", &sheet_xml(&rows))]));
        let expected = "row 2: batch_name: a formula without a stored value; open the file in a spreadsheet program and \
                        save it, so that values are stored";
        assert_eq!(found, expected);
    }
}

#[test]
fn only_a_pulled_table_continues_on_other_sheets() {
    let mut workbook = Workbook::new();
    for (name, id) in [("Batches", "a"), ("Batches 2", "b")] {
        add_sheet(&mut workbook, &REQUIRED, |sheet| {
            sheet.set_name(name).unwrap();
            write_row(sheet, 1, id);
        });
    }
    assert_eq!(ids(XLSX, workbook.save_to_buffer().unwrap()), ["a", "b"]);
    add_sheet(&mut workbook, &REQUIRED, |sheet| write_row(sheet, 1, &"x".repeat(200)));
    let errors_found = errors(XLSX, workbook.save_to_buffer().unwrap());
    let expected = "sheet \"Sheet3\", row 1: the sheets \"Batches\" and \"Sheet3\" both have the columns; add sheet = \"Batches\", \
                    ignore_sheets = [\"Sheet3\"], or sheet = \"*\" for all sheets to a mapping";
    assert!(
        errors_found.starts_with("sheet \"Sheet3\", row 2: batch_id: expected 1 to 128 bytes"),
        "{errors_found}"
    );
    assert!(errors_found.ends_with(expected), "{errors_found}");
    assert_eq!(ids(XLSX, sheet(&REQUIRED, |_| {})), [""; 0]);
    assert_eq!(
        errors(XLSX, sheet(&[], |_| {})),
        "expected a header with the field names, found an empty workbook"
    );
}

#[test]
fn a_header_may_be_repeated_but_not_changed() {
    let with_second = |titles: &[&str]| {
        sheet(&REQUIRED, |sheet| {
            write_row(sheet, 1, "a");
            for (column, title) in (0..).zip(titles) {
                sheet.write(2, column, *title).unwrap();
            }
            write_row(sheet, 3, "b");
        })
    };
    assert_eq!(ids(XLSX, with_second(&REQUIRED)), ["a", "b"]);
    let mut swapped = REQUIRED;
    swapped.swap(0, 1);
    let expected = "row 3: another header than in row 1; put each table on a sheet of its own";
    assert_eq!(errors(XLSX, with_second(&swapped)), expected);
    assert_eq!(errors(XLSX, with_second(&REQUIRED[..4])), expected);
}

fn value(field: Field, cell: DataRef<'_>, is_1904: bool) -> CellValue<'_> {
    CellValue::new(field, cell, &Look::default(), is_1904)
}

#[test]
fn dates_may_begin_in_1904() {
    let cell = DataRef::Float(1.25);
    let expected = UtcInstant::parse_any_offset("1904-01-02T06:00:00Z").unwrap();
    assert_eq!(value(Field::BatchCreationDate, cell, true), CellValue::Clock(expected));
    for days in [f64::INFINITY, 3e6, f64::NAN] {
        let value = value(Field::BatchCreationDate, DataRef::Float(days), false);
        assert_eq!(value, CellValue::Value(Value::Other("a date before 1900-03-01 or after 9999")));
    }
}

/// 41126 may be 4 November 2026.
#[test]
fn a_number_with_leading_zeros_is_no_date() {
    let file = sheet(&REQUIRED, |sheet| {
        write_row(sheet, 1, "a");
        let format = Format::new().set_num_format("000000");
        sheet.write_with_format(1, 2, 41_126, &format).unwrap();
    });
    let found = errors(XLSX, file);
    let expected = "found a number with leading zeros: format the cells as dates";
    assert!(found.ends_with(expected), "{found}");
}

#[test]
fn other_files_are_rejected() {
    let bytes = pulled(&[]);
    let workbook = "expected an Excel workbook (.xlsx), found";
    for (file, expected) in [
        (&b""[..], "expected an Excel workbook (.xlsx); name a CSV file .csv, found another format".into()),
        (b"batch_id,batch_name\n", "expected an Excel workbook (.xlsx); name a CSV file .csv, found".into()),
        (
            &[0xD0, 0xCF, 0x11, 0xE0, 0],
            format!("{workbook} a workbook with a password, or of an Excel before 2007"),
        ),
        (&bytes[..bytes.len() / 2], "expected a complete Excel workbook, found a damaged file (".into()),
        (&zip(&[("a.csv", b"")]), format!("{workbook} another format")),
        (
            &zip(&[("mimetype", b""), ("content.xml", b"<x/>")]),
            format!("{workbook} an OpenDocument file such as .ods"),
        ),
        (&package(&[("xl/workbook.bin", b"")]), format!("{workbook} a binary workbook (.xlsb)")),
    ] {
        assert!(errors(XLSX, file).starts_with(&expected), "{}", errors(XLSX, file));
    }
}

/// The library reads a sheet only up to its last row, and not the checksum at its end.
#[test]
fn a_changed_byte_is_noticed_by_the_checksum() {
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut copy = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let mut original =
        zip::ZipArchive::new(Cursor::new(sheet(&REQUIRED, |sheet| write_row(sheet, 1, "a")))).unwrap();
    for index in 0..original.len() {
        let mut part = original.by_index(index).unwrap();
        copy.start_file(part.name().unwrap(), options).unwrap();
        std::io::copy(&mut part, &mut copy).unwrap();
    }
    let mut bytes = copy.finish().unwrap().into_inner();
    assert_eq!(ids(XLSX, bytes.clone()), ["a"]);
    let images = b"<v>12</v>";
    let at = bytes.windows(images.len()).position(|window| window == images).unwrap();
    bytes[at + 3] = b'7';
    let found = errors(XLSX, bytes);
    assert!(found.contains("(xl/worksheets/sheet1.xml: ") && found.contains("checksum"), "{found}");
}

/// The library would read only one of them.
#[test]
fn sheets_or_parts_with_the_same_name_are_rejected() {
    let sheet = sheet_xml("");
    let listed = "<sheet name=\"a\" r:id=\"r1\"/>".repeat(2);
    let book = format!("<workbook><sheets>{listed}</sheets></workbook>");
    let file = package(&[("xl/workbook.xml", book.as_bytes()), ("xl/worksheets/a.xml", &sheet)]);
    assert_eq!(errors(XLSX, file), "expected a complete Excel workbook, found two sheets with the same name");

    let (name, other) = (b"xl/worksheets/a.xml", b"xl/worksheets/b.xml");
    let mut file = package(&[("xl/worksheets/a.xml", &sheet), ("xl/worksheets/b.xml", &sheet)]);
    while let Some(at) = file.windows(other.len()).position(|window| window == other) {
        file[at..at + name.len()].copy_from_slice(name);
    }
    let found = errors(XLSX, file);
    assert!(found.ends_with("found a damaged file (two parts with the same name)"), "{found}");
}

#[test]
fn parts_and_cells_that_would_fill_the_memory_are_rejected() {
    let (zeros, sheet) = ("0".repeat(64 << 20), sheet_xml(""));
    let many = |tag: &str| tag.repeat(3 << 20);
    let nested = format!("<styleSheet><font val=\"{}\"/></styleSheet>", "<".repeat(4_096));
    for (name, content) in [
        (
            "xl/sharedStrings.xml",
            format!("<sst>{}</sst>", format!("<si>{}</si>", "0".repeat(1_000)).repeat(130 << 10)),
        ),
        ("xl/sharedStrings.xml", format!("<sst><si><t>{}</t></si></sst>", &zeros[..2 << 20])),
        ("xl/sharedStrings.xml", format!("<sst>{}</sst>", many("<si/><si/><si/>"))),
        ("xl/sharedStrings.xml", "<sst uniqueCount=\"100000000000\"></sst>".into()),
        (
            "xl/sharedStrings.xml",
            format!("{}<sst a=\">\" uniqueCount='100000000000'></sst>", " ".repeat(1 << 20)),
        ),
        ("xl/sharedStrings.xml", "<sst\0></sst>".into()),
        ("xl/styles.xml", format!("<styleSheet>{}</styleSheet>", many("<xf/>"))),
        ("xl/styles.xml", format!("<styleSheet><font val=\"{}\"/></styleSheet>", "x".repeat(4_096))),
        ("xl/styles.xml", nested),
        (
            "xl/worksheets/a.xml",
            String::from_utf8(sheet_xml(&format!("<row><c t=\"str\"><v>{zeros}</v></c></row>"))).unwrap(),
        ),
    ] {
        let file = match name {
            "xl/worksheets/a.xml" => package(&[(name, content.as_bytes())]),
            _ => package(&[(name, content.as_bytes()), ("xl/worksheets/a.xml", &sheet)]),
        };
        let found = errors(XLSX, file);
        assert!(
            found.contains("found a part or a cell that is too large (the limits are"),
            "{name}: {found}"
        );
    }
}

#[test]
fn a_sheet_may_be_larger_than_the_parts_that_are_kept() {
    let text = |text: &str| format!("<c t=\"str\"><v>{text}</v></c>");
    let header: String = REQUIRED.iter().map(|name| text(name)).collect();
    let row = |id: usize| {
        format!(
            "<row>{}{}<c><v>46053</v></c><c><v>1</v></c><c t=\"b\"><v>0</v></c></row>",
            text(&id.to_string()),
            text("n")
        )
    };
    let rows: String = (0..20_000).map(row).collect();
    let sheet = sheet_xml(&format!("<row>{header}</row>{rows}"));
    assert!(sheet.len() > 2 << 20);
    assert_eq!(ids(XLSX, package(&[("xl/worksheets/a.xml", &sheet)])).len(), 20_000);
}

/// A workbook with links, all of them to this address.
fn with_links(links: usize, attributes: &str, address: &str, relationships: usize) -> Vec<u8> {
    let kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink";
    let relationship = |id: usize| {
        format!("<Relationship Id=\"r{id}\" Type=\"{kind}\" Target=\"{address}\" TargetMode=\"External\"/>")
    };
    let relationships: String = (0..relationships).map(relationship).collect();
    let link = format!("<hyperlink ref=\"F2\" r:id=\"r0\" {attributes}/>");
    let cells = |cells: &[&str]| -> String {
        cells.iter().map(|cell| format!("<c t=\"str\"><v>{cell}</v></c>")).collect()
    };
    let header = cells(&[&REQUIRED[..], &["analysis_link"]].concat());
    let row = cells(&["a", "n", "2026-01-31", "1", "no", "Open"]);
    let sheet = format!(
        "<worksheet><sheetData><row>{header}</row><row>{row}</row></sheetData><hyperlinks>{}</hyperlinks></worksheet>",
        link.repeat(links)
    );
    package(&[
        (
            "xl/worksheets/_rels/a.xml.rels",
            format!("<Relationships>{relationships}</Relationships>").as_bytes(),
        ),
        ("xl/worksheets/a.xml", sheet.as_bytes()),
    ])
}

#[test]
fn a_sheet_may_have_as_many_links_as_in_excel() {
    const LINKS_MAX: usize = 65_530;
    let address = "https://example.org/1";
    let texts = batches(XLSX, with_links(LINKS_MAX, "", address, LINKS_MAX));
    assert!(texts[0].contains(&format!("\"analysis_link\":\"{address}\"")), "{}", texts[0]);
    let long = "x".repeat(4 << 10);
    let tooltip = format!("tooltip=\"{long}\"");
    for (file, reason) in [
        (with_links(LINKS_MAX + 1, "", address, 1), "xl/worksheets/a.xml: more than 65530 links)"),
        (with_links(10_000, &tooltip, address, 1), "xl/worksheets/a.xml: links with too long texts)"),
        (with_links(1, "", &long, 1), "found a part or a cell that is too large (the limits are"),
        (with_links(1, "", address, 120_000), "found a part or a cell that is too large (the limits are"),
    ] {
        let found = errors(XLSX, file);
        assert!(found.contains(reason), "{found}");
    }
}

#[test]
fn cells_out_of_order_and_long_texts_are_errors() {
    for content in [
        "<row><c r=\"A2\"><v>1</v></c><c r=\"A1\"><v>1</v></c></row>",
        "<row><c r=\"A1\"><v>1</v></c><c r=\"A1\"><v>1</v></c></row>",
        "<row><c r=\"ZZZ1\"><v>1</v></c></row>",
    ] {
        let found = errors(XLSX, package(&[("xl/worksheets/a.xml", &sheet_xml(content))]));
        assert!(found.ends_with("found cells in another order"), "{found}");
    }
    let long = DataRef::String("x".repeat(2 << 20));
    let too_long = CellValue::Value(Value::Other("text of more than 1 MiB"));
    assert_eq!(value(Field::Comment, long, false), too_long);
    assert_eq!(value(Field::Comment, DataRef::String(String::new()), false), CellValue::Value(Value::Null));
}

#[test]
fn the_bytes_read_end_at_the_length_of_the_file() {
    let bytes = pulled(&[]);
    let bytes_read = AtomicU64::new(0);
    let file = temporary_file(Cursor::new(bytes.clone()));
    crate::read::read(
        XLSX,
        file,
        &ReadOptions::default(),
        &bytes_read,
        &mut |_, _| ControlFlow::Continue(()),
    )
    .unwrap();
    assert_eq!(bytes_read.into_inner(), bytes.len() as u64);
}

/// The batch as Excel keeps it: an empty text is none.
fn without_empty_texts(mut batch: Batch) -> Batch {
    for text in [&mut batch.crop_type, &mut batch.scanned_by_email, &mut batch.comment] {
        text.take_if(|text| text.is_empty());
    }
    batch
}

/// 2078-12-31T00:00:00Z, in microseconds.
const END_OF_2078: i64 = 3_439_670_400_000_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// A number of days has microseconds until 2079, and is less exact from then on. Next to a whole second, it is that.
    #[test]
    fn a_pulled_workbook_reads_back_as_itself(written in prop::collection::vec(any_batch(), 0..4)) {
        let mut read = read_back(XLSX, pulled(&written));
        prop_assert_eq!(read.len(), written.len());
        for (read, written) in read.iter_mut().zip(&written) {
            let micros = written.batch_creation_date.micros();
            let difference = (micros - read.batch_creation_date.micros()).abs();
            let is_near_second = (micros + 5).rem_euclid(1_000_000) <= 10;
            let allowed = if micros >= END_OF_2078 { 40 } else if is_near_second { 5 } else { 0 };
            prop_assert!(difference <= allowed, "{difference}");
            read.batch_creation_date = written.batch_creation_date;
        }
        let written: Vec<Batch> = written.into_iter().map(without_empty_texts).collect();
        prop_assert_eq!(read, written);
    }

    #[test]
    fn no_damage_to_a_workbook_causes_a_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = pulled(&[crate::testing::full()]);
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read_all(XLSX, Cursor::new(bytes));
    }

    #[test]
    fn no_xml_causes_a_panic(content in "(<row( r=\"[0-9A-Z]{0,9}\")?>|</row>|<c( [rst]=\"[A-Za-z0-9]{0,9}\")*>|</c>|<v>|</v>|<is>|<t>|</t>|</is>|<f>|[0-9.e]{0,3}|_x00[0-9]{2}_|&#x?[0-9]{1,6};|<!--){0,24}") {
        let _ = read_all(XLSX, Cursor::new(package(&[("xl/worksheets/a.xml", &sheet_xml(&content))])));
    }
}
