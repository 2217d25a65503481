//! A child process that ends when it is dropped and when our process dies.

use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::watchdog::Watchdog;
use crate::{process_tree, wait_until};

/// A killed process can be reaped when the last of its threads is gone.
const REAP_TIMEOUT: Duration = Duration::from_secs(60);

/// A child process in its own process group.
#[derive(Debug)]
pub struct Process {
    child: Child,
    status: Option<ExitStatus>,
    watchdog: Arc<Watchdog>,
}

impl Process {
    /// Starts a command. Environment, folder and streams are the caller's choice.
    pub fn start(command: &mut Command) -> Result<Self> {
        Self::start_with(command, Arc::new(Watchdog::start(None, "")?))
    }

    /// Starts a command under an existing watchdog that has no other process.
    pub(crate) fn start_with(command: &mut Command, watchdog: Arc<Watchdog>) -> Result<Self> {
        let program = command.get_program().to_owned();
        let child = command.process_group(0).spawn();
        let child = child.with_context(|| format!("cannot start `{}`", program.display()))?;
        // Only a SIGKILL in the microseconds before this line would leave the child running.
        watchdog.watch(Some(child.id()))?;
        Ok(Self { child, status: None, watchdog })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Standard input, output and error, if piped and not taken before.
    pub fn take_streams(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// Whether it has not ended. A frozen process is running.
    pub fn is_running(&self) -> bool {
        self.status.is_none() && !process_tree::has_ended(self.pid())
    }

    /// Sends a signal to this process only: `signal("TERM")`.
    pub fn signal(&self, name: &str) -> Result<()> {
        if self.status.is_some() {
            bail!("process {} has ended", self.pid());
        }
        process_tree::signal(name, &[self.pid()])
    }

    /// Waits for its end.
    pub fn wait(&mut self, timeout: Duration) -> Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        if !wait_until(timeout, || process_tree::has_ended(self.pid())) {
            bail!("process {} is still running after {timeout:?}", self.pid());
        }
        // Before it is reaped: afterwards its id may become another process's.
        self.watchdog.watch(None)?;
        Ok(*self.status.insert(self.child.wait()?))
    }

    /// SIGKILL to it and all its descendants. Returns when none of them runs.
    pub fn kill(&mut self) -> Result<ExitStatus> {
        if self.status.is_none() {
            process_tree::kill(self.pid())?;
        }
        self.wait(REAP_TIMEOUT)
    }

    /// SIGSTOP to it and all its descendants. Returns when none of them runs.
    pub fn freeze(&self) -> Result<()> {
        if !self.is_running() {
            bail!("process {} has ended", self.pid());
        }
        process_tree::freeze(self.pid())
    }

    /// SIGCONT to it and all its descendants.
    pub fn thaw(&self) {
        if self.status.is_none() {
            let _ = process_tree::thaw(self.pid());
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
