//! `batchscan import`.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use batchscan_formats::Format;
use batchscan_formats::read::{Input, ReadError};
use batchscan_store::{DatabaseUrl, ImportCounts, Store};
use batchscan_store::{ImportError, import_file};
use indicatif::ProgressBar;
use serde_json::json;

use super::open;
use crate::args::Import;
use crate::figures::{count, grouped};
use crate::output::{bar, print, remark};

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(100);

pub(crate) async fn run(database: &DatabaseUrl, command: Import) -> anyhow::Result<ExitCode> {
    // Wrong names are found before anything is imported.
    let formats =
        command.files.iter().map(|file| format_of(file, command.format)).collect::<Result<Vec<_>, _>>()?;
    let store = open(database).await?;
    store.org(&command.org).await?;
    for (done, (file, format)) in command.files.iter().zip(formats).enumerate() {
        let started = Instant::now();
        match import_one(&store, &command, file, format).await {
            Ok(counts) => print(&summary(&command, file, &counts, started.elapsed()))?,
            Err(error) => {
                let before = if command.dry_run { 0 } else { done };
                return Err(match before {
                    0 => error,
                    1 => anyhow!("{error} (the file before it stays imported)"),
                    _ => anyhow!("{error} (the {before} files before it stay imported)"),
                });
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn format_of(file: &Path, given: Option<Format>) -> anyhow::Result<Format> {
    if let Some(format) = given {
        return Ok(format);
    }
    if file == Path::new("-") {
        bail!("standard input has no ending: say what it holds with --format ndjson, json, csv or parquet");
    }
    Format::for_reading(file).with_context(|| format!("{}: {}", file.display(), what_to_do(file)))
}

/// For a file whose ending is none of ours.
fn what_to_do(file: &Path) -> &'static str {
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    match ending.as_str() {
        _ if file.is_dir() => "is a folder: name the files in it",
        "xlsx" | "xls" | "ods" => "is a spreadsheet: save the sheet as \"CSV UTF-8\" and import that",
        "gz" | "zst" | "zip" => {
            "is packed: unpack it first, such as `zcat FILE | batchscan import --format csv … -`"
        }
        _ => "the ending does not tell what it holds: add --format ndjson, json, csv or parquet",
    }
}

/// A file as people call it.
fn name_of(file: &Path) -> String {
    if file == Path::new("-") { "standard input".into() } else { file.display().to_string() }
}

async fn import_one(
    store: &Store,
    command: &Import,
    file: &Path,
    format: Format,
) -> anyhow::Result<ImportCounts> {
    let (input, size) = input_of(file)?;
    let bytes_read = Arc::new(AtomicU64::new(0));
    let template = match size {
        0 => "{msg} {spinner} {bytes} {bytes_per_sec}",
        _ => "{msg} {bar:32} {bytes} of {total_bytes} {bytes_per_sec} {eta}",
    };
    let bar = bar(&name_of(file), template);
    bar.set_length(size);
    let ticking = tokio::spawn(follow(bar.clone(), bytes_read.clone()));
    let carried = import_file(store, &command.org, (format, input), command.dry_run, bytes_read).await;
    ticking.abort();
    bar.finish_and_clear();
    carried.map_err(|error| refusal(file, error))
}

fn input_of(file: &Path) -> anyhow::Result<(Input, u64)> {
    if file == Path::new("-") {
        return Ok((Input::Stream(Box::new(std::io::stdin())), 0));
    }
    let opened = File::open(file).and_then(|opened| opened.metadata().map(|about| (opened, about)));
    let (opened, about) = opened.map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow!("there is no file {}", file.display()),
        _ => anyhow!("cannot read {}: {error}", file.display()),
    })?;
    if about.is_dir() {
        bail!("{} is a folder: name the files in it", file.display());
    }
    // A named pipe or a device has no length and cannot be sought: it is read as a stream.
    let input = if about.is_file() { Input::File(opened) } else { Input::Stream(Box::new(opened)) };
    Ok((input, about.len()))
}

async fn follow(bar: ProgressBar, bytes_read: Arc<AtomicU64>) {
    loop {
        bar.set_position(bytes_read.load(Ordering::Relaxed));
        tokio::time::sleep(TICK).await;
    }
}

/// The faults on lines of their own, then the verdict.
fn refusal(file: &Path, error: ImportError) -> anyhow::Error {
    let name = name_of(file);
    match error {
        ImportError::File(ReadError::Invalid { errors: faults, more }) => {
            for fault in &faults {
                remark(&format!("{name}: {fault}"));
            }
            let list = if faults.iter().any(|fault| fault.error.is_unknown_field()) {
                " (`batchscan import --help` lists the fields)"
            } else {
                ""
            };
            let more = if more { " or more" } else { "" };
            let faults = count(faults.len() as u64, "fault", "faults");
            anyhow!(
                "{name} has {faults}{more}: nothing of it was imported; mend the file and import it again{list}"
            )
        }
        ImportError::File(ReadError::Io(error)) => {
            anyhow!("cannot read {name}: {error}; nothing of it was imported")
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
        repeated => format!(", {} superseded by a later line,", grouped(repeated)),
    };
    format!(
        "{verb} {} from {} into \"{}\": {} new, {} corrected, {} unchanged{repeated} in {:.1} s\n",
        count(total, "batch", "batches"),
        name_of(file),
        command.org,
        grouped(counts.new),
        grouped(counts.corrected),
        grouped(counts.unchanged),
        took.as_secs_f64(),
    )
}
