//! The SDK of the batch scan interface: every batch of a window, as a stream, from any deployment.
//!
//! ```
//! use batchscan_client::{Client, DateRange, TryStreamExt};
//!
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/service.rs"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! # let service = Service::with_batches(2_500).await;
//! # let (url, id, secret) = (service.url(), service.client_id(), service.client_secret());
//! let client = Client::builder(url).credentials(id, secret).build()?;
//!
//! let mut batches = client.batches(DateRange::default());
//! let mut warned = 0;
//! while let Some(batch) = batches.try_next().await? {
//!     warned += u32::from(batch.warnings);
//! }
//! println!("{warned} batches have warnings");
//! # assert_eq!(warned, 1_250);
//! # Ok::<(), batchscan_client::Error>(())
//! # })?;
//! # Ok(())
//! # }
//! ```
//!
//! A token is got at the first use and renewed in time. 503, 429 and broken connections are tried again, for as long
//! as [`ClientBuilder::retry_for`] allows for one page; what the caller did wrong is not. A stream that ends without an
//! error has delivered everything: an answer that was cut is never taken for a whole one.
//!
//! | module | owns |
//! |---|---|
//! | [`builder`] | [`ClientBuilder`]: the address, the credentials, the patience |
//! | [`client`] | [`Client`]: batches, pages, and whether anything changed |
//! | [`page`] | [`Page`]: some batches, and the cursor to the next |
//! | [`received`] | [`Received`]: a batch, and what a newer service says of it |
//! | [`error`] | [`Error`]: what happened, and whether trying again can help |
//! | `ask` | requests: the token in them, the answer's status judged |
//! | `failure` | what the HTTP library's failures mean |
//! | `token` | when a token is new enough |
//! | `patience` | when to try again, and when to give up |
//! | `array` | v1's one array, cut into batches as it comes |
//! | `tls` | whom to trust |
//!
//! Values are those of `batchscan-model`: decimals are exact [`Hundredths`], instants exact [`UtcInstant`]s.

mod array;
mod ask;
pub mod builder;
pub mod client;
pub mod error;
mod failure;
pub mod page;
mod patience;
pub mod received;
mod tls;
mod token;

pub use batchscan_model::{Batch, BatchId, ClientSecret, DateRange, Hundredths, UtcInstant};
pub use builder::{ClientBuilder, Version};
pub use client::{Batches, Client, Freshness, Pages};
pub use error::Error;
pub use futures_util::TryStreamExt;
pub use page::Page;
pub use patience::Retry;
pub use received::Received;
