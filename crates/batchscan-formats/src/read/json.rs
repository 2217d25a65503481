//! A JSON array of objects, or objects one after another. Streams: each element is parsed once its end is found.

use batchscan_model::json_scan::ValueScanner;

use super::collector::{Collector, Stop, problem, unexpected};
use super::json_syntax::{self, SyntaxErrorKind, excerpt};
use super::text_buffer::{RECORD_BYTES_MAX, TextBuffer};

/// Reads an array, or objects without one as `jq` prints them.
pub(super) fn read(text: &mut TextBuffer<'_>, collector: &mut Collector<'_>) -> Result<(), Stop> {
    text.skip_utf8_mark(collector)?;
    let found = match text.skip_whitespace()? {
        Some(b'[') => return read_array(text, collector),
        Some(b'{') => return read_objects(text, collector),
        Some(_) => excerpt(text.bytes()),
        None => "an empty file".into(),
    };
    Err(collector.fail(text.location(), unexpected(found, "a JSON array of batches")))
}

/// Reads an array up to the end of the file.
pub(super) fn read_array(text: &mut TextBuffer<'_>, collector: &mut Collector<'_>) -> Result<(), Stop> {
    text.consume(1);
    let mut is_closed = text.skip_whitespace()? == Some(b']');
    while !is_closed {
        read_element(text, collector)?;
        match text.skip_whitespace()? {
            Some(b']') => is_closed = true,
            Some(b',') => text.consume(1),
            Some(_) => return Err(fail(text, collector, "a comma or the closing ] of the array")),
            None => return Err(fail_at_end(text, collector, "the array")),
        }
    }
    text.consume(1);
    match text.skip_whitespace()? {
        None => Ok(()),
        Some(_) => Err(fail(text, collector, "nothing after the array")),
    }
}

/// Reads objects separated by whitespace, up to the end of the file.
fn read_objects(text: &mut TextBuffer<'_>, collector: &mut Collector<'_>) -> Result<(), Stop> {
    while let Some(byte) = text.skip_whitespace()? {
        if byte != b'{' {
            return Err(fail(text, collector, "a batch as a JSON object"));
        }
        read_element(text, collector)?;
    }
    Ok(())
}

fn read_element(text: &mut TextBuffer<'_>, collector: &mut Collector<'_>) -> Result<(), Stop> {
    if text.skip_whitespace()?.is_none() {
        return Err(fail_at_end(text, collector, "the array"));
    }
    let length = element_length(text, collector)?;
    if length == 0 {
        return Err(fail(text, collector, "a batch as a JSON object"));
    }
    match json_syntax::parse(&text.bytes()[..length]) {
        Ok(mut raw) => collector.add(text.location(), &mut raw)?,
        Err(error) => {
            let kind = error.kind;
            let (location, error) = error.locate(text);
            collector.add_error(location, error)?;
            // After a missing quote, strings and everything else are swapped: no later boundary can be trusted.
            if kind != SyntaxErrorKind::NotAnObject {
                return Err(Stop::Errors);
            }
        }
    }
    text.consume(length);
    Ok(())
}

/// The length of the next element. Fills the buffer until it contains all of it.
fn element_length(text: &mut TextBuffer<'_>, collector: &mut Collector<'_>) -> Result<usize, Stop> {
    let mut scanner = ValueScanner::default();
    loop {
        let length = scanner.find_end(text.bytes());
        if length.unwrap_or(text.bytes().len()) > RECORD_BYTES_MAX {
            let found = format!("more than {RECORD_BYTES_MAX} bytes; is a quote or bracket not closed?");
            return Err(collector.fail(text.location(), unexpected(found, "a shorter element")));
        }
        if let Some(length) = length {
            return Ok(length);
        }
        if !text.fill()? {
            return Err(fail_at_end(text, collector, "this element"));
        }
    }
}

fn fail(text: &TextBuffer<'_>, collector: &mut Collector<'_>, expected: &str) -> Stop {
    let found = format!("{} at column {}", excerpt(text.bytes()), text.column());
    collector.fail(text.location(), unexpected(found, expected))
}

fn fail_at_end(text: &TextBuffer<'_>, collector: &mut Collector<'_>, inside: &str) -> Stop {
    collector.fail(text.location(), problem(format!("unexpected end of file in {inside}")))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use crate::Format::Json;
    use crate::testing::{batches, errors, ids, read_all, small};
    use batchscan_model::field::example_json;

    #[test]
    fn arrays_and_plain_objects_are_read() {
        let full = example_json();
        assert_eq!(batches(Json, format!("[{full},{full}]")), [full.as_str(), &full]);
        let multi_line = small("b").replace(',', ",\n  ");
        for (file, expected) in [
            (format!("\u{FEFF} [\n {} ,\r\n{}\n]\n", small("a"), small("b")), vec!["a", "b"]),
            (" [ ] \n".into(), vec![]),
            (
                format!("{}\n{multi_line}\n\n{}{}", small("a"), small("c"), small("d")),
                vec!["a", "b", "c", "d"],
            ),
        ] {
            assert_eq!(ids(Json, file), expected);
        }
    }

    /// Decision 039.
    #[test]
    fn an_error_names_the_first_line_of_the_batch() {
        let wrong = small("b").replace(",", ",\n").replace(":1,", ":-1,");
        let expected = "line 4: number_of_images: expected a whole number from 0 to 9007199254740991, found -1\n\
            line 9: expected a batch as a JSON object, found 7";
        assert_eq!(errors(Json, format!("[\n{},\n\n{wrong},\n7]", small("a"))), expected);
    }

    #[test]
    fn syntax_errors_stop_the_reading() {
        let end = |inside| format!("line 1: unexpected end of file in {inside}");
        for (file, expected) in [
            ("", "line 1: expected a JSON array of batches, found an empty file"),
            ("\n \n", "line 3: expected a JSON array of batches, found an empty file"),
            ("7", "line 1: expected a JSON array of batches, found `7`"),
            ("[", &end("the array")),
            ("[@", &end("the array")),
            ("[@,", &end("the array")),
            ("[{", &end("this element")),
            ("{\"a", &end("this element")),
            ("[7", &end("this element")),
            ("[\"\\", &end("this element")),
            ("[@,]", "line 1: expected a batch as a JSON object, found `]` at column 123"),
            ("[,@]", "line 1: expected a batch as a JSON object, found `,{"),
            ("[@ @]", "line 1: expected a comma or the closing ] of the array, found `{"),
            ("[@]\n]", "line 2: expected nothing after the array, found `]` at column 1"),
            ("@,@", "line 1: expected a batch as a JSON object, found `,{"),
            (
                "[@,\n{\"a\": 1,\n  \"b\" 2},\n7]",
                "line 3: expected a colon after the field name, found `2}` at column 7",
            ),
        ] {
            let errors = errors(Json, file.replace('@', &small("a")));
            assert!(errors.starts_with(expected) && errors.lines().count() == 1, "{file}: {errors}");
        }
    }

    #[test]
    fn an_endless_element_is_rejected_before_it_fills_the_memory() {
        let endless = std::io::repeat(b'x').take(100 << 20);
        let error = read_all(Json, "[\n\"".as_bytes().chain(endless)).unwrap_err().to_string();
        assert!(
            error.starts_with("line 2: expected a shorter element, found more than 1048576 bytes"),
            "{error}"
        );
    }
}
