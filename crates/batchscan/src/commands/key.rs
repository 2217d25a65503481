//! `batchscan key list` and `batchscan key rotate`.

use std::process::ExitCode;

use batchscan_model::UtcInstant;
use batchscan_server::auth::{KEY_SETTLES_SECS, in_use_first};
use batchscan_server::clock::Clock;
use batchscan_store::{DatabaseUrl, KeyRotation, ServiceKey};
use serde_json::json;

use super::open;
use crate::args::Key;
use crate::figures::{count, table};
use crate::output::print;

/// How long a key that was followed by another goes on verifying: longer than any token lives, and than a walk with
/// a cursor is likely to pause.
const KEPT_SECS: i64 = 30 * 86_400;

pub(crate) async fn run(database: &DatabaseUrl, command: Key) -> anyhow::Result<ExitCode> {
    let store = open(database).await?;
    let now = Clock::system().now();
    match command {
        Key::List { json } => {
            let keys = store.keys(now).await?;
            print(&if json { list_json(&keys, now) } else { list(&keys, now) })?;
        }
        Key::Rotate { now: at_once } => {
            let before = store.keys(now).await?.len();
            // An instant that is still to come: everything that is followed by the new keys goes.
            let remove_before = now.plus_secs(if at_once { 1 } else { -KEPT_SECS });
            let kept = store.rotate_keys(KeyRotation { now, remove_before }).await?;
            let removed = (before + 2).saturating_sub(kept.len());
            print(&rotated(at_once, removed))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn rotated(at_once: bool, removed: usize) -> String {
    let removed = count(removed as u64, "old key", "old keys");
    if at_once {
        return format!(
            "made new keys for tokens and cursors, and removed {removed}: what is out stops working within 5 s\n"
        );
    }
    format!(
        "made new keys for tokens and cursors, in use in {KEY_SETTLES_SECS} s; removed {removed}; the others go on verifying\n"
    )
}

fn list(keys: &[ServiceKey], now: UtcInstant) -> String {
    let row = |key: &ServiceKey| {
        [key.kid.clone(), key.purpose.name().to_owned(), made(key.created_at), state(key, keys, now)]
    };
    table(["KEY", "FOR", "MADE", "STATE"], &keys.iter().map(row).collect::<Vec<_>>())
}

fn list_json(keys: &[ServiceKey], now: UtcInstant) -> String {
    let key = |key: &ServiceKey| {
        json!({
            "key": key.kid,
            "for": key.purpose.name(),
            "made": made(key.created_at),
            "state": state(key, keys, now),
        })
    };
    format!("{}\n", keys.iter().map(key).collect::<serde_json::Value>())
}

/// What a key does now.
fn state(key: &ServiceKey, keys: &[ServiceKey], now: UtcInstant) -> String {
    let in_use = in_use_first(keys, key.purpose, now).into_iter().next();
    match in_use {
        Some(in_use) if in_use.kid == key.kid => "in use".into(),
        Some(in_use) if in_use.created_at < key.created_at => {
            format!("in use from {}", made(key.created_at.plus_secs(KEY_SETTLES_SECS)))
        }
        _ => "verifies".into(),
    }
}

fn made(at: UtcInstant) -> String {
    at.to_whole_secs().to_string()
}
