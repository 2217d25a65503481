//! Writes Parquet, one row group at a time. The same batches always produce the same bytes.

use std::io::Write;
use std::sync::Arc;

use batchscan_model::{Batch, Field, FieldValue, Kind};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, TypePtr};

use super::columns::Columns;
use super::output::{Batches, CutTexts, WriteError};
use crate::parquet_checksum::ChecksumWriter;

/// Rows per group: enough for compression, few enough for memory.
const GROUP_ROWS_MAX: usize = 65_536;

/// Bytes of text per group. Bounds the memory if comments are long.
const GROUP_TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Fields whose values rarely repeat: a dictionary does not help.
const WITHOUT_DICTIONARY: [Field; 4] =
    [Field::BatchId, Field::BatchName, Field::BatchCreationDate, Field::AnalysisLink];

/// Writes all batches.
pub(super) fn write(
    batches: &mut Batches<'_>,
    columns: &Columns,
    file: impl Write + Send,
) -> Result<CutTexts, WriteError> {
    let (schema, file) = (schema(columns)?, ChecksumWriter::new(file));
    let mut writer = SerializedFileWriter::new(file, schema.clone(), Arc::new(properties()))?;
    let mut group = Group::new(columns);
    for batch in batches {
        group.push(&batch.map_err(WriteError::Source)?);
        if group.is_full() {
            group.write_to(&mut writer)?;
        }
    }
    if group.rows > 0 {
        group.write_to(&mut writer)?;
    }
    writer.flush()?;
    let checksum = writer.inner().checksum(&schema);
    writer.append_key_value_metadata(checksum);
    writer.close()?;
    Ok(CutTexts::default())
}

fn schema(columns: &Columns) -> Result<TypePtr, ParquetError> {
    let column = |field: &Field| {
        let repetition = if field.is_nullable() { "optional" } else { "required" };
        match field.kind() {
            Kind::Id | Kind::Name | Kind::Text | Kind::Link => {
                format!("{repetition} binary {field} (STRING);")
            }
            Kind::Instant => format!("{repetition} int64 {field} (TIMESTAMP(MICROS,true));"),
            Kind::Count => format!("{repetition} int64 {field};"),
            // Twelve digits before the point and two after it.
            Kind::Decimal => format!("{repetition} int64 {field} (DECIMAL(14,2));"),
            Kind::Flag => format!("{repetition} boolean {field};"),
        }
    };
    let columns: String = columns.fields().iter().map(column).collect();
    parse_message_type(&format!("message batches {{ {columns} }}")).map(Arc::new)
}

fn properties() -> WriterProperties {
    let compressed = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
    let without_dictionary = WITHOUT_DICTIONARY.into_iter().fold(compressed, |properties, field| {
        properties.set_column_dictionary_enabled(ColumnPath::from(field.name()), false)
    });
    without_dictionary.build()
}

/// The rows of a group, column by column as in the file.
struct Group<'c> {
    fields: &'c Columns,
    columns: Vec<Column>,
    rows: usize,
    text_bytes: usize,
}

impl<'c> Group<'c> {
    fn new(fields: &'c Columns) -> Self {
        let columns = fields.fields().iter().copied().map(Column::new).collect();
        Self { fields, columns, rows: 0, text_bytes: 0 }
    }

    fn push(&mut self, batch: &Batch) {
        for (column, (_, value)) in self.columns.iter_mut().zip(self.fields.values(batch)) {
            column.push(value);
            if let FieldValue::Text(text) = value {
                self.text_bytes += text.len();
            }
        }
        self.rows += 1;
    }

    fn is_full(&self) -> bool {
        self.rows >= GROUP_ROWS_MAX || self.text_bytes >= GROUP_TEXT_BYTES_MAX
    }

