//! The SDK against the real service, and against a scripted one for what a real one cannot be made to show.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its servers too")]

mod breaks;
mod circles;
mod examples;
mod foreign;
mod freshness;
mod messages;
mod pages;
mod retries;
mod script;
mod secrets;
#[path = "../../doctest/service.rs"]
mod service;
mod sizes;
mod tls;
mod tokens;
mod v1;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use batchscan_client::{Batches, Client, ClientBuilder, DateRange, Error, Pages, Retry, TryStreamExt};
use batchscan_server::config::Config;
use service::Service;

/// A window without ends.
const ALL: DateRange = DateRange { start: None, end: None };

/// A service with so many batches on pages of so many.
async fn paged(batches: u32, page_rows: usize) -> Service {
    let service = Service::configured(Config { page_rows, ..Config::default() }, None).await;
    service.import(0..batches).await;
    service
}

fn to(service: &Service) -> ClientBuilder {
    Client::builder(service.url()).credentials(service.client_id(), service.client_secret())
}

/// Every text of a walk, as it was sent.
async fn texts(pages: Pages) -> Result<Vec<String>, Error> {
    let all = |mut all: Vec<String>, page: batchscan_client::Page| async move {
        for text in page.texts() {
            all.push(text?.to_owned());
        }
        Ok(all)
    };
    bounded(pages.try_fold(Vec::new(), all)).await
}

/// Every id of a walk.
async fn ids(batches: Batches) -> Result<Vec<String>, Error> {
    bounded(batches.map_ok(|received| received.batch_id.as_str().to_owned()).try_collect()).await
}

/// What would otherwise go on for ever is a failure.
async fn bounded<T>(walk: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(40), walk).await.unwrap()
}

/// The ids of the batches of these numbers.
fn numbered(numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(|number| format!("b{number:06}")).collect()
}

/// Keeps what a client says before each wait.
#[derive(Clone, Default)]
struct Waits(Arc<Mutex<Vec<(String, Duration)>>>);

impl Waits {
    fn listener(&self) -> impl Fn(&Retry<'_>) + Send + Sync + 'static {
        let kept = self.0.clone();
        move |retry| kept.lock().unwrap().push((retry.error.to_string(), retry.wait))
    }

    fn heard(&self) -> Vec<(String, Duration)> {
        self.0.lock().unwrap().clone()
    }
}
