//! Checks the XML of a part before the library reads it. The library accepts tags that do not match, stops at the end
//! of the first `<sheetData>`, and takes values that it does not understand for none: rows would be missing silently.

use std::io::{BufReader, Read};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Nested tags. A sheet has five levels, and some more in its extensions.
const DEPTH_MAX: usize = 100;
/// Links of a sheet: a limit of Excel.
const LINKS_MAX: usize = 65_530;
/// Their tags, which the library keeps. A usual one has 100 bytes.
const LINKS_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Merged cells of a sheet, which the library keeps in 16 bytes each: one for each row that Excel allows.
const MERGED_MAX: usize = 1_048_576;
/// The roots of the parts that the library reads. Others may contain anything.
const ROOTS: [&str; 5] = ["Relationships", "workbook", "sst", "styleSheet", "worksheet"];

/// Reads a part to its end, and so verifies its checksum as well. Calls `begin_event` before each tag or text, whose
/// size has a limit.
pub(super) fn check(part: impl Read, begin_event: impl Fn()) -> Result<Contents, String> {
    let mut xml = Reader::from_reader(BufReader::new(part));
    xml.config_mut().expand_empty_elements = true;
    let (mut document, mut buffer) = (Document::default(), Vec::new());
    loop {
        buffer.clear();
        begin_event();
        match xml.read_event_into(&mut buffer).map_err(|error| error.to_string())? {
            Event::Start(tag) if document.is_ignored(&tag) => return Ok(Contents::default()),
            Event::Start(tag) => document.open(&tag)?,
            Event::End(_) => document.close(),
            Event::Text(text) => document.add_text(&text)?,
            Event::GeneralRef(_) => document.add_encoded_text(document.cell_type == CellType::Text)?,
            Event::CData(_) => document.add_encoded_text(false)?,
            Event::Comment(_) | Event::PI(_) => document.add_comment()?,
            Event::DocType(_) => return Err("a document type declaration".into()),
            // Empty tags are expanded.
            Event::Decl(_) | Event::Empty(_) => {}
            Event::Eof => return document.finish(),
        }
    }
}

/// What makes another way of reading necessary.
#[derive(Clone, Copy, Default)]
pub(super) struct Contents {
    /// Formulas without a stored value.
    pub(super) has_uncalculated: bool,
    pub(super) has_merged_cells: bool,
    /// Links behind words.
    pub(super) has_links: bool,
}

#[derive(Default)]
struct Document {
    open: Vec<Element>,
    has_root: bool,
    has_sheet_data: bool,
    /// Of the last cell.
    cell_type: CellType,
    has_formula: bool,
    has_value: bool,
    links: usize,
    links_bytes: usize,
    merged: usize,
    contents: Contents,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Element {
    Worksheet,
    Cell,
    /// The value of a cell.
    Value,
    Other,
}

/// What the value of a cell may contain.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum CellType {
    #[default]
    Number,
    SharedText,
    Text,
}

impl Document {
    /// Whether the tag is the root of a part that the library does not read.
    fn is_ignored(&self, tag: &BytesStart<'_>) -> bool {
        !self.has_root && !ROOTS.contains(&tag.local_name().as_ref())
    }

    fn open(&mut self, tag: &BytesStart<'_>) -> Result<(), String> {
        let name = tag.local_name();
        let element = match (self.open.last(), name.as_ref()) {
            (None, _) if self.has_root => return Err(format!("<{}> after the end", name.as_ref())),
            (None, "worksheet") => Element::Worksheet,
            (Some(Element::Value), _) => return Err(format!("<{}> in a value", name.as_ref())),
            (Some(Element::Worksheet), "row") => return Err("a row outside of <sheetData>".into()),
            (_, "sheetData") if self.is_sheet() && self.has_sheet_data => {
                return Err("a second <sheetData>".into());
            }
            (_, "v") if self.is_sheet() => Element::Value,
            (_, "c") if self.is_sheet() => Element::Cell,
            _ => Element::Other,
        };
        self.has_root = true;
        self.has_sheet_data |= name.as_ref() == "sheetData";
        self.has_formula |= name.as_ref() == "f";
        if name.as_ref() == "mergeCell" {
            self.add_merged()?;
        }
        if name.as_ref() == "hyperlink" {
            self.add_link(tag.len())?;
        }
        self.read_attributes(tag)?;
        self.open.push(element);
        if self.open.len() > DEPTH_MAX { Err(format!("more than {DEPTH_MAX} nested tags")) } else { Ok(()) }
    }

