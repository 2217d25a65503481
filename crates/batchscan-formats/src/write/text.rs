//! Writes the text formats by appending to a buffer; writing it to a file is up to the caller.

use batchscan_model::Batch;
use batchscan_model::json_scan::push_compact;

use super::columns::Columns;
use super::csv::{self, CsvStyle};
use crate::Format;

/// Appends batches in a text format.
#[derive(Clone, Debug)]
pub struct TextWriter {
    format: Format,
    style: CsvStyle,
    columns: Columns,
}

impl TextWriter {
    /// `style` is for CSV. Rows of a format that is not text are NDJSON with all columns: only so can
    /// [`write_file`](super::write_file) read them back.
    pub fn new(format: Format, style: CsvStyle, columns: Columns) -> Self {
        match format.is_text() {
            true => Self { format, style, columns },
            false => Self { format: Format::Ndjson, style, columns: Columns::All },
        }
    }

    /// Appends what comes before the first batch.
    pub fn push_header(&self, out: &mut String) {
        match self.format {
            Format::Csv => csv::push_header(out, self.style, &self.columns),
            Format::Json => out.push('['),
            _ => {}
        }
    }

    /// The text between two batches.
    pub fn separator(&self) -> &'static str {
        if self.format == Format::Json { ",\n" } else { "" }
    }

    /// Appends a batch. With all columns the JSON formats keep its text as the service sent it.
    pub fn push_batch(&self, out: &mut String, batch: &Batch, json: &str) {
        match (self.format, &self.columns) {
            (Format::Csv, columns) => return csv::push_row(out, batch, self.style, columns),
            (_, Columns::All) => push_line(out, json),
            (_, Columns::Chosen(fields)) => batch.push_json(out, fields),
        }
        if self.format != Format::Json {
            out.push('\n');
        }
    }

    /// Appends what comes after the last batch.
    pub fn push_footer(&self, out: &mut String) {
        if self.format == Format::Json {
            out.push_str("]\n");
        }
    }

    /// A complete file.
    #[cfg(test)]
    pub(crate) fn file(&self, batches: &[Batch]) -> String {
        let mut out = String::new();
        self.push_header(&mut out);
        for (index, batch) in batches.iter().enumerate() {
            out.push_str(if index == 0 { "" } else { self.separator() });
            self.push_batch(&mut out, batch, &batch.to_json());
        }
        self.push_footer(&mut out);
        out
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
    use crate::testing::{any_batch, bare, full, read_back};

    fn all_columns(format: Format) -> TextWriter {
        TextWriter::new(format, CsvStyle::Plain, Columns::All)
    }

    #[test]
    fn ndjson_keeps_the_source_unless_it_has_several_lines() {
        let source = r#"{"batch_id" : "b",  "new_field":{"a":[1, 2.50e0]}}"#;
        for (json, line) in [(source, source), ("{\n \"a\": 1 }", r#"{"a":1}"#)] {
            let mut out = String::new();
            all_columns(Format::Ndjson).push_batch(&mut out, &full(), json);
            assert_eq!(out, format!("{line}\n"));
        }
        assert_eq!(all_columns(Format::Ndjson).file(&[]), "");
    }

    #[test]
    fn json_is_an_array_with_a_line_per_batch() {
        let batches = [full(), bare("b-2"), bare("b-3")];
        assert_eq!(all_columns(Format::Json).file(&[]), "[]\n");
        for count in [1, 3] {
            let text = all_columns(Format::Json).file(&batches[..count]);
            assert_eq!(text.lines().count(), count);
            assert_eq!(serde_json::from_str::<Vec<serde_json::Value>>(&text).unwrap().len(), count);
        }
    }

    #[test]
    fn chosen_columns_are_written_in_their_order() {
        let columns = Columns::Chosen(vec![Field::Warnings, Field::BatchId, Field::AvgGerminationRate]);
        let batches = [full(), bare("b-2")];
        for (format, expected) in [
            (Format::Csv, "warnings,batch_id,avg_germination_rate\r\nfalse,b-000123,92.50\r\ntrue,b-2,\r\n"),
            (
                Format::Json,
                "[{\"warnings\":false,\"batch_id\":\"b-000123\",\"avg_germination_rate\":\"92.50\"},\n\
                 {\"warnings\":true,\"batch_id\":\"b-2\",\"avg_germination_rate\":null}]\n",
            ),
        ] {
            let writer = TextWriter::new(format, CsvStyle::Plain, columns.clone());
            assert_eq!(writer.file(&batches), expected);
        }
    }

    proptest! {
        #[test]
        fn a_json_file_reads_back_as_itself(batches in prop::collection::vec(any_batch(), 0..4)) {
            for format in [Format::Ndjson, Format::Json] {
                prop_assert_eq!(&read_back(format, all_columns(format).file(&batches).into_bytes()), &batches);
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
