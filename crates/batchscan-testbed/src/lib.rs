//! Real servers on loopback, for tests and for developers. Knows nothing of batchscan.
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
//! Whatever is started here ends with whoever started it: when its value is dropped, and when that process
//! dies, even by SIGKILL. Its folder goes with it. Every call blocks, and every wait has a limit.
//!
//! | module | what it owns |
//! |---|---|
//! | [`postgres`] | one PostgreSQL server: its life, its accidents, SQL |
//! | [`replication`] | the same server as a primary or a standby of another |
//! | [`settings`] | what stands in its configuration |
//! | [`cluster`] | three servers, one of them the primary, and the failover |
//! | [`haproxy`], [`pgbouncer`] | what people put between a service and its clients or its database |
//! | [`process`] | a child process of any kind |
//! | [`ports`] | free ports |
//! | `home` | a server's folder, log and process |
//! | `watchdog` | the shell that outlives us and clears up |
//! | `tree` | signals to a process and all that descends from it |
//! | `programs` | where the servers' programs are, and as whom they run |

pub mod cluster;
pub mod haproxy;
mod home;
pub mod pgbouncer;
pub mod ports;
pub mod postgres;
pub mod process;
mod programs;
pub mod replication;
pub mod settings;
mod tree;
mod watchdog;

pub use cluster::{Cluster, Replication};
pub use haproxy::HaProxy;
pub use pgbouncer::{PgBouncer, PoolMode};
pub use postgres::Postgres;
pub use process::Process;
pub use rustix::process::Signal;
pub use settings::Settings;
