//! Parquet: columns by name, some rows at a time, so that a row group is never in memory as a whole.

mod column;
mod limited_file;
#[cfg(test)]
mod tests;
mod thrift;
mod value;

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use batchscan_model::printable::clip;
use batchscan_model::{Field, FieldError, Kind, RawBatch, Value};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::ReadOptions;
use super::catch_panic::catch_panic;
use super::collector::{Collector, Stop, unexpected};
use super::columns::{Column as HeaderColumn, Role};
use super::convert::Converter;
use super::error::Location;
use super::header::{Header, match_columns, number_equal};
use crate::parquet_checksum;
use column::Column;
use limited_file::{LimitedFile, PageTooLarge};
use value::ColumnType;

/// Rows loaded at a time: some hundred KiB.
const ROWS_LOADED: usize = 512;

pub(super) fn read(
    file: File,
    options: &ReadOptions,
    bytes_read: &AtomicU64,
    collector: &mut Collector<'_>,
) -> Result<(), Stop> {
    let length = file.metadata()?.len();
    let data = file.try_clone()?;
    let file = catch_panic(damaged, || SerializedFileReader::new(LimitedFile(file)))
        .map_err(|error| fail(&error, Location::File, collector))?;
    if !parquet_checksum::is_valid(&data, file.metadata())? {
        let error = ParquetError::General("wrong checksum".into());
        return Err(fail(&error, Location::File, collector));
    }
    let (columns, mut converter) = choose_columns(file.metadata(), options, collector)?;
    check_compression(file.metadata(), &columns, collector)?;
    check_row_counts(file.metadata(), &columns).map_err(|error| fail(&error, Location::File, collector))?;
    let rows = file.metadata().file_metadata().num_rows().max(1).cast_unsigned();
    // The bytes read advance with the rows: the positions of pages in the file do not show the progress.
    let advance_to = |row: u64| {
        let bytes = u128::from(length) * u128::from(row) / u128::from(rows);
        bytes_read.fetch_max(u64::try_from(bytes).unwrap_or(length).min(length), Ordering::Relaxed);
    };
    let mut row = 0;
    let outcome = (0..file.num_row_groups()).try_for_each(|group| {
        read_group(&file, group, &columns, &mut row, &advance_to, &mut converter, collector)
    });
    collector.finish_conversion(&converter, outcome)
}

struct ChosenColumn {
    index: usize,
    field: Field,
    column_type: ColumnType,
}

/// Matches columns to fields. A column of an unsupported type is one error, not one per row.
fn choose_columns<'o>(
    metadata: &ParquetMetaData,
    options: &'o ReadOptions,
    collector: &mut Collector<'_>,
) -> Result<(Vec<ChosenColumn>, Converter<'o>), Stop> {
    let schema = metadata.file_metadata().schema_descr();
    let mut leaves: Vec<usize> = (0..schema.num_columns()).collect();
    // A nested column has several leaves.
    leaves.dedup_by_key(|leaf| schema.get_column_root_idx(*leaf));
    let titles = number_equal(leaves.iter().map(|leaf| schema.get_column_root(*leaf).name()));
    let Header { roles, zone } = match_columns(&titles, Location::Columns, options, collector)?;
    let converter = Converter::new(options, zone, &roles);
    let mut chosen = Vec::new();
    let mut are_readable = true;
    for (index, role) in leaves.into_iter().zip(roles) {
        let Role::Field(HeaderColumn { field, .. }) = role else { continue };
        match ColumnType::new(&schema.column(index)) {
            Ok(column_type) => {
                // As the API has them.
                if column_type == (ColumnType::Decimal { scale: 2 }) {
                    collector.set_percent_type(field);
                }
                chosen.push(ChosenColumn { index, field, column_type });
            }
            Err((found, expected)) => {
                are_readable = false;
                let error = FieldError::new(field.name(), found, expected);
                collector.add_error(Location::Columns, error)?;
            }
        }
    }
    if are_readable { Ok((chosen, converter)) } else { Err(Stop::Errors) }
}

/// Rejects compressions that this program does not read. The library would call the file damaged.
fn check_compression(
    metadata: &ParquetMetaData,
    columns: &[ChosenColumn],
    collector: &mut Collector<'_>,
) -> Result<(), Stop> {
    for group in metadata.row_groups() {
        for column in columns {
            let compression = group.column(column.index).compression();
            let name = match compression {
                Compression::UNCOMPRESSED
                | Compression::SNAPPY
                | Compression::GZIP(_)
                | Compression::ZSTD(_) => continue,
                Compression::BROTLI(_) => "Brotli",
                Compression::LZ4 | Compression::LZ4_RAW => "LZ4",
                Compression::LZO => "LZO",
            };
            let error = unexpected(format!("{name} compression"), "Snappy, gzip, Zstandard or none");
            return Err(collector.fail(Location::File, error));
        }
    }
    Ok(())
}

