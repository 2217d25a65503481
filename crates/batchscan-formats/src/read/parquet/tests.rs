//! Reads files written by the Parquet library.

use std::ops::ControlFlow;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray};
use parquet::file::metadata::ParquetMetaDataWriter;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

use super::*;
use crate::Format::Parquet;
use crate::read::ReadOptions;
use crate::testing::{batches, errors, read_all, temporary_file};

/// A column: its declaration and its values. An empty text is null.
type Declared<'a> = (&'a str, &'a [&'a str]);

const REQUIRED: [Declared<'_>; 5] = [
    ("required binary batch_id (UTF8)", &["a", "b"]),
    ("optional binary batch_name (STRING)", &["n", "m"]),
    ("required int64 batch_creation_date (TIMESTAMP(MICROS,true))", &["1769846400500000", "-1"]),
    ("optional int32 number_of_images", &["12", "0"]),
    ("required boolean warnings", &["1", "0"]),
];

/// The required columns and these, which replace those of the same name.
fn file(others: &[Declared<'_>]) -> Vec<u8> {
    let is_replaced =
        |column: &Declared<'_>| others.iter().any(|other| column_name(other) == column_name(column));
    let kept = REQUIRED.into_iter().filter(|column| !is_replaced(column));
    write(&kept.chain(others.iter().copied()).collect::<Vec<_>>())
}

fn column_name<'a>(column: &Declared<'a>) -> &'a str {
    column.0.split(' ').nth(2).unwrap()
}

