//! Ids and secrets as types, each with one constructor. A secret is never printed.

use std::fmt;

/// The store's number of an organisation. Never reused, never shown to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OrgId(pub i64);

/// The longest batch id (decision 036). Bounds keys, cursors and pages.
pub const BATCH_ID_BYTES_MAX: usize = 128;

/// A batch's identifier: not empty, at most 128 bytes, no control characters (decision 036).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BatchId(String);

impl BatchId {
    /// `None` if the text is not a valid id.
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

/// The longest client id that is accepted. Issued ones are far shorter.
const CLIENT_ID_BYTES_MAX: usize = 64;

/// A client's identifier of `[A-Za-z0-9_-]` (decision 004), so that it never needs escaping.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(String);

impl ClientId {
    /// `None` if the text is not a valid id.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let fits = !text.is_empty() && text.len() <= CLIENT_ID_BYTES_MAX;
        (fits && text.bytes().all(is_client_id_byte)).then_some(Self(text))
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

/// A client's secret. Has no `Display`, and `Debug` hides it.
#[derive(Clone)]
pub struct ClientSecret(String);

impl ClientSecret {
    /// Any text is valid: it is only compared.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret: to hash it, and to show it once when it is issued.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

fn is_client_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decision 036.
    #[test]
    fn a_batch_id_is_any_short_text_without_control_characters() {
        for (id, is_valid) in [
            ("tray 7/ä #3", true),
            (&"x".repeat(128), true),
            (&"x".repeat(129), false),
            ("", false),
            ("a\nb", false),
            ("a\u{0}b", false),
            ("a\u{85}b", false),
        ] {
            assert_eq!(BatchId::new(id).is_some(), is_valid, "{id:?}");
        }
    }

    /// Decision 004.
    #[test]
    fn a_client_id_needs_no_escaping() {
        for (id, is_valid) in [("bs_A-9", true), ("a b", false), ("a%20", false), ("", false)] {
            assert_eq!(ClientId::new(id).is_some(), is_valid, "{id:?}");
        }
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", ClientSecret::new("hush")), "[redacted]");
    }
}
