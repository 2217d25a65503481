//! A page: the JSON text of some batches and the cursor of the next page. Knows nothing about HTTP.

use std::ops::Range;

use batchscan_model::json_scan::JSON_WHITESPACE;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Error, ReceivedBatch};

/// The start and end of an envelope without whitespace, as most services send it.
const COMPACT_HEAD: &str = "{\"data\":[";
const COMPACT_TAIL: &str = "],\"next_token\":";

/// Some batches, as the service sent them.
#[derive(Clone, Debug)]
pub struct Page {
    body: String,
    /// Where the batches are in the body, separated by commas.
    data: Range<usize>,
    next_token: Option<String>,
}

/// The envelope of v2. A missing `next_token` is an error: read as null it would end the pagination too early.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
    #[serde(deserialize_with = "Option::deserialize")]
    next_token: Option<String>,
}

impl Page {
    /// Parses an envelope of v2, but not the batches in it.
    pub(crate) fn from_envelope(body: String) -> Result<Self, serde_json::Error> {
        if let Some((data, next_token)) = parse_compact_envelope(&body) {
            return Ok(Self { body, data, next_token });
        }
        let Envelope { data, next_token } = serde_json::from_str(&body)?;
        let data = array_items(&body, data)?;
        Ok(Self { body, data, next_token })
    }

    /// The batches of any other envelope. `data` is where they are in the body, separated by commas.
    pub(crate) fn from_data(body: String, data: Range<usize>) -> Self {
        Self { body, data, next_token: None }
    }

    /// A part of the array of v1: batches separated by commas.
    pub(crate) fn from_array_part(body: String) -> Self {
        Self { data: 0..body.len(), body, next_token: None }
    }

    /// The batches, in the order of the service. Each is parsed when it is reached; nothing follows an error.
    pub fn batches(&self) -> impl Iterator<Item = Result<ReceivedBatch, Error>> {
        self.rows().map(|row| row.map(|(received, _)| received))
    }

    /// The JSON texts of the batches exactly as they were sent. Each is validated first.
    pub fn texts(&self) -> impl Iterator<Item = Result<&str, Error>> {
        self.rows().map(|row| row.map(|(_, text)| text))
    }

    /// Each batch together with its JSON text.
    pub fn rows(&self) -> impl Iterator<Item = Result<(ReceivedBatch, &str), Error>> {
        // None at the end and after an error.
        let mut unread = Some(self.data());
        std::iter::from_fn(move || {
            let text = unread.take().filter(|text| !text.is_empty())?;
            Some(split_row(text).map(|(row, rest)| {
                unread = rest;
                row
            }))
        })
    }

    /// Whether the page has no batches. More pages may follow.
    pub fn is_empty(&self) -> bool {
        self.data().is_empty()
    }

    /// The size in bytes.
    pub fn size(&self) -> usize {
        self.body.len()
    }

    /// The cursor of the next page; `None` on the last page, and always on v1 and in [`Changes`](crate::Changes).
    ///
    /// [`Client::pages_after`](crate::Client::pages_after) continues from it, also in another process.
    pub fn next_token(&self) -> Option<&str> {
        self.next_token.as_deref()
    }

    pub(crate) fn data(&self) -> &str {
        self.body[self.data.clone()].trim_start_matches(JSON_WHITESPACE)
    }
}

/// Where the items of an array are in the body that contains it.
pub(crate) fn array_items(body: &str, array: &RawValue) -> Result<Range<usize>, serde_json::Error> {
    let text = array.get();
    if !text.starts_with('[') {
        return Err(serde::de::Error::custom("data is not an array"));
    }
    let start = text.as_ptr() as usize - body.as_ptr() as usize;
    Ok(start + 1..start + text.len() - 1)
}

/// Parses the usual form of an envelope by its first and last bytes only, so that the next page can be requested at
/// once.
///
/// A text that ends in `],"next_token":"…"}` ends in that field: inside a string the quotes would be escaped. Without an
/// earlier `]`, this one closes `data` and no other array.
fn parse_compact_envelope(body: &str) -> Option<(Range<usize>, Option<String>)> {
    let text = body.trim_end_matches(JSON_WHITESPACE).strip_suffix('}')?;
    let (data, next_token) = text.strip_prefix(COMPACT_HEAD)?.rsplit_once(COMPACT_TAIL)?;
    let next_token = match next_token {
        "null" => None,
        quoted => {
            let token = quoted.strip_prefix('"')?.strip_suffix('"')?;
            let is_plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
            token.bytes().all(is_plain).then(|| Some(token.to_owned()))?
        }
    };
    let range = COMPACT_HEAD.len()..COMPACT_HEAD.len() + data.len();
    (!data.contains(']')).then_some((range, next_token))
}

