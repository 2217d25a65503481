//! `batchscan import`.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, IsTerminal, Read, Seek, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use batchscan_formats::Format;
use batchscan_formats::read::{self, Location, Mapping, ReadError, ReadOptions, read_text};
use batchscan_server::clock::Clock;
use batchscan_store::{
    ImportError, ImportOptions, ImportResult, ImportSource, Organisation, Store, hash_file, import_file,
};
use indicatif::ProgressBar;
use serde_json::json;

use super::context::open;
use super::import_messages::{describe_rejection, display_name, format_hint, print_warnings};
use super::import_preview;
use crate::args::Import;
use crate::numbers::{count, grouped};
use crate::platform::{self, shell_quoted};
use crate::progress::progress_bar;
use crate::terminal::{note, print};

const BAR_UPDATE_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) async fn run(command: Import) -> anyhow::Result<()> {
    // Before anything is imported.
    let formats =
        command.files.iter().map(|file| format_of(file, command.format)).collect::<Result<Vec<_>, _>>()?;
    let (mapping, options) = import_preview::read_options(&command)?;
    let store = open(&command.database).await?;
    let org = store.org(&command.org).await?;
    let options = store.read_options(&command.org, mapping, options).await?;
    if is_preview(&command) {
        for (file, format) in command.files.iter().zip(formats) {
            preview(&store, &command, (file, format), &options).await?;
        }
        return Ok(());
    }
    for (done, (file, format)) in command.files.iter().zip(formats).enumerate() {
        let started = Instant::now();
        match import_one(&store, &command, (file.as_path(), format), &options).await {
            Ok(imported) => {
                print_warnings(file, imported.warnings, &imported.messages);
                print(&summary(&command, file, &imported, started.elapsed()))?;
            }
            Err(error) => {
                let after = command.files.len() - done - 1;
                return Err(match command.files.len() {
                    1 => error,
                    _ if command.dry_run => error,
                    _ => anyhow!(
                        "{error}. Files imported before it: {done}; files after it, not read: {after}"
                    ),
                });
            }
        }
    }
    if !command.json && !command.dry_run && io::stdout().is_terminal() {
        print(&next_step(&org))?;
    }
    Ok(())
}

fn is_preview(command: &Import) -> bool {
    command.preview || command.write_mapping.is_some()
}

/// Prints how a file is understood, then what an import of it would do.
async fn preview(
    store: &Store,
    command: &Import,
    (file, format): (&Path, Format),
    options: &ReadOptions,
) -> anyhow::Result<()> {
    let (input, length) = open_input(file)?;
    let (max, read) = (command.max_input, options.clone());
    let work = move || {
        let input = if length.is_some() { input } else { spool(format, input, max, None)? };
        let shown = read::preview(format, input.try_clone()?, &read);
        Ok((input, shown))
    };
    let read = tokio::task::spawn_blocking(work).await?;
    let (input, shown) = read.map_err(|error| describe_error(file, ImportError::File(error), true, FIX))?;
    import_preview::print_preview(command, file, &shown)?;
    let started = Instant::now();
    match import_input(store, command, (file, format), (input, &ProgressBar::hidden()), options).await {
        Ok(would) => {
            print_warnings(file, would.warnings, &would.messages);
            print(&summary(command, file, &would, started.elapsed()))
        }
        Err(error) => {
            let is_invalid = matches!(error, ImportError::File(ReadError::Invalid { .. }));
            if is_invalid && command.write_mapping.is_some() {
                print("Without changes, the file would be rejected:\n")?;
            }
            let error = describe_error(file, error, true, "fix the file or state more in a mapping");
            if is_invalid && !command.preview { Ok(()) } else { Err(error) }
        }
    }
}

/// How to see the batches.
fn next_step(org: &Organisation) -> String {
    if org.credentials > 0 {
        return "See them in the dashboard of `batchscan serve`, or with `batchscan list`.\n".into();
    }
    format!("Next: `batchscan credential issue --org \"{}\"`, then `batchscan serve`.\n", org.name)
}

fn format_of(file: &Path, given: Option<Format>) -> anyhow::Result<Format> {
    if let Some(format) = given {
        return Ok(format);
    }
    if file == Path::new("-") {
        bail!("cannot infer the format of standard input: add --format ndjson, json, csv, parquet or xlsx");
    }
    Format::for_reading(file).with_context(|| format!("{}: {}", file.display(), format_hint(file)))
}