    /// Writes the rows and clears the group.
    fn write_to(&mut self, file: &mut SerializedFileWriter<impl Write + Send>) -> Result<(), ParquetError> {
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

/// The values of a column without its nulls. A nullable column has a level per row: 0 for null, else 1.
struct Column {
    levels: Option<Vec<i16>>,
    values: Values,
}

enum Values {
    /// The bytes of all texts, and where each ends.
    Texts(Vec<u8>, Vec<usize>),
    Numbers(Vec<i64>),
    Flags(Vec<bool>),
}

impl Column {
    fn new(field: Field) -> Self {
        let values = match field.kind() {
            Kind::Id | Kind::Name | Kind::Text | Kind::Link => Values::Texts(Vec::new(), Vec::new()),
            Kind::Instant | Kind::Count | Kind::Decimal => Values::Numbers(Vec::new()),
            Kind::Flag => Values::Flags(Vec::new()),
        };
        Self { levels: field.is_nullable().then(Vec::new), values }
    }

    fn push(&mut self, value: FieldValue<'_>) {
        if let Some(levels) = &mut self.levels {
            levels.push(i16::from(value != FieldValue::Null));
        }
        match (&mut self.values, value) {
            (Values::Texts(bytes, ends), FieldValue::Text(text)) => {
                bytes.extend_from_slice(text.as_bytes());
                ends.push(bytes.len());
            }
            (Values::Numbers(numbers), FieldValue::Instant(instant)) => numbers.push(instant.micros()),
            (Values::Numbers(numbers), FieldValue::Count(count)) => numbers.push(count.cast_signed()),
            (Values::Numbers(numbers), FieldValue::Decimal(decimal)) => numbers.push(decimal.count()),
            (Values::Flags(flags), FieldValue::Flag(flag)) => flags.push(flag),
            // A null has no value; other combinations do not occur.
            _ => {}
        }
    }

    /// Writes the values and clears the column.
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

/// Splits the texts, which keep sharing the buffer. The next group gets a new one of the same size: growing it by
/// doubling would leave the smaller buffers behind in memory.
fn split(bytes: &mut Vec<u8>, ends: &mut Vec<usize>) -> Vec<ByteArray> {
    let next = Vec::with_capacity(bytes.len());
    let all = ByteArray::from(std::mem::replace(bytes, next));
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
    use std::io::{Cursor, Read as _, Seek as _};

    use batchscan_model::{BatchId, Hundredths, UtcInstant};
    use parquet::file::metadata::RowGroupMetaData;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use proptest::prelude::*;

    use super::*;
    use crate::Format;
    use crate::testing::{any_batch, bare, full, read_all, read_back};

    fn written(batches: impl IntoIterator<Item = Batch>) -> Vec<u8> {
        let mut file = tempfile::tempfile().unwrap();
        let cut = write(&mut batches.into_iter().map(Ok), &Columns::All, file.try_clone().unwrap()).unwrap();
        assert_eq!(cut, CutTexts::default());
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn read(bytes: Vec<u8>) -> Vec<Batch> {
        read_back(Format::Parquet, bytes)
    }

    /// The number of rows of each group.
    fn groups(bytes: &[u8]) -> Vec<i64> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let file = SerializedFileReader::new(file).unwrap();
        file.metadata().row_groups().iter().map(RowGroupMetaData::num_rows).collect()
    }

    #[test]
    fn no_batches_produce_a_table_without_rows() {
        let bytes = written([]);
        assert_eq!(groups(&bytes).len(), 0);
        assert_eq!(read(bytes), []);
    }

    #[test]
    fn a_group_has_a_row_limit_and_batches_keep_their_order() {
        let count = GROUP_ROWS_MAX + 2;
        let batches = || (0..count).map(|number| bare(&number.to_string()));
        let bytes = written(batches());
        assert_eq!(groups(&bytes), [GROUP_ROWS_MAX as i64, 2]);
        assert!(read(bytes).into_iter().eq(batches()));
    }

    #[test]
    fn a_group_has_a_text_limit() {
        let comment = Some("x".repeat(60_000));
        let batches = vec![Batch { comment, ..full() }; GROUP_TEXT_BYTES_MAX / 60_000 + 2];
        let bytes = written(batches.clone());
        assert_eq!(groups(&bytes).len(), 2);
        assert_eq!(read(bytes), batches);
    }

    #[test]
    fn the_same_batches_produce_the_same_bytes() {
        let batches = [full(), bare("b-2")];
        assert_eq!(written(batches.clone()), written(batches));
    }

    /// In the data or in the metadata: the file is rejected, or has the same batches.
    #[test]
    fn a_damaged_byte_never_changes_a_batch() {
        let rate = |number: i64| Hundredths::from_hundredths(9_000 + number);
        let batch = |number| Batch { avg_germination_rate: rate(number), ..bare(&number.to_string()) };
        let batches: Vec<Batch> = (0..20).map(batch).collect();
        let (bytes, expected) = (written(batches.clone()), batches.iter().map(Batch::to_json));
        let expected: Vec<String> = expected.collect();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            let read = read_all(Format::Parquet, Cursor::new(damaged));
            assert!(read.is_err() || read.is_ok_and(|read| read == expected), "byte {at} of {}", bytes.len());
        }
    }

    #[test]
    fn an_error_of_the_source_is_returned() {
        let mut batches = [Ok(full()), Err("a broken disk".into())].into_iter();
        let error = write(&mut batches, &Columns::All, tempfile::tempfile().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "a broken disk");
    }

    #[test]
    fn extreme_values_are_kept() {
        let largest = Batch {
            batch_id: BatchId::new("🌱".repeat(32)).unwrap(),
            batch_creation_date: UtcInstant::parse_any_offset("9999-12-31T23:59:59.999999Z").unwrap(),
            number_of_images: batchscan_model::field::COUNT_MAX,
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
        fn every_batch_reads_back_as_itself(batches in prop::collection::vec(any_batch(), 0..6)) {
            prop_assert_eq!(read(written(batches.clone())), batches);
        }
    }
}