/// The first of batches separated by commas with its text, and the text after the comma.
fn split_row(rows: &str) -> Result<((ReceivedBatch, &str), Option<&str>), Error> {
    let (received, length) = ReceivedBatch::parse_prefix(rows)?;
    let (text, after) = rows.split_at(length);
    let after = after.trim_start_matches(JSON_WHITESPACE);
    let rest = after.strip_prefix(',').map(|rest| rest.trim_start_matches(JSON_WHITESPACE));
    match rest {
        Some("") => Err(Error::InvalidBatch("nothing after a comma".into())),
        None if !after.is_empty() => Err(Error::InvalidBatch("missing comma between batches".into())),
        rest => Ok(((received, text), rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: &str = r#"{"batch_id":"b","batch_name":"n ],\"next_token\":\"x\"}","batch_creation_date":"2026-01-31T08:00:00Z","number_of_images":1,"warnings":true}"#;

    fn parse(body: &str) -> Result<(Vec<String>, Option<String>), String> {
        let page = Page::from_envelope(body.to_owned()).map_err(|error| error.to_string())?;
        let texts = page.texts().map(|text| text.map(str::to_owned).map_err(|error| error.to_string()));
        Ok((texts.collect::<Result<_, _>>()?, page.next_token().map(str::to_owned)))
    }

    #[test]
    fn envelopes_may_have_any_layout_and_unknown_fields() {
        let two = vec![BATCH.to_owned(), BATCH.to_owned()];
        for body in [
            format!(r#"{{"data":[{BATCH},{BATCH}],"next_token":"a-b_c"}}"#),
            format!("{{\"data\":[{BATCH},{BATCH}],\"next_token\":\"a-b_c\"}}\n"),
            format!(
                "{{\r\n \"data\" : [ {BATCH} ,\n\t {BATCH} ] , \"next_token\" : \"a-b_c\", \"ms\":1.5 }}\n"
            ),
            format!(r#"{{"next_token":"a-b_c","more":{{}},"data":[{BATCH},{BATCH}]}}"#),
            format!(r#"{{"data":[{BATCH},{BATCH}],"next_token":"a-b\u005fc"}}"#),
            format!(r#"{{"data":[{BATCH},{BATCH}],"links":[],"next_token":"a-b_c"}}"#),
            format!(r#"{{"data":[{BATCH},{BATCH}],"links":[{{"rel":"x"}}],"next_token":"a-b_c"}}"#),
        ] {
            assert_eq!(parse(&body), Ok((two.clone(), Some("a-b_c".into()))), "{body}");
        }
        for empty in ["[]", "[ ]", r#"[],"links":[{}]"#] {
            assert_eq!(parse(&format!(r#"{{"data":{empty},"next_token":null}}"#)), Ok((vec![], None)));
        }
    }

    #[test]
    fn a_truncated_envelope_is_detected_at_every_byte() {
        let body = format!(r#"{{"data":[{BATCH},{BATCH}],"next_token":"a"}}"#);
        for end in 0..body.len() {
            let truncated = Page::from_envelope(body[..end].to_owned());
            assert!(truncated.is_err_and(|error| error.is_eof()), "{end}");
        }
    }

    #[test]
    fn invalid_lists_of_batches_are_rejected() {
        let lists = ["{}{}", "1", ",", "B,", "B B", "B],[B"].map(|list| list.replace('B', BATCH));
        let bodies = lists.map(|list| format!(r#"{{"data":[{list}],"next_token":null}}"#));
        let others =
            [r#"{"data":[]}"#, r#"{"data":{},"next_token":null}"#, "[]", r#"{"data":[],"next_token":5}"#];
        for body in bodies.iter().map(String::as_str).chain(others) {
            assert!(parse(body).is_err(), "{body}");
        }
    }
}