async fn import_one(
    store: &Store,
    command: &Import,
    (file, format): (&Path, Format),
    options: &ReadOptions,
) -> anyhow::Result<ImportResult> {
    let (input, length) = open_input(file)?;
    let template = match length {
        None => "{msg} {spinner} {bytes} {bytes_per_sec}",
        Some(_) => "{msg} {bar:32} {bytes} of {total_bytes} {bytes_per_sec} {eta}",
    };
    let bar = progress_bar(&display_name(file), template);
    bar.set_length(length.unwrap_or(0));
    let (spooling, max, read) = (bar.clone(), command.max_input, options.clone());
    let input = match length {
        Some(_) => Ok(input),
        None => {
            let spool = move || spool(format, spooling.wrap_read(input), max, Some(&read));
            tokio::task::spawn_blocking(spool).await?
        }
    };
    let imported = match input {
        Ok(input) => import_input(store, command, (file, format), (input, &bar), options).await,
        Err(error) => Err(ImportError::File(error)),
    };
    bar.finish_and_clear();
    imported.map_err(|error| {
        let advice = advice(command, format, options, &error);
        describe_error(file, error, command.files.len() == 1, &advice)
    })
}

async fn import_input(
    store: &Store,
    command: &Import,
    (file, format): (&Path, Format),
    (input, bar): (File, &ProgressBar),
    options: &ReadOptions,
) -> Result<ImportResult, ImportError> {
    let hashed = tokio::task::spawn_blocking(move || with_hash(input)).await;
    let (input, hash) = hashed.unwrap_or_else(|stopped| Err(io::Error::other(stopped).into()))?;
    let bytes_read = Arc::new(AtomicU64::new(0));
    let updating = tokio::spawn(update_bar(bar.clone(), bytes_read.clone()));
    let source =
        ImportSource { file: Some(recorded_name(file)), hash: Some(hash), ..ImportSource::default() };
    let dry_run = command.dry_run || is_preview(command);
    let options = ImportOptions { source, now: Clock::system().now(), dry_run, read: options.clone() };
    let imported = import_file(store, &command.org, (format, input), options, bytes_read).await;
    updating.abort();
    imported
}

/// The file and its hash, for the record of imports.
fn with_hash(mut file: File) -> Result<(File, [u8; 32]), ReadError> {
    let hash = hash_file(&mut file)?;
    Ok((file, hash))
}

/// The file and its length. A stream has no length.
fn open_input(file: &Path) -> anyhow::Result<(File, Option<u64>)> {
    let is_stdin = file == Path::new("-");
    let opened = match is_stdin {
        true => platform::open_stdin(),
        false => File::open(file),
    };
    let opened = opened.and_then(|opened| match opened.metadata() {
        // Windows has none for a pipe.
        Err(_) if is_stdin => Ok((opened, None)),
        metadata => metadata.map(|metadata| (opened, Some(metadata))),
    });
    let (opened, metadata) = opened.map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow!("{} not found{}", file.display(), folder_hint(file)),
        _ => anyhow!("cannot read {}: {error}", file.display()),
    })?;
    if metadata.as_ref().is_some_and(Metadata::is_dir) {
        bail!("{} is a folder: name the files in it", file.display());
    }
    // A pipe or a device has no length and cannot seek.
    let length = metadata.filter(|metadata| metadata.is_file() && !is_stdin).map(|metadata| metadata.len());
    Ok((opened, length))
}

/// Where a file was looked for, if its path does not tell.
fn folder_hint(file: &Path) -> String {
    match std::env::current_dir() {
        Ok(folder) if file.is_relative() => format!(" in the current folder, {}", folder.display()),
        _ => String::new(),
    }
}

/// Copies a stream to a temporary file: a slow pipe must not hold the write lock of the database. Stops at the first
/// errors, since a pipe may never end, unless they are to be shown later.
fn spool(
    format: Format,
    stream: impl Read + 'static,
    max_bytes: u64,
    options: Option<&ReadOptions>,
) -> Result<File, ReadError> {
    let mut file = tempfile::tempfile().map_err(|error| not_spooled(&error))?;
    let mut stream = Spooled { stream, file: file.try_clone()?, left: max_bytes };
    let (start, name): (&[u8], _) = match (format, options) {
        (Format::Parquet, _) => (b"PAR1", "a Parquet file"),
        (Format::Xlsx, _) => (b"PK\x03\x04", "an Excel workbook"),
        (Format::Csv | Format::Ndjson | Format::Json, Some(options)) => {
            let mut accept = |_, _| ControlFlow::Continue(());
            read_text(format, Box::new(stream), options, &AtomicU64::new(0), &mut accept)?;
            file.rewind()?;
            return Ok(file);
        }
        (Format::Csv | Format::Ndjson | Format::Json, None) => (b"", "text"),
    };
    let mut found = Vec::new();
    stream.by_ref().take(start.len() as u64).read_to_end(&mut found)?;
    if found != start {
        return Err(io::Error::other(format!("it is not {name}")).into());
    }
    io::copy(&mut stream, &mut io::sink())?;
    file.rewind()?;
    Ok(file)
}

/// A stream that is copied to a file while it is read.
struct Spooled<R> {
    stream: R,
    file: File,
    /// Bytes that may still be read.
    left: u64,
}

