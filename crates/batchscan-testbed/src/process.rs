//! A child process that ends with us: when it is dropped, and when our process dies however it dies.

use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::tree;
use crate::watchdog::Watchdog;

/// A process with many threads can be waited for when the last of them is gone, which is a moment later.
const REAP_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

/// A running child process, in a process group of its own.
#[derive(Debug)]
pub struct Process {
    child: Child,
    status: Option<ExitStatus>,
    watchdog: Arc<Watchdog>,
}

impl Process {
    /// Starts a command; its environment, folder and streams are the caller's to set.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> Result<Self> {
        Self::start_under(command, Arc::new(Watchdog::over_process()?))
    }

    /// Starts a command under a watchdog that is there already, and watches no other process.
    pub(crate) fn start_under(command: &mut Command, watchdog: Arc<Watchdog>) -> Result<Self> {
        let program = command.get_program().to_owned();
        let spawned = command.process_group(0).spawn();
        let child = spawned.with_context(|| format!("cannot start `{}`", program.display()))?;
        let process = Self { child, status: None, watchdog };
        // Only a SIGKILL in the microseconds before this line would leave the child behind.
        process.watchdog.watch(process.id())?;
        Ok(process)
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its standard input, output and error, as far as they were piped and not taken before.
    pub fn take_streams(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// Whether it has not ended yet. A frozen process runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.status.is_none() && !self.has_ended()
    }

    /// Sends it a signal, not to its descendants.
    ///
    /// # Errors
    ///
    /// When it has ended and was waited for.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        if self.status.is_some() {
            bail!("process {} has ended", self.pid());
        }
        Ok(kill_process(self.id(), signal)?)
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// When it still runs after the limit.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.status {
                return Ok(status);
            }
            if self.has_ended() {
                self.watchdog.forget()?;
                self.status = Some(self.child.wait()?);
            } else if Instant::now() > deadline {
                bail!("process {} still runs after {limit:?}", self.pid());
            } else {
                sleep(POLL);
            }
        }
    }

    /// SIGKILL to it and to all its descendants; when this returns, none of them runs.
    ///
    /// # Errors
    ///
    /// When one of them does not end, which takes a broken disk.
    pub fn kill(&mut self) -> Result<ExitStatus> {
        if self.status.is_none() {
            tree::kill(self.id())?;
        }
        self.wait(REAP_LIMIT)
    }

    /// SIGSTOP to it and to all its descendants; when this returns, none of them moves.
    ///
    /// # Errors
    ///
    /// When it has ended, or one of them does not stop.
    pub fn freeze(&self) -> Result<()> {
        if !self.is_running() {
            bail!("process {} has ended", self.pid());
        }
        tree::freeze(self.id())
    }

    /// SIGCONT to it and to all its descendants.
    pub fn thaw(&self) {
        if self.status.is_none() {
            tree::thaw(self.id());
        }
    }

    /// Its id stays its own until it is reaped, so this looks without reaping.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.id()), options), Ok(None))
    }

    fn id(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
