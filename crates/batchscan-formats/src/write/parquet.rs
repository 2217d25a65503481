//! Parquet: typed columns, so that decimals, instants and nulls need no guessing. Written a row group at a time, and
//! the same batches always give the same bytes.

use std::fs::File;
use std::sync::Arc;

use batchscan_model::{Batch, Field};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, TypePtr};

use super::cells::{Cell, Kind, cells, kind};
use super::{Batches, Remarks};

/// How many rows a group has: enough for columns to compress and to be skipped, few enough to be held.
const GROUP_ROWS_MAX: usize = 65_536;

/// How many bytes of text a group has at most. It bounds the memory, however long the comments are.
const GROUP_TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Fields whose values seldom repeat: a dictionary would be built in vain.
const UNREPEATED: [Field; 4] =
    [Field::BatchId, Field::BatchName, Field::BatchCreationDate, Field::AnalysisLink];

/// Writes all batches.
pub fn write(batches: &mut Batches<'_>, file: File) -> anyhow::Result<Remarks> {
    let mut writer = SerializedFileWriter::new(file, schema()?, Arc::new(properties()))?;
    let mut group = Group::new();
    for batch in batches {
        group.push(&batch?);
        if group.is_full() {
            group.write_to(&mut writer)?;
        }
    }
    if group.rows > 0 {
        group.write_to(&mut writer)?;
    }
    writer.close()?;
    Ok(Remarks::default())
}

fn schema() -> Result<TypePtr, ParquetError> {
    let columns = Field::ALL.map(|field| {
        let repetition = if field.is_nullable() { "optional" } else { "required" };
        match kind(field) {
            Kind::Text => format!("{repetition} binary {field} (STRING);"),
            Kind::Instant => format!("{repetition} int64 {field} (TIMESTAMP(MICROS,true));"),
            Kind::Count => format!("{repetition} int64 {field};"),
            // Decimals stay below 10^12 and have two fraction digits.
            Kind::Decimal => format!("{repetition} int64 {field} (DECIMAL(14,2));"),
            Kind::Flag => format!("{repetition} boolean {field};"),
        }
    });
    parse_message_type(&format!("message batches {{ {} }}", columns.concat())).map(Arc::new)
}

fn properties() -> WriterProperties {
    let compressed = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
    let without_dictionary = UNREPEATED.into_iter().fold(compressed, |properties, field| {
        properties.set_column_dictionary_enabled(ColumnPath::from(field.name()), false)
    });
    without_dictionary.build()
}

/// The rows of a group, by columns: a file holds a group's columns one after another, each in a piece.
struct Group {
    columns: [Column; Field::ALL.len()],
    rows: usize,
    text_bytes: usize,
}

impl Group {
    fn new() -> Self {
        Self { columns: Field::ALL.map(Column::new), rows: 0, text_bytes: 0 }
    }

    fn push(&mut self, batch: &Batch) {
        for (column, cell) in self.columns.iter_mut().zip(cells(batch)) {
            column.push(cell);
            if let Cell::Text(text) = cell {
                self.text_bytes += text.len();
            }
        }
        self.rows += 1;
    }

    fn is_full(&self) -> bool {
        self.rows >= GROUP_ROWS_MAX || self.text_bytes >= GROUP_TEXT_BYTES_MAX
    }

    /// Writes the rows, and is empty again.
    fn write_to(&mut self, file: &mut SerializedFileWriter<File>) -> Result<(), ParquetError> {
        let mut group = file.next_row_group()?;
        for column in &mut self.columns {
            let Some(mut writer) = group.next_column()? else { break };
            column.write_to(&mut writer)?;
            writer.close()?;
        }
        group.close()?;
        (self.rows, self.text_bytes) = (0, 0);
        Ok(())
    }
}

/// A column's values without gaps, and for each row whether it has one, if rows may have none.
struct Column {
    levels: Option<Vec<i16>>,
    values: Values,
}

enum Values {
    /// Texts one after another, and where each ends.
    Texts(Vec<u8>, Vec<usize>),
    Numbers(Vec<i64>),
    Flags(Vec<bool>),
}

impl Column {
    fn new(field: Field) -> Self {
        let values = match kind(field) {
            Kind::Text => Values::Texts(Vec::new(), Vec::new()),
            Kind::Instant | Kind::Count | Kind::Decimal => Values::Numbers(Vec::new()),
            Kind::Flag => Values::Flags(Vec::new()),
        };
        Self { levels: field.is_nullable().then(Vec::new), values }
    }

    fn push(&mut self, cell: Cell<'_>) {
        if let Some(levels) = &mut self.levels {
            levels.push(i16::from(cell != Cell::Null));
        }
        match (&mut self.values, cell) {
            (Values::Texts(bytes, ends), Cell::Text(text)) => {
                bytes.extend_from_slice(text.as_bytes());
                ends.push(bytes.len());
            }
            (Values::Numbers(numbers), Cell::Instant(instant)) => numbers.push(instant.micros()),
            (Values::Numbers(numbers), Cell::Count(count)) => numbers.push(count.cast_signed()),
            (Values::Numbers(numbers), Cell::Decimal(decimal)) => numbers.push(decimal.count()),
            (Values::Flags(flags), Cell::Flag(flag)) => flags.push(flag),
            // A null, which the levels tell; a cell of another kind there is none.
            _ => {}
        }
    }

