//! The executable as an operator meets it: real processes, real files, real sockets.
//!
//! | module | owns |
//! |---|---|
//! | `program` | running the executable to its end, and what it said |
//! | `service` | a `serve` or `demo` that runs beside the test, and its end |
//! | `site` | a folder, its database in it or on a PostgreSQL server, and the commands on it |
//! | `wire` | HTTP/1.1 over a socket, with bodies read as slowly as a test likes |
//! | `scans` | batches to import, in every format |
//! | `user` | somebody who reads a service: address, credentials, a folder for their files |
//! | `stranger` | servers that are not ours |
//! | `workbook` | what an Excel file holds |
//! | `relay` | a way to a service that breaks where a test likes |
//!
//! All other modules are claims. `BATCHSCAN_EXE` names the executable to test; without it, it is the one that cargo
//! built beside this file, and the tests of memory and of crashes take less data.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and so do the parts it is made of"
)]

mod program;
mod relay;
mod scans;
mod service;
mod site;
mod stranger;
mod user;
mod wire;
mod workbook;

mod backups;
mod bad_databases;
mod bad_files;
mod bad_usage;
mod copies;
mod crashes;
mod credentials;
mod crowd;
mod demo;
mod help;
mod imports;
mod keys;
mod logins;
mod memory;
mod neighbours;
mod openapi;
mod organisations;
mod overviews;
mod postgres;
mod postgres_crashes;
mod pull_again;
mod pull_cuts;
mod pull_refusals;
mod pull_windows;
mod pulls;
mod secrets;
mod shutdown;
mod tls;
mod user_secrets;
