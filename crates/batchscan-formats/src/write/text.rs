//! The formats that are written by appending, so that an interrupted pull continues at the end of its file. Appends to
//! a buffer; writing it to the file is up to the caller.

use batchscan_model::Batch;
use batchscan_model::json_scan::push_compact;

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
    pub fn push_header(self, out: &mut String) {
        match self {
            TextFormat::Csv(style) => csv::push_header(out, style),
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

    /// Appends a batch. The JSON formats keep its text as the service sent it, with fields this version does not know.
    pub fn push_batch(self, out: &mut String, batch: &Batch, json: &str) {
        match self {
            TextFormat::Csv(style) => csv::push_row(out, batch, style),
            TextFormat::Ndjson => {
                push_line(out, json);
                out.push('\n');
            }
            TextFormat::Json => push_line(out, json),
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
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{any_batch, bare, full};

    #[test]
    fn ndjson_keeps_the_source_unless_it_has_several_lines() {
        let source = r#"{"batch_id" : "b",  "new_field":{"a":[1, 2.50e0]}}"#;
        for (json, line) in [(source, source), ("{\n \"a\": 1 }", r#"{"a":1}"#)] {
            let mut out = String::new();
            TextFormat::Ndjson.push_batch(&mut out, &full(), json);
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

    proptest! {
        #[test]
        fn a_pretty_printed_batch_is_written_on_one_line(batch in any_batch()) {
            let value: serde_json::Value = serde_json::from_str(&batch.to_json()).unwrap();
            let mut line = String::new();
            push_line(&mut line, &serde_json::to_string_pretty(&value).unwrap());
            prop_assert_eq!(line, serde_json::to_string(&value).unwrap());
        }
    }
}
