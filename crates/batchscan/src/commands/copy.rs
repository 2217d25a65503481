//! `batchscan copy`.

use std::time::Instant;

use batchscan_store::{CopiedOrg, DatabaseUrl, OpenOptions, copy_database};
use serde_json::json;

use super::context::open_database;
use crate::args::CopyDatabase;
use crate::numbers::{count, grouped};
use crate::progress::{self, progress_bar};
use crate::table::table;
use crate::terminal::print;

/// Characters of the digest in the table; `--json` has all.
const DIGEST_CHARS: usize = 16;

pub(crate) async fn run(command: CopyDatabase) -> anyhow::Result<()> {
    let CopyDatabase { from, to, json } = command;
    if is_same(&from, &to) {
        anyhow::bail!("--from and --to are the same database: nothing was copied");
    }
    let (start, source) = (Instant::now(), open_database(&from, OpenOptions::EXISTING).await?);
    let target = open_database(&to, OpenOptions::FOR_COPY).await?;
    let bar = progress_bar("copying", "{msg} {bar:32} {human_pos} of {human_len} batches {per_sec} {eta}");
    let progress = progress::callback(&bar);
    let copied = copy_database(&source, &target, &|done, total| {
        progress(done, total);
        if done == total {
            bar.set_message("verifying");
        }
    })
    .await;
    bar.finish_and_clear();
    let copied = copied?;
    print(&if json { report_json(&copied) } else { report(&from, &to, &copied, start) })
}

/// Also if a file has two names.
fn is_same(from: &DatabaseUrl, to: &DatabaseUrl) -> bool {
    match (from, to) {
        (DatabaseUrl::Sqlite(from), DatabaseUrl::Sqlite(to)) => {
            from == to || from.canonicalize().is_ok_and(|from| to.canonicalize().is_ok_and(|to| from == to))
        }
        _ => from == to,
    }
}

fn report(from: &DatabaseUrl, to: &DatabaseUrl, copied: &[CopiedOrg], start: Instant) -> String {
    let row = |org: &CopiedOrg| {
        let note = if org.existed { "already there" } else { "copied" };
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
