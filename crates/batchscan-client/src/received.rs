//! A batch as it came over the wire. Knows nothing of HTTP.

use std::collections::BTreeMap;
use std::ops::Deref;

use batchscan_model::json_scan::JSON_WHITESPACE;
use batchscan_model::{Batch, RawBatch};
use serde_json::Value;

use crate::Error;
use crate::error::clipped;

/// A batch, and apart from it what a newer service says that this version does not know.
///
/// ```
/// use batchscan_client::Received;
///
/// let text = r#"{"batch_id":"b-1","batch_name":"Roma","batch_creation_date":"2026-01-31T08:00:00Z",
///     "number_of_images":12,"avg_germination_rate":"92.50","warnings":false,"tray_colour":"black"}"#;
/// let received = Received::from_json(text)?;
/// assert_eq!(received.avg_germination_rate.unwrap().to_string(), "92.50");
/// assert_eq!(received.unknown["tray_colour"], "black");
/// # Ok::<(), batchscan_client::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The batch.
    pub batch: Batch,
    /// Fields that the interface does not name, by their names.
    pub unknown: BTreeMap<String, Value>,
}

impl Received {
    /// Reads a batch's JSON text.
    ///
    /// # Errors
    ///
    /// [`Error::NotABatch`] when the text is not a batch as the interface has it.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let (received, length) = Self::first_of(text.trim_start_matches(JSON_WHITESPACE))?;
        match text.trim_start_matches(JSON_WHITESPACE)[length..].trim_matches(JSON_WHITESPACE) {
            "" => Ok(received),
            _ => Err(Error::NotABatch { why: "more after its end".into() }),
        }
    }

    /// Reads the batch that a text begins with, and tells where it ends.
    pub(crate) fn first_of(text: &str) -> Result<(Self, usize), Error> {
        let wrong = |why: String| Error::NotABatch { why };
        let mut record = RawBatch::default();
        let read = record.read_wire(text).map_err(|error| wrong(clipped(&error.to_string())));
        let (strangers, length) = read?;
        let batch = Batch::from_wire(&record).map_err(|faults| wrong(named(&record, &faults.to_string())))?;
        let value = |text| serde_json::from_str(text).unwrap_or(Value::Null);
        let mut unknown = BTreeMap::new();
        for (name, text) in strangers {
            unknown.insert(name, value(text));
        }
        Ok((Self { batch, unknown }, length))
    }
}

impl Deref for Received {
    type Target = Batch;

    fn deref(&self) -> &Batch {
        &self.batch
    }
}

/// The faults, after the id of the batch that has them.
fn named(record: &RawBatch<'_>, faults: &str) -> String {
    match record.get(batchscan_model::Field::BatchId) {
        Some(id) => format!("batch {id}: {faults}"),
        None => faults.to_owned(),
    }
}
