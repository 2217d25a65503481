//! The commands: each opens what it needs, calls the library, and says what came of it.

pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod copy;
pub(crate) mod credential;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod import;
pub(crate) mod key;
pub(crate) mod list;
pub(crate) mod login;
pub(crate) mod openapi;
pub(crate) mod org;
pub(crate) mod pull;
pub(crate) mod serve;
pub(crate) mod summary;

use batchscan_model::UtcInstant;
use batchscan_store::{DatabaseUrl, OpenOptions, Store};

/// Opens a database that must be there.
async fn open(database: &DatabaseUrl) -> anyhow::Result<Store> {
    Ok(Store::open(database, OpenOptions::EXISTING).await?)
}

/// Opens a database, or makes it.
async fn open_or_make(database: &DatabaseUrl) -> anyhow::Result<Store> {
    Ok(Store::open(database, OpenOptions::CREATE).await?)
}

/// An instant to the second, or a dash.
fn when(instant: Option<UtcInstant>) -> String {
    instant.map_or_else(|| "-".into(), |instant| instant.to_whole_secs().to_string())
}
