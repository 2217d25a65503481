//! The Rust SDK of the batch scan API: reads an organisation's batches as a stream, from any deployment.
//!
//! ```
//! use batchscan_client::{Client, DateRange, TryStreamExt};
//!
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/service.rs"));
//! # fn main() { run_example(2_500, async |service| {
//! # let (url, id, secret) = (service.url(), service.client_id(), service.client_secret());
//! let client = Client::builder(url).credentials(id, secret).build()?;
//!
//! let mut batches = client.batches(DateRange::default());
//! let mut with_warnings = 0;
//! while let Some(batch) = batches.try_next().await? {
//!     with_warnings += u32::from(batch.warnings);
//! }
//! println!("{with_warnings} batches have warnings");
//! # assert_eq!(with_warnings, 1_250);
//! # Ok(()) }) }
//! ```
//!
//! The client requests a token at the first use and renews it before it expires. It retries 429, 502, 503, 504 and lost
//! connections, for as long as [`ClientBuilder::retry_for`] allows per page. A stream that ends without an error is
//! complete: a truncated response is an error.
//!
//! Values are those of `batchscan-model`: decimals are exact [`Hundredths`], instants are exact [`UtcInstant`]s.

mod array;
pub mod builder;
pub mod changes;
pub mod client;
pub mod error;
mod http;
pub mod operator;
pub mod page;
mod pagination;
pub mod received_batch;
mod response;
mod retry;
mod session;
mod tls;
mod token;
mod version;

pub use batchscan_model::{Batch, BatchId, ClientSecret, DateRange, Hundredths, UtcInstant};
pub use builder::ClientBuilder;
pub use changes::{Changes, WAIT_MAX};
pub use client::{Batches, Client, Freshness, Pages};
pub use error::Error;
pub use futures_util::TryStreamExt;
pub use operator::{FileError, ImportFile, ImportOutcome, ImportedCounts, OperatorClient, WatcherReport};
pub use page::Page;
pub use received_batch::ReceivedBatch;
pub use retry::Retry;
pub use version::Version;