/// Two row groups with the same rows.
fn write(columns: &[Declared<'_>]) -> Vec<u8> {
    let declare = |column: &str| if column.ends_with('}') { column.into() } else { format!("{column};") };
    let members: String = columns.iter().map(|(column, _)| declare(column)).collect();
    let schema = Arc::new(parse_message_type(&format!("message batches {{ {members} }}")).unwrap());
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).unwrap();
    for _ in 0..2 {
        let mut group = writer.next_row_group().unwrap();
        for (_, values) in columns {
            let mut column = group.next_column().unwrap().unwrap();
            write_column(column.untyped(), values);
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    bytes
}

fn write_column(column: &mut ColumnWriter<'_>, values: &[&str]) {
    match column {
        ColumnWriter::BoolColumnWriter(column) => put(column, values, |text| text == "1"),
        ColumnWriter::Int32ColumnWriter(column) => put(column, values, |text| text.parse().unwrap()),
        ColumnWriter::Int64ColumnWriter(column) => put(column, values, |text| text.parse().unwrap()),
        ColumnWriter::Int96ColumnWriter(_) => panic!("no test writes these"),
        ColumnWriter::FloatColumnWriter(column) => put(column, values, |text| text.parse().unwrap()),
        ColumnWriter::DoubleColumnWriter(column) => put(column, values, |text| text.parse().unwrap()),
        ColumnWriter::ByteArrayColumnWriter(column) => {
            put(column, values, |text| ByteArray::from(text.as_bytes().to_vec()));
        }
        ColumnWriter::FixedLenByteArrayColumnWriter(column) => put(column, values, |text| {
            FixedLenByteArray::from(text.parse::<i128>().unwrap().to_be_bytes().to_vec())
        }),
    }
}

fn put<T: DataType>(column: &mut ColumnWriterImpl<'_, T>, values: &[&str], read: fn(&str) -> T::T) {
    let levels: Vec<i16> = values.iter().map(|value| i16::from(!value.is_empty())).collect();
    let values: Vec<T::T> =
        values.iter().filter(|value| !value.is_empty()).map(|value| read(value)).collect();
    column.write_batch(&values, Some(&levels), None).unwrap();
}

/// The values of a field in the first two batches.
fn read_field(field: &str, column: Declared<'_>) -> [String; 2] {
    let name = format!("\"{field}\":");
    let after =
        |text: &String| text.split(&name).nth(1).unwrap().split([',', '}']).next().unwrap().to_owned();
    let texts = batches(Parquet, file(&[column]));
    [after(&texts[0]), after(&texts[1])]
}

#[test]
fn a_row_is_a_batch_in_every_row_group() {
    let texts = batches(Parquet, file(&[]));
    assert_eq!(texts.len(), 4);
    assert!(
        texts[0].starts_with(
            r#"{"batch_id":"a","batch_name":"n","batch_creation_date":"2026-01-31T08:00:00.5Z""#
        )
    );
    assert!(texts[3].contains(r#""batch_creation_date":"1969-12-31T23:59:59.999999Z","crop_type":null"#));
}

/// The file with other metadata: a footer that follows the first one.
fn with_row_count(count: i64) -> Vec<u8> {
    let mut bytes = file(&[]);
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes.clone())).unwrap();
    let mut metadata = reader.metadata().clone().into_builder();
    let groups = metadata.take_row_groups().into_iter();
    let groups = groups.map(|group| group.into_builder().set_num_rows(count).build().unwrap());
    let metadata = metadata.set_row_groups(groups.collect()).build();
    ParquetMetaDataWriter::new(&mut bytes, &metadata).finish().unwrap();
    bytes
}

#[test]
fn fewer_rows_than_the_columns_have_are_rejected() {
    assert_eq!(batches(Parquet, with_row_count(2)).len(), 4);
    for count in [0, 1, 3, -1] {
        let found = errors(Parquet, with_row_count(count));
        assert!(found.contains("contradictory numbers of rows"), "{found}");
    }
}

/// Decision 035: decimals keep their digits.
#[test]
fn every_type_that_can_represent_a_field_is_read() {
    let rates = ["\"92.50\"", "\"-0.01\""];
    let dates = ["\"2026-01-31T08:00:00Z\"", "\"1969-12-31T23:59:59.999Z\""];
    let (rate, cells, date) = ("avg_germination_rate", "total_cells_per_tray", "batch_creation_date");
    let columns: &[(&str, Declared<'_>, [&str; 2])] = &[
        (rate, ("optional double @", &["92.5", "-0.005"]), rates),
        (rate, ("optional float @", &["92.5", "-0.005"]), rates),
        (rate, ("optional double @", &["1.005", "NaN"]), ["\"1.01\"", "null"]),
        (rate, ("optional int32 @ (DECIMAL(9,2))", &["9250", "-1"]), rates),
        (rate, ("optional int64 @ (DECIMAL(18,4))", &["925000", "-50"]), rates),
        (rate, ("optional fixed_len_byte_array(16) @ (DECIMAL(38,2))", &["9250", "-1"]), rates),
        (rate, ("optional int64 @", &["92", ""]), ["\"92.00\"", "null"]),
        (rate, ("optional binary @ (UTF8)", &["92.5", "-0.005"]), rates),
        (cells, ("optional double @", &["128", "NaN"]), ["128", "null"]),
        (cells, ("optional int32 @ (UINT_32)", &["-1", ""]), ["4294967295", "null"]),
        (date, ("required int64 @ (TIMESTAMP_MILLIS)", &["1769846400000", "-1"]), dates),
        (date, ("required int64 @ (TIMESTAMP(NANOS,true))", &["1769846400000000999", "-1000000"]), dates),
        (
            date,
            ("required binary @ (UTF8)", &["2026-01-31T09:00:00+01:00", "1969-12-31T23:59:59.999Z"]),
            dates,
        ),
    ];
    for (field, (declaration, values), expected) in columns {
        assert_eq!(read_field(field, (&declaration.replace('@', field), values)), *expected, "{declaration}");
    }
}

/// Decision 039.
#[test]
fn errors_name_the_column_or_the_row() {
    let number = "number_of_images: expected a whole number from 0 to 9007199254740991, found -1";
    let date = "batch_creation_date: expected a date and time with a UTC offset, such as 2026-01-31T08:00:00Z, found";
    let zone = "row 1: batch_creation_date: expected a time with a UTC offset, such as 2026-01-31T08:00:00Z, or the time \
                zone of the file (--timezone Europe/Berlin, or timezone = \"Europe/Berlin\" in a mapping), found";
    let unknown = ("optional int32 coment", &["", ""][..]);
    for (file, expected) in [
        (
            file(&[("required int64 batch_creation_date (TIMESTAMP(MICROS,false))", &["0", "1"])]),
            format!("{zone} \"1970-01-01 00:00:00\""),
        ),
        (
            write(&[REQUIRED[0], REQUIRED[2], REQUIRED[3], REQUIRED[4], unknown]),
            "columns: coment: unknown field; did you mean comment? Then add \"coment\" = \"comment\" to [columns] of a mapping, or else add it to ignore\n\
            columns: batch_name: missing required column; if the ids are the names, map their column to batch_name, and add batch_id = \"{batch_name}\" to the mapping"
                .into(),
        ),
        (
            file(&[("required group comment { optional int32 x; }", &["", ""])]),
            "columns: comment: expected one value per row, found a nested column".into(),
        ),
        // Rows are counted across row groups.
        (
            file(&[("optional int32 number_of_images", &["1", "-1"])]),
            format!("row 2: {number}\nrow 4: {number}"),
        ),
        (
            file(&[("required int32 batch_creation_date (DATE)", &["20484", "2147483647"])]),
            format!(
                "{zone} \"2026-01-31\"\nrow 2: {date} a date out of range\nrow 4: {date} a date out of range"
            ),
        ),
    ] {
        assert_eq!(errors(Parquet, file), expected);
    }
}

#[test]
fn other_formats_and_incomplete_files_are_rejected() {
    let bytes = file(&[]);
    for part in [&b""[..], b"PAR1", b"batch_id,batch_name\n", &bytes[..bytes.len() / 2], &bytes[1..]] {
        let errors = errors(Parquet, part);
        let expected = "expected a complete Parquet file, found a damaged file or another format (";
        assert!(errors.contains(expected), "{errors}");
    }
}

#[test]
fn the_bytes_read_end_at_the_length_of_the_file() {
    let (bytes, bytes_read) = (file(&[]), AtomicU64::new(0));
    let length = bytes.len() as u64;
    let open = temporary_file(io::Cursor::new(bytes));
    let mut accept = |_, _| ControlFlow::Continue(());
    let summary = crate::read::read(Parquet, open, &ReadOptions::default(), &bytes_read, &mut accept);
    assert_eq!((summary.unwrap().batches, bytes_read.into_inner()), (4, length));
}

proptest! {
    #[test]
    fn no_damage_to_a_file_causes_a_panic(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = file(&[("optional int32 avg_germination_rate (DECIMAL(9,2))", &["9250", ""])]);
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read_all(Parquet, io::Cursor::new(bytes));
    }
}

#[test]
fn an_unsupported_compression_is_named() {
    // The codec of each column in the metadata: Snappy is 1, Brotli 4, LZ4 7, as zigzag varints before the next field.
    let mut bytes = file(&[]);
    for (codec, name) in [(8, "Brotli"), (14, "LZ4")] {
        for index in 0..bytes.len() - 2 {
            if matches!(bytes[index..index + 3], [0x15, 2 | 8, 0x16]) {
                bytes[index + 1] = codec;
            }
        }
        let found = errors(Parquet, bytes.clone());
        assert!(found.contains(&format!("{name} compression")), "{found}");
    }
}
