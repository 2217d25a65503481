//! `batchscan import`.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use batchscan_server::import::{Format, ImportError, Input, ReadError, carry};
use batchscan_server::store::{DatabaseUrl, ImportCounts, Store};
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
                match done {
                    0 => {}
                    1 => remark("the 1 file before it stays imported"),
                    _ => remark(&format!("the {done} files before it stay imported")),
                }
                return Err(error);
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
    Format::of_path(file).with_context(|| {
        format!(
            "{}: the ending does not tell what it holds: add --format ndjson, json, csv or parquet",
            file.display()
        )
    })
}

async fn import_one(
    store: &Store,
    command: &Import,
    file: &Path,
    format: Format,
) -> anyhow::Result<ImportCounts> {
    let (input, size) = input_of(file)?;
    let bytes_read = Arc::new(AtomicU64::new(0));
    let bar =
        bar(&file.display().to_string(), "{msg} {bar:32} {bytes} of {total_bytes} {bytes_per_sec} {eta}");
    bar.set_length(size);
    let ticking = tokio::spawn(follow(bar.clone(), bytes_read.clone()));
    let carried = carry(store, &command.org, (format, input), command.dry_run, bytes_read).await;
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
    let name = file.display();
    match error {
        ImportError::File(ReadError::Faulty { faults, more }) => {
            for fault in &faults {
                remark(&format!("{name}: {fault}"));
            }
            let more = if more { " or more" } else { "" };
            let faults = count(faults.len() as u64, "fault", "faults");
            anyhow!(
                "{name} has {faults}{more}: nothing of it was imported; mend the file and import it again"
            )
        }
        ImportError::File(ReadError::Unreadable(error)) => {
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
        repeated => format!(", {} superseded by a later line", grouped(repeated)),
    };
    format!(
        "{verb} {} from {} into \"{}\": {} new, {} corrected, {} unchanged{repeated} in {:.1} s\n",
        count(total, "batch", "batches"),
        file.display(),
        command.org,
        grouped(counts.new),
        grouped(counts.corrected),
        grouped(counts.unchanged),
        took.as_secs_f64(),
    )
}
