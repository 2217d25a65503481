//! A JSON array of objects, or objects one after another, read as a stream: an element's end is found in the window
//! by its brackets and quotes, and only then is the element parsed.

use memchr::memchr2;

use super::RECORD_BYTES_MAX;
use super::intake::{Halt, Intake};
use super::syntax::{self, Nature, excerpt};
use super::window::{Window, is_blank};

/// Reads a file that holds an array, or objects without one as `jq` prints them.
pub(super) fn read(window: &mut Window<'_>, intake: &mut Intake<'_>) -> Result<(), Halt> {
    window.skip_mark(intake)?;
    match window.skip_blank()? {
        Some(b'[') => array(window, intake),
        Some(b'{') => objects(window, intake),
        Some(_) => Err(intake.broken(window.place(), excerpt(window.bytes()), "a JSON array of batches")),
        None => Err(intake.broken(window.place(), "an empty file".into(), "a JSON array of batches")),
    }
}

/// Reads the array at which the window begins, which is all that the file holds.
pub(super) fn array(window: &mut Window<'_>, intake: &mut Intake<'_>) -> Result<(), Halt> {
    window.consume(1);
    let mut closed = window.skip_blank()? == Some(b']');
    while !closed {
        element(window, intake)?;
        closed = match window.skip_blank()? {
            Some(b']') => true,
            Some(b',') => {
                window.consume(1);
                false
            }
            Some(_) => return Err(unexpected(window, intake, "a comma or the closing ] of the array")),
            None => return Err(ends_inside(window, intake, "the array")),
        };
    }
    window.consume(1);
    match window.skip_blank()? {
        None => Ok(()),
        Some(_) => Err(unexpected(window, intake, "nothing after the array")),
    }
}

/// Reads objects with nothing but white space between them, up to the end of the file.
fn objects(window: &mut Window<'_>, intake: &mut Intake<'_>) -> Result<(), Halt> {
    while let Some(byte) = window.skip_blank()? {
        if byte != b'{' {
            return Err(unexpected(window, intake, "the next batch as a JSON object"));
        }
        element(window, intake)?;
    }
    Ok(())
}

/// Takes in the next element, whatever it is.
fn element(window: &mut Window<'_>, intake: &mut Intake<'_>) -> Result<(), Halt> {
    if window.skip_blank()?.is_none() {
        return Err(ends_inside(window, intake, "the array"));
    }
    let length = element_length(window, intake)?;
    if length == 0 {
        return Err(unexpected(window, intake, "a batch as a JSON object"));
    }
    match syntax::record(&window.bytes()[..length]) {
        Ok(record) => intake.record(window.place(), &record)?,
        Err(misread) => {
            let nature = misread.nature;
            let (place, fault) = misread.in_window(window);
            intake.fault(place, fault)?;
            // A quote too few turns all that follows inside out: no boundary after it can be trusted.
            if nature != Nature::Foreign {
                return Err(Halt::Told);
            }
        }
    }
    window.consume(length);
    Ok(())
}

/// The length of the element at which the window begins, once the window holds all of it.
fn element_length(window: &mut Window<'_>, intake: &mut Intake<'_>) -> Result<usize, Halt> {
    let mut extent = Extent::default();
    loop {
        let length = extent.find_end(window.bytes());
        if length.unwrap_or(window.bytes().len()) > RECORD_BYTES_MAX {
            let found = format!("an element of more than {RECORD_BYTES_MAX} bytes");
            let expected = "a batch, far shorter; is a quote or a bracket not closed?";
            return Err(intake.broken(window.place(), found, expected));
        }
        if let Some(length) = length {
            return Ok(length);
        }
        if !window.more()? {
            return Err(ends_inside(window, intake, "the element that begins here"));
        }
    }
}

fn unexpected(window: &Window<'_>, intake: &mut Intake<'_>, expected: &str) -> Halt {
    let found = format!("{} at column {}", excerpt(window.bytes()), window.column());
    intake.broken(window.place(), found, expected)
}

fn ends_inside(window: &Window<'_>, intake: &mut Intake<'_>, what: &str) -> Halt {
    intake.broken(window.place(), format!("that the file ends inside {what}"), "the whole of it")
}

/// How far into an element the search for its end has come. It goes on where it stopped when the window grows.
#[derive(Default)]
struct Extent {
    at: usize,
    depth: usize,
    in_string: bool,
}