    fn add_link(&mut self, bytes: usize) -> Result<(), String> {
        self.contents.has_links = true;
        self.links += 1;
        self.links_bytes += bytes;
        match (self.links > LINKS_MAX, self.links_bytes > LINKS_BYTES_MAX) {
            (true, _) => Err(format!("more than {LINKS_MAX} links")),
            (false, true) => Err("links with too long texts".into()),
            (false, false) => Ok(()),
        }
    }

    fn add_merged(&mut self) -> Result<(), String> {
        self.contents.has_merged_cells = true;
        self.merged += 1;
        if self.merged > MERGED_MAX { Err(format!("more than {MERGED_MAX} merged cells")) } else { Ok(()) }
    }

    fn is_sheet(&self) -> bool {
        self.open.first() == Some(&Element::Worksheet)
    }

    fn read_attributes(&mut self, tag: &BytesStart<'_>) -> Result<(), String> {
        let is_cell = tag.local_name().as_ref() == "c";
        if is_cell {
            self.cell_type = CellType::default();
            (self.has_formula, self.has_value) = (false, false);
        }
        // Looking for duplicates takes quadratic time.
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| error.to_string())?;
            if is_cell && attribute.key.as_ref() == "t" {
                self.cell_type = match attribute.value.as_ref() {
                    "n" | "b" | "e" => CellType::Number,
                    "s" => CellType::SharedText,
                    _ => CellType::Text,
                };
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        let is_cell = self.open.pop() == Some(Element::Cell);
        self.contents.has_uncalculated |= is_cell && self.has_formula && !self.has_value;
    }

    fn add_text(&mut self, text: &str) -> Result<(), String> {
        self.has_value |= self.open.last() == Some(&Element::Value) && !text.is_empty();
        match self.open.last() {
            None if !text.trim_ascii().is_empty() => Err("text outside of the root".into()),
            Some(Element::Value) if self.cell_type == CellType::SharedText && !is_number(text) => {
                Err("a text without a number".into())
            }
            _ => Ok(()),
        }
    }

    /// A reference such as `&#49;`, or a CDATA section.
    fn add_encoded_text(&self, is_understood_in_values: bool) -> Result<(), String> {
        match self.open.last() {
            None => Err("text outside of the root".into()),
            Some(Element::Value) if !is_understood_in_values => Err("an encoded value".into()),
            _ => Ok(()),
        }
    }

    fn add_comment(&self) -> Result<(), String> {
        match self.open.last() {
            Some(Element::Value) => Err("a comment in a value".into()),
            _ => Ok(()),
        }
    }

