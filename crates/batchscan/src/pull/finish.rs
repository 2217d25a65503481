//! The end of a pull: what has grown becomes the file that was asked for.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, anyhow, bail};
use batchscan_client::ReceivedBatch;
use batchscan_model::Batch;

use super::course::{Growing, Stopped, write_out};
use super::partial::Partial;
use super::place;
use super::plan::{Made, Shape};
use batchscan_formats::write::{BoxError, CutTexts, write_parquet, write_xlsx};

/// Bytes of a made file that go to standard output at once.
const COPY_BYTES: usize = 256 * 1024;

/// What was made.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    pub(crate) bytes: u64,
    pub(crate) remarks: CutTexts,
}

/// A way to hear that nobody wants it any more.
pub(crate) type Unwanted<'a> = &'a AtomicBool;

/// Makes what has grown into the file of that name, or sends it out. Nothing is left of it elsewhere, whether this
/// succeeds or not.
pub(crate) fn finish(
    growing: Growing,
    shape: Shape,
    file: Option<&Path>,
    may_replace: bool,
    unwanted: Unwanted<'_>,
) -> Result<Finished, Stopped> {
    match (growing, shape, file) {
        (Growing::Kept(partial), Shape::Text(_), Some(file)) => name_text(*partial, file, may_replace),
        (Growing::Kept(mut partial), Shape::Made(made), Some(file)) => {
            let new = partial.made_path();
            let finished = make(&mut partial, made, &new, file, may_replace, unwanted);
            // It has its own name by now, or is of no use.
            let _ = std::fs::remove_file(&new);
            end(*partial, finished)
        }
        (Growing::Spool(spool), Shape::Made(made), _) => send_made(spool, made, unwanted),
        _ => Ok(Finished::default()),
    }
}

fn name_text(partial: Partial, file: &Path, may_replace: bool) -> Result<Finished, Stopped> {
    let bytes = partial.len();
    if let Err(error) = partial.sync().and_then(|()| partial.verify()) {
        partial.remove();
        return Err(Stopped::Writing(error));
    }
    match place::take(partial.path(), file, may_replace) {
        Ok(()) => {
            partial.remove_journal();
            Ok(Finished { bytes, remarks: CutTexts::default() })
        }
        Err(error) => end(partial, Err(Stopped::Naming(error))),
    }
}

/// What was pulled stays where another try can make something of it: when somebody called it off, or took its name.
fn end(partial: Partial, finished: Result<Finished, Stopped>) -> Result<Finished, Stopped> {
    match finished {
        Err(Stopped::Interrupted) => Err(Stopped::Interrupted),
        Err(Stopped::Naming(error)) => Err(Stopped::Naming(anyhow!(
            "{error:#}; what was pulled is kept in {}: --resume goes on from there",
            partial.path().display()
        ))),
        finished => {
            partial.remove();
            finished
        }
    }
}

/// Makes the file under a temporary name beside its own, then names it.
fn make(
    partial: &mut Partial,
    made: Made,
    new: &Path,
    file: &Path,
    may_replace: bool,
    unwanted: Unwanted<'_>,
) -> Result<Finished, Stopped> {
    let cannot = || format!("cannot write {}", new.display());
    let spool = partial.verify().and_then(|()| partial.reader()).map_err(Stopped::Writing)?;
    // What a pull that was killed has left, or somebody put there: a link must not be followed.
    let _ = std::fs::remove_file(new);
    let made_file = File::create_new(new).with_context(cannot).map_err(Stopped::Writing)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let remarks = write(spool, made, &made_file, folder, unwanted)?;
    let synced = made_file.sync_all().and_then(|()| made_file.metadata());
    let bytes = synced.with_context(cannot).map_err(Stopped::Writing)?.len();
    place::take(new, file, may_replace).map_err(Stopped::Naming)?;
    Ok(Finished { bytes, remarks })
}

fn send_made(spool: File, made: Made, unwanted: Unwanted<'_>) -> Result<Finished, Stopped> {
    let folder = std::env::temp_dir();
    let opened = tempfile::tempfile().context("cannot make a temporary file");
    let mut new = opened.map_err(Stopped::Writing)?;
    let remarks = write(spool, made, &new, &folder, unwanted)?;
    let reading = |error| Stopped::Writing(anyhow::Error::new(error).context("cannot read a temporary file"));
    new.seek(SeekFrom::Start(0)).map_err(reading)?;
    let (mut buffer, mut bytes) = (vec![0; COPY_BYTES], 0);
    loop {
        match new.read(&mut buffer).map_err(reading)? {
            0 => return Ok(Finished { bytes, remarks }),
            read => {
                write_out(&buffer[..read])?;
                bytes += read as u64;
            }
        }
    }
}

fn write(
    mut spool: File,
    made: Made,
    new: &File,
    folder: &Path,
    unwanted: Unwanted<'_>,
) -> Result<CutTexts, Stopped> {
    let new = spool.seek(SeekFrom::Start(0)).and_then(|_| new.try_clone());
    let new = new.context("cannot read what was pulled").map_err(Stopped::Writing)?;
    let mut batches =
        Spooled { lines: BufReader::with_capacity(COPY_BYTES, spool), line: String::new(), unwanted };
    let written = match made {
        Made::Parquet => write_parquet(&mut batches, new),
        Made::Xlsx => write_xlsx(&mut batches, new, folder),
    };
    written.map_err(|error| {
        let is_called_off = unwanted.load(Ordering::Relaxed);
        if is_called_off { Stopped::Interrupted } else { Stopped::Writing(error.into()) }
    })
}

/// The batches of a spool.
struct Spooled<'a> {
    lines: BufReader<File>,
    line: String,
    unwanted: Unwanted<'a>,
}

impl Spooled<'_> {
    fn read(&mut self) -> anyhow::Result<Option<Batch>> {
        if self.unwanted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        self.line.clear();
        if self.lines.read_line(&mut self.line).context("cannot read what was pulled")? == 0 {
            return Ok(None);
        }
        Ok(Some(ReceivedBatch::from_json(&self.line)?.batch))
    }
}

impl Iterator for Spooled<'_> {
    type Item = Result<Batch, BoxError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().map_err(Into::into).transpose()
    }
}
