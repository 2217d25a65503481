//! ETags and `If-None-Match` (decision 031): polling unchanged data reads no batches.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use batchscan_formats::Format;
use batchscan_model::{BatchId, DateRange, OrgId, UtcInstant};
use batchscan_store::{DataVersion, Resume};
use ring::digest::{SHA256, digest};

use crate::hex;

/// First tag of the export formats.
const EXPORT_TAG: u8 = 100;

/// Identifies what a response depends on besides the data: API version, organisation, query and page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct QueryHash([u8; 12]);

impl QueryHash {
    pub(super) fn v1(org: OrgId, range: DateRange) -> Self {
        Self::new(1, org, range, None, 0)
    }

    pub(super) fn v2(org: OrgId, range: DateRange, resume: Option<&Resume>, page_rows: usize) -> Self {
        Self::new(2, org, range, resume, page_rows)
    }

    pub(super) fn batch(org: OrgId, id: &BatchId) -> Self {
        Self(short_hash(&[b"batch", &org.0.to_be_bytes()[..], id.as_str().as_bytes()].concat()))
    }

    /// A file of this format.
    pub(super) fn export(org: OrgId, range: DateRange, format: Format) -> Self {
        Self::new(EXPORT_TAG + format as u8, org, range, None, 0)
    }

    fn new(tag: u8, org: OrgId, range: DateRange, resume: Option<&Resume>, rows: usize) -> Self {
        let instant = |end: Option<UtcInstant>| end.map_or(i64::MIN, UtcInstant::micros).to_be_bytes();
        let mut text = Vec::with_capacity(64);
        text.push(tag);
        text.extend_from_slice(&org.0.to_be_bytes());
        text.extend_from_slice(&rows.to_be_bytes());
        text.extend_from_slice(&instant(range.start));
        text.extend_from_slice(&instant(range.end));
        if let Some(resume) = resume {
            text.extend_from_slice(&resume.first_version.to_be_bytes());
            text.extend_from_slice(&resume.after.created.micros().to_be_bytes());
            text.extend_from_slice(resume.after.id.as_str().as_bytes());
        }
        Self(short_hash(&text))
    }

    /// The ETag of the response at a data version. Weak, since it is the same for every encoding.
    pub(super) fn etag(self, version: DataVersion) -> String {
        let mut tag = String::with_capacity(64);
        tag.push_str("W/\"");
        for number in [version.number, version.mark] {
            hex::push_number(&mut tag, number.cast_unsigned());
            tag.push('.');
        }
        hex::push_bytes(&mut tag, &self.0);
        tag.push('"');
        tag
    }
}

/// The first bytes of SHA-256: enough to distinguish contents.
pub(super) fn short_hash(content: &[u8]) -> [u8; 12] {
    let mut hash = [0u8; 12];
    hash.copy_from_slice(&digest(&SHA256, content).as_ref()[..12]);
    hash
}

/// The ETags of responses that the client has.
#[derive(Clone, Debug, Default)]
pub(super) struct IfNoneMatch(Vec<HeaderValue>);

impl<S: Sync> FromRequestParts<S> for IfNoneMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::new(&parts.headers))
    }
}

impl IfNoneMatch {
    pub(super) fn new(headers: &HeaderMap) -> Self {
        Self(headers.get_all(header::IF_NONE_MATCH).iter().cloned().collect())
    }

    /// The number of the latest data version that the client has for this query; 0 if it has none.
    pub(super) fn latest_version(&self, query: QueryHash) -> i64 {
        if self.0.is_empty() {
            return 0;
        }
        let mut hash = String::new();
        hex::push_bytes(&mut hash, &query.0);
        let number = |tag: &str| {
            let opaque = opaque(tag).strip_prefix('"')?.strip_suffix('"')?;
            let (number, _) = opaque.strip_suffix(&*hash)?.split_once('.')?;
            i64::from_str_radix(number, 16).ok()
        };
        self.tags().filter_map(number).max().unwrap_or(0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the client has the response with this ETag. Weak comparison (RFC 9110 §13.1.2).
    pub(super) fn matches(&self, etag: &str) -> bool {
        self.tags().any(|tag| tag == "*" || opaque(tag) == opaque(etag))
    }

    fn tags(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(',')).map(str::trim)
    }
}

/// An ETag without the prefix of weak ones.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decision 041.
    #[test]
    fn the_latest_version_is_read_from_the_etags() {
        let (query, other) = (QueryHash([7; 12]), QueryHash([8; 12]));
        let tag = |query: QueryHash, number| query.etag(DataVersion { number, mark: -5 });
        let latest = |tags: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, HeaderValue::from_str(tags).unwrap());
            IfNoneMatch::new(&headers).latest_version(query)
        };
        assert_eq!(latest(&format!("{}, {}", tag(query, 3), tag(query, 17))), 17);
        assert_eq!(latest(&tag(other, 17)), 0, "of another query");
        let hash = "07".repeat(12);
        for number in [0, 0x1f, i64::MAX, -1] {
            assert_eq!(tag(query, number), format!("W/\"{number:x}.fffffffffffffffb.{hash}\""));
        }
        for unknown in ["*", "\"\"", "W/\"zz.1.\"", "junk"] {
            assert_eq!(latest(unknown), 0, "{unknown}");
        }
    }
}
