//! The store on one SQLite file. Any number of processes on one machine may have it open.
//!
//! Readers and the writer are separate threads with their own connections: SQLite never runs on the async runtime. A
//! reader runs one short job at a time, so that slow streams do not block other requests.

mod audit;
mod blocks;
mod changes;
mod credentials;
mod dump;
mod file_identity;
mod import;
mod maintenance;
mod open;
mod operator_tokens;
mod organisations;
mod pages;
mod rows;
mod sessions;
mod store;
mod threads;

pub use store::SqliteStore;
