//! Threads that own a connection each and take jobs from one bounded queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::store::StoreError;

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// The threads, and the queue in front of them. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Threads {
    queue: Option<Sender<Job>>,
    running: Vec<JoinHandle<()>>,
}

impl Threads {
    /// One thread for each connection, and room for `waiting_max` jobs.
    pub(super) fn start(name: &str, connections: Vec<Connection>, waiting_max: usize) -> Self {
        let (queue, jobs) = bounded::<Job>(waiting_max);
        let mut running = Vec::new();
        for connection in connections {
            let jobs = jobs.clone();
            let thread = std::thread::Builder::new().name(format!("sqlite-{name}"));
            // Where no thread can be had, the others serve; without any, every job is refused as unreachable.
            running.extend(thread.spawn(move || work(connection, &jobs)).ok());
        }
        Self { queue: Some(queue), running }
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
        let queue = self.queue.as_ref().ok_or_else(|| unreachable("the store is closed"))?;
        queue.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(_) => unreachable("too many jobs are waiting"),
            TrySendError::Disconnected(_) => unreachable("no thread is left"),
        })?;
        answer.await.map_err(|_| StoreError::Broken("a job ended without an answer".into()))
    }
}

impl Drop for Threads {
    /// Waits for the jobs under way, so that the last connection can fold the write-ahead log into the file.
    fn drop(&mut self) {
        drop(self.queue.take());
        for thread in self.running.drain(..) {
            let _ = thread.join();
        }
    }
}

fn work(mut connection: Connection, jobs: &Receiver<Job>) {
    for job in jobs {
        // A job that panics loses its own answer, never the thread.
        let _ = catch_unwind(AssertUnwindSafe(|| job(&mut connection)));
    }
}

fn unreachable(why: &str) -> StoreError {
    StoreError::Unreachable(why.into())
}
