//! A page: the text of some batches, and the cursor to the next. Knows nothing of HTTP.

use std::ops::Range;

use batchscan_model::json_scan::JSON_WHITESPACE;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Error, Received};

/// How an envelope begins and ends, as most services print it.
const USUAL_HEAD: &str = "{\"data\":[";
const USUAL_TAIL: &str = "],\"next_token\":";
/// How far from the end of an envelope its tail is looked for: cursors are some hundred bytes.
const TAIL_BYTES_MAX: usize = 8 * 1024;

/// Some batches of a walk, as the service sent them.
#[derive(Clone, Debug)]
pub struct Page {
    body: String,
    /// Where in the body the batches stand, with commas between them.
    data: Range<usize>,
    next_token: Option<String>,
}

/// The envelope of v2. A missing `next_token` is an error: taken for null it would end a walk too early.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
    #[serde(deserialize_with = "Option::deserialize")]
    next_token: Option<String>,
}

impl Page {
    /// Reads an envelope of v2. The batches in it are judged when they are asked for.
    pub(crate) fn from_envelope(body: String) -> Result<Self, serde_json::Error> {
        if let Some((data, next_token)) = usual(&body) {
            return Ok(Self { body, data, next_token });
        }
        let Envelope { data, next_token } = serde_json::from_str(&body)?;
        if !data.get().starts_with('[') {
            return Err(serde::de::Error::custom("data is not an array"));
        }
        let begin = data.get().as_ptr() as usize - body.as_ptr() as usize;
        let data = begin + 1..begin + data.get().len() - 1;
        Ok(Self { body, data, next_token })
    }

    /// Batches of v1: a piece of the array, with commas between them.
    pub(crate) fn of_array(body: String) -> Self {
        Self { data: 0..body.len(), body, next_token: None }
    }

    /// The batches, in the order of the service. Each is read as it is asked for; nothing comes after an error.
    pub fn batches(&self) -> impl Iterator<Item = Result<Received, Error>> {
        self.rows().map(|row| row.map(|(received, _)| received))
    }

    /// The batches' JSON texts, byte for byte as they were sent, each found to be a batch.
    pub fn texts(&self) -> impl Iterator<Item = Result<&str, Error>> {
        self.rows().map(|row| row.map(|(_, text)| text))
    }

    /// Each batch with its JSON text.
    pub fn rows(&self) -> impl Iterator<Item = Result<(Received, &str), Error>> {
        Rows { rest: Some(self.body[self.data.clone()].trim_start_matches(JSON_WHITESPACE)) }
    }

    /// The texts, whatever they hold.
    #[cfg(test)]
    pub(crate) fn pieces(&self) -> Vec<String> {
        let all = format!("[{}]", &self.body[self.data.clone()]);
        let texts: Vec<&RawValue> = serde_json::from_str(&all).unwrap();
        texts.into_iter().map(|text| text.get().to_owned()).collect()
    }

    /// Whether there are none. The walk may go on all the same.
    pub fn is_empty(&self) -> bool {
        self.body[self.data.clone()].trim_start_matches(JSON_WHITESPACE).is_empty()
    }

    /// How many bytes it has.
    pub fn size(&self) -> usize {
        self.body.len()
    }

    /// The cursor to the next page; nothing on the last one, and always on v1.
    ///
    /// [`Client::pages_after`](crate::Client::pages_after) goes on from it, also in another process.
    pub fn next_token(&self) -> Option<&str> {
        self.next_token.as_deref()
    }
}

/// An envelope of the usual form: where its batches are, and its cursor. Nothing is read but head and tail, so that the
/// next page can be asked for at once.
///
/// A text that ends in `],"next_token":"…"}` ends in that member: a quote inside a text would have a backslash before it.
/// And where no bracket closes before, it is the batches' own that closes there, not that of some other member.
fn usual(body: &str) -> Option<(Range<usize>, Option<String>)> {
    let text = body.trim_end_matches(JSON_WHITESPACE);
    text.strip_prefix(USUAL_HEAD)?;
    let end = text.strip_suffix('}')?.len();
    let from = memchr::memmem::rfind(
        &text.as_bytes()[end.saturating_sub(TAIL_BYTES_MAX)..end],
        USUAL_TAIL.as_bytes(),
    )?;
    let closing = end.saturating_sub(TAIL_BYTES_MAX) + from;
    let next_token = match &text[closing + USUAL_TAIL.len()..end] {
        "null" => None,
        quoted => {
            let token = quoted.strip_prefix('"')?.strip_suffix('"')?;
            let is_plain = |byte: u8| (byte >= 0x20) & (byte != b'"') & (byte != b'\\');
            token.bytes().all(is_plain).then(|| Some(token.to_owned()))?
        }
    };
    let data = text.as_bytes().get(USUAL_HEAD.len()..closing)?;
    memchr::memchr(b']', data).is_none().then_some((USUAL_HEAD.len()..closing, next_token))
}

