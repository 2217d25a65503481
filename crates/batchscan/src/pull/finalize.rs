//! Turns the downloaded rows into the output file.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, anyhow};
use batchscan_client::ReceivedBatch;
use batchscan_formats::write::{BoxError, Columns, CutTexts, write_parquet, write_xlsx};

use super::download::{PullError, Sink, stdout_error};
use super::options::{BinaryFormat, OutputFormat};
use super::partial_file::PartialFile;
use super::target;

const READ_BYTES: usize = 256 * 1024;

/// The size of the output and notes of the writer.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    pub(crate) bytes: u64,
    pub(crate) cut_texts: CutTexts,
}

/// Converts and renames the downloaded rows, or writes them to standard output. Removes temporary files.
pub(crate) fn finalize(
    sink: Sink,
    format: OutputFormat,
    columns: &Columns,
    file: Option<&Path>,
    may_replace: bool,
    cancelled: &AtomicBool,
) -> Result<Finished, PullError> {
    match (sink, format, file) {
        (Sink::Partial(partial), OutputFormat::Text(_), Some(file)) => {
            rename_text(*partial, file, may_replace)
        }
        (Sink::Partial(mut partial), OutputFormat::Binary(format), Some(file)) => {
            let new = partial.converted_path();
            let finished = convert(&mut partial, format, columns, &new, file, may_replace, cancelled);
            // Only there if it was not renamed.
            let _ = std::fs::remove_file(&new);
            clean_up(*partial, finished)
        }
        (Sink::TempFile(rows), OutputFormat::Binary(format), _) => {
            convert_to_stdout(rows, format, columns, cancelled)
        }
        _ => Ok(Finished::default()),
    }
}

fn rename_text(partial: PartialFile, file: &Path, may_replace: bool) -> Result<Finished, PullError> {
    let bytes = partial.len();
    if let Err(error) = partial.sync().and_then(|()| partial.verify()) {
        partial.remove();
        return Err(error.into());
    }
    match target::rename(partial.path(), file, may_replace) {
        Ok(()) => {
            partial.remove_journal();
            Ok(Finished { bytes, cut_texts: CutTexts::default() })
        }
        Err(error) => clean_up(partial, Err(PullError::Rename(error))),
    }
}

/// Keeps the partial file if the pull can be resumed.
fn clean_up(partial: PartialFile, finished: Result<Finished, PullError>) -> Result<Finished, PullError> {
    match finished {
        Err(PullError::Interrupted) => Err(PullError::Interrupted),
        Err(PullError::Rename(error)) => Err(PullError::Rename(anyhow!(
            "{error:#}; the batches are kept in {}: add --resume to continue",
            partial.path().display()
        ))),
        finished => {
            partial.remove();
            finished
        }
    }
}

/// Converts the partial file under a temporary name, then renames it.
fn convert(
    partial: &mut PartialFile,
    format: BinaryFormat,
    columns: &Columns,
    new: &Path,
    file: &Path,
    may_replace: bool,
    cancelled: &AtomicBool,
) -> Result<Finished, PullError> {
    let cannot = || format!("cannot write {}", new.display());
    let rows = partial.verify().and_then(|()| partial.reader())?;
    // Left by a killed pull, or a link that must not be followed.
    let _ = std::fs::remove_file(new);
    let new_file = File::create_new(new).with_context(cannot)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let cut_texts = write_binary(rows, format, columns, &new_file, folder, cancelled)?;
    let bytes = new_file.sync_all().and_then(|()| new_file.metadata()).with_context(cannot)?.len();
    target::rename(new, file, may_replace).map_err(PullError::Rename)?;
    Ok(Finished { bytes, cut_texts })
}

fn convert_to_stdout(
    rows: File,
    format: BinaryFormat,
    columns: &Columns,
    cancelled: &AtomicBool,
) -> Result<Finished, PullError> {
    let mut new = tempfile::tempfile().context("cannot create a temporary file")?;
    let cut_texts = write_binary(rows, format, columns, &new, &std::env::temp_dir(), cancelled)?;
    new.rewind().context("cannot read a temporary file")?;
    let mut out = std::io::stdout().lock();
    let bytes = std::io::copy(&mut new, &mut out).map_err(stdout_error)?;
    out.flush().map_err(stdout_error)?;
    Ok(Finished { bytes, cut_texts })
}

fn write_binary(
    mut rows: File,
    format: BinaryFormat,
    columns: &Columns,
    new: &File,
    folder: &Path,
    cancelled: &AtomicBool,
) -> Result<CutTexts, PullError> {
    let new = rows.rewind().and_then(|()| new.try_clone()).context("cannot read the downloaded rows")?;
    let mut batches = BufReader::with_capacity(READ_BYTES, rows).lines().map(|line| {
        if cancelled.load(Ordering::Relaxed) {
            return Err(BoxError::from("interrupted"));
        }
        Ok(ReceivedBatch::from_json(&line.context("cannot read the downloaded rows")?)?.batch)
    });
    let written = match format {
        BinaryFormat::Parquet => write_parquet(&mut batches, columns, new),
        BinaryFormat::Xlsx => write_xlsx(&mut batches, columns, new, folder),
    };
    written.map_err(|error| match cancelled.load(Ordering::Relaxed) {
        true => PullError::Interrupted,
        false => PullError::Write(error.into()),
    })
}
