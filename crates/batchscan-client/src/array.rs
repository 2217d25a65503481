//! v1's one array, cut into batches as its bytes come. Looks at brackets and quotes alone; a batch is judged later.

use std::ops::Range;

use bytes::Bytes;

use crate::Page;

/// A batch is some 700 bytes and never more than a few times 64 KiB; what runs on longer is no batch.
const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

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
        match self.begun {
            Some(begun) if self.held.len() - begun > BATCH_BYTES_MAX => {
                Err("a batch that does not end".into())
            }
            _ => Ok(()),
        }
    }

    /// How many batches can be taken.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Takes the batches that are whole.
    pub(crate) fn take(&mut self) -> Page {
        let rest = self.held.split_off(self.begun.unwrap_or(self.held.len()));
        let whole = std::mem::replace(&mut self.held, rest);
        self.begun = self.begun.map(|_| 0);
        Page::of_array(Bytes::from(whole), std::mem::take(&mut self.texts))
    }

    /// Whether the array has been closed.
    pub(crate) fn is_whole(&self) -> bool {
        self.stage == Stage::After
    }

    fn look_at(&mut self, place: usize) -> Result<(), String> {
        let byte = self.held[place];
        match self.begun {
            Some(begun) => self.inside_batch(begun, place, byte),
            None => self.between_batches(place, byte)?,
        }
        Ok(())
    }

    fn inside_batch(&mut self, begun: usize, place: usize, byte: u8) {
        if self.in_text {
            match byte {
                _ if self.after_backslash => self.after_backslash = false,
                b'\\' => self.after_backslash = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => self.in_text = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth -= 1,
            _ => {}
        }
        if self.depth == 0 {
            self.texts.push(begun..place + 1);
            self.begun = None;
        }
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
            texts.extend(page.texts().map(str::to_owned));
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
    fn what_is_no_array_of_batches_is_refused() {
        for text in ["{}", "<html>", "[1]", "[{}]]", "[{}][", "[\"a\"]", "null"] {
            assert!(cut(text, 4).is_err(), "{text}");
        }
    }
}
