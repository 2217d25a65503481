//! Changes since a position. Knows nothing about HTTP.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Page;
use crate::page::array_items;

/// The longest time that a service waits for a change. Below the timeout of common proxies, 50 or 60 s.
pub const WAIT_MAX: Duration = Duration::from_secs(45);

/// What changed, as the service sent it. An id occurs once.
#[derive(Clone, Debug)]
pub struct Changes {
    /// The batches that are new or changed.
    pub batches: Page,
    /// The ids of batches that were removed.
    pub removed: Vec<String>,
    /// The position after these changes.
    pub since: String,
    /// Whether more changes follow now.
    pub more: bool,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
    removed: Vec<String>,
    since: String,
    more: bool,
}

impl Changes {
    /// Parses an envelope, but not the batches in it.
    pub(crate) fn from_envelope(body: String) -> Result<Self, serde_json::Error> {
        let Envelope { data, removed, since, more } = serde_json::from_str(&body)?;
        let data = array_items(&body, data)?;
        Ok(Self { batches: Page::from_data(body, data), removed, since, more })
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.removed.is_empty()
    }
}
