//! NDJSON: one JSON object per line. Blank lines are skipped, the last line may lack its end. A file that begins with
//! `[` is read as a JSON array.

use std::io;

use batchscan_model::json_scan::is_json_whitespace;
use memchr::memchr;

use super::collector::{Collector, Stop, unexpected};
use super::json;
use super::json_syntax::{self, SyntaxErrorKind};
use super::text_buffer::{RECORD_BYTES_MAX, TextBuffer};

pub(super) fn read(text: &mut TextBuffer<'_>, collector: &mut Collector<'_>) -> Result<(), Stop> {
    text.skip_utf8_mark(collector)?;
    if text.skip_whitespace()? == Some(b'[') {
        return json::read_array(text, collector);
    }
    let mut is_first = true;
    loop {
        match find_line(text)? {
            Line::None => return Ok(()),
            Line::Complete { length, length_with_end } => {
                read_line(text, length, is_first, collector)?;
                is_first = false;
                text.consume_line(length_with_end);
            }
            Line::TooLong => {
                let found = format!("more than {RECORD_BYTES_MAX} bytes");
                collector.add_error(text.location(), unexpected(found, "one batch per line"))?;
                skip_line(text)?;
            }
        }
    }
}

/// The next line.
enum Line {
    Complete {
        length: usize,
        length_with_end: usize,
    },
    /// Longer than a record may be; not loaded completely.
    TooLong,
    /// The end of the file.
    None,
}

fn find_line(text: &mut TextBuffer<'_>) -> io::Result<Line> {
    let mut searched = 0;
    loop {
        let found = memchr(b'\n', &text.bytes()[searched..]).map(|at| searched + at);
        searched = text.bytes().len();
        match found {
            Some(length) if length <= RECORD_BYTES_MAX => {
                return Ok(Line::Complete { length, length_with_end: length + 1 });
            }
            None if searched <= RECORD_BYTES_MAX => {}
            _ => return Ok(Line::TooLong),
        }
        if !text.fill()? {
            let last = Line::Complete { length: searched, length_with_end: searched };
            return Ok(if searched == 0 { Line::None } else { last });
        }
    }
}

fn read_line(
    text: &TextBuffer<'_>,
    length: usize,
    is_first: bool,
    collector: &mut Collector<'_>,
) -> Result<(), Stop> {
    let line = &text.bytes()[..length];
    if line.iter().all(|byte| is_json_whitespace(*byte)) {
        return Ok(());
    }
    match json_syntax::parse(line) {
        Ok(mut raw) => collector.add(text.location(), &mut raw),
        // In a file of multi-line objects every line would be an error; one is enough.
        Err(error) if is_first && error.kind == SyntaxErrorKind::Incomplete => {
            let expected = "one object per line; use --format json for multi-line objects";
            Err(collector.fail(text.location(), unexpected("an object of several lines", expected)))
        }
        Err(error) => {
            let (location, error) = error.locate(text);
            collector.add_error(location, error)
        }
    }
}

/// Drops the rest of the line, a buffer at a time.
fn skip_line(text: &mut TextBuffer<'_>) -> io::Result<()> {
    loop {
        if let Some(length) = memchr(b'\n', text.bytes()) {
            text.consume_line(length + 1);
            return Ok(());
        }
        text.consume(text.bytes().len());
        if !text.fill()? {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use crate::Format::Ndjson;
    use crate::testing::{batches, errors, ids, read_all, small};
    use batchscan_model::field::example_json;

    #[test]
    fn lines_and_arrays_are_read() {
        let full = example_json();
        assert_eq!(batches(Ndjson, format!("{full}\n{full}\n")), [full.as_str(), &full]);
        let (a, b) = (small("a"), small("b"));
        for (file, expected) in [
            (format!("\u{FEFF}\r\n{a}\r\n  \n\n{b}"), vec!["a", "b"]),
            (format!("\n[{a},\n{b}]"), vec!["a", "b"]),
            ("\u{FEFF}".into(), vec![]),
            ("\n \n".into(), vec![]),
        ] {
            assert_eq!(ids(Ndjson, file), expected);
        }
    }

    /// Decision 039.
    #[test]
    fn an_error_names_its_line_field_and_column_and_the_next_line_is_read() {
        let wrong = small("b").replace(":1,", ":1,\"avg_germination_rate\":\"92,5\",\"coment\":null,");
        let file =
            format!("{}\n\n\r\n{wrong}\n{{\"a\": NaN}}\n{{\"b\":\n7\n{{}} {{}}\n{{'c':1}}\n", small("a"));
        let mut file = file.into_bytes();
        file.extend(b"{\"batch_id\":\"\xE4\"}\n");
        let expected = "line 4: coment: unknown field; did you mean comment?\n\
            line 4: avg_germination_rate: expected a decimal such as 92.5, found \"92,5\"\n\
            line 5: expected a JSON value: text in double quotes, a number, true, false or null, found `NaN}` at column 7\n\
            line 6: expected the rest of the object, found the end of the line at column 6\n\
            line 7: expected a batch as a JSON object, found 7\n\
            line 8: expected nothing after the object, found `{}` at column 4\n\
            line 9: expected a field name in double quotes, found `'c':1}` at column 2\n\
            line 10: expected UTF-8, found byte 0xE4 at column 14";
        assert_eq!(errors(Ndjson, file), expected);
    }

    #[test]
    fn a_file_of_multi_line_objects_is_one_error() {
        let expected = "line 2: expected one object per line; use --format json for multi-line objects, \
            found an object of several lines";
        assert_eq!(errors(Ndjson, "\n{\n  \"batch_id\": \"a\"\n}\n"), expected);
    }

    #[test]
    fn an_endless_line_is_rejected_before_it_fills_the_memory_and_the_next_is_read() {
        let endless = std::io::repeat(b'x').take(100 << 20);
        let stream = std::io::Cursor::new(small("a") + "\n").chain(endless).chain("\n{\n".as_bytes());
        let error = read_all(Ndjson, stream).unwrap_err().to_string();
        let expected = "line 2: expected one batch per line, found more than 1048576 bytes\n\
            line 3: expected the rest of the object, found the end of the line at column 2";
        assert_eq!(error, expected);
    }
}
