//! The store on a PostgreSQL cluster: one host or several, any number of processes on any number of machines.
//!
//! | module | owns |
//! |---|---|
//! | `url`, `tls` | the connection settings |
//! | `host_state`, `monitor`, `hosts` | which hosts are up, which one is the primary, which standbys lag |
//! | `route` | the retries of one request over the hosts |
//! | `connect` | one connection, for another program's tables |
//! | `failure` | which errors another host may not have |
//! | `schema` | migrations, under a lock |
//! | `store` | the handle, and how reads and changes reach a host |
//! | `sql` | the interface for what is written once |
//! | `pages`, `changes`, `import` | what is written for PostgreSQL |
//!
//! A standby only answers what staleness cannot falsify: a page that is new enough, a credential that is valid. The primary
//! decides everything else (decision 041).

mod changes;
mod connect;
mod failure;
mod host_state;
mod hosts;
mod import;
mod monitor;
mod pages;
mod route;
mod schema;
mod sql;
mod store;
mod tls;
mod url;

pub use failure::describe;
pub(crate) use store::PostgresStore;
pub use url::{PostgresUrl, PostgresUrlError};