    fn finish(&self) -> Result<Contents, String> {
        if self.open.is_empty() { Ok(self.contents) } else { Err("unexpected end of the XML".into()) }
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{REQUIRED, package};
    use crate::Format::Xlsx;
    use crate::testing::{errors, ids};

    const SHEET: &str = "xl/worksheets/a.xml";

    fn header() -> String {
        let cells: String = REQUIRED.iter().map(|name| format!("<c t=\"str\"><v>{name}</v></c>")).collect();
        format!("<row>{cells}</row>")
    }

    /// A row whose fourth cell is this one.
    fn row(id: &str, images: &str) -> String {
        format!(
            "<row><c t=\"str\"><v>{id}</v></c><c t=\"str\"><v>n</v></c><c><v>46053</v></c>{images}<c t=\"b\"><v>0</v></c></row>"
        )
    }

    fn valid_row(id: &str) -> String {
        row(id, "<c><v>1</v></c>")
    }

    fn workbook(sheet: &str) -> Vec<u8> {
        package(&[(SHEET, sheet.as_bytes())])
    }

    #[test]
    fn malformed_sheets_are_rejected_as_a_whole() {
        let (header, a, b) = (header(), valid_row("a"), valid_row("b"));
        let rows = format!("{header}{a}{b}");
        let unclosed = a.replace("</row>", "");
        for (sheet, reason) in [
            (
                format!(
                    "<worksheet><sheetData>{header}{a}</sheetData><sheetData>{b}</sheetData></worksheet>"
                ),
                "a second <sheetData>",
            ),
            (
                format!("<worksheet><sheetData>{header}{a}</sheetData>{b}</worksheet>"),
                "a row outside of <sheetData>",
            ),
            (
                format!("<worksheet><sheetData>{rows}</sheetData></worksheet><worksheet/>"),
                "<worksheet> after the end",
            ),
            (format!("<worksheet><sheetData>{rows}</sheetData></worksheet>{b}"), "<row> after the end"),
            (format!("<worksheet><sheetData>{rows}</sheetData></worksheet> b"), "text outside of the root"),
            (format!("b<worksheet><sheetData>{rows}</sheetData></worksheet>"), "text outside of the root"),
            (format!("<worksheet><sheetData>{rows}</sheetData>"), "unexpected end of the XML"),
            (
                format!("<worksheet><sheetData>{header}{unclosed}{b}</sheetData></worksheet>"),
                "ill-formed document: expected `</",
            ),
            (
                format!("<worksheet><sheetData>{rows}</sheetdata></worksheet>"),
                "ill-formed document: expected `</",
            ),
            (
                format!("<worksheet><sheetData>{header}</row>{a}</sheetData></worksheet>"),
                "ill-formed document: expected `</",
            ),
            (
                format!("<worksheet><sheetData>{rows}</sheetData><hyperlink ref=A1/></worksheet>"),
                "position 14: attribute value must be",
            ),
            (format!("<worksheet><sheetData>{rows}</sheetData><x"), "syntax error: "),
            (
                format!("<worksheet><sheetData>{rows}</sheetData>{}", "<mergeCell/>".repeat(1_048_577)),
                "more than 1048576 merged cells",
            ),
            (
                format!("<worksheet><sheetData>{rows}</sheetData>{}", "<x>".repeat(200)),
                "more than 100 nested tags",
            ),
            (
                format!("<!DOCTYPE x><worksheet><sheetData>{rows}</sheetData></worksheet>"),
                "a document type declaration",
            ),
        ] {
            let found = errors(Xlsx, workbook(&sheet));
            let expected = format!(
                "expected a complete Excel workbook, found a damaged file (xl/worksheets/a.xml: {reason}"
            );
            assert!(found.starts_with(&expected), "{reason}: {found}");
        }
    }

    /// The library would take them for none, or for the first text.
    #[test]
    fn values_that_the_library_does_not_understand_are_rejected() {
        for (cell, reason) in [
            ("<c><v><![CDATA[1]]></v></c>", "an encoded value"),
            ("<c t=\"str\"><v><![CDATA[1]]></v></c>", "an encoded value"),
            ("<c><v>&#49;2</v></c>", "an encoded value"),
            ("<c><v>1<!-- -->2</v></c>", "a comment in a value"),
            ("<c><v><?x?>1</v></c>", "a comment in a value"),
            ("<c><v><b>1</b></v></c>", "<b> in a value"),
            ("<c t=\"s\"><v>x</v></c>", "a text without a number"),
        ] {
            let rows = format!("{}{}", header(), row("a", cell));
            let found =
                errors(Xlsx, workbook(&format!("<worksheet><sheetData>{rows}</sheetData></worksheet>")));
            assert!(found.contains(&format!("(xl/worksheets/a.xml: {reason})")), "{cell}: {found}");
        }
    }

    #[test]
    fn other_malformed_parts_are_rejected() {
        let sheet = format!("<worksheet><sheetData>{}{}</sheetData></worksheet>", header(), valid_row("a"));
        for (name, content, reason) in [
            ("xl/sharedStrings.xml", "<sst><si><t>a</t></si></sst><sst/>", "<sst> after the end"),
            ("xl/sharedStrings.xml", "<sst><si><t>a</si></t></sst>", "ill-formed document"),
            ("xl/styles.xml", "<styleSheet><cellXfs><xf></cellXfs></styleSheet>", "ill-formed document"),
            ("xl/styles.xml", "<styleSheet/>x", "text outside of the root"),
            ("xl/b.xml", "<workbook/><workbook/>", "<workbook> after the end"),
            ("xl/_rels/b.xml.rels", "<Relationships>", "unexpected end of the XML"),
        ] {
            let found = errors(Xlsx, package(&[(name, content.as_bytes()), (SHEET, sheet.as_bytes())]));
            let part = name.to_ascii_lowercase();
            assert!(found.contains(&format!("a damaged file ({part}: {reason}")), "{name}: {found}");
        }
    }

    #[test]
    fn everything_that_xml_allows_is_accepted() {
        let rows = format!("{}<!-- -->{}", header(), row("a", "<c t='str'><v>&#49;</v></c>"));
        let sheet = format!(
            "\u{FEFF}<?xml version=\"1.0\"?>\n<!-- a --><x:worksheet xmlns:x=\"y\"><x:sheetData>{rows}</x:sheetData>\
             <controls><from><xdr:row>1</xdr:row></from></controls></x:worksheet>\n<!-- b --> <?c?>\n"
        );
        let links = "<externalLink><sheetDataSet><sheetData/><sheetData/></sheetDataSet></externalLink>";
        let parts = [
            (SHEET, sheet.as_bytes()),
            ("xl/externalLinks/externalLink1.xml", links.as_bytes()),
            ("customXml/item1.xml", b"<x><y></x>"),
            ("docProps/empty.xml", b""),
        ];
        assert_eq!(ids(Xlsx, package(&parts)), ["a"]);
    }
}