impl<R: Read> Read for Spooled<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.stream.read(buffer)?;
        let too_large = || io::Error::other("it is larger than --max-input allows");
        self.left = self.left.checked_sub(bytes as u64).ok_or_else(too_large)?;
        self.file.write_all(&buffer[..bytes]).map_err(|error| not_spooled(&error))?;
        Ok(bytes)
    }
}

fn not_spooled(error: &io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    let folder = folder.display();
    let what =
        format!("cannot write to the temporary folder {folder}: {error}; set TMPDIR to another folder");
    io::Error::new(error.kind(), what)
}

async fn update_bar(bar: ProgressBar, bytes_read: Arc<AtomicU64>) {
    loop {
        bar.set_position(bytes_read.load(Ordering::Relaxed));
        tokio::time::sleep(BAR_UPDATE_INTERVAL).await;
    }
}

/// The name in the list of imports: that of the file, wherever it is. A corrected copy in another folder has the same.
fn recorded_name(file: &Path) -> String {
    let name = file.file_name().filter(|_| file != Path::new("-"));
    name.map_or_else(|| display_name(file), |name| name.to_string_lossy().into_owned())
}

const FIX: &str = "fix the file and import it again";

/// What to do about a file with errors.
fn advice(command: &Import, format: Format, options: &ReadOptions, error: &ImportError) -> String {
    if matches!(format, Format::Json | Format::Ndjson) {
        return FIX.to_owned();
    }
    let org = shell_quoted(&command.org);
    let mapping = match (&command.mapping, options.mapping == Mapping::default()) {
        (Some(_), _) => String::new(),
        (None, true) if is_of_whole_file(error) => String::new(),
        (None, true) => ", or --write-mapping FILE to begin a mapping".to_owned(),
        (None, false) => {
            format!(
                ". The mapping stored for it was used (`batchscan org mapping {org} --show`); for a file of another kind, add --no-mapping"
            )
        }
    };
    format!("{FIX}, or add --preview to see how it is read{mapping}")
}

/// Whether no mapping can help: the file is empty or has another format.
fn is_of_whole_file(error: &ImportError) -> bool {
    let ImportError::File(ReadError::Invalid { errors, .. }) = error else { return false };
    errors.iter().all(|found| found.location == Location::File && found.error.field.is_empty())
}

/// Prints each error of the file on its own line; returns the summary.
fn describe_error(file: &Path, error: ImportError, is_only: bool, advice: &str) -> anyhow::Error {
    let nothing = if is_only { "Nothing was imported" } else { "Nothing of it was imported" };
    match error {
        ImportError::File(error) => {
            let (errors, summary) = describe_rejection(&display_name(file), &error, nothing, advice);
            errors.iter().for_each(|error| note(error));
            anyhow!(summary)
        }
        other => anyhow::Error::new(other),
    }
}

fn summary(command: &Import, file: &Path, imported: &ImportResult, took: Duration) -> String {
    let counts = &imported.counts;
    let total = counts.new + counts.corrected + counts.unchanged + counts.duplicates;
    if command.json {
        let summary = json!({
            "file": file.display().to_string(), "organisation": command.org, "dry_run": command.dry_run,
            "batches": total, "new": counts.new, "corrected": counts.corrected, "unchanged": counts.unchanged,
            "duplicates": counts.duplicates, "warnings": imported.warnings, "seconds": took.as_secs_f64(),
        });
        return format!("{summary}\n");
    }
    let verb = if command.dry_run || is_preview(command) { "would import" } else { "imported" };
    let duplicates = match counts.duplicates {
        0 => String::new(),
        1 => ", 1 repeated in the file (the last one counts)".into(),
        repeated => format!(", {} repeated in the file (the last ones count)", grouped(repeated)),
    };
    let warnings = match imported.warnings {
        0 => String::new(),
        warnings => format!(", {}", count(warnings, "warning", "warnings")),
    };
    format!(
        "{verb} {} from {} into \"{}\": {} new, {} corrected, {} unchanged{duplicates}{warnings} in {:.1} s\n",
        count(total, "batch", "batches"),
        display_name(file),
        command.org,
        grouped(counts.new),
        grouped(counts.corrected),
        grouped(counts.unchanged),
        took.as_secs_f64(),
    )
}

#[cfg(test)]
mod tests {
    use batchscan_store::DataVersion;

    use super::*;

    #[test]
    fn the_next_step_depends_on_whether_there_are_credentials() {
        let mut org = Organisation {
            id: batchscan_model::OrgId(1),
            name: "Green Valley".into(),
            created_at: batchscan_model::UtcInstant::EPOCH,
            version: DataVersion { number: 0, mark: 0 },
            batches: 0,
            credentials: 0,
            timezone: None,
            has_mapping: false,
        };
        let issue = "Next: `batchscan credential issue --org \"Green Valley\"`, then `batchscan serve`.\n";
        assert_eq!(next_step(&org), issue);
        org.credentials = 1;
        assert!(next_step(&org).contains("`batchscan list`"));
    }
}
