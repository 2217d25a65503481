//! ETags and `If-None-Match` (decision 031): a poller of unchanged data costs no read of batches.

use axum::http::{HeaderMap, HeaderValue, header};
use batchscan_model::{OrgId, UtcInstant};
use ring::digest::{SHA256, digest};

use super::request::BatchQuery;
use batchscan_store::DataVersion;

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
        self.write_hex(&mut tag);
        tag.push('"');
        tag
    }

    fn write_hex(self, text: &mut String) {
        for byte in self.0 {
            text.push(char::from(b"0123456789abcdef"[usize::from(byte >> 4)]));
            text.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
        }
    }
}

/// The ETags a client has already.
#[derive(Clone, Debug, Default)]
pub(super) struct Held(Vec<HeaderValue>);

impl Held {
    pub(super) fn new(headers: &HeaderMap) -> Self {
        Self(headers.get_all(header::IF_NONE_MATCH).iter().cloned().collect())
    }

    /// The number of the latest data version whose answer to this query the client holds; 0 if it holds none.
    pub(super) fn seen(&self, mark: QueryMark) -> i64 {
        if self.0.is_empty() {
            return 0;
        }
        let mut query = String::new();
        mark.write_hex(&mut query);
        let number = |tag: &str| {
            let opaque = tag.trim().trim_start_matches("W/").strip_prefix('"')?.strip_suffix('"')?;
            let (number, _) = opaque.strip_suffix(&*query)?.split_once('.')?;
            i64::from_str_radix(number, 16).ok()
        };
        self.tags().filter_map(number).max().unwrap_or(0)
    }

    fn tags(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','))
    }

    /// Whether the client holds the answer of that ETag. Weak comparison (RFC 9110 §13.1.2).
    pub(super) fn matches(&self, etag: &str) -> bool {
        let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let wanted = opaque(etag);
        self.tags().any(|tag| tag.trim() == "*" || opaque(tag) == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decision 041.
    #[test]
    fn what_a_client_has_seen_is_read_from_its_etags() {
        let (mark, other) = (QueryMark([7; 12]), QueryMark([8; 12]));
        let tag = |mark: QueryMark, number| mark.etag(DataVersion { number, mark: -5 });
        let held = |tags: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, HeaderValue::from_str(tags).unwrap());
            Held::new(&headers)
        };
        assert_eq!(held(&format!("{}, {}", tag(mark, 3), tag(mark, 17))).seen(mark), 17);
        assert_eq!(held(&tag(other, 17)).seen(mark), 0, "another query's says nothing of this one");
        for odd in ["*", "\"\"", "W/\"zz.1.\"", "junk"] {
            assert_eq!(held(odd).seen(mark), 0, "{odd}");
        }
    }
}
