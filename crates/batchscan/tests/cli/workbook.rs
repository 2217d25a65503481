//! Reads an Excel workbook by its two specifications alone: a ZIP archive, and XML sheets in it.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::DeflateDecoder;

/// One value of a sheet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    Number(f64),
    Flag(bool),
}

/// A file of the archive, as text.
#[track_caller]
pub(crate) fn part(workbook: &[u8], name: &str) -> String {
    let number = |at: usize, bytes: usize| {
        workbook[at..at + bytes].iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
    };
    // The directory stands at the end, and its own end tells where it begins.
    let end = workbook.windows(4).rposition(|window| window == b"PK\x05\x06").unwrap();
    let (entries, mut at) = (number(end + 10, 2), number(end + 16, 4));
    for _ in 0..entries {
        assert_eq!(&workbook[at..at + 4], b"PK\x01\x02");
        let (compressed, local) = (number(at + 20, 4), number(at + 42, 4));
        let (name_bytes, more) = (number(at + 28, 2), number(at + 30, 2) + number(at + 32, 2));
        if &workbook[at + 46..at + 46 + name_bytes] == name.as_bytes() {
            let begin = local + 30 + number(local + 26, 2) + number(local + 28, 2);
            let mut text = String::new();
            let mut deflated = DeflateDecoder::new(&workbook[begin..begin + compressed]);
            deflated.read_to_string(&mut text).unwrap();
            return text;
        }
        at += 46 + name_bytes + more;
    }
    panic!("the workbook has no {name}");
}

/// A sheet's rows, each with its cells by the names that the first row gives the columns.
#[track_caller]
pub(crate) fn rows(workbook: &[u8]) -> (Vec<String>, Vec<BTreeMap<String, Cell>>) {
    let sheet = part(workbook, "xl/worksheets/sheet1.xml");
    let mut rows = sheet.split("<row ").skip(1).map(|row| row.split("<c ").skip(1).map(cell));
    let head: Vec<String> = rows
        .next()
        .unwrap()
        .map(|(_, cell)| match cell {
            Cell::Text(text) => text,
            other => panic!("{other:?} is no name"),
        })
        .collect();
    let named = |(column, cell): (usize, Cell)| (head[column].clone(), cell);
    let rows = rows.map(|row| row.map(named).collect()).collect();
    (head, rows)
}

/// `r="C2" s="2"><v>46023</v></c>…`: the column and the value.
fn cell(xml: &str) -> (usize, Cell) {
    let attributes = xml.split('>').next().unwrap();
    let place = attributes.strip_prefix("r=\"").unwrap();
    let column = usize::from(place.as_bytes()[0] - b'A');
    let between = |begin: &str, end: &str| {
        let rest = &xml[xml.find(begin).unwrap() + begin.len()..];
        rest[..rest.find(end).unwrap()].to_owned()
    };
    let value = match attributes {
        text if text.contains("t=\"inlineStr\"") => {
            let text = between("<is><t", "</t></is>");
            Cell::Text(plain(text.split_once('>').unwrap().1))
        }
        flag if flag.contains("t=\"b\"") => Cell::Flag(between("<v>", "</v>") == "1"),
        _ => Cell::Number(between("<v>", "</v>").parse().unwrap()),
    };
    (column, value)
}

/// Without XML's escapes, and Excel's for what XML cannot hold.
fn plain(text: &str) -> String {
    let escapes = [("_x000D_", "\r"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    escapes.into_iter().fold(text.to_owned(), |text, (escape, meant)| text.replace(escape, meant))
}
