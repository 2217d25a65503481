//! What the writers of complete files take and return.

use std::error::Error;
use std::io;

use batchscan_model::{Batch, BatchId, Field};
use parquet::errors::ParquetError;
use rust_xlsxwriter::XlsxError;

/// The longest text of a cell in UTF-16 units: a limit of Excel.
pub const CELL_UNITS_MAX: usize = 32_767;

/// Any error of the source of the batches.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// All batches of a file, in order. Reading them can fail.
pub type Batches<'a> = dyn Iterator<Item = Result<Batch, BoxError>> + 'a;

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The source of the batches failed.
    #[error(transparent)]
    Source(BoxError),
    /// Writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The Parquet library failed.
    #[error("cannot write the Parquet file: {0}")]
    Parquet(#[from] ParquetError),
    /// The Excel library failed.
    #[error("cannot write the workbook: {0}")]
    Xlsx(#[from] XlsxError),
    /// The Excel library cannot write its temporary file.
    #[error("cannot write the workbook's temporary file: {0}")]
    TempFile(String),
}

/// The texts that were longer than the format allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutTexts {
    /// Their number.
    pub count: u64,
    /// The first one.
    pub first: Option<(BatchId, Field)>,
}

impl CutTexts {
    /// A sentence for the user; `None` if no text was cut.
    pub fn message(&self) -> Option<String> {
        let (id, field) = self.first.as_ref()?;
        let (texts, first) = if self.count == 1 { ("text was", "") } else { ("texts were", "first ") };
        Some(format!(
            "{} {texts} cut after {CELL_UNITS_MAX} characters, the limit of a cell in Excel: {first}{field} of batch \
             {:?}; other formats have no limit",
            self.count,
            id.as_str()
        ))
    }

    pub(super) fn add(&mut self, id: &BatchId, field: Field) {
        self.count += 1;
        self.first.get_or_insert_with(|| (id.clone(), field));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_counts_the_texts_and_names_the_first() {
        let mut cut = CutTexts::default();
        assert_eq!(cut.message(), None);
        for (field, message) in [
            (
                Field::Comment,
                "1 text was cut after 32767 characters, the limit of a cell in Excel: comment of batch \"b\";",
            ),
            (
                Field::BatchName,
                "2 texts were cut after 32767 characters, the limit of a cell in Excel: first comment of batch",
            ),
        ] {
            cut.add(&BatchId::new("b").unwrap(), field);
            assert!(cut.message().unwrap().starts_with(message), "{cut:?}");
        }
    }
}
