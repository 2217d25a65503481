//! One column of a row group: loads some rows at a time by their physical type, and returns them one by one.

use batchscan_model::Value;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
    Int96Type,
};
use parquet::errors::ParquetError;

use super::value::{ColumnType, float};

/// A column and its type.
pub(super) struct Column {
    column_type: ColumnType,
    rows: Rows,
}

enum Rows {
    Bool(Typed<BoolType>),
    Int32(Typed<Int32Type>),
    Int64(Typed<Int64Type>),
    Int96(Typed<Int96Type>),
    Float(Typed<FloatType>),
    Double(Typed<DoubleType>),
    Bytes(Typed<ByteArrayType>),
    Fixed(Typed<FixedLenByteArrayType>),
}

impl Column {
    pub(super) fn new(reader: ColumnReader, column_type: ColumnType) -> Self {
        let rows = match reader {
            ColumnReader::BoolColumnReader(reader) => Rows::Bool(Typed::new(reader)),
            ColumnReader::Int32ColumnReader(reader) => Rows::Int32(Typed::new(reader)),
            ColumnReader::Int64ColumnReader(reader) => Rows::Int64(Typed::new(reader)),
            ColumnReader::Int96ColumnReader(reader) => Rows::Int96(Typed::new(reader)),
            ColumnReader::FloatColumnReader(reader) => Rows::Float(Typed::new(reader)),
            ColumnReader::DoubleColumnReader(reader) => Rows::Double(Typed::new(reader)),
            ColumnReader::ByteArrayColumnReader(reader) => Rows::Bytes(Typed::new(reader)),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => Rows::Fixed(Typed::new(reader)),
        };
        Self { column_type, rows }
    }

    /// Replaces the loaded rows by the next `count`.
    pub(super) fn load(&mut self, count: usize) -> Result<(), ParquetError> {
        match &mut self.rows {
            Rows::Bool(rows) => rows.load(count),
            Rows::Int32(rows) => rows.load(count),
            Rows::Int64(rows) => rows.load(count),
            Rows::Int96(rows) => rows.load(count),
            Rows::Float(rows) => rows.load(count),
            Rows::Double(rows) => rows.load(count),
            Rows::Bytes(rows) => rows.load(count),
            Rows::Fixed(rows) => rows.load(count),
        }
    }

    /// The value of a loaded row. To be called once per row, in order.
    pub(super) fn next_value(&mut self, row: usize) -> Value<'_> {
        let column_type = self.column_type;
        let value = match &mut self.rows {
            Rows::Bool(rows) => rows.next(row).map(|flag| Value::Bool(*flag)),
            Rows::Int32(rows) => rows.next(row).map(|number| column_type.int32(*number)),
            Rows::Int64(rows) => rows.next(row).map(|number| column_type.int64(*number)),
            Rows::Int96(rows) => rows.next(row).map(|_| Value::Other("a timestamp without a time zone")),
            Rows::Float(rows) => rows.next(row).map(|number| float(*number)),
            Rows::Double(rows) => rows.next(row).map(|number| float(*number)),
            Rows::Bytes(rows) => rows.next(row).map(|bytes| column_type.bytes(bytes.data())),
            Rows::Fixed(rows) => rows.next(row).map(|bytes| column_type.bytes(bytes.data())),
        };
        value.unwrap_or(Value::Null)
    }
}

/// Rows of one physical type. `values` has no gaps; `levels` has a 0 for each null.
struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    levels: Vec<i16>,
    values: Vec<T::T>,
    next: usize,
}

impl<T: DataType> Typed<T> {
    fn new(reader: ColumnReaderImpl<T>) -> Self {
        Self { reader, levels: Vec::new(), values: Vec::new(), next: 0 }
    }

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

    /// The next value, `None` if it is null. A required column has no levels.
    fn next(&mut self, row: usize) -> Option<&T::T> {
        if self.levels.get(row).is_some_and(|level| *level == 0) {
            return None;
        }
        self.next += 1;
        self.values.get(self.next - 1)
    }
}
