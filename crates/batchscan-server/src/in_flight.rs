//! The requests of one connection, and how far their responses were sent.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The requests of one connection. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    client_address: IpAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    requests: AtomicUsize,
    /// Whether the last request has a body.
    has_body: AtomicBool,
    /// Of each unfinished response, when the client last read something of it.
    progress: Mutex<Vec<Progress>>,
    /// Bytes that the kernel took, of all responses.
    written: AtomicU64,
    is_closed: AtomicBool,
    must_reset: AtomicBool,
}

/// In milliseconds since the process started, or [`NOT_READY`].
type Progress = Arc<AtomicU64>;

/// There is no response yet: the client does not stall.
const NOT_READY: u64 = u64::MAX;

impl InFlight {
    /// A new connection.
    pub(crate) fn new(client_address: IpAddr) -> Self {
        Self { client_address, shared: Arc::default() }
    }

    /// Counts a request. Its response counts as unfinished until the returned value is dropped.
    pub(crate) fn begin(&self, has_body: bool) -> ResponseInFlight {
        self.shared.requests.fetch_add(1, Ordering::Relaxed);
        self.shared.has_body.store(has_body, Ordering::Relaxed);
        let progress = Arc::new(AtomicU64::new(NOT_READY));
        self.shared.lock().push(progress.clone());
        let written_before = self.shared.written.load(Ordering::Relaxed);
        ResponseInFlight { connection: self.clone(), progress, written_before }
    }

    pub(crate) fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Whether every response is finished.
    pub(crate) fn is_idle(&self) -> bool {
        self.shared.lock().is_empty()
    }

    /// Whether the client of HTTP/1 has sent its request, and there is no response yet.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.shared.has_body.load(Ordering::Relaxed) && !self.shared.lock().iter().all(is_ready)
    }

    /// Counts bytes that the kernel took.
    pub(crate) fn note_written(&self, bytes: usize) {
        self.shared.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Notes that the client read something of the only response. `100 Continue` is none.
    pub(crate) fn note_progress(&self) {
        let progress = self.shared.lock();
        progress.iter().filter(|progress| is_ready(progress)).for_each(note_progress);
    }

    /// From now on, nothing can be sent.
    pub(crate) fn close(&self) {
        self.shared.is_closed.store(true, Ordering::Relaxed);
    }

    /// Whether a connection that ends now must be reset.
    pub(crate) fn must_reset(&self) -> bool {
        self.shared.must_reset.load(Ordering::Relaxed)
    }

    /// How long the client has not read anything of one of its responses.
    pub(crate) fn stalled_for(&self) -> Duration {
        let now = now_millis();
        let oldest = self.shared.lock().iter().map(|progress| progress.load(Ordering::Relaxed)).min();
        Duration::from_millis(now.saturating_sub(oldest.unwrap_or(now)))
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Progress>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A response that is not finished.
#[derive(Debug)]
pub(crate) struct ResponseInFlight {
    connection: InFlight,
    progress: Progress,
    written_before: u64,
}

impl ResponseInFlight {
    pub(crate) fn client_address(&self) -> IpAddr {
        self.connection.client_address
    }

    /// Notes that the client read a part of it.
    pub(crate) fn note_progress(&self) {
        note_progress(&self.progress);
    }

    /// Whether a connection that ends now must be reset, so that the client does not take a part of the response for
    /// the whole.
    pub(crate) fn set_must_reset(&self, must_reset: bool) {
        self.connection.shared.must_reset.store(must_reset, Ordering::Relaxed);
    }

    /// Whether the connection was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.connection.shared.is_closed.load(Ordering::Relaxed)
    }

    /// Bytes that the kernel took since the request.
    pub(crate) fn written(&self) -> u64 {
        self.connection.shared.written.load(Ordering::Relaxed) - self.written_before
    }
}

impl Drop for ResponseInFlight {
    fn drop(&mut self) {
        self.connection.shared.lock().retain(|progress| !Arc::ptr_eq(progress, &self.progress));
    }
}

fn is_ready(progress: &Progress) -> bool {
    progress.load(Ordering::Relaxed) != NOT_READY
}

fn note_progress(progress: &Progress) {
    progress.store(now_millis(), Ordering::Relaxed);
}

fn now_millis() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX)
}
