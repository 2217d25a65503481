//! A page: the bytes of some batches, and the cursor to the next. Knows nothing of HTTP.

use std::ops::Range;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Error, Received};

/// Some batches of a walk, as the service sent them.
#[derive(Clone, Debug)]
pub struct Page {
    body: Bytes,
    /// Where in the body each batch's text stands; each range is whole UTF-8 text.
    texts: Vec<Range<usize>>,
    next_token: Option<String>,
}

/// The envelope of v2. A missing `next_token` is an error: taken for null it would end a walk too early.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    data: Vec<&'a RawValue>,
    #[serde(deserialize_with = "Option::deserialize")]
    next_token: Option<String>,
}

impl Page {
    /// Reads an envelope of v2.
    pub(crate) fn from_envelope(body: Bytes) -> Result<Self, serde_json::Error> {
        let Envelope { data, next_token } = serde_json::from_slice(&body)?;
        let begin = body.as_ptr() as usize;
        let place = |raw: &RawValue| {
            let from = raw.get().as_ptr() as usize - begin;
            from..from + raw.get().len()
        };
        let texts = data.into_iter().map(place).collect();
        Ok(Self { body, texts, next_token })
    }

    /// Batches of v1, by their places in a piece of the array.
    pub(crate) fn of_array(body: Bytes, texts: Vec<Range<usize>>) -> Self {
        Self { body, texts, next_token: None }
    }

    /// The batches, in the order of the service. Each is read as it is asked for.
    pub fn batches(&self) -> impl Iterator<Item = Result<Received, Error>> {
        self.texts().map(Received::from_json)
    }

    /// The batches' JSON texts, byte for byte as they were sent.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        // Text by construction; anything else would be no batch to its reader either.
        self.texts.iter().map(|place| str::from_utf8(&self.body[place.clone()]).unwrap_or_default())
    }

    /// How many batches there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there are none. The walk may go on all the same.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The cursor to the next page; nothing on the last one, and always on v1.
    ///
    /// [`Client::pages_after`](crate::Client::pages_after) goes on from it, also in another process.
    pub fn next_token(&self) -> Option<&str> {
        self.next_token.as_deref()
    }
}
