//! The formats that grow at their end: what is written stays as it is, so a pull that broke off goes on from the
//! length its file has. Appends to a buffer; which bytes reach the file, and when, is the caller's business.

use batchscan_model::Batch;

use super::{CsvStyle, csv};

/// A format that grows at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// A header of the field names, and a line for each batch.
    Csv(CsvStyle),
    /// One JSON object a line.
    Ndjson,
    /// A JSON array, with a line for each batch.
    Json,
}

impl TextForm {
    /// Appends what stands before the first batch.
    pub fn head(self, out: &mut String) {
        match self {
            TextForm::Csv(style) => csv::push_header(out, style),
            TextForm::Ndjson => {}
            TextForm::Json => out.push('['),
        }
    }

    /// What stands between two batches.
    pub fn between(self) -> &'static str {
        match self {
            TextForm::Csv(_) | TextForm::Ndjson => "",
            // The comma stands before a batch, not after it: only then is nothing to be taken back at the end.
            TextForm::Json => ",\n",
        }
    }

    /// Appends a batch. `source` is its JSON text as the service sent it: the JSON formats keep it, and with it every
    /// field that a newer service may know.
    pub fn row(self, out: &mut String, batch: &Batch, source: &str) {
        match self {
            TextForm::Csv(style) => csv::push_row(out, batch, style),
            TextForm::Ndjson => {
                push_on_one_line(out, source);
                out.push('\n');
            }
            TextForm::Json => push_on_one_line(out, source),
        }
    }

    /// Appends what stands after the last batch.
    pub fn tail(self, out: &mut String) {
        match self {
            TextForm::Csv(_) | TextForm::Ndjson => {}
            TextForm::Json => out.push_str("]\n"),
        }
    }
}

/// Appends JSON as it is, if it stands on one line; else without the white space between its parts.
fn push_on_one_line(out: &mut String, json: &str) {
    // Strings hold line breaks only as escapes, so a bare one is always between parts.
    if memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_none() {
        return out.push_str(json);
    }
    let mut is_in_string = false;
    let mut is_escaped = false;
    for c in json.chars() {
        if is_in_string || !matches!(c, ' ' | '\t' | '\n' | '\r') {
            out.push(c);
        }
        if c == '"' && !is_escaped {
            is_in_string = !is_in_string;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{any_batch, bare, full, whole};
    use super::*;

    fn on_one_line(json: &str) -> String {
        let mut out = String::new();
        push_on_one_line(&mut out, json);
        out
    }

    #[test]
    fn ndjson_is_the_source_word_for_word() {
        let source = r#"{"batch_id" : "b",  "new_field":{"a":[1, 2.50e0]}}"#;
        let mut out = String::new();
        TextForm::Ndjson.row(&mut out, &full(), source);
        assert_eq!(out, format!("{source}\n"));
    }

    #[test]
    fn json_is_an_array_that_every_reader_takes() {
        let batches = [full(), bare("b-2"), bare("b-3")];
        let read = |count: usize| {
            let text = whole(TextForm::Json, &batches[..count]);
            (text.lines().count(), serde_json::from_str::<Vec<serde_json::Value>>(&text).unwrap().len())
        };
        assert_eq!(whole(TextForm::Json, &[]), "[]\n");
        assert_eq!(read(1), (1, 1));
        assert_eq!(read(3), (3, 3));
    }

    #[test]
    fn an_empty_pull_is_an_empty_file_of_lines() {
        assert_eq!(whole(TextForm::Ndjson, &[]), "");
    }

    #[test]
    fn what_spans_lines_is_brought_onto_one_and_strings_keep_their_blanks() {
        let pretty =
            "{\r\n\t\"a b\" : \"x \\\" y\\\\\" ,\n  \"c\": [ 1,\n null ],\n \"d\":\"\\n { } \\\\\\\" ,\"\n}";
        assert_eq!(on_one_line(pretty), r#"{"a b":"x \" y\\","c":[1,null],"d":"\n { } \\\" ,"}"#);
        assert_eq!(on_one_line("\n{ }"), "{}");
        assert_eq!(on_one_line("{ \"a\": 1 }"), "{ \"a\": 1 }");
    }

    proptest! {
        #[test]
        fn a_batch_printed_over_many_lines_is_on_one_line_the_same(batch in any_batch()) {
            let value: serde_json::Value = serde_json::from_str(&batch.to_json()).unwrap();
            let line = on_one_line(&serde_json::to_string_pretty(&value).unwrap());
            prop_assert_eq!(line, serde_json::to_string(&value).unwrap());
        }
    }
}
