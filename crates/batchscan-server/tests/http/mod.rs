//! HTTP tests that the store can influence, and what all HTTP tests share.
//!
//! | module | content |
//! |---|---|
//! | `app`, `reply`, `raw`, `sample`, `log` | the service in process, responses, raw connections, batches, the access log |
//! | `contract` | compares every response with the OpenAPI document |
//! | the others | tests that run on both stores |

pub(crate) mod app;
pub(crate) mod contract;
pub(crate) mod log;
pub(crate) mod raw;
pub(crate) mod reply;
pub(crate) mod sample;

pub(crate) use app::{Client, StoreKind, TestApp, instant, plain_client};
pub(crate) use raw::{Raw, get_head};
pub(crate) use reply::*;
pub(crate) use sample::*;

/// Ends a test that hangs. No test depends on the speed of the machine.
pub(crate) const HANG_LIMIT: std::time::Duration = std::time::Duration::from_secs(300);
/// Waits for a condition.
#[track_caller]
pub(crate) fn until(condition: impl AsyncFn() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let started = std::time::Instant::now();
        while !condition().await {
            assert!(started.elapsed() < HANG_LIMIT, "{caller}: not within {HANG_LIMIT:?}");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}

/// Both batch endpoints.
pub(crate) const PATHS: [&str; 2] = ["/v1/batches", "/v2/batches"];

mod cache;
mod changes;
mod concurrent_changes;
mod conditional;
mod conformance;
mod credentials;
mod cursors;
mod export;
mod failures;
mod operator_api;
mod paging;
mod seen;
mod sessions;
mod stream;
mod tenancy;
