//! Seals and opens the cursors of v2 (decision 022). Knows nothing of HTTP and keeps no state.
//!
//! A cursor holds the last batch that was given out, the window, and the data versions that the walk began with and
//! read last. It is encrypted and authenticated with ChaCha20-Poly1305, with the organisation as associated data: what
//! was issued to one organisation does not open for another. The nonce is a keyed hash of the content, so equal pages
//! have equal bytes on every node, and a nonce is never used for two contents.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use batchscan_model::{BatchId, DateRange, OrgId, Position, UtcInstant};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;

use batchscan_store::{ServiceKey, Walk};

/// Cursors stay below this (decision 022); a longer text is refused before any work is done on it.
const CURSOR_BYTES_MAX: usize = 512;
/// The form of the content. A later form gets the next number, and this one stays readable.
const FORM: u8 = 2;
/// The form before: it did not hold the version of the last page, only that of the walk's beginning.
const FORM_WITHOUT_SEEN: u8 = 1;
/// Stands for an open end of the window: no instant has this value.
const OPEN: i64 = i64::MIN;

/// What a cursor remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Where the walk goes on.
    pub walk: Walk,
    /// The window it was begun with.
    pub range: DateRange,
}

/// The keys that seal and open cursors.
pub struct Sealer {
    keys: Vec<SealingKey>,
}

struct SealingKey {
    aead: LessSafeKey,
    nonces: hmac::Key,
}

impl Sealer {
    /// From the cursor keys: the one that seals first, the others open.
    pub fn new(keys: &[ServiceKey]) -> Self {
        let sealing = |key: &ServiceKey| {
            // One stored key, two uses: each gets a key of its own, derived from it.
            let root = hmac::Key::new(hmac::HMAC_SHA256, &key.bytes);
            let sealing = hmac::sign(&root, b"batchscan cursor sealing");
            let nonces = hmac::sign(&root, b"batchscan cursor nonces");
            let aead = UnboundKey::new(&CHACHA20_POLY1305, sealing.as_ref()).ok()?;
            Some(SealingKey {
                aead: LessSafeKey::new(aead),
                nonces: hmac::Key::new(hmac::HMAC_SHA256, nonces.as_ref()),
            })
        };
        Self { keys: keys.iter().filter_map(sealing).collect() }
    }

    /// The cursor as text for a client of `org`.
    pub fn seal(&self, org: OrgId, cursor: &Cursor) -> Option<String> {
        let key = self.keys.first()?;
        let mut content = encode(cursor);
        let bound = org.0.to_be_bytes();
        let mut nonce = [0u8; NONCE_LEN];
        let digest = hmac::sign(&key.nonces, &[&bound, content.as_slice()].concat());
        nonce.copy_from_slice(&digest.as_ref()[..NONCE_LEN]);
        let sealed = Nonce::assume_unique_for_key(nonce);
        key.aead.seal_in_place_append_tag(sealed, Aad::from(bound), &mut content).ok()?;
        Some(URL_SAFE_NO_PAD.encode([nonce.as_slice(), &content].concat()))
    }