/// Batches with commas between them, and no more.
struct Rows<'a> {
    /// What is still to be read; nothing after an error.
    rest: Option<&'a str>,
}

impl<'a> Iterator for Rows<'a> {
    type Item = Result<(Received, &'a str), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take().filter(|rest| !rest.is_empty())?;
        Some(self.read(rest))
    }
}

impl<'a> Rows<'a> {
    fn read(&mut self, rest: &'a str) -> Result<(Received, &'a str), Error> {
        let (received, length) = Received::first_of(rest)?;
        let (text, after) = rest.split_at(length);
        let after = after.trim_start_matches(JSON_WHITESPACE);
        self.rest = match after.strip_prefix(',').map(|rest| rest.trim_start_matches(JSON_WHITESPACE)) {
            Some("") => return Err(Error::NotABatch { why: "nothing after a comma".into() }),
            Some(next) => Some(next),
            None if after.is_empty() => None,
            None => return Err(Error::NotABatch { why: "no comma between two batches".into() }),
        };
        Ok((received, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: &str = r#"{"batch_id":"b","batch_name":"n ],\"next_token\":\"x\"}","batch_creation_date":"2026-01-31T08:00:00Z","number_of_images":1,"warnings":true}"#;

    fn read(body: &str) -> Result<(Vec<String>, Option<String>), String> {
        let page = Page::from_envelope(body.to_owned()).map_err(|error| error.to_string())?;
        let texts = page.texts().map(|text| text.map(str::to_owned).map_err(|error| error.to_string()));
        Ok((texts.collect::<Result<_, _>>()?, page.next_token().map(str::to_owned)))
    }

    #[test]
    fn an_envelope_is_read_in_whatever_form_it_comes() {
        let two = vec![BATCH.to_owned(), BATCH.to_owned()];
        for body in [
            format!(r#"{{"data":[{BATCH},{BATCH}],"next_token":"a-b_c"}}"#),
            format!("{{\"data\":[{BATCH},{BATCH}],\"next_token\":\"a-b_c\"}}\n"),
            format!("{{ \"data\" : [ {BATCH} ,\n {BATCH} ] , \"next_token\" : \"a-b_c\" }}"),
            format!(r#"{{"next_token":"a-b_c","more":{{}},"data":[{BATCH},{BATCH}]}}"#),
            format!(r#"{{"data":[{BATCH},{BATCH}],"next_token":"a-b\u005fc"}}"#),
            format!(r#"{{"data":[{BATCH},{BATCH}],"links":[],"next_token":"a-b_c"}}"#),
            format!(r#"{{"data":[{BATCH},{BATCH}],"links":[{{"rel":"x"}}],"next_token":"a-b_c"}}"#),
        ] {
            assert_eq!(read(&body), Ok((two.clone(), Some("a-b_c".into()))), "{body}");
        }
        assert_eq!(read(r#"{"data":[],"next_token":null}"#), Ok((vec![], None)));
        assert_eq!(read(r#"{"data":[ ],"next_token":null}"#), Ok((vec![], None)));
        assert_eq!(read(r#"{"data":[],"links":[{}],"next_token":null}"#), Ok((vec![], None)));
    }

    #[test]
    fn an_envelope_that_is_cut_anywhere_is_none() {
        let body = format!(r#"{{"data":[{BATCH},{BATCH}],"next_token":"a"}}"#);
        for end in 0..body.len() {
            let cut = Page::from_envelope(body[..end].to_owned());
            assert!(cut.is_err_and(|error| error.is_eof()), "{end}");
        }
    }

    #[test]
    fn what_is_no_list_of_batches_is_refused() {
        for data in [
            "{}{}",
            "1",
            ",",
            &format!("{BATCH},"),
            &format!("{BATCH} {BATCH}"),
            &format!("{BATCH}],[{BATCH}"),
        ] {
            let told = read(&format!(r#"{{"data":[{data}],"next_token":null}}"#)).unwrap_err();
            assert!(!told.is_empty(), "{data}");
        }
        for body in
            [r#"{"data":[]}"#, r#"{"data":{},"next_token":null}"#, "[]", r#"{"data":[],"next_token":5}"#]
        {
            assert!(read(body).is_err(), "{body}");
        }
    }
}
