//! Reads files that the library's own writer wrote.

use std::sync::Arc;

use parquet::basic::Compression;
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

use super::*;
use crate::read::Format::Parquet;
use crate::read::testing::{batches, faults, read_all};

/// A column: its declaration, and its values; an empty text is null.
type Declared = (&'static str, &'static [&'static str]);

const REQUIRED: [Declared; 5] = [
    ("required binary batch_id (UTF8)", &["a", "b"]),
    ("optional binary batch_name (STRING)", &["n", "m"]),
    ("required int64 batch_creation_date (TIMESTAMP(MICROS,true))", &["1769846400500000", "-1"]),
    ("optional int32 number_of_images", &["12", "0"]),
    ("required boolean warnings", &["1", "0"]),
];

/// The required columns, with these in place of those of the same name or beside them.
fn file(others: &[Declared]) -> Vec<u8> {
    let name = |column: &Declared| column.0.split(' ').nth(2).unwrap();
    let is_replaced = |column: &Declared| others.iter().any(|other| name(other) == name(column));
    let kept = REQUIRED.into_iter().filter(|column| !is_replaced(column));
    write(&kept.chain(others.iter().copied()).collect::<Vec<_>>())
}

/// Two row groups with the same rows.
fn write(columns: &[Declared]) -> Vec<u8> {
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

/// What stands for a field in the first two batches.
fn read_field(field: &str, column: Declared) -> [String; 2] {
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

/// Decision 035.
#[test]
fn floats_and_decimals_are_read_by_their_digits() {
    let read = |column| read_field("avg_germination_rate", column);
    let cells = ["\"92.50\"", "\"-0.01\""];
    assert_eq!(read(("optional double avg_germination_rate", &["92.5", "-0.005"])), cells);
    assert_eq!(read(("optional float avg_germination_rate", &["92.5", "-0.005"])), cells);
    assert_eq!(read(("optional double avg_germination_rate", &["1.005", "NaN"])), ["\"1.01\"", "null"]);
    assert_eq!(read(("optional int32 avg_germination_rate (DECIMAL(9,2))", &["9250", "-1"])), cells);
    assert_eq!(read(("optional int64 avg_germination_rate (DECIMAL(18,4))", &["925000", "-50"])), cells);
    let wide =
        ("optional fixed_len_byte_array(16) avg_germination_rate (DECIMAL(38,2))", &["9250", "-1"][..]);
    assert_eq!(read(wide), cells);
    assert_eq!(read(("optional int64 avg_germination_rate", &["92", ""])), ["\"92.00\"", "null"]);
    assert_eq!(read(("optional binary avg_germination_rate (UTF8)", &["92.5", "-0.005"])), cells);
}

#[test]
fn counts_may_come_as_floats_or_unsigned_and_instants_in_any_unit() {
    let read = |column| read_field("total_cells_per_tray", column);
    assert_eq!(read(("optional double total_cells_per_tray", &["128", "NaN"])), ["128", "null"]);
    assert_eq!(read(("optional int32 total_cells_per_tray (UINT_32)", &["-1", ""])), ["4294967295", "null"]);
    let read = |column| read_field("batch_creation_date", column);
    let instants = ["\"2026-01-31T08:00:00Z\"", "\"1969-12-31T23:59:59.999Z\""];
    assert_eq!(
        read(("required int64 batch_creation_date (TIMESTAMP_MILLIS)", &["1769846400000", "-1"])),
        instants
    );
    let nanos = (
        "required int64 batch_creation_date (TIMESTAMP(NANOS,true))",
        &["1769846400000000999", "-1000000"][..],
    );
    assert_eq!(read(nanos), instants);
    let texts = (
        "required binary batch_creation_date (UTF8)",
        &["2026-01-31T09:00:00+01:00", "1969-12-31T23:59:59.999Z"][..],
    );
    assert_eq!(read(texts), instants);
}

#[test]
fn a_timestamp_without_a_time_zone_is_one_fault() {
    let naive = ("required int64 batch_creation_date (TIMESTAMP(MICROS,false))", &["0", "1"][..]);
    let told = faults(Parquet, file(&[naive]));
    assert!(told.starts_with("columns: batch_creation_date: found timestamps without a time zone"), "{told}");
    assert_eq!(told.lines().count(), 1);
}

/// Decision 039.
#[test]
fn columns_are_known_by_name_and_missing_or_unknown_ones_are_faults() {
    let told = faults(
        Parquet,
        write(&[REQUIRED[0], REQUIRED[2], REQUIRED[3], REQUIRED[4], ("optional int32 coment", &["", ""])]),
    );
    let expected = "columns: coment: found an unknown field, expected a field of a batch; did you mean comment?\n\
        columns: batch_name: found nothing, expected a column of that name: this field is required";
    assert_eq!(told, expected);
    let told = faults(Parquet, file(&[("required group comment { optional int32 x; }", &["", ""])]));
    assert_eq!(told, "columns: comment: found a nested column, expected one value a row");
}

/// Decision 039.
#[test]
fn a_fault_names_its_row_through_all_row_groups() {
    let told = faults(Parquet, file(&[("optional int32 number_of_images", &["1", "-1"])]));
    let sentence = "number_of_images: found -1, expected a whole number that is not negative";
    assert_eq!(told, format!("row 2: {sentence}\nrow 4: {sentence}"));
    let told =
        faults(Parquet, file(&[("required int32 batch_creation_date (DATE)", &["20484", "2147483647"])]));
    assert!(
        told.starts_with(
            "row 1: batch_creation_date: found \"2026-01-31\", expected a date and time with an offset"
        ),
        "{told}"
    );
    assert!(told.contains("\nrow 2: batch_creation_date: found a date out of all calendars"), "{told}");
}

#[test]
fn what_is_no_parquet_file_or_half_of_one_is_refused() {
    let bytes = file(&[]);
    for part in [&b""[..], b"PAR1", b"batch_id,batch_name\n", &bytes[..bytes.len() / 2], &bytes[1..]] {
        let told = faults(Parquet, part);
        assert!(told.contains("found damage or another format ("), "{told}");
        assert!(told.ends_with("expected a whole Parquet file"), "{told}");
    }
}

#[test]
fn an_open_file_is_read_without_being_copied_and_counts_to_its_length() {
    let mut open = tempfile::tempfile().unwrap();
    open.write_all(&file(&[])).unwrap();
    let (length, bytes_read) = (open.metadata().unwrap().len(), AtomicU64::new(0));
    let count = crate::read::read(Parquet, Input::File(open), &bytes_read, &mut |_, _| {
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!((count.unwrap(), bytes_read.into_inner()), (4, length));
}

proptest! {
    #[test]
    fn no_damage_to_a_file_makes_it_panic(places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = file(&[("optional int32 avg_germination_rate (DECIMAL(9,2))", &["9250", ""])]);
        for (place, byte) in places {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read_all(Parquet, io::Cursor::new(bytes));
    }
}