    /// Writes the values, and is empty again.
    fn write_to(&mut self, writer: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = self.levels.as_deref();
        match &mut self.values {
            Values::Texts(bytes, ends) => {
                writer.typed::<ByteArrayType>().write_batch(&split(bytes, ends), levels, None)?;
            }
            Values::Numbers(numbers) => {
                writer.typed::<Int64Type>().write_batch(numbers, levels, None)?;
                numbers.clear();
            }
            Values::Flags(flags) => {
                writer.typed::<BoolType>().write_batch(flags, levels, None)?;
                flags.clear();
            }
        }
        if let Some(levels) = &mut self.levels {
            levels.clear();
        }
        Ok(())
    }
}

/// Takes the texts apart. They share the bytes they stood in, so the next group's texts get new room: as much at once,
/// since what grows by doubling leaves its smaller selves behind in memory.
fn split(bytes: &mut Vec<u8>, ends: &mut Vec<usize>) -> Vec<ByteArray> {
    let room = Vec::with_capacity(bytes.len());
    let all = ByteArray::from(std::mem::replace(bytes, room));
    let mut start = 0;
    let texts = ends.drain(..).map(|end| {
        let text = all.slice(start, end - start);
        start = end;
        text
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};

    use crate::read as import;
    use batchscan_model::{BatchId, UtcInstant};
    use parquet::file::metadata::RowGroupMetaData;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use proptest::prelude::*;

    use super::super::testing::{any_batch, bare, full, imported};
    use super::*;

    fn written(batches: impl IntoIterator<Item = Batch>) -> Vec<u8> {
        let mut file = tempfile::tempfile().unwrap();
        let remarks = write(&mut batches.into_iter().map(Ok), file.try_clone().unwrap()).unwrap();
        assert_eq!(remarks, Remarks::default());
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn read(bytes: Vec<u8>) -> Vec<Batch> {
        imported(import::Format::Parquet, bytes)
    }

    /// The number of rows of each group.
    fn groups(bytes: &[u8]) -> Vec<i64> {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, bytes).unwrap();
        let file = SerializedFileReader::new(file).unwrap();
        file.metadata().row_groups().iter().map(RowGroupMetaData::num_rows).collect()
    }

    #[test]
    fn no_batches_are_a_table_without_rows() {
        let bytes = written([]);
        assert_eq!(groups(&bytes).len(), 0);
        assert_eq!(read(bytes), []);
    }

    #[test]
    fn a_group_ends_at_its_rows_and_batches_keep_their_order() {
        let count = GROUP_ROWS_MAX + 2;
        let batches = || (0..count).map(|number| bare(&number.to_string()));
        let bytes = written(batches());
        assert_eq!(groups(&bytes), [GROUP_ROWS_MAX as i64, 2]);
        assert!(read(bytes).into_iter().eq(batches()));
    }

    #[test]
    fn a_group_ends_at_its_bytes_so_that_long_comments_do_not_fill_the_memory() {
        let comment = Some("x".repeat(60_000));
        let batches = vec![Batch { comment, ..full() }; GROUP_TEXT_BYTES_MAX / 60_000 + 2];
        let bytes = written(batches.clone());
        assert_eq!(groups(&bytes).len(), 2);
        assert_eq!(read(bytes), batches);
    }

    #[test]
    fn the_same_batches_give_the_same_bytes() {
        let batches = [full(), bare("b-2")];
        assert_eq!(written(batches.clone()), written(batches));
    }

    #[test]
    fn a_batch_that_cannot_be_read_back_is_an_error() {
        let mut batches = [Ok(full()), Err(anyhow::anyhow!("a broken disk"))].into_iter();
        let error = write(&mut batches, tempfile::tempfile().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "a broken disk");
    }

    #[test]
    fn the_ends_of_every_range_are_kept() {
        let largest = Batch {
            batch_id: BatchId::new("🌱".repeat(32)).unwrap(),
            batch_creation_date: UtcInstant::parse_any_offset("9999-12-31T23:59:59.999999Z").unwrap(),
            number_of_images: batchscan_model::batch::COUNT_MAX,
            comment: Some(String::new()),
            ..full()
        };
        let first = UtcInstant::parse_any_offset("0001-01-01T00:00:00Z").unwrap();
        let batches = [largest, Batch { batch_creation_date: first, ..bare("b") }];
        assert_eq!(read(written(batches.clone())), batches);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_import_reads_every_batch_back_exactly(batches in prop::collection::vec(any_batch(), 0..6)) {
            prop_assert_eq!(read(written(batches.clone())), batches);
        }
    }
}
