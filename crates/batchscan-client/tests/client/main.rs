//! Tests the SDK against the real service, and against a mock server for what a real service does not do.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its servers too")]

mod changes;
mod error_messages;
mod examples;
mod freshness;
mod lost_connections;
mod mock_server;
mod other_services;
mod pages;
mod pagination_loops;
mod response_sizes;
mod retries;
mod secrets;
#[path = "../../doctest/service.rs"]
mod service;
mod tls;
mod tokens;
mod v1;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use batchscan_client::{ClientBuilder, DateRange, Error, Pages, Retry, TryStreamExt};
use batchscan_server::config::Config;
use service::Service;

const ALL: DateRange = DateRange { start: None, end: None };

/// Starts a service with this many batches in total and per page.
async fn paged(batches: u32, page_rows: usize) -> Service {
    let service = Service::configured(Config { page_rows, ..Config::default() }, None).await;
    service.import(0..batches).await;
    service
}

/// Reads all JSON texts.
async fn texts(pages: Pages) -> Result<Vec<String>, Error> {
    let append = |mut all: Vec<String>, page: batchscan_client::Page| async move {
        for text in page.texts() {
            all.push(text?.to_owned());
        }
        Ok(all)
    };
    bounded(pages.try_fold(Vec::new(), append)).await
}

/// Reads the ids of all batches.
async fn ids(client: ClientBuilder) -> Result<Vec<String>, Error> {
    ids_in(client, ALL).await
}

async fn ids_in(client: ClientBuilder, range: DateRange) -> Result<Vec<String>, Error> {
    let batches = client.build().unwrap().batches(range);
    bounded(batches.map_ok(|received| received.batch_id.as_str().to_owned()).try_collect()).await
}

/// Panics instead of waiting forever. No test depends on the speed of the machine.
async fn bounded<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(300), future).await.unwrap()
}

/// The ids of the batches with these numbers.
fn numbered(numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(|number| format!("b{number:06}")).collect()
}

/// Records the retries of a client.
#[derive(Clone, Default)]
struct RetryLog(Arc<Mutex<Vec<(String, Duration)>>>);

impl RetryLog {
    fn listener(&self) -> impl Fn(&Retry<'_>) + Send + Sync + 'static {
        let log = self.0.clone();
        move |retry| log.lock().unwrap().push((retry.error.to_string(), retry.wait))
    }

    fn errors(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|(error, _)| error.clone()).collect()
    }

    fn waits(&self) -> Vec<Duration> {
        self.0.lock().unwrap().iter().map(|(_, wait)| *wait).collect()
    }
}
