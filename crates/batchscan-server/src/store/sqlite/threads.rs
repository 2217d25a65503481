//! Threads that own a connection each and take jobs from one bounded queue.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::store::StoreError;

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// The threads, and the queue in front of them. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Threads {
    queue: Arc<Queue>,
    running: Vec<JoinHandle<()>>,
}

impl Threads {
    /// One thread for each connection, and room for `waiting_max` jobs.
    pub(super) fn start(name: &str, connections: Vec<Connection>, waiting_max: usize) -> Self {
        let queue = Arc::new(Queue::new(waiting_max));
        let mut running = Vec::new();
        for connection in connections {
            let jobs = queue.clone();
            let thread = std::thread::Builder::new().name(format!("sqlite-{name}"));
            // Where no thread can be had, the others serve; without any, every job is refused as unreachable.
            running.extend(thread.spawn(move || work(connection, &jobs)).ok());
        }
        Self { queue, running }
    }

    /// Runs a job on the next free thread. If the caller stops waiting before that, the job is not run at all.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(move |connection: &mut Connection| {
            if !reply.is_closed() {
                let _ = reply.send(job(connection));
            }
        });
        if self.running.is_empty() {
            return Err(unreachable("no thread is left"));
        }
        self.queue.push(job)?;
        answer.await.map_err(|_| StoreError::Broken("a job ended without an answer".into()))
    }
}

impl Drop for Threads {
    /// Waits for the jobs under way, so that the last connection can fold the write-ahead log into the file.
    fn drop(&mut self) {
        self.queue.close();
        for thread in self.running.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Jobs in the order they came. Whoever waits for one sleeps at once: a reader that spins for the next job, as channels do,
/// takes the core from the thread that would bring it.
struct Queue {
    waiting: Mutex<Waiting>,
    waiting_max: usize,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

impl Queue {
    fn new(waiting_max: usize) -> Self {
        Self { waiting: Mutex::default(), waiting_max, changed: Condvar::new() }
    }

    fn push(&self, job: Job) -> Result<(), StoreError> {
        let mut waiting = self.waiting();
        if waiting.jobs.len() >= self.waiting_max {
            return Err(unreachable("too many jobs are waiting"));
        }
        waiting.jobs.push_back(job);
        drop(waiting);
        self.changed.notify_one();
        Ok(())
    }

    /// The next job; `None` once the queue is closed and empty.
    fn next(&self) -> Option<Job> {
        let mut waiting = self.waiting();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                return Some(job);
            }
            if waiting.is_closed {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        self.waiting().is_closed = true;
        self.changed.notify_all();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("waiting", &self.waiting().jobs.len()).finish_non_exhaustive()
    }
}

fn work(mut connection: Connection, jobs: &Queue) {
    while let Some(job) = jobs.next() {
        // A job that panics loses its own answer, never the thread.
        let _ = catch_unwind(AssertUnwindSafe(|| job(&mut connection)));
    }
}

fn unreachable(why: &str) -> StoreError {
    StoreError::Unreachable(why.into())
}
