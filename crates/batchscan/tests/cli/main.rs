//! The executable as its users run it: real processes, files and sockets.
//!
//! | module | owns |
//! |---|---|
//! | `program` | runs the executable |
//! | `snapshot` | compares its output with snapshots |
//! | `service` | a running `serve` or `demo` |
//! | `site` | a folder with a database, and an operator's commands |
//! | `user` | a user of a service, and their commands |
//! | `http` | HTTP/1.1 over a socket |
//! | `scans` | batches to import, in every format |
//! | `proxy` | cuts connections |
//!
//! `BATCHSCAN_EXE` names the executable to test; the default is the one that cargo built. `SNAPSHOTS=overwrite` updates
//! the snapshots, `FAULTS=all` tests every fault, `MIRROR_KILLS=100` kills each mirror
//! as often, `WATCH_FILES=10000` imports as many files while watchers are killed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod http;
mod program;
mod proxy;
mod scans;
mod service;
mod site;
mod slow_disk;
mod snapshot;
mod user;

mod audit;
mod backups;
mod batches;
mod copies;
mod credentials;
mod database_errors;
mod demo;
mod faults;
mod flood;
mod help;
mod import_errors;
mod import_kills;
mod imports;
mod keys;
mod load;
mod logins;
mod logs;
mod memory;
mod mirror;
mod mirror_kills;
mod oauth2_crate;
mod openapi;
mod operator;
mod operators_day;
mod organisations;
mod postgres;
mod postgres_kills;
mod pull_date_ranges;
mod pull_errors;
mod pull_existing_file;
mod pull_formats;
mod pull_interruptions;
mod reports;
mod secrets;
mod sessions;
mod shared_database;
mod shutdown;
mod tls;
mod usage_errors;
mod user_secrets;
mod watch;
mod watch_kills;
