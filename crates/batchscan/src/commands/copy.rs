//! `batchscan copy`.

use std::process::ExitCode;
use std::time::Instant;

use batchscan_store::{CopiedOrg, DatabaseUrl, OpenOptions, Store, copy_database};
use serde_json::json;

use super::open;
use crate::args::CopyDatabase;
use crate::figures::{count, grouped, table};
use crate::output::{bar, print, progress_of};

/// So much of a digest tells two apart at a glance; `--json` has it whole.
const DIGEST_CHARS: usize = 16;

pub(crate) async fn run(command: CopyDatabase) -> anyhow::Result<ExitCode> {
    let from = command.from.read("--from").unwrap_or_else(|error| error.exit());
    let to = command.to.read("--to").unwrap_or_else(|error| error.exit());
    if from == to {
        anyhow::bail!("--from and --to name the same database: nothing was copied");
    }
    let (start, source) = (Instant::now(), open(&from).await?);
    let target = Store::open(&to, OpenOptions::FOR_COPY).await?;
    let bar = bar("copying", "{msg} {bar:32} {human_pos} of {human_len} batches {per_sec} {eta}");
    let progress = progress_of(&bar);
    let copied = copy_database(&source, &target, &|done, total| {
        progress(done, total);
        if done == total {
            bar.set_message("verifying");
        }
    })
    .await;
    bar.finish_and_clear();
    let copied = copied?;
    print(&if command.json { report_json(&copied) } else { report(&from, &to, &copied, start) })?;
    Ok(ExitCode::SUCCESS)
}

fn report(from: &DatabaseUrl, to: &DatabaseUrl, copied: &[CopiedOrg], start: Instant) -> String {
    let row = |org: &CopiedOrg| {
        let note = if org.existed { "was there already" } else { "copied" };
        let digest = org.digest[..DIGEST_CHARS].to_owned();
        [org.name.clone(), grouped(org.batches), digest, note.into()]
    };
    let rows: Vec<_> = copied.iter().map(row).collect();
    let batches = copied.iter().map(|org| org.batches).sum();
    format!(
        "{}copied and verified {} with {} from {from} to {to} in {:.1} s\n",
        table(["ORGANISATION", "BATCHES", "DIGEST", ""], &rows),
        count(copied.len() as u64, "organisation", "organisations"),
        count(batches, "batch", "batches"),
        start.elapsed().as_secs_f64(),
    )
}

fn report_json(copied: &[CopiedOrg]) -> String {
    let org = |org: &CopiedOrg| {
        json!({
            "organisation": org.name,
            "batches": org.batches,
            "digest": org.digest,
            "was_there": org.existed,
        })
    };
    format!("{}\n", json!({ "organisations": copied.iter().map(org).collect::<Vec<_>>() }))
}
