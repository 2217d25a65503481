//! Ids and secrets as types. Each is made through one fallible door; a secret is never printed.

use std::fmt;

/// An organisation, by the number its store gave it. Never reused, never shown to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OrgId(pub i64);

/// The longest batch id, in bytes (decision 036). It bounds keys, cursors and pages.
pub const BATCH_ID_BYTES_MAX: usize = 128;

/// A batch's identifier: not empty, at most 128 bytes, no control characters (decision 036).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BatchId(String);

impl BatchId {
    /// The only door.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let fits = !text.is_empty() && text.len() <= BATCH_ID_BYTES_MAX;
        (fits && !text.chars().any(char::is_control)).then_some(Self(text))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The longest client id accepted. Ours are far shorter.
const CLIENT_ID_BYTES_MAX: usize = 64;

/// A client's identifier, from `[A-Za-z0-9_-]` (decision 004): it needs no escaping anywhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(String);

impl ClientId {
    /// The only door.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let fits = !text.is_empty() && text.len() <= CLIENT_ID_BYTES_MAX;
        (fits && text.bytes().all(is_issued)).then_some(Self(text))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A client's secret, as sent or as issued. It has no `Display`, and `Debug` hides it.
#[derive(Clone)]
pub struct ClientSecret(String);

impl ClientSecret {
    /// Takes any text: what a client sends is compared, not judged.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself: for hashing it, and for showing it once to the person it is issued to.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

fn is_issued(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decision 036.
    #[test]
    fn a_batch_id_is_any_short_text_without_control_characters() {
        assert!(BatchId::new("tray 7/ä #3").is_some());
        assert!(BatchId::new("x".repeat(128)).is_some());
        for bad in [String::new(), "x".repeat(129), "a\nb".into(), "a\u{0}b".into(), "a\u{85}b".into()] {
            assert!(BatchId::new(bad).is_none());
        }
    }

    /// Decision 004.
    #[test]
    fn a_client_id_needs_no_escaping() {
        assert!(ClientId::new("bs_A-9").is_some());
        assert!(ClientId::new("a b").is_none());
        assert!(ClientId::new("a%20").is_none());
        assert!(ClientId::new("").is_none());
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", ClientSecret::new("hush")), "[redacted]");
    }
}