impl Extent {
    /// The element's length, if its end is among these bytes. No JSON is checked: brackets are counted, not matched.
    fn find_end(&mut self, bytes: &[u8]) -> Option<usize> {
        loop {
            if self.in_string {
                self.leave_string(bytes)?;
                if self.depth == 0 {
                    return Some(self.at);
                }
            }
            match *bytes.get(self.at)? {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 1 => self.depth -= 1,
                b'}' | b']' => return Some(self.at + self.depth),
                byte if self.depth == 0 && (byte == b',' || is_blank(byte)) => return Some(self.at),
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Goes on to the byte after the closing quote; `None` if that is not among these bytes.
    fn leave_string(&mut self, bytes: &[u8]) -> Option<()> {
        while let Some(skipped) = memchr2(b'"', b'\\', bytes.get(self.at..)?) {
            self.at += skipped;
            if bytes[self.at] == b'"' {
                self.at += 1;
                self.in_string = false;
                return Some(());
            }
            // A backslash and the byte it escapes. The escaped one may be still to come: `at` then points past the end.
            self.at += 2;
        }
        self.at = self.at.max(bytes.len());
        None
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::super::Format::Json;
    use super::super::testing::{FULL, batches, faults, ids, read_all, small};

    #[test]
    fn an_element_of_the_array_is_a_batch() {
        assert_eq!(batches(Json, format!("[{FULL},{FULL}]")), [FULL, FULL]);
        assert_eq!(ids(Json, format!("\u{FEFF} [\n {} ,\r\n{}\n]\n", small("a"), small("b"))), ["a", "b"]);
        assert_eq!(ids(Json, " [ ] \n"), [""; 0]);
    }

    #[test]
    fn objects_without_an_array_are_read_too() {
        let spread = small("b").replace(',', ",\n  ");
        assert_eq!(
            ids(Json, format!("{}\n{spread}\n\n{}{}", small("a"), small("c"), small("d"))),
            ["a", "b", "c", "d"]
        );
    }

    /// Decision 039.
    #[test]
    fn a_fault_names_the_line_in_which_the_batch_begins() {
        let wrong = small("b").replace(",", ",\n").replace(":1,", ":-1,");
        let told = faults(Json, format!("[\n{},\n\n{wrong},\n7]", small("a")));
        let expected = "line 4: number_of_images: found -1, expected a whole number that is not negative\n\
            line 9: found 7, expected a batch as a JSON object";
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_no_json_ends_the_reading_at_its_line_and_column() {
        let told = faults(Json, format!("[{},\n{{\"a\": 1,\n  \"b\" 2}},\n7]", small("a")));
        assert_eq!(
            told,
            "line 3: found `2}` at column 7, expected a colon between a field's name and its value"
        );
    }

    #[test]
    fn a_file_that_ends_too_soon_is_refused() {
        let told = |text: &str| faults(Json, text);
        assert_eq!(told(""), "line 1: found an empty file, expected a JSON array of batches");
        assert_eq!(told("\n \n"), "line 3: found an empty file, expected a JSON array of batches");
        for text in ["[", "[\n", &format!("[{}", small("a")), &format!("[{},", small("a"))] {
            assert!(told(text).contains("found that the file ends inside the array"), "{text}");
        }
        for text in ["[{", "{\"a", "[7", "[\"\\"] {
            assert!(
                told(text).contains("found that the file ends inside the element that begins here"),
                "{text}"
            );
        }
    }

    #[test]
    fn what_stands_between_or_after_the_elements_is_refused() {
        let told = |text: &str| faults(Json, text.replace('@', &small("a")));
        assert_eq!(told("[@,]"), "line 1: found `]` at column 123, expected a batch as a JSON object");
        assert_eq!(told("[,@]").lines().count(), 1);
        assert!(told("[@ @]").ends_with("expected a comma or the closing ] of the array"));
        assert!(
            told("[@]\n]").starts_with("line 2: found `]` at column 1, expected nothing after the array")
        );
        assert!(told("@,@").ends_with("expected the next batch as a JSON object"));
        assert!(told("7").ends_with("expected a JSON array of batches"));
    }

    #[test]
    fn an_element_without_end_is_refused_without_being_held() {
        let endless = std::io::repeat(b'x').take(100 << 20);
        let told = read_all(Json, "[\n\"".as_bytes().chain(endless)).unwrap_err().to_string();
        assert!(told.starts_with("line 2: found an element of more than 1048576 bytes"), "{told}");
    }
}
