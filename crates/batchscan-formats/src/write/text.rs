//! The formats that are written by appending, so that an interrupted pull continues at the end of its file. Appends to
//! a buffer; writing it to the file is up to the caller.

use batchscan_model::Batch;
use batchscan_model::json_scan::push_compact;

use super::columns::Columns;
use super::csv::{self, CsvStyle};

/// A format that is written by appending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// A header with the field names, and a line per batch.
    Csv(CsvStyle),
    /// One JSON object per line.
    Ndjson,
    /// A JSON array with a line per batch.
    Json,
}

impl TextFormat {
    /// Appends what comes before the first batch.
    pub fn push_header(self, out: &mut String, columns: &Columns) {
        match self {
            TextFormat::Csv(style) => csv::push_header(out, style, columns),
            TextFormat::Ndjson => {}
            TextFormat::Json => out.push('['),
        }
    }

    /// The text between two batches.
    pub fn separator(self) -> &'static str {
        match self {
            TextFormat::Csv(_) | TextFormat::Ndjson => "",
            TextFormat::Json => ",\n",
        }
    }

    /// Appends a batch. With all columns the JSON formats keep its text as the service sent it.
    pub fn push_batch(self, out: &mut String, batch: &Batch, json: &str, columns: &Columns) {
        match self {
            TextFormat::Csv(style) => csv::push_row(out, batch, style, columns),
            TextFormat::Ndjson => {
                push_object(out, batch, json, columns);
                out.push('\n');
            }
            TextFormat::Json => push_object(out, batch, json, columns),
        }
    }

    /// Appends what comes after the last batch.
    pub fn push_footer(self, out: &mut String) {
        match self {
            TextFormat::Csv(_) | TextFormat::Ndjson => {}
            TextFormat::Json => out.push_str("]\n"),
        }
    }

    /// A complete file.
    #[cfg(test)]
    pub(crate) fn file(self, batches: &[Batch]) -> String {
        self.file_with(batches, &Columns::All)
    }

    #[cfg(test)]
    fn file_with(self, batches: &[Batch], columns: &Columns) -> String {
        let mut out = String::new();
        self.push_header(&mut out, columns);
        for (index, batch) in batches.iter().enumerate() {
            out.push_str(if index == 0 { "" } else { self.separator() });
            self.push_batch(&mut out, batch, &batch.to_json(), columns);
        }
        self.push_footer(&mut out);
        out
    }
}

fn push_object(out: &mut String, batch: &Batch, json: &str, columns: &Columns) {
    match columns {
        Columns::All => push_line(out, json),
        Columns::Chosen(fields) => batch.push_json(out, fields),
    }
}

/// Appends JSON as it is, or compact if it has several lines. Strings contain no raw line breaks.
fn push_line(out: &mut String, json: &str) {
    match memchr::memchr2(b'\n', b'\r', json.as_bytes()) {
        None => out.push_str(json),
        Some(_) => push_compact(out, json),
    }
}

#[cfg(test)]
mod tests {
    use batchscan_model::Field;
    use proptest::prelude::*;

    use super::*;
    use crate::Format;
    use crate::testing::{any_batch, bare, full, read_back};

    #[test]
    fn ndjson_keeps_the_source_unless_it_has_several_lines() {
        let source = r#"{"batch_id" : "b",  "new_field":{"a":[1, 2.50e0]}}"#;
        for (json, line) in [(source, source), ("{\n \"a\": 1 }", r#"{"a":1}"#)] {
            let mut out = String::new();
            TextFormat::Ndjson.push_batch(&mut out, &full(), json, &Columns::All);
            assert_eq!(out, format!("{line}\n"));
        }
        assert_eq!(TextFormat::Ndjson.file(&[]), "");
    }

    #[test]
    fn json_is_an_array_with_a_line_per_batch() {
        let batches = [full(), bare("b-2"), bare("b-3")];
        assert_eq!(TextFormat::Json.file(&[]), "[]\n");
        for count in [1, 3] {
            let text = TextFormat::Json.file(&batches[..count]);
            assert_eq!(text.lines().count(), count);
            assert_eq!(serde_json::from_str::<Vec<serde_json::Value>>(&text).unwrap().len(), count);
        }
    }

    #[test]
    fn chosen_columns_are_written_in_their_order() {
        let columns = Columns::Chosen(vec![Field::Warnings, Field::BatchId, Field::AvgGerminationRate]);
        let batches = [full(), bare("b-2")];
        for (format, expected) in [
            (
                TextFormat::Csv(CsvStyle::Plain),
                "warnings,batch_id,avg_germination_rate\r\nfalse,b-000123,92.50\r\ntrue,b-2,\r\n",
            ),
            (
                TextFormat::Json,
                "[{\"warnings\":false,\"batch_id\":\"b-000123\",\"avg_germination_rate\":\"92.50\"},\n\
                 {\"warnings\":true,\"batch_id\":\"b-2\",\"avg_germination_rate\":null}]\n",
            ),
        ] {
            assert_eq!(format.file_with(&batches, &columns), expected);
        }
    }

    proptest! {
        #[test]
        fn a_json_file_reads_back_as_itself(batches in prop::collection::vec(any_batch(), 0..4)) {
            for (format, text) in [(Format::Ndjson, TextFormat::Ndjson), (Format::Json, TextFormat::Json)] {
                prop_assert_eq!(&read_back(format, text.file(&batches).into_bytes()), &batches);
            }
        }

        #[test]
        fn a_pretty_printed_batch_is_written_on_one_line(batch in any_batch()) {
            let value: serde_json::Value = serde_json::from_str(&batch.to_json()).unwrap();
            let mut line = String::new();
            push_line(&mut line, &serde_json::to_string_pretty(&value).unwrap());
            prop_assert_eq!(line, serde_json::to_string(&value).unwrap());
        }
    }
}
