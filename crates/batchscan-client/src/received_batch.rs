//! A batch as a service sent it. Knows nothing about HTTP.

use std::collections::BTreeMap;
use std::ops::Deref;

use batchscan_model::json_scan::JSON_WHITESPACE;
use batchscan_model::{Batch, Field, RawBatch};
use serde_json::Value;

use crate::Error;
use crate::error::clip;

/// A batch, and the fields of a newer service that this version does not know.
///
/// ```
/// use batchscan_client::ReceivedBatch;
///
/// let text = r#"{"batch_id":"b-1","batch_name":"Roma","batch_creation_date":"2026-01-31T08:00:00Z",
///     "number_of_images":12,"avg_germination_rate":"92.50","warnings":false,"tray_colour":"black"}"#;
/// let received = ReceivedBatch::from_json(text)?;
/// assert_eq!(received.avg_germination_rate.unwrap().to_string(), "92.50");
/// assert_eq!(received.unknown["tray_colour"], "black");
/// # Ok::<(), batchscan_client::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedBatch {
    /// The batch.
    pub batch: Batch,
    /// Fields that the API does not define, by name.
    pub unknown: BTreeMap<String, Value>,
}

impl ReceivedBatch {
    /// Parses the JSON text of a batch.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidBatch`] if the text is not a batch as the API defines it.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let text = text.trim_matches(JSON_WHITESPACE);
        match Self::parse_prefix(text)? {
            (received, length) if length == text.len() => Ok(received),
            _ => Err(Error::InvalidBatch("unexpected text after the batch".into())),
        }
    }

    /// Parses the batch at the start of a text, and returns its length.
    pub(crate) fn parse_prefix(text: &str) -> Result<(Self, usize), Error> {
        let mut raw = RawBatch::default();
        let (unknown, length) =
            raw.read_wire(text).map_err(|error| Error::InvalidBatch(clip(&error.to_string())))?;
        let batch = Batch::from_wire(&raw).map_err(|errors| match raw.get(Field::BatchId) {
            Some(id) => Error::InvalidBatch(format!("batch {id}: {errors}")),
            None => Error::InvalidBatch(errors.to_string()),
        })?;
        let value = |text| serde_json::from_str(text).unwrap_or(Value::Null);
        let unknown = unknown.into_iter().map(|(name, text)| (name, value(text))).collect();
        Ok((Self { batch, unknown }, length))
    }
}

impl Deref for ReceivedBatch {
    type Target = Batch;

    fn deref(&self) -> &Batch {
        &self.batch
    }
}
