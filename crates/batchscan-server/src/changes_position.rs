//! The content of `since` (decision 052): where a client is in the changes.

use batchscan_model::{BatchId, Position, UtcInstant};
use batchscan_store::{ChangeKey, ChangesPosition, DataVersion, SyncProgress};

use crate::cipher::Content;

// First byte of the content: what the client has.
const STATE: u8 = 1;
const CHANGES: u8 = 2;
const COMPLETE: u8 = 3;

impl Content for ChangesPosition {
    const NAME: &str = "changes";

    fn encode(&self) -> Vec<u8> {
        let (kind, version, created, id) = match &self.progress {
            SyncProgress::State { since, after } => {
                (STATE, *since, after.created.micros(), after.id.as_str())
            }
            SyncProgress::Changes(ChangeKey { version, created, id }) => {
                (CHANGES, *version, *created, id.as_str())
            }
            SyncProgress::Complete => (COMPLETE, 0, 0, ""),
        };
        let mut content = vec![kind];
        let numbers = [self.seen.number, self.seen.mark, version, created];
        content.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        content.extend_from_slice(id.as_bytes());
        content
    }

    fn decode(content: &[u8]) -> Option<Self> {
        let (kind, rest) = content.split_first()?;
        let (numbers, id) = rest.split_at_checked(4 * size_of::<i64>())?;
        let numbers: [[u8; 8]; 4] = numbers.as_chunks().0.try_into().ok()?;
        let [number, mark, version, created] = numbers.map(i64::from_be_bytes);
        let id = std::str::from_utf8(id).ok()?;
        let progress = match *kind {
            STATE => {
                let created = UtcInstant::from_micros(created)?;
                SyncProgress::State { since: version, after: Position { created, id: BatchId::new(id)? } }
            }
            CHANGES => SyncProgress::Changes(ChangeKey { version, created, id: id.to_owned() }),
            COMPLETE => SyncProgress::Complete,
            _ => return None,
        };
        Some(Self { seen: DataVersion { number, mark }, progress })
    }
}

#[cfg(test)]
mod tests {
    use batchscan_model::OrgId;
    use batchscan_store::{KeyPurpose, ServiceKey};

    use super::*;
    use crate::cipher::Cipher;

    #[test]
    fn every_position_decrypts_to_itself_for_its_organisation_only() {
        let key = ServiceKey {
            kid: "k".into(),
            purpose: KeyPurpose::Secret,
            bytes: [7; 32],
            created_at: UtcInstant::EPOCH,
        };
        let cipher = Cipher::new(&[key]);
        let after = Position { created: UtcInstant::EPOCH, id: BatchId::new("ä".repeat(64)).unwrap() };
        let removed = ChangeKey { version: 3, created: ChangeKey::REMOVED, id: "b".into() };
        for progress in
            [SyncProgress::State { since: 2, after }, SyncProgress::Changes(removed), SyncProgress::Complete]
        {
            let position = ChangesPosition { seen: DataVersion { number: 5, mark: -9 }, progress };
            let text = cipher.encrypt(OrgId(1), &position).unwrap();
            assert!(text.len() < 512, "{}", text.len());
            assert_eq!(cipher.decrypt(OrgId(1), &text), Some(position));
            assert_eq!(cipher.decrypt(OrgId(2), &text), None);
        }
    }
}
