//! ETags and `If-None-Match` (decision 031): a poller of unchanged data costs no read of batches.

use axum::http::{HeaderMap, HeaderValue, header};
use batchscan_model::{OrgId, UtcInstant};
use ring::digest::{SHA256, digest};

use super::request::BatchQuery;
use crate::store::DataVersion;

/// What an answer depends on besides the data: the version of the interface, the query, the page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct QueryMark([u8; 12]);

impl QueryMark {
    /// `version` is the interface's; `rows` its page size, 0 where there are no pages.
    pub(super) fn new(version: u8, org: OrgId, query: &BatchQuery, rows: usize) -> Self {
        let instant = |end: Option<UtcInstant>| end.map_or(i64::MIN, UtcInstant::micros).to_be_bytes();
        let mut text = vec![version];
        text.extend_from_slice(&org.0.to_be_bytes());
        text.extend_from_slice(&rows.to_be_bytes());
        text.extend_from_slice(&instant(query.range.start));
        text.extend_from_slice(&instant(query.range.end));
        if let Some(walk) = &query.walk {
            text.extend_from_slice(&walk.since.to_be_bytes());
            text.extend_from_slice(&walk.after.created.micros().to_be_bytes());
            text.extend_from_slice(walk.after.id.as_str().as_bytes());
        }
        let mut mark = [0u8; 12];
        mark.copy_from_slice(&digest(&SHA256, &text).as_ref()[..12]);
        Self(mark)
    }

    /// The ETag of the answer at a data version. Weak: it is the same for every encoding.
    pub(super) fn etag(self, version: DataVersion) -> String {
        let mut tag = format!("W/\"{:x}.{:x}.", version.number, version.mark);
        for byte in self.0 {
            tag.push(char::from(b"0123456789abcdef"[usize::from(byte >> 4)]));
            tag.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
        }
        tag.push('"');
        tag
    }
}

/// The ETags a client has already.
#[derive(Clone, Debug, Default)]
pub(super) struct Held(Vec<HeaderValue>);

impl Held {
    pub(super) fn new(headers: &HeaderMap) -> Self {
        Self(headers.get_all(header::IF_NONE_MATCH).iter().cloned().collect())
    }

    /// Whether the client holds the answer of that ETag. Weak comparison (RFC 9110 §13.1.2).
    pub(super) fn matches(&self, etag: &str) -> bool {
        let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let wanted = opaque(etag);
        let texts = self.0.iter().filter_map(|value| value.to_str().ok());
        texts.flat_map(|text| text.split(',')).any(|tag| tag.trim() == "*" || opaque(tag) == wanted)
    }
}
