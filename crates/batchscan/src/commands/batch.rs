//! `batchscan batch`.

use anyhow::{Context, bail};
use batchscan_model::{Batch as ModelBatch, BatchId};
use batchscan_server::clock::Clock;
use batchscan_store::Store;

use super::context::{format_time, open};
use crate::args::{Batch, BatchCommand};
use crate::numbers::count;
use crate::table::{sanitize, table};
use crate::terminal::{is_confirmed, print};

const DAY_SECS: i64 = 86_400;

pub(crate) async fn run(Batch { database, command }: Batch) -> anyhow::Result<()> {
    let store = open(&database).await?;
    match command {
        BatchCommand::Show { org, ids } => show(&store, &org, &ids).await,
        BatchCommand::Remove { org, mut ids, keep_removals, yes } => {
            ids.sort();
            ids.dedup();
            remove(&store, &org, ids, keep_removals, yes).await
        }
    }
}

async fn show(store: &Store, org: &str, ids: &[BatchId]) -> anyhow::Result<()> {
    let (found, missing) = find(store, org, ids).await?;
    print(&found.into_iter().map(|json| json + "\n").collect::<String>())?;
    fail_if_missing(org, &missing)
}

async fn remove(
    store: &Store,
    org: &str,
    ids: Vec<BatchId>,
    keep_removals: u16,
    yes: bool,
) -> anyhow::Result<()> {
    let (found, missing) = find(store, org, &ids).await?;
    fail_if_missing(org, &missing)?;
    print(&list(&found)?)?;
    let batches = count(ids.len() as u64, "batch", "batches");
    let question = format!("Remove {batches}? This cannot be undone. Type yes to confirm: ");
    if !yes && !is_confirmed(&question, "yes")? {
        bail!("not confirmed: nothing was removed");
    }
    let now = Clock::system().now();
    store.remove_batches(org, ids, now.plus_secs(-DAY_SECS * i64::from(keep_removals)), now).await?;
    print(&format!("removed {batches} from \"{org}\"\n"))
}

/// The JSON texts of batches, and the ids that do not exist.
async fn find<'a>(
    store: &Store,
    org: &str,
    ids: &'a [BatchId],
) -> anyhow::Result<(Vec<String>, Vec<&'a BatchId>)> {
    let org = store.org(org).await?.id;
    let batches = store.batches_by_id(org, ids.to_vec()).await?;
    let missing = ids.iter().zip(&batches).filter(|(_, batch)| batch.is_none()).map(|(id, _)| id).collect();
    Ok((batches.into_iter().flatten().collect(), missing))
}

fn fail_if_missing(org: &str, missing: &[&BatchId]) -> anyhow::Result<()> {
    let ids: Vec<String> = missing.iter().map(|id| format!("\"{}\"", sanitize(id.as_str()))).collect();
    if !ids.is_empty() {
        bail!("\"{org}\" has no batch with the id {}", ids.join(" or "));
    }
    Ok(())
}

fn list(found: &[String]) -> anyhow::Result<String> {
    let row = |json: &String| {
        let batch = ModelBatch::from_json(json).context("a stored batch is not valid")?;
        let (id, name) = (sanitize(batch.batch_id.as_str()), sanitize(&batch.batch_name));
        Ok([format_time(Some(batch.batch_creation_date)), id, name])
    };
    let rows = found.iter().map(row).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(table(["CREATED", "ID", "NAME"], &rows))
}
