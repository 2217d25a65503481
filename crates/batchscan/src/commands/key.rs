//! `batchscan key list` and `batchscan key rotate`.

use batchscan_model::UtcInstant;
use batchscan_server::auth::{KEY_ACTIVATION_DELAY_SECS, in_use_first};
use batchscan_server::clock::Clock;
use batchscan_store::{KeyRotation, ServiceKey};
use serde_json::json;

use super::context::{format_time, open};
use crate::args::{Key, KeyCommand};
use crate::numbers::count;
use crate::table::table;
use crate::terminal::print;

/// How long a replaced key still verifies tokens and cursors. Longer than a token lives, or a client pauses between pages.
const KEEP_SECS: i64 = 30 * 86_400;

pub(crate) async fn run(command: Key) -> anyhow::Result<()> {
    let store = open(&command.database).await?;
    let now = Clock::system().now();
    match command.command {
        KeyCommand::List { json } => {
            let keys = store.keys(now).await?;
            print(&if json { list_json(&keys, now) } else { list(&keys, now) })
        }
        KeyCommand::Rotate { now: at_once } => {
            let before = store.keys(now).await?.len();
            // An instant in the future removes every replaced key.
            let remove_before = now.plus_secs(if at_once { 1 } else { -KEEP_SECS });
            let kept = store.rotate_keys(KeyRotation { now, remove_before }).await?;
            let removed = (before + 2).saturating_sub(kept.len());
            print(&rotated(at_once, removed))
        }
    }
}

fn rotated(at_once: bool, removed: usize) -> String {
    let removed = count(removed as u64, "old key", "old keys");
    if at_once {
        return format!(
            "created new keys for tokens and cursors and removed {removed}: already issued tokens stop working within 5 s\n"
        );
    }
    format!(
        "created new keys for tokens and cursors, in use in {KEY_ACTIVATION_DELAY_SECS} s; removed {removed}; already issued tokens keep working\n"
    )
}

fn list(keys: &[ServiceKey], now: UtcInstant) -> String {
    let row = |key: &ServiceKey| {
        [
            key.kid.clone(),
            key.purpose.name().to_owned(),
            format_time(Some(key.created_at)),
            state(key, keys, now),
        ]
    };
    table(["KEY", "FOR", "CREATED", "STATE"], &keys.iter().map(row).collect::<Vec<_>>())
}

fn list_json(keys: &[ServiceKey], now: UtcInstant) -> String {
    let key = |key: &ServiceKey| {
        json!({
            "key": key.kid,
            "for": key.purpose.name(),
            "made": format_time(Some(key.created_at)),
            "state": state(key, keys, now),
        })
    };
    format!("{}\n", keys.iter().map(key).collect::<serde_json::Value>())
}

/// The state of a key. `verifies`: it was replaced, but still verifies.
fn state(key: &ServiceKey, keys: &[ServiceKey], now: UtcInstant) -> String {
    let in_use = in_use_first(keys, key.purpose, now).into_iter().next();
    match in_use {
        Some(in_use) if in_use.kid == key.kid => "in use".into(),
        Some(in_use) if in_use.created_at < key.created_at => {
            format!("in use from {}", format_time(Some(key.created_at.plus_secs(KEY_ACTIVATION_DELAY_SECS))))
        }
        _ => "verifies".into(),
    }
}
