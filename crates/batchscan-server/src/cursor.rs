//! The content of a cursor of v2 (decision 022): the date range and where paging continues.

use batchscan_model::{BatchId, DateRange, Position, UtcInstant};
use batchscan_store::Resume;

use crate::cipher::Content;

/// First byte of the content, for future formats.
const FORMAT: u8 = 1;
/// Encodes an open end of the date range: no instant has this value.
const OPEN_END: i64 = i64::MIN;

/// The content of a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Where paging continues.
    pub resume: Resume,
    /// The date range of the first request.
    pub range: DateRange,
}

impl Content for Cursor {
    const NAME: &str = "cursor";

    fn encode(&self) -> Vec<u8> {
        let Cursor { resume, range } = self;
        let micros = |end: Option<UtcInstant>| end.map_or(OPEN_END, UtcInstant::micros);
        let numbers = [
            resume.first_version,
            resume.last_version,
            micros(range.start),
            micros(range.end),
            resume.after.created.micros(),
        ];
        let mut content = vec![FORMAT];
        content.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        content.extend_from_slice(resume.after.id.as_str().as_bytes());
        content
    }

    fn decode(content: &[u8]) -> Option<Self> {
        let (&FORMAT, rest) = content.split_first()? else { return None };
        let (numbers, id) = rest.split_at_checked(5 * size_of::<i64>())?;
        let numbers: [[u8; 8]; 5] = numbers.as_chunks().0.try_into().ok()?;
        let [first_version, last_version, start, end, created] = numbers.map(i64::from_be_bytes);
        let range = DateRange { start: range_end(start)?, end: range_end(end)? };
        let after = Position {
            created: UtcInstant::from_micros(created)?,
            id: BatchId::new(std::str::from_utf8(id).ok()?)?,
        };
        Some(Cursor { resume: Resume { after, first_version, last_version }, range })
    }
}

/// An open end (inner `None`), an instant, or invalid (outer `None`).
fn range_end(micros: i64) -> Option<Option<UtcInstant>> {
    if micros == OPEN_END { Some(None) } else { UtcInstant::from_micros(micros).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::Cipher;
    use batchscan_model::OrgId;
    use batchscan_store::{KeyPurpose, ServiceKey};
    use proptest::prelude::*;

    const ORG: OrgId = OrgId(1);

    fn cipher(byte: u8) -> Cipher<Cursor> {
        Cipher::new(&[ServiceKey {
            kid: "k".into(),
            purpose: KeyPurpose::Cursor,
            bytes: [byte; 32],
            created_at: UtcInstant::EPOCH,
        }])
    }

    fn cursor(id: &str) -> Cursor {
        let after = Position { created: UtcInstant::EPOCH, id: BatchId::new(id).unwrap() };
        Cursor { resume: Resume { after, first_version: 3, last_version: 4 }, range: DateRange::default() }
    }

    /// Decision 022: URL-safe without padding, under 512 bytes, the same on every node.
    #[test]
    fn the_longest_cursor_is_short_and_url_safe() {
        let text = cipher(1).encrypt(ORG, &cursor(&"ä".repeat(64))).unwrap();
        assert!(text.len() < 512, "{}", text.len());
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
        assert_eq!(cipher(1).encrypt(ORG, &cursor(&"ä".repeat(64))), Some(text));
    }

    /// Decisions 022, 023.
    #[test]
    fn a_cursor_of_another_organisation_or_key_is_invalid() {
        let text = cipher(1).encrypt(ORG, &cursor("a")).unwrap();
        assert_eq!(cipher(1).decrypt(ORG, &text), Some(cursor("a")));
        assert_eq!(cipher(1).decrypt(OrgId(2), &text), None);
        assert_eq!(cipher(2).decrypt(ORG, &text), None);
        assert!(!text.contains("YQ"), "the id is readable");
    }

    prop_compose! {
        fn any_cursor()(id in "[^\\p{Cc}]{1,32}", created in -1_000_000_000_000i64..1_000_000_000_000,
            first_version: i64, last_version: i64, start in proptest::option::of(0i64..1_000_000_000),
            end in proptest::option::of(0i64..1_000_000_000)) -> Cursor {
            let instant = |micros| UtcInstant::from_micros(micros).unwrap();
            let after = Position { created: instant(created), id: BatchId::new(id).unwrap() };
            let range = DateRange { start: start.map(instant), end: end.map(instant) };
            Cursor { resume: Resume { after, first_version, last_version }, range }
        }
    }

    proptest! {
        #[test]
        fn a_cursor_decrypts_to_itself(cursor in any_cursor(), org: i64) {
            let text = cipher(1).encrypt(OrgId(org), &cursor).unwrap();
            prop_assert_eq!(cipher(1).decrypt(OrgId(org), &text), Some(cursor));
        }

        #[test]
        fn a_modified_cursor_is_rejected(index in 0usize..100, to in "[A-Za-z0-9_-]") {
            let text = cipher(1).encrypt(ORG, &cursor("a")).unwrap();
            let mut modified: Vec<char> = text.chars().collect();
            let index = index % modified.len();
            modified[index] = to.chars().next().unwrap();
            let modified: String = modified.into_iter().collect();
            prop_assume!(modified != text);
            prop_assert_eq!(cipher(1).decrypt(ORG, &modified), None);
        }
    }
}
