//! Numbered batches to import, in every format. The same number is the same batch, except for its comment.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// Seconds between batches, all in January 2026.
const SECS_APART: u64 = 2;
/// 2026-01-01T00:00:00Z.
const EPOCH_SECS: u64 = 1_767_225_600;

/// The creation date of a batch.
pub(crate) fn created(number: u64) -> String {
    let secs = number * SECS_APART;
    let (day, hour, minute, second) = (secs / 86_400 + 1, secs / 3_600 % 24, secs / 60 % 60, secs % 60);
    assert!(day <= 31, "January has 31 days");
    format!("2026-01-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A batch as the API sends it, which is also a line of NDJSON.
pub(crate) fn line(number: u64, comment: &str) -> String {
    let created = created(number);
    format!(
        concat!(
            r#"{{"batch_id":"scan-{0:07}","batch_name":"Tray {0}","batch_creation_date":"{1}","crop_type":"Lettuce","#,
            r#""number_of_images":12,"total_cells_per_tray":128,"avg_germinated_seedlings":"118.40","#,
            r#""avg_non_germinated_seedlings":"9.60","avg_germination_rate":"92.50","avg_usable_seedlings":"110.25","#,
            r#""avg_non_usable_cells":"17.75","avg_usable_seedling_rate":"86.13","avg_coefficient_of_variation":"14.02","#,
            r#""avg_median_seedling_size_mm2":"412.90","scanned_by_email":"scanner@example.org","#,
            r#""analysis_link":"https://app.example.org/analysis/{0}","comment":"{2}","warnings":false}}"#
        ),
        number, created, comment
    )
}

/// Batches as lines of NDJSON.
pub(crate) fn ndjson(numbers: std::ops::Range<u64>, comment: &str) -> String {
    numbers.map(|number| line(number, comment) + "\n").collect()
}

/// Batches as the JSON array of v1.
pub(crate) fn array(numbers: std::ops::Range<u64>, comment: &str) -> String {
    let lines: Vec<String> = numbers.map(|number| line(number, comment)).collect();
    format!("[{}]", lines.join(","))
}

/// Writes a large NDJSON file.
pub(crate) fn write_ndjson(path: &Path, count: u64) {
    let mut file = BufWriter::with_capacity(1024 * 1024, File::create(path).unwrap());
    for number in 0..count {
        writeln!(file, "{}", line(number, "as scanned")).unwrap();
    }
    file.flush().unwrap();
}

/// Batches as a spreadsheet writes CSV: byte order mark, semicolons, CRLF, quotes.
pub(crate) fn csv(numbers: std::ops::Range<u64>, comment: &str) -> String {
    let mut text = "\u{FEFF}batch_id;batch_name;batch_creation_date;crop_type;number_of_images;\
        total_cells_per_tray;avg_germinated_seedlings;avg_non_germinated_seedlings;avg_germination_rate;\
        avg_usable_seedlings;avg_non_usable_cells;avg_usable_seedling_rate;avg_coefficient_of_variation;\
        avg_median_seedling_size_mm2;scanned_by_email;analysis_link;comment;warnings\r\n"
        .to_owned();
    for number in numbers {
        let created = created(number);
        text += &format!(
            "scan-{number:07};\"Tray {number}\";{created};Lettuce;12;128;118.4;9.6;92.5;110.25;17.75;86.13;14.02;\
             412.9;scanner@example.org;https://app.example.org/analysis/{number};\"{comment}\";FALSE\r\n"
        );
    }
    text
}

/// Batches as a data frame writes Parquet: numbers as doubles, dates as timestamps.
pub(crate) fn parquet(numbers: std::ops::Range<u64>, comment: &str) -> Vec<u8> {
    let rows = usize::try_from(numbers.end - numbers.start).unwrap();
    let schema = "message batches {
        required binary batch_id (UTF8); required binary batch_name (UTF8);
        required int64 batch_creation_date (TIMESTAMP(MICROS,true)); required binary crop_type (UTF8);
        required int64 number_of_images; required int64 total_cells_per_tray;
        required double avg_germinated_seedlings; required double avg_non_germinated_seedlings;
        required double avg_germination_rate; required double avg_usable_seedlings;
        required double avg_non_usable_cells; required double avg_usable_seedling_rate;
        required double avg_coefficient_of_variation; required double avg_median_seedling_size_mm2;
        required binary scanned_by_email (UTF8); required binary analysis_link (UTF8);
        required binary comment (UTF8); required boolean warnings; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let texts = |text: &dyn Fn(u64) -> String| -> Vec<ByteArray> {
        numbers.clone().map(|number| ByteArray::from(text(number).into_bytes())).collect()
    };
    put::<ByteArrayType>(&mut group, &texts(&|number| format!("scan-{number:07}")));
    put::<ByteArrayType>(&mut group, &texts(&|number| format!("Tray {number}")));
    let micros = |number: u64| i64::try_from((EPOCH_SECS + number * SECS_APART) * 1_000_000).unwrap();
    put::<Int64Type>(&mut group, &numbers.clone().map(micros).collect::<Vec<_>>());
    put::<ByteArrayType>(&mut group, &texts(&|_| "Lettuce".into()));
    for count in [12, 128] {
        put::<Int64Type>(&mut group, &vec![count; rows]);
    }
    for decimal in [118.4, 9.6, 92.5, 110.25, 17.75, 86.13, 14.02, 412.9] {
        put::<DoubleType>(&mut group, &vec![decimal; rows]);
    }
    put::<ByteArrayType>(&mut group, &texts(&|_| "scanner@example.org".into()));
    put::<ByteArrayType>(&mut group, &texts(&|number| format!("https://app.example.org/analysis/{number}")));
    put::<ByteArrayType>(&mut group, &texts(&|_| comment.into()));
    put::<BoolType>(&mut group, &vec![false; rows]);
    group.close().unwrap();
    writer.close().unwrap();
    bytes
}

fn put<T: DataType>(group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>, values: &[T::T]) {
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<T>().write_batch(values, None, None).unwrap();
    column.close().unwrap();
}
