//! One column of a row group: a few rows of it, held by their physical type, handed out row by row.

use batchscan_model::Value;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
    Int96Type,
};
use parquet::errors::ParquetError;

use super::value::{Meaning, float};

/// A column, and what its values mean.
pub(super) struct Column {
    meaning: Meaning,
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
    pub(super) fn new(reader: ColumnReader, meaning: Meaning) -> Self {
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
        Self { meaning, rows }
    }

    /// Holds the next `count` rows in place of those held before.
    pub(super) fn hold(&mut self, count: usize) -> Result<(), ParquetError> {
        match &mut self.rows {
            Rows::Bool(rows) => rows.hold(count),
            Rows::Int32(rows) => rows.hold(count),
            Rows::Int64(rows) => rows.hold(count),
            Rows::Int96(rows) => rows.hold(count),
            Rows::Float(rows) => rows.hold(count),
            Rows::Double(rows) => rows.hold(count),
            Rows::Bytes(rows) => rows.hold(count),
            Rows::Fixed(rows) => rows.hold(count),
        }
    }

    /// The value in a held row. The rows are asked for one after another, each once.
    pub(super) fn value(&mut self, row: usize) -> Value<'_> {
        let meaning = self.meaning;
        let value = match &mut self.rows {
            Rows::Bool(rows) => rows.take(row).map(|flag| Value::Bool(*flag)),
            Rows::Int32(rows) => rows.take(row).map(|number| meaning.int32(*number)),
            Rows::Int64(rows) => rows.take(row).map(|number| meaning.int64(*number)),
            Rows::Int96(rows) => rows.take(row).map(|_| Value::Other("a timestamp without a time zone")),
            Rows::Float(rows) => rows.take(row).map(|number| float(*number)),
            Rows::Double(rows) => rows.take(row).map(|number| float(*number)),
            Rows::Bytes(rows) => rows.take(row).map(|bytes| meaning.bytes(bytes.data())),
            Rows::Fixed(rows) => rows.take(row).map(|bytes| meaning.bytes(bytes.data())),
        };
        value.unwrap_or(Value::Null)
    }
}

/// Rows of one physical type. Values stand without gaps; the levels tell which rows have one.
struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    levels: Vec<i16>,
    values: Vec<T::T>,
    taken: usize,
}

impl<T: DataType> Typed<T> {
    fn new(reader: ColumnReaderImpl<T>) -> Self {
        Self { reader, levels: Vec::new(), values: Vec::new(), taken: 0 }
    }

    fn hold(&mut self, count: usize) -> Result<(), ParquetError> {
        self.levels.clear();
        self.values.clear();
        self.taken = 0;
        let (rows, _, _) = self.reader.read_records(count, Some(&mut self.levels), None, &mut self.values)?;
        if rows == count {
            return Ok(());
        }
        Err(ParquetError::EOF("a column ends before its row group does".into()))
    }

    /// The next value, if the row has one. A required column has no levels and a value in every row.
    fn take(&mut self, row: usize) -> Option<&T::T> {
        if self.levels.get(row).is_some_and(|level| *level == 0) {
            return None;
        }
        self.taken += 1;
        self.values.get(self.taken - 1)
    }
}
