//! One column of a row group: loads some rows at a time by their physical type, and returns them one by one.

use batchscan_model::Value;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;

use super::value::{ColumnType, float};

/// A column of any physical type.
pub(super) trait Column {
    /// Replaces the loaded rows by the next `count`.
    fn load(&mut self, count: usize) -> Result<(), ParquetError>;

    /// The value of a loaded row. To be called once per row, in order.
    fn next_value(&mut self, row: usize) -> Value<'_>;
}

pub(super) fn open(reader: ColumnReader, column_type: ColumnType) -> Box<dyn Column> {
    use ColumnReader as R;
    match reader {
        R::BoolColumnReader(reader) => boxed(reader, column_type, |_, flag| Value::Bool(*flag)),
        R::Int32ColumnReader(reader) => boxed(reader, column_type, |column, number| column.int32(*number)),
        R::Int64ColumnReader(reader) => boxed(reader, column_type, |column, number| column.int64(*number)),
        R::Int96ColumnReader(reader) => boxed(reader, column_type, |_, _| Value::Other("an old timestamp")),
        R::FloatColumnReader(reader) => boxed(reader, column_type, |_, number| float(*number)),
        R::DoubleColumnReader(reader) => boxed(reader, column_type, |_, number| float(*number)),
        R::ByteArrayColumnReader(reader) => {
            boxed(reader, column_type, |column, bytes| column.bytes(bytes.data()))
        }
        R::FixedLenByteArrayColumnReader(reader) => {
            boxed(reader, column_type, |column, bytes| column.bytes(bytes.data()))
        }
    }
}

fn boxed<T: DataType>(
    reader: ColumnReaderImpl<T>,
    column_type: ColumnType,
    convert: Convert<T>,
) -> Box<dyn Column>
where
    T::T: 'static,
{
    Box::new(Typed { reader, column_type, convert, levels: Vec::new(), values: Vec::new(), next: 0 })
}

type Convert<T> = fn(ColumnType, &<T as DataType>::T) -> Value<'_>;

/// A column of one physical type. `values` has no gaps; `levels` has a 0 for each null.
struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    column_type: ColumnType,
    convert: Convert<T>,
    levels: Vec<i16>,
    values: Vec<T::T>,
    next: usize,
}

impl<T: DataType> Column for Typed<T> {
    fn load(&mut self, count: usize) -> Result<(), ParquetError> {
        self.levels.clear();
        self.values.clear();
        self.next = 0;
        let (rows, _, _) = self.reader.read_records(count, Some(&mut self.levels), None, &mut self.values)?;
        if rows == count {
            return Ok(());
        }
        Err(ParquetError::EOF("a column ends before its row group".into()))
    }

    fn next_value(&mut self, row: usize) -> Value<'_> {
        // A required column has no levels.
        if self.levels.get(row).is_some_and(|level| *level == 0) {
            return Value::Null;
        }
        self.next += 1;
        self.values.get(self.next - 1).map_or(Value::Null, |value| (self.convert)(self.column_type, value))
    }
}