/// Rows beyond the number that a row group claims would be missing silently.
fn check_row_counts(metadata: &ParquetMetaData, columns: &[ChosenColumn]) -> Result<(), ParquetError> {
    let groups = metadata.row_groups();
    let is_equal = |group: &RowGroupMetaData| {
        columns.iter().all(|column| group.column(column.index).num_values() == group.num_rows())
    };
    let rows: i128 = groups.iter().map(|group| i128::from(group.num_rows())).sum();
    if groups.iter().all(is_equal) && rows == i128::from(metadata.file_metadata().num_rows()) {
        return Ok(());
    }
    Err(ParquetError::General("contradictory numbers of rows".into()))
}

fn read_group(
    file: &SerializedFileReader<LimitedFile>,
    group: usize,
    chosen: &[ChosenColumn],
    row: &mut u64,
    advance_to: &dyn Fn(u64),
    converter: &mut Converter<'_>,
    collector: &mut Collector<'_>,
) -> Result<(), Stop> {
    let opened = catch_panic(damaged, || open_group(file, group, chosen));
    let (mut columns, mut rows) = opened.map_err(|error| fail(&error, Location::Row(*row + 1), collector))?;
    while rows > 0 {
        let loaded = rows.min(ROWS_LOADED);
        catch_panic(damaged, || columns.iter_mut().try_for_each(|(_, column)| column.load(loaded)))
            .map_err(|error| fail(&error, Location::Row(*row + 1), collector))?;
        for index in 0..loaded {
            *row += 1;
            let mut raw = RawBatch::default();
            for (chosen, column) in &mut columns {
                let value = column.next_value(index);
                if collector.notes().wants_examples() {
                    collector.notes().add_cell(chosen.field, &shown(&value));
                }
                set(&mut raw, chosen, value, Location::Row(*row), converter);
            }
            collector.add(Location::Row(*row), &mut raw)?;
        }
        rows -= loaded;
        advance_to(*row);
    }
    Ok(())
}

/// Sets the field of a column. Text may stand for another type, and a time without a zone for an instant.
fn set<'a>(
    raw: &mut RawBatch<'a>,
    column: &ChosenColumn,
    value: Value<'a>,
    location: Location,
    converter: &mut Converter<'_>,
) {
    let field = column.field;
    let converted = match (value, field.kind()) {
        (Value::Text(text), Kind::Instant | Kind::Count | Kind::Decimal | Kind::Flag) => {
            converter.text(field, text, location)
        }
        (Value::Null, Kind::Flag) => converter.empty(field),
        (Value::Instant(clock), Kind::Instant) if matches!(column.column_type, ColumnType::Clock(_)) => {
            converter.clock(field, clock)
        }
        (value, _) => Ok(value),
    };
    match converted {
        Ok(value) => raw.set(field, value),
        Err(error) => raw.reject(field, error),
    }
}

/// A value for people.
fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

type OpenGroup<'c> = (Vec<(&'c ChosenColumn, Box<dyn Column>)>, usize);

/// The columns and the number of rows of a row group.
fn open_group<'c>(
    file: &SerializedFileReader<LimitedFile>,
    group: usize,
    chosen: &'c [ChosenColumn],
) -> Result<OpenGroup<'c>, ParquetError> {
    let group = file.get_row_group(group)?;
    let rows = usize::try_from(group.metadata().num_rows())?;
    let columns = chosen.iter().map(|chosen| {
        let reader = group.get_column_reader(chosen.index)?;
        Ok((chosen, column::open(reader, chosen.column_type)))
    });
    Ok((columns.collect::<Result<_, ParquetError>>()?, rows))
}

/// The error after a panic of the library.
fn damaged() -> ParquetError {
    ParquetError::General("inconsistent data".into())
}

/// A damaged file is an error of the file; a failing disk is not.
fn fail(error: &ParquetError, location: Location, collector: &mut Collector<'_>) -> Stop {
    if let ParquetError::External(cause) = error
        && let Some(cause) = cause.downcast_ref::<io::Error>()
        && cause.raw_os_error().is_some()
    {
        return Stop::Io(io::Error::new(cause.kind(), cause.to_string()));
    }
    if let ParquetError::External(cause) = error
        && cause.is::<PageTooLarge>()
    {
        return collector.fail(location, unexpected(cause.to_string(), "pages of at most 128 MiB"));
    }
    let found = format!("a damaged file or another format ({})", clip(&error.to_string()));
    collector.fail(location, unexpected(found, "a complete Parquet file"))
}
