//! The output of a pull: a file that is complete or absent, or standard output.
//!
//! Text formats are written row by row. Parquet and XLSX are converted at the end, from NDJSON in an unnamed file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, anyhow};
use batchscan_client::ReceivedBatch;
use batchscan_formats::Format;
use batchscan_formats::write::{BoxError, Columns, CutTexts, write_file};

use crate::atomic_file::{NewFile, folder_of};

const READ_BYTES: usize = 256 * 1024;

/// Why a pull did not complete.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PullError {
    #[error(transparent)]
    Failed(#[from] anyhow::Error),
    /// The reader of standard output has closed the pipe.
    #[error("broken pipe")]
    BrokenPipe,
    /// By a signal.
    #[error("interrupted")]
    Interrupted,
}

/// Where batches are written to.
#[derive(Debug)]
pub(crate) struct Output {
    /// `None` for standard output.
    file: Option<NewFile>,
    may_replace: bool,
    conversion: Option<Conversion>,
    /// The number of bytes written.
    pub(crate) bytes: u64,
}

/// The rows of a binary format.
#[derive(Debug)]
struct Conversion {
    format: Format,
    columns: Columns,
    rows: File,
    /// For temporary files.
    folder: PathBuf,
}

impl Output {
    /// Creates the file under a temporary name; without a path it is standard output.
    pub(crate) fn create(
        path: Option<&Path>,
        may_replace: bool,
        format: Format,
        columns: &Columns,
    ) -> anyhow::Result<Self> {
        let create = |path: &Path| NewFile::create(path).with_context(|| cannot_write(path));
        let file = path.map(create).transpose()?;
        let folder = path.map_or_else(std::env::temp_dir, |path| folder_of(path).to_owned());
        let conversion = match format.is_text() {
            true => None,
            false => {
                let rows = tempfile::tempfile_in(&folder).context("cannot create a temporary file")?;
                Some(Conversion { format, columns: columns.clone(), rows, folder })
            }
        };
        Ok(Self { file, may_replace, conversion, bytes: 0 })
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), PullError> {
        self.bytes += bytes.len() as u64;
        match (&mut self.conversion, &self.file) {
            (Some(conversion), file) => conversion.rows.write_all(bytes).with_context(|| match file {
                Some(file) => cannot_write(file.path()),
                None => "cannot write to a temporary file".into(),
            })?,
            (None, Some(file)) => file.file().write_all(bytes).with_context(|| cannot_write(file.path()))?,
            (None, None) => write_stdout(&mut &*bytes).map(drop)?,
        }
        Ok(())
    }

    /// Converts the rows if necessary, and gives the file its name. Returns the size of the output.
    pub(crate) fn finish(self, cancelled: &AtomicBool) -> Result<(u64, CutTexts), PullError> {
        let (mut bytes, mut cut_texts) = (self.bytes, CutTexts::default());
        let Some(file) = self.file else {
            if let Some(conversion) = self.conversion {
                let mut new = tempfile::tempfile().context("cannot create a temporary file")?;
                cut_texts = conversion.write(&new, cancelled)?;
                new.rewind().context("cannot read a temporary file")?;
                bytes = write_stdout(&mut new)?;
            }
            return Ok((bytes, cut_texts));
        };
        if let Some(conversion) = self.conversion {
            cut_texts = conversion.write(file.file(), cancelled)?;
        }
        let path = file.path().to_owned();
        let synced = file.file().sync_all().and_then(|()| file.file().metadata());
        bytes = synced.with_context(|| cannot_write(&path))?.len();
        file.finish(self.may_replace).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                anyhow!("{} already exists; use --force to replace it", path.display())
            }
            _ => anyhow::Error::new(error).context(cannot_write(&path)),
        })?;
        Ok((bytes, cut_texts))
    }
}

impl Conversion {
    fn write(mut self, new: &File, cancelled: &AtomicBool) -> Result<CutTexts, PullError> {
        let new =
            self.rows.rewind().and_then(|()| new.try_clone()).context("cannot read the downloaded rows")?;
        let mut batches = BufReader::with_capacity(READ_BYTES, self.rows).lines().map(|line| {
            if cancelled.load(Ordering::Relaxed) {
                return Err(BoxError::from("interrupted"));
            }
            Ok(ReceivedBatch::from_json(&line.context("cannot read the downloaded rows")?)?.batch)
        });
        let written = write_file(self.format, &mut batches, &self.columns, new, &self.folder);
        written.map_err(|error| match cancelled.load(Ordering::Relaxed) {
            true => PullError::Interrupted,
            false => PullError::Failed(error.into()),
        })
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

fn write_stdout(from: &mut impl io::Read) -> Result<u64, PullError> {
    let mut out = io::stdout().lock();
    let written = io::copy(from, &mut out).and_then(|bytes| out.flush().map(|()| bytes));
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => PullError::BrokenPipe,
        _ => anyhow::Error::new(error).context("cannot write to standard output").into(),
    })
}
