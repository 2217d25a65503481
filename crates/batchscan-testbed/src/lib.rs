//! Real servers on loopback, for tests and developers. Knows nothing about batchscan.
//!
//! ```no_run
//! use batchscan_testbed::{Postgres, Settings};
//!
//! let postgres = Postgres::start(&Settings::default())?;
//! let database = postgres.fresh_database()?;
//! assert_eq!(postgres.sql(&database, "select 6 * 7")?, "42");
//! postgres.kill()?;
//! postgres.start_again()?;
//! # anyhow::Ok(())
//! ```
//!
//! Every server ends, and its folder is removed, when its value is dropped and when the process that started it dies, even
//! by SIGKILL. Calls block; every wait has a limit. An error contains the end of the server's log.
//!
//! | module | what it owns |
//! |---|---|
//! | [`postgres`] | one PostgreSQL server |
//! | [`replication`] | streaming replication between two of them |
//! | [`cluster`] | a primary and two standbys, and the failover |
//! | [`haproxy`], [`pgbouncer`] | HAProxy, pgbouncer |
//! | [`scripted_server`] | an HTTP server with the responses of a test |
//! | [`http`] | an HTTP client over a socket |
//! | [`process`] | a child process |
//! | [`ports`] | free ports |
//! | [`server`] | a server's folder, log and process |
//! | `process_tree` | signals to a process and its descendants |
//! | [`random`] | random numbers that a test can repeat |
//! | `watchdog` | cleanup after our own death |
//! | `wait` | polling |
//! | `programs` | finding and running the servers' programs |

pub mod cluster;
pub mod haproxy;
pub mod http;
pub mod pgbouncer;
pub mod ports;
pub mod postgres;
pub mod process;
mod process_tree;
mod programs;
pub mod random;
pub mod replication;
pub mod scripted_server;
pub mod server;
pub mod settings;
mod wait;
mod watchdog;

pub use cluster::{Cluster, Replication};
pub use haproxy::HaProxy;
pub use pgbouncer::PgBouncer;
pub use postgres::Postgres;
pub use process::Process;
pub use random::Random;
pub use scripted_server::ScriptedServer;
pub use settings::Settings;
pub use wait::wait_until;
