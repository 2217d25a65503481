//! The store on one SQLite file. Any number of processes on one machine may have it open.
//!
//! Readers and the writer are separate threads with their own connections: on the async runtime, SQLite only notices commits
//! ([`known`]). A reader runs one short job at a time, so that slow streams do not block other requests.

mod changes;
mod file_identity;
mod import;
mod known;
mod maintenance;
mod open;
mod pages;
mod sql;
mod store;
mod threads;

pub(crate) use open::is_in_use;
pub(crate) use store::SqliteStore;
