//! Splits the array of v1 into batches while its bytes arrive. Does not parse the batches.

use std::sync::Arc;

use batchscan_model::json_scan::{ValueScanner, is_json_whitespace};
use reqwest::Response;
use url::Url;

use crate::response::read_chunk;
use crate::session::Session;
use crate::{Error, Page, Version};

/// Limit for one batch, and for whitespace between batches. A batch has about 700 bytes.
const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The array of v1 as a stream of pages.
pub(crate) struct ArrayStream {
    session: Arc<Session>,
    url: Url,
    splitter: ArraySplitter,
    state: State,
}

enum State {
    Start,
    Reading(Response),
    Ended,
}

impl ArrayStream {
    pub(crate) fn new(session: Arc<Session>, url: Url) -> Self {
        Self { session, url, splitter: ArraySplitter::default(), state: State::Start }
    }

    /// Reads the next batches: as many as arrive together. Returns the rest of the stream with them, or `None` at the end.
    pub(crate) async fn next_page(mut self) -> Result<Option<(Page, Self)>, Error> {
        let mut response = match self.state {
            State::Start => self.session.get(Version::V1, &self.url, None).await?,
            State::Reading(response) => response,
            State::Ended => return Ok(None),
        };
        self.state = State::Ended;
        while self.splitter.batches == 0 {
            match read_chunk(&mut response).await? {
                Some(chunk) => {
                    let pushed = self.splitter.push(&chunk);
                    pushed.map_err(|reason| Error::unexpected_response(&self.url, reason))?;
                }
                None if self.splitter.is_complete() => return Ok(Some((self.splitter.take_page(), self))),
                None => return Err(Error::connection_lost(&self.url, "the array was truncated")),
            }
        }
        self.state = State::Reading(response);
        Ok(Some((self.splitter.take_page(), self)))
    }
}

#[derive(Debug, Default)]
struct ArraySplitter {
    /// Starts with the first batch of the next page.
    buffer: Vec<u8>,
    /// How far the buffer has been scanned: to the start of the open batch, if there is one.
    scanned: usize,
    /// Scans the batch that is not complete yet.
    open: Option<ValueScanner>,
    /// The number of complete batches, and the end of the last.
    batches: usize,
    last_end: usize,
    section: Section,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Before,
    Inside,
    After,
}

impl ArraySplitter {
    /// Appends bytes. An error says what is wrong with them.
    fn push(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.buffer.extend_from_slice(bytes);
        while self.scanned < self.buffer.len() {
            let Some(scanner) = &mut self.open else {
                self.scan_between_batches()?;
                continue;
            };
            let Some(length) = scanner.find_end(&self.buffer[self.scanned..]) else { break };
            self.end_batch(self.scanned + length)?;
        }
        let pending_from = if self.open.is_some() { self.scanned } else { self.last_end };
        if self.buffer.len() - pending_from > BATCH_BYTES_MAX {
            return Err(format!("a batch larger than {} MiB", BATCH_BYTES_MAX >> 20));
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.section == Section::After
    }

    /// Removes the complete batches.
    fn take_page(&mut self) -> Page {
        let open = self.buffer.split_off(self.scanned);
        let mut page = std::mem::replace(&mut self.buffer, open);
        page.truncate(self.last_end);
        (self.scanned, self.batches, self.last_end) = (0, 0, 0);
        // Each batch was checked to be UTF-8; between them are only commas and whitespace.
        Page::from_array_part(String::from_utf8(page).unwrap_or_default())
    }

    fn scan_between_batches(&mut self) -> Result<(), String> {
        let byte = self.buffer[self.scanned];
        match (self.section, byte) {
            (Section::Inside, b',') => {}
            _ if is_json_whitespace(byte) => {}
            (Section::Before, b'[') => self.section = Section::Inside,
            (Section::Inside, b']') => self.section = Section::After,
            (Section::Inside, b'{') => {
                self.open = Some(ValueScanner::default());
                if self.batches == 0 {
                    self.buffer.drain(..self.scanned);
                    self.scanned = 0;
                }
                return Ok(());
            }
            _ => return Err(format!("not an array of batches: found {:?}", char::from(byte))),
        }
        self.scanned += 1;
        Ok(())
    }

    fn end_batch(&mut self, end: usize) -> Result<(), String> {
        str::from_utf8(&self.buffer[self.scanned..end]).map_err(|_| "a batch that is not UTF-8 text")?;
        (self.open, self.scanned, self.last_end) = (None, end, end);
        self.batches += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    /// The texts of the batches, which need not be valid.
    fn take_texts(splitter: &mut ArraySplitter) -> Vec<String> {
        let array = format!("[{}]", splitter.take_page().data());
        let texts: Vec<&RawValue> = serde_json::from_str(&array).unwrap();
        texts.into_iter().map(|text| text.get().to_owned()).collect()
    }

    fn split(bytes: &[u8], step: usize) -> Result<(Vec<String>, bool), String> {
        let (mut splitter, mut texts) = (ArraySplitter::default(), Vec::new());
        for chunk in bytes.chunks(step) {
            splitter.push(chunk)?;
            texts.extend(take_texts(&mut splitter));
        }
        Ok((texts, splitter.is_complete()))
    }

    #[test]
    fn batches_are_found_however_the_bytes_arrive() {
        let batches = [r#"{"a":"}]\"\\","b":[{"c":1}]}"#, "{}", "{\"ü\":\"é\\\\\"}"];
        let text = format!(" [ {} ,\n{}, {} ] \n", batches[0], batches[1], batches[2]);
        for step in 1..text.len() {
            assert_eq!(
                split(text.as_bytes(), step),
                Ok((batches.map(str::to_owned).to_vec(), true)),
                "{step}"
            );
        }
        assert_eq!(split(b"[]", 1), Ok((vec![], true)));
    }

    #[test]
    fn a_truncated_array_is_not_complete() {
        let text = br#"[{"a":1},{"b":2}]"#;
        for end in 0..text.len() {
            assert!(!split(&text[..end], 3).unwrap().1, "{end}");
        }
    }

    #[test]
    fn invalid_arrays_are_rejected() {
        for text in ["{}", "<html>", "[1]", "[{}]]", "[{}][", "[\"a\"]", "null"] {
            assert!(split(text.as_bytes(), 4).unwrap_err().starts_with("not an array of batches"), "{text}");
        }
        assert_eq!(split(b"[{\"a\":\"\xff\"}]", 99).unwrap_err(), "a batch that is not UTF-8 text");
    }

    #[test]
    fn an_array_that_never_completes_a_batch_is_rejected() {
        for endless in [" ", ",", "{\"a\":["] {
            let mut splitter = ArraySplitter::default();
            splitter.push(b"[{},").unwrap();
            let chunk = endless.repeat(1 << 20);
            let error = (0..17).find_map(|_| splitter.push(chunk.as_bytes()).err());
            assert_eq!(error.as_deref(), Some("a batch larger than 16 MiB"), "{endless}");
        }
    }
}