    /// What the text remembers, if it was sealed here for `org`.
    pub fn open(&self, org: OrgId, text: &str) -> Option<Cursor> {
        if text.len() >= CURSOR_BYTES_MAX {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce: [u8; NONCE_LEN] = nonce.try_into().ok()?;
        self.keys.iter().find_map(|key| {
            let mut content = sealed.to_vec();
            let bound = Aad::from(org.0.to_be_bytes());
            let opened =
                key.aead.open_in_place(Nonce::assume_unique_for_key(nonce), bound, &mut content).ok()?;
            decode(opened)
        })
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").field("keys", &self.keys.len()).finish()
    }
}

fn encode(cursor: &Cursor) -> Vec<u8> {
    let instant = |end: Option<UtcInstant>| end.map_or(OPEN, UtcInstant::micros).to_be_bytes();
    let mut content = vec![FORM];
    content.extend_from_slice(&cursor.walk.since.to_be_bytes());
    content.extend_from_slice(&cursor.walk.seen.to_be_bytes());
    content.extend_from_slice(&instant(cursor.range.start));
    content.extend_from_slice(&instant(cursor.range.end));
    content.extend_from_slice(&cursor.walk.after.created.micros().to_be_bytes());
    content.extend_from_slice(cursor.walk.after.id.as_str().as_bytes());
    content
}

fn decode(content: &[u8]) -> Option<Cursor> {
    let (form, rest) = content.split_first()?;
    let (since, rest) = take_i64(rest)?;
    let (seen, rest) = match *form {
        FORM => take_i64(rest)?,
        FORM_WITHOUT_SEEN => (since, rest),
        _ => return None,
    };
    let (start, rest) = take_i64(rest)?;
    let (end, rest) = take_i64(rest)?;
    let (created, id) = take_i64(rest)?;
    let range = DateRange { start: open_end(start)?, end: open_end(end)? };
    let after = Position {
        created: UtcInstant::from_micros(created)?,
        id: BatchId::new(std::str::from_utf8(id).ok()?)?,
    };
    Some(Cursor { walk: Walk { after, since, seen }, range })
}

/// An end of the window: open, an instant, or (outer `None`) neither.
fn open_end(micros: i64) -> Option<Option<UtcInstant>> {
    if micros == OPEN { Some(None) } else { UtcInstant::from_micros(micros).map(Some) }
}

fn take_i64(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<8>()?;
    Some((i64::from_be_bytes(*head), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use batchscan_store::KeyPurpose;
    use proptest::prelude::*;

    fn sealer(byte: u8) -> Sealer {
        Sealer::new(&[ServiceKey {
            kid: "k".into(),
            purpose: KeyPurpose::Cursor,
            bytes: [byte; 32],
            created_at: UtcInstant::EPOCH,
        }])
    }

    fn cursor(id: &str) -> Cursor {
        let after = Position { created: UtcInstant::EPOCH, id: BatchId::new(id).unwrap() };
        Cursor { walk: Walk { after, since: 3, seen: 4 }, range: DateRange::default() }
    }

    /// Decision 022: url-safe without padding, under 512 bytes, the same on every node.
    #[test]
    fn the_longest_cursor_is_short_and_url_safe() {
        let text = sealer(1).seal(OrgId(1), &cursor(&"ä".repeat(64))).unwrap();
        assert!(text.len() < 512, "{}", text.len());
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
        assert_eq!(sealer(1).seal(OrgId(1), &cursor(&"ä".repeat(64))), Some(text));
    }

    /// Decisions 022, 023.
    #[test]
    fn a_cursor_of_another_organisation_or_key_is_invalid() {
        let text = sealer(1).seal(OrgId(1), &cursor("a")).unwrap();
        assert_eq!(sealer(1).open(OrgId(1), &text), Some(cursor("a")));
        assert_eq!(sealer(1).open(OrgId(2), &text), None);
        assert_eq!(sealer(2).open(OrgId(1), &text), None);
        assert!(!text.contains("YQ"), "the id is not readable in it");
    }

    /// Clients hold cursors over an upgrade.
    #[test]
    fn a_cursor_of_the_form_before_still_opens() {
        let mut content = encode(&cursor("a"));
        content.drain(9..17);
        content[0] = FORM_WITHOUT_SEEN;
        let opened = decode(&content).unwrap();
        assert_eq!((opened.walk.since, opened.walk.seen), (3, 3));
        assert_eq!(opened.walk.after, cursor("a").walk.after);
    }

    prop_compose! {
        fn any_cursor()(id in "[^\\p{Cc}]{1,32}", created in -1_000_000_000_000i64..1_000_000_000_000, since: i64, seen: i64,
            start in proptest::option::of(0i64..1_000_000_000), end in proptest::option::of(0i64..1_000_000_000)) -> Cursor {
            let instant = |micros| UtcInstant::from_micros(micros).unwrap();
            let after = Position { created: instant(created), id: BatchId::new(id).unwrap() };
            Cursor { walk: Walk { after, since, seen }, range: DateRange { start: start.map(instant), end: end.map(instant) } }
        }
    }

    proptest! {
        #[test]
        fn what_is_sealed_opens_as_itself(cursor in any_cursor(), org: i64) {
            let text = sealer(1).seal(OrgId(org), &cursor).unwrap();
            prop_assert_eq!(sealer(1).open(OrgId(org), &text), Some(cursor));
        }

        #[test]
        fn a_cursor_changed_anywhere_is_refused(place in 0usize..100, to in "[A-Za-z0-9_-]") {
            let text = sealer(1).seal(OrgId(1), &cursor("a")).unwrap();
            let mut forged: Vec<char> = text.chars().collect();
            let place = place % forged.len();
            forged[place] = to.chars().next().unwrap();
            let forged: String = forged.into_iter().collect();
            prop_assume!(forged != text);
            prop_assert_eq!(sealer(1).open(OrgId(1), &forged), None);
        }

        #[test]
        fn no_text_makes_it_panic(text in "(?s).{0,80}|[A-Za-z0-9_-]{0,120}") {
            prop_assert_eq!(sealer(1).open(OrgId(1), &text), None);
        }
    }
}
