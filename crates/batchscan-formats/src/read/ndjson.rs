//! NDJSON: one JSON object a line. Blank lines are skipped and counted, the last line may lack its end.
//! A file that begins with `[` is read as the array it is.

use std::io;

use memchr::memchr;

use super::intake::{Halt, Intake, whole};
use super::syntax::{self, Nature};
use super::window::{Window, is_blank};
use super::{RECORD_BYTES_MAX, json};

/// Reads a file of lines.
pub(super) fn read(window: &mut Window<'_>, intake: &mut Intake<'_>) -> Result<(), Halt> {
    window.skip_mark(intake)?;
    if window.skip_blank()? == Some(b'[') {
        return json::array(window, intake);
    }
    let mut is_first = true;
    loop {
        match find_line(window)? {
            Line::None => return Ok(()),
            Line::Whole { length, end } => {
                is_first &= record(window, length, is_first, intake)?;
                window.consume_line(end);
            }
            Line::TooLong => {
                let found = format!("a line of more than {RECORD_BYTES_MAX} bytes");
                intake.fault(window.place(), whole(found, "one batch a line, far shorter"))?;
                skip_line(window)?;
            }
        }
    }
}

/// The line at which the window begins.
enum Line {
    /// It has this length, and with its line end that one.
    Whole { length: usize, end: usize },
    /// It is longer than a record may be, and is not held as a whole.
    TooLong,
    /// The file is at its end.
    None,
}

fn find_line(window: &mut Window<'_>) -> io::Result<Line> {
    let mut searched = 0;
    loop {
        let found = memchr(b'\n', &window.bytes()[searched..]).map(|at| searched + at);
        searched = window.bytes().len();
        match found {
            Some(length) if length <= RECORD_BYTES_MAX => return Ok(Line::Whole { length, end: length + 1 }),
            None if searched <= RECORD_BYTES_MAX => {}
            _ => return Ok(Line::TooLong),
        }
        if !window.more()? {
            return Ok(if searched == 0 {
                Line::None
            } else {
                Line::Whole { length: searched, end: searched }
            });
        }
    }
}

/// Takes in the line of that length. Whether it was blank.
fn record(window: &Window<'_>, length: usize, is_first: bool, intake: &mut Intake<'_>) -> Result<bool, Halt> {
    let line = &window.bytes()[..length];
    if line.iter().all(|byte| is_blank(*byte)) {
        return Ok(true);
    }
    match syntax::record(line) {
        Ok(record) => intake.record(window.place(), &record)?,
        // Every line of an object that is spread over lines would be a fault; the first one says it all.
        Err(misread) if is_first && misread.nature == Nature::Unfinished => {
            let expected = "one whole object a line; use --format json for objects over several lines";
            return Err(intake.broken(
                window.place(),
                "an object that goes on after its line".into(),
                expected,
            ));
        }
        Err(misread) => {
            let (place, fault) = misread.in_window(window);
            intake.fault(place, fault)?;
        }
    }
    Ok(false)
}

/// Lets go of the line, a window at a time.
fn skip_line(window: &mut Window<'_>) -> io::Result<()> {
    loop {
        if let Some(length) = memchr(b'\n', window.bytes()) {
            window.consume_line(length + 1);
            return Ok(());
        }
        window.consume(window.bytes().len());
        if !window.more()? {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::super::Format::Ndjson;
    use super::super::testing::{FULL, batches, faults, ids, read_all, small};

    #[test]
    fn a_line_is_a_batch() {
        assert_eq!(batches(Ndjson, format!("{FULL}\n{FULL}\n")), [FULL, FULL]);
    }

    #[test]
    fn blank_lines_windows_line_ends_a_mark_and_a_missing_last_line_end_are_fine() {
        let file = format!("\u{FEFF}\r\n{}\r\n  \n\n{}", small("a"), small("b"));
        assert_eq!(ids(Ndjson, file), ["a", "b"]);
        assert_eq!(ids(Ndjson, "\u{FEFF}"), [""; 0]);
        assert_eq!(ids(Ndjson, "\n \n"), [""; 0]);
    }

    #[test]
    fn an_array_is_read_as_what_it_is() {
        assert_eq!(ids(Ndjson, format!("\n[{},\n{}]", small("a"), small("b"))), ["a", "b"]);
    }

    /// Decision 039.
    #[test]
    fn a_fault_names_the_line_blank_ones_counted_and_the_field() {
        let wrong = small("b").replace(":1,", ":1,\"avg_germination_rate\":\"92,5\",\"coment\":null,");
        let told = faults(Ndjson, format!("{}\n\n\r\n{wrong}\n", small("a")));
        let expected = "line 4: coment: found an unknown field, expected a field of a batch; did you mean comment?\n\
            line 4: avg_germination_rate: found \"92,5\", expected a decimal number such as 92.50";
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_no_json_is_told_in_words_with_its_column_and_the_next_line_is_read() {
        let file = format!("{}\n{{\"a\": NaN}}\n{{\"b\":\n7\n{{}} {{}}\n{{'c':1}}\n", small("a"));
        let told = faults(Ndjson, file);
        let expected = "line 2: found `NaN}` at column 7, expected a JSON value: text in double quotes, a number, true, false or null\n\
            line 3: found the end of the line at column 6, expected the rest of the object\n\
            line 4: found 7, expected a batch as a JSON object\n\
            line 5: found `{}` at column 4, expected nothing more after the object\n\
            line 6: found `'c':1}` at column 2, expected a field's name in double quotes";
        assert_eq!(told, expected);
    }

    #[test]
    fn an_object_over_several_lines_is_one_fault() {
        let told = faults(Ndjson, "\n{\n  \"batch_id\": \"a\"\n}\n");
        assert!(told.starts_with("line 2: found an object that goes on after its line"), "{told}");
        assert_eq!(told.lines().count(), 1);
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_told_with_their_column() {
        let mut file = format!("{}\n", small("a")).into_bytes();
        file.extend(b"{\"batch_id\":\"\xE4\"}\n");
        let told = faults(Ndjson, file);
        assert!(
            told.starts_with("line 2: found the byte 0xE4, not UTF-8, at column 14, expected UTF-8"),
            "{told}"
        );
    }

    #[test]
    fn a_line_without_end_is_refused_without_being_held_and_the_next_is_read() {
        let endless = std::io::repeat(b'x').take(100 << 20);
        let stream = std::io::Cursor::new(small("a") + "\n").chain(endless).chain("\n{\n".as_bytes());
        let told = read_all(Ndjson, stream).unwrap_err().to_string();
        assert!(told.starts_with("line 2: found a line of more than 1048576 bytes"), "{told}");
        assert!(told.contains("\nline 3: found the end of the line"), "{told}");
    }
}
