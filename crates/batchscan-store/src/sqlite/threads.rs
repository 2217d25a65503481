//! Threads that own a connection each and take jobs from one bounded queue.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::StoreError;

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
///
/// Of those who sleep, the one that worked last is woken, for what it has in its caches. It wakes the next one if there is
/// more to do: many jobs at once then do not wake everybody for what two can do.
struct Queue {
    waiting: Mutex<Waiting>,
    waiting_max: usize,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    /// Who sleeps; who worked last is last.
    asleep: Vec<Thread>,
    /// Whether somebody was woken and has not come yet.
    is_coming: bool,
    is_closed: bool,
}

impl Queue {
    fn new(waiting_max: usize) -> Self {
        Self { waiting: Mutex::default(), waiting_max }
    }

    fn push(&self, job: Job) -> Result<(), StoreError> {
        let mut waiting = self.waiting();
        if waiting.jobs.len() >= self.waiting_max {
            return Err(unreachable("too many jobs are waiting"));
        }
        waiting.jobs.push_back(job);
        leave(waiting);
        Ok(())
    }

    /// The next job; `None` once the queue is closed and empty.
    fn next(&self) -> Option<Job> {
        let mut waiting = self.waiting();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                leave(waiting);
                return Some(job);
            }
            if waiting.is_closed {
                return None;
            }
            waiting = self.sleep(waiting);
        }
    }

    /// Sleeps until woken.
    fn sleep<'a>(&'a self, mut waiting: MutexGuard<'a, Waiting>) -> MutexGuard<'a, Waiting> {
        let this = std::thread::current();
        waiting.asleep.push(this.clone());
        drop(waiting);
        std::thread::park();
        let mut waiting = self.waiting();
        // A thread may wake by itself; then nobody has taken it from the list.
        match waiting.asleep.iter().position(|asleep| asleep.id() == this.id()) {
            Some(place) => drop(waiting.asleep.remove(place)),
            None => waiting.is_coming = false,
        }
        waiting
    }

    fn close(&self) {
        let mut waiting = self.waiting();
        waiting.is_closed = true;
        waiting.asleep.drain(..).for_each(|asleep| asleep.unpark());
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

/// Lets go of the queue, and wakes somebody if there is a job that nobody is coming for.
fn leave(mut waiting: MutexGuard<'_, Waiting>) {
    if waiting.is_coming || waiting.jobs.is_empty() {
        return;
    }
    let woken = waiting.asleep.pop();
    waiting.is_coming = woken.is_some();
    drop(waiting);
    woken.iter().for_each(Thread::unpark);
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

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn threads(count: usize) -> Threads {
        let connections = (0..count).map(|_| Connection::open_in_memory().unwrap()).collect();
        Threads::start("test", connections, 10_000)
    }

    #[tokio::test]
    async fn jobs_that_wait_for_each_other_find_a_thread_each() {
        let threads = threads(4);
        for _ in 0..200 {
            let barrier = Arc::new(Barrier::new(4));
            let together = (0..4).map(|_| {
                let barrier = barrier.clone();
                threads.run(move |_| barrier.wait().is_leader())
            });
            let leaders = futures_util::future::join_all(together).await;
            assert_eq!(leaders.into_iter().filter(|leader| *leader.as_ref().unwrap()).count(), 1);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn every_job_is_run_also_those_that_wait_when_the_end_comes() {
        const JOBS: usize = 2_000;
        let threads = Arc::new(threads(3));
        let done = Arc::new(AtomicUsize::new(0));
        let askers = (0..JOBS).map(|_| {
            let (threads, done) = (threads.clone(), done.clone());
            tokio::spawn(async move { threads.run(move |_| done.fetch_add(1, Ordering::Relaxed)).await })
        });
        for asked in futures_util::future::join_all(askers).await {
            asked.unwrap().unwrap();
        }
        assert_eq!(done.load(Ordering::Relaxed), JOBS);
        let queue = threads.queue.clone();
        let last = done.clone();
        let job = move |_: &mut Connection| {
            last.fetch_add(1, Ordering::Relaxed);
        };
        queue.push(Box::new(job)).unwrap();
        drop(threads);
        assert_eq!(done.load(Ordering::Relaxed), JOBS + 1);
    }

    #[tokio::test]
    async fn a_job_that_panics_loses_its_answer_and_nothing_else() {
        let threads = threads(1);
        assert!(threads.run(|_| -> usize { panic!("on purpose") }).await.is_err());
        assert_eq!(threads.run(|_| 7).await.unwrap(), 7);
    }
}
