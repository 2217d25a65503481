//! `batchscan import`.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use batchscan_formats::Format;
use batchscan_formats::read::ReadError;
use batchscan_store::{ImportCounts, ImportError, Store, import_file};
use indicatif::ProgressBar;
use serde_json::json;

use super::context::open;
use crate::args::Import;
use crate::numbers::{count, grouped};
use crate::progress::progress_bar;
use crate::terminal::{note, print};

const BAR_UPDATE_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) async fn run(command: Import) -> anyhow::Result<()> {
    // Before anything is imported.
    let formats =
        command.files.iter().map(|file| format_of(file, command.format)).collect::<Result<Vec<_>, _>>()?;
    let store = open(&command.database).await?;
    store.org(&command.org).await?;
    for (done, (file, format)) in command.files.iter().zip(formats).enumerate() {
        let started = Instant::now();
        match import_one(&store, &command, file, format).await {
            Ok(counts) => print(&summary(&command, file, &counts, started.elapsed()))?,
            Err(error) => {
                return Err(match done {
                    0 => error,
                    _ if command.dry_run => error,
                    _ => anyhow!("{error}. {} before it: imported", count(done as u64, "file", "files")),
                });
            }
        }
    }
    Ok(())
}

fn format_of(file: &Path, given: Option<Format>) -> anyhow::Result<Format> {
    if let Some(format) = given {
        return Ok(format);
    }
    if file == Path::new("-") {
        bail!("cannot infer the format of standard input: add --format ndjson, json, csv or parquet");
    }
    Format::for_reading(file).with_context(|| format!("{}: {}", file.display(), format_hint(file)))
}

/// What to do with a file whose extension is not known.
fn format_hint(file: &Path) -> &'static str {
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    match ending.as_str() {
        _ if file.is_dir() => "is a folder: name the files in it",
        "xlsx" | "xls" | "ods" => "is a spreadsheet: save the sheet as \"CSV UTF-8\" and import that",
        "gz" | "zst" | "zip" => {
            "is compressed: decompress it first, such as `zcat FILE | batchscan import --format csv … -`"
        }
        _ => "cannot infer the format: add --format ndjson, json, csv or parquet",
    }
}

/// The name of a file in messages.
fn display_name(file: &Path) -> String {
    if file == Path::new("-") { "standard input".into() } else { file.display().to_string() }
}

async fn import_one(
    store: &Store,
    command: &Import,
    file: &Path,
    format: Format,
) -> anyhow::Result<ImportCounts> {
    let (input, length) = open_input(file)?;
    let template = match length {
        None => "{msg} {spinner} {bytes} {bytes_per_sec}",
        Some(_) => "{msg} {bar:32} {bytes} of {total_bytes} {bytes_per_sec} {eta}",
    };
    let bar = progress_bar(&display_name(file), template);
    bar.set_length(length.unwrap_or(0));
    let spooling = bar.clone();
    let input = match length {
        Some(_) => Ok(input),
        None => tokio::task::spawn_blocking(move || spool(spooling.wrap_read(input))).await?,
    };
    let imported = match input {
        Ok(input) => {
            let bytes_read = Arc::new(AtomicU64::new(0));
            let updating = tokio::spawn(update_bar(bar.clone(), bytes_read.clone()));
            let input = (format, input);
            let imported = import_file(store, &command.org, input, command.dry_run, bytes_read).await;
            updating.abort();
            imported
        }
        Err(error) => Err(ImportError::File(ReadError::Io(error))),
    };
    bar.finish_and_clear();
    imported.map_err(|error| describe_error(file, error))
}

/// The file and its length. A stream has no length.
fn open_input(file: &Path) -> anyhow::Result<(File, Option<u64>)> {
    let is_stdin = file == Path::new("-");
    let opened = match is_stdin {
        true => io::stdin().as_fd().try_clone_to_owned().map(File::from),
        false => File::open(file),
    };
    let opened = opened.and_then(|opened| opened.metadata().map(|metadata| (opened, metadata)));
    let (opened, metadata) = opened.map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow!("{} not found", file.display()),
        _ => anyhow!("cannot read {}: {error}", file.display()),
    })?;
    if metadata.is_dir() {
        bail!("{} is a folder: name the files in it", file.display());
    }
    // A pipe or a device has no length and cannot seek.
    let length = (metadata.is_file() && !is_stdin).then_some(metadata.len());
    Ok((opened, length))
}

/// Copies a stream to a temporary file: a slow pipe must not hold the write lock of the database.
fn spool(mut stream: impl Read) -> io::Result<File> {
    let no_space = |error: io::Error| {
        let folder = std::env::temp_dir();
        let folder = folder.display();
        let what = format!("the temporary folder {folder} has no space for it ({error}): set TMPDIR");
        io::Error::new(error.kind(), what)
    };
    let mut file = tempfile::tempfile().map_err(no_space)?;
    io::copy(&mut stream, &mut file).map_err(|error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => no_space(error),
        _ => error,
    })?;
    file.rewind()?;
    Ok(file)
}

async fn update_bar(bar: ProgressBar, bytes_read: Arc<AtomicU64>) {
    loop {
        bar.set_position(bytes_read.load(Ordering::Relaxed));
        tokio::time::sleep(BAR_UPDATE_INTERVAL).await;
    }
}

/// Prints each error of the file on its own line; returns the summary.
fn describe_error(file: &Path, error: ImportError) -> anyhow::Error {
    let name = display_name(file);
    match error {
        ImportError::File(ReadError::Invalid { errors, more }) => {
            for error in &errors {
                note(&format!("{name}: {error}"));
            }
            let hint = if errors.iter().any(|error| error.error.is_unknown_field()) {
                " (`batchscan import --help` lists the fields)"
            } else {
                ""
            };
            let more = if more { " or more" } else { "" };
            let errors = count(errors.len() as u64, "error", "errors");
            anyhow!("{name} has {errors}{more}. Nothing was imported; fix the file and import it again{hint}")
        }
        ImportError::File(ReadError::Io(error)) => {
            anyhow!("cannot read {name}: {error}. Nothing was imported")
        }
        other => anyhow::Error::new(other),
    }
}

fn summary(command: &Import, file: &Path, counts: &ImportCounts, took: Duration) -> String {
    let total = counts.new + counts.corrected + counts.unchanged + counts.repeated;
    if command.json {
        let summary = json!({
            "file": file.display().to_string(), "organisation": command.org, "dry_run": command.dry_run,
            "batches": total, "new": counts.new, "corrected": counts.corrected, "unchanged": counts.unchanged,
            "repeated": counts.repeated, "seconds": took.as_secs_f64(),
        });
        return format!("{summary}\n");
    }
    let verb = if command.dry_run { "would import" } else { "imported" };
    let repeated = match counts.repeated {
        0 => String::new(),
        repeated => format!(", {} replaced by a later line,", grouped(repeated)),
    };
    format!(
        "{verb} {} from {} into \"{}\": {} new, {} corrected, {} unchanged{repeated} in {:.1} s\n",
        count(total, "batch", "batches"),
        display_name(file),
        command.org,
        grouped(counts.new),
        grouped(counts.corrected),
        grouped(counts.unchanged),
        took.as_secs_f64(),
    )
}
