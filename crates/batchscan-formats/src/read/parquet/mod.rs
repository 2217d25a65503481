//! Parquet: columns by name, a few rows of each column at a time, so that no row group is ever held as a whole.
//! The file's types are trusted where they say more than text can: a decimal's scale, an instant's time zone.

mod column;
mod guard;
#[cfg(test)]
mod tests;
mod value;

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use batchscan_model::record::clip;
use batchscan_model::{Field, FieldError, Record};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::fault::Place;
use super::intake::{Halt, Intake, whole};
use super::{Input, columns};
use column::Column;
use guard::guarded;
use value::Meaning;

/// How many rows of each column are held at once: some hundred KiB, and few enough turns to cost nothing.
const ROWS_HELD: usize = 512;

/// How much of a stream is spooled at once.
const SPOOL_BYTES: usize = 256 * 1024;

/// Reads a file of columns. A stream is spooled to disk first: the index of a Parquet file stands at its end.
pub(super) fn read(input: Input, bytes_read: &AtomicU64, intake: &mut Intake<'_>) -> Result<(), Halt> {
    let (file, is_spooled) = match input {
        Input::File(file) if file.metadata()?.is_file() => (file, false),
        Input::File(pipe) => (spool(pipe, bytes_read)?, true),
        Input::Stream(stream) => (spool(stream, bytes_read)?, true),
    };
    let length = if is_spooled { 0 } else { file.metadata()?.len() };
    let file =
        guarded(|| SerializedFileReader::new(file)).map_err(|error| damaged(&error, Place::File, intake))?;
    let columns = choose(file.metadata(), intake)?;
    let progress = Progress { bytes_read, length, rows: total_rows(file.metadata()) };
    let mut row = 0;
    for group in 0..file.num_row_groups() {
        read_group(&file, group, &columns, &mut row, &progress, intake)?;
    }
    Ok(())
}

/// A column that is read: which one it is, the field it holds, and what its values mean.
struct Chosen {
    index: usize,
    field: Field,
    meaning: Meaning,
}

/// Raises the bytes read in step with the rows: where pages lie in the file says little about how far the work is.
struct Progress<'a> {
    bytes_read: &'a AtomicU64,
    length: u64,
    rows: u64,
}

impl Progress<'_> {
    fn reached(&self, row: u64) {
        let bytes = u128::from(self.length) * u128::from(row) / u128::from(self.rows.max(1));
        self.bytes_read
            .fetch_max(u64::try_from(bytes).unwrap_or(self.length).min(self.length), Ordering::Relaxed);
    }
}

fn total_rows(metadata: &ParquetMetaData) -> u64 {
    metadata
        .row_groups()
        .iter()
        .fold(0, |rows, group| rows.saturating_add(group.num_rows().max(0).cast_unsigned()))
}

/// Matches the file's columns to fields. A column of a type that no field has is one fault, not one in every row.
fn choose(metadata: &ParquetMetaData, intake: &mut Intake<'_>) -> Result<Vec<Chosen>, Halt> {
    let schema = metadata.file_metadata().schema_descr();
    let mut leaves: Vec<usize> = (0..schema.num_columns()).collect();
    // A nested column has many leaves and one name.
    leaves.dedup_by_key(|leaf| schema.get_column_root_idx(*leaf));
    let names = leaves.iter().map(|leaf| schema.get_column_root(*leaf).name());
    let fields = columns::by_name(names, Place::Columns, intake)?;
    let mut chosen = Vec::new();
    let mut are_readable = true;
    for (index, field) in leaves.into_iter().zip(fields) {
        let Some(field) = field else { continue };
        match Meaning::of(&schema.column(index)) {
            Ok(meaning) => chosen.push(Chosen { index, field, meaning }),
            Err(refused) => {
                are_readable = false;
                let (found, expected) = (refused.found.into(), refused.expected.into());
                intake.fault(Place::Columns, FieldError { field: field.name().into(), found, expected })?;
            }
        }
    }
    if are_readable { Ok(chosen) } else { Err(Halt::Told) }
}

fn read_group(
    file: &SerializedFileReader<File>,
    group: usize,
    chosen: &[Chosen],
    row: &mut u64,
    progress: &Progress<'_>,
    intake: &mut Intake<'_>,
) -> Result<(), Halt> {
    let next = Place::Row(*row + 1);
    let opened = guarded(|| open_group(file, group, chosen));
    let (mut columns, mut rows) = opened.map_err(|error| damaged(&error, next, intake))?;
    while rows > 0 {
        let held = rows.min(ROWS_HELD);
        let next = Place::Row(*row + 1);
        guarded(|| columns.iter_mut().try_for_each(|(_, column)| column.hold(held)))
            .map_err(|error| damaged(&error, next, intake))?;
        for index in 0..held {
            *row += 1;
            let mut record = Record::default();
            for (field, column) in &mut columns {
                record.set(*field, column.value(index));
            }
            intake.record(Place::Row(*row), &record)?;
        }
        rows -= held;
        progress.reached(*row);
    }
    Ok(())
}

type OpenGroup = (Vec<(Field, Column)>, usize);

/// The columns of a row group, ready to be read, and the number of its rows.
fn open_group(
    file: &SerializedFileReader<File>,
    group: usize,
    chosen: &[Chosen],
) -> Result<OpenGroup, ParquetError> {
    let group = file.get_row_group(group)?;
    let rows = usize::try_from(group.metadata().num_rows())?;
    let columns = chosen.iter().map(|chosen| {
        let reader = group.get_column_reader(chosen.index)?;
        Ok((chosen.field, Column::new(reader, chosen.meaning)))
    });
    Ok((columns.collect::<Result<_, ParquetError>>()?, rows))
}

/// A file that is not whole is the file's fault; a disk that does not answer is not.
fn damaged(error: &ParquetError, place: Place, intake: &mut Intake<'_>) -> Halt {
    if let ParquetError::External(cause) = error
        && let Some(cause) = cause.downcast_ref::<io::Error>()
        && cause.raw_os_error().is_some()
    {
        return Halt::Unreadable(io::Error::new(cause.kind(), cause.to_string()));
    }
    let found = format!("damage or another format ({})", clip(&error.to_string()));
    match intake.fault(place, whole(found, "a whole Parquet file")) {
        Ok(()) => Halt::Told,
        Err(halt) => halt,
    }
}

/// Copies a stream into a file that has no name and vanishes with the process.
fn spool(mut stream: impl Read, bytes_read: &AtomicU64) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    let mut buffer = vec![0; SPOOL_BYTES];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(file),
            Ok(count) => {
                file.write_all(&buffer[..count])?;
                bytes_read.fetch_add(count as u64, Ordering::Relaxed);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
