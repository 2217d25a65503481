//! v1's one array, cut into batches as its bytes come. Looks at brackets and quotes alone; a batch is judged later.

use std::ops::Range;

use crate::Page;

/// A batch is some 700 bytes and never more than a few times 64 KiB; what runs on longer is no batch, nor are
/// blanks without end.
const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Batches that are handed on together: by their number, or by their bytes where they are large.
const PIECE_BATCHES: usize = 1_000;
const PIECE_BYTES: usize = 4 * 1024 * 1024;

/// Cuts an array into pages.
#[derive(Debug, Default)]
pub(crate) struct ArrayCutter {
    /// Bytes of batches that are not given out yet.
    held: Vec<u8>,
    /// The whole batches among them.
    texts: Vec<Range<usize>>,
    /// Where the batch under way begins.
    begun: Option<usize>,
    depth: u32,
    in_text: bool,
    after_backslash: bool,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Before,
    Inside,
    After,
}

impl ArrayCutter {
    /// Takes more bytes; fails with what is wrong with them.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), String> {
        let begin = self.held.len();
        self.held.extend_from_slice(bytes);
        for place in begin..self.held.len() {
            self.look_at(place)?;
        }
        let judged = self.begun.unwrap_or_else(|| self.texts.last().map_or(0, |last| last.end));
        if self.held.len() - judged > BATCH_BYTES_MAX {
            return Err("a batch that does not end".into());
        }
        Ok(())
    }

    /// Whether there are batches enough to be taken.
    pub(crate) fn is_full(&self) -> bool {
        self.texts.len() >= PIECE_BATCHES || (!self.texts.is_empty() && self.held.len() >= PIECE_BYTES)
    }

    /// Takes the batches that are whole.
    pub(crate) fn take(&mut self) -> Page {
        let rest = self.held.split_off(self.begun.unwrap_or(self.held.len()));
        let mut whole = std::mem::replace(&mut self.held, rest);
        self.begun = self.begun.map(|_| 0);
        let texts = std::mem::take(&mut self.texts);
        whole.truncate(texts.last().map_or(0, |last| last.end));
        whole.drain(..texts.first().map_or(0, |first| first.start));
        // Each batch was found to be text, and between them there are commas and blanks.
        Page::of_array(String::from_utf8(whole).unwrap_or_default())
    }

    /// Whether the array has been closed.
    pub(crate) fn is_whole(&self) -> bool {
        self.stage == Stage::After
    }

    fn look_at(&mut self, place: usize) -> Result<(), String> {
        let byte = self.held[place];
        match self.begun {
            Some(begun) => self.inside_batch(begun, place, byte),
            None => self.between_batches(place, byte),
        }
    }

    fn inside_batch(&mut self, begun: usize, place: usize, byte: u8) -> Result<(), String> {
        if self.in_text {
            match byte {
                _ if self.after_backslash => self.after_backslash = false,
                b'\\' => self.after_backslash = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            return Ok(());
        }
        match byte {
            b'"' => self.in_text = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth -= 1,
            _ => {}
        }
        if self.depth == 0 {
            str::from_utf8(&self.held[begun..=place]).map_err(|_| "a batch that is not UTF-8 text")?;
            self.texts.push(begun..place + 1);
            self.begun = None;
        }
        Ok(())
    }

    fn between_batches(&mut self, place: usize, byte: u8) -> Result<(), String> {
        match (self.stage, byte) {
            (_, b' ' | b'\n' | b'\r' | b'\t') | (Stage::Inside, b',') => {}
            (Stage::Before, b'[') => self.stage = Stage::Inside,
            (Stage::Inside, b']') => self.stage = Stage::After,
            (Stage::Inside, b'{') => (self.begun, self.depth) = (Some(place), 1),
            _ => return Err(format!("no array of batches: found {:?}", char::from(byte))),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, step: usize) -> Result<(Vec<String>, bool), String> {
        let (mut cutter, mut texts) = (ArrayCutter::default(), Vec::new());
        for piece in text.as_bytes().chunks(step) {
            cutter.push(piece)?;
            let page = cutter.take();
            texts.extend(page.pieces());
        }
        Ok((texts, cutter.is_whole()))
    }

    #[test]
    fn batches_come_out_whole_wherever_the_bytes_are_cut() {
        let batches = [r#"{"a":"}]\"\\","b":[{"c":1}]}"#, "{}", "{\"ü\":\"é\\\\\"}"];
        let text = format!(" [ {} ,\n{}, {} ] \n", batches[0], batches[1], batches[2]);
        for step in 1..text.len() {
            assert_eq!(cut(&text, step), Ok((batches.map(str::to_owned).to_vec(), true)), "{step}");
        }
        assert_eq!(cut("[]", 1), Ok((vec![], true)));
    }

    #[test]
    fn an_array_that_breaks_off_is_not_whole() {
        let text = r#"[{"a":1},{"b":2}]"#;
        for end in 0..text.len() {
            assert!(!cut(&text[..end], 3).unwrap().1, "{end}");
        }
    }

    #[test]
    fn what_is_no_text_is_refused_and_not_given_out_as_an_empty_one() {
        let mut cutter = ArrayCutter::default();
        assert_eq!(cutter.push(b"[{\"a\":\"\xff\"}]").unwrap_err(), "a batch that is not UTF-8 text");
    }

    #[test]
    fn an_array_that_brings_no_batch_ends_somewhere() {
        for endless in [" ", ",", "{\"a\":["] {
            let mut cutter = ArrayCutter::default();
            cutter.push(b"[{},").unwrap();
            let piece = endless.repeat(1 << 20);
            let refused = (0..17).find_map(|_| cutter.push(piece.as_bytes()).err());
            assert_eq!(refused.as_deref(), Some("a batch that does not end"), "{endless}");
        }
    }

    #[test]
    fn large_batches_are_handed_on_before_they_fill_the_memory() {
        let mut cutter = ArrayCutter::default();
        cutter.push(b"[").unwrap();
        let batch = format!("{{\"comment\":\"{}\"}},", "x".repeat(1 << 20));
        let count = (1..).find(|_| {
            cutter.push(batch.as_bytes()).unwrap();
            cutter.is_full()
        });
        assert_eq!(count, Some(4));
        assert_eq!((cutter.take().pieces().len(), cutter.is_full()), (4, false));
    }

    #[test]
    fn what_is_no_array_of_batches_is_refused() {
        for text in ["{}", "<html>", "[1]", "[{}]]", "[{}][", "[\"a\"]", "null"] {
            assert!(cut(text, 4).is_err(), "{text}");
        }
    }
}
