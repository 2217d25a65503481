//! The home of a server: its folder, its log, and its process while it runs. Knows no particular server.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::process::Process;
use crate::watchdog::Watchdog;

/// The path of a Unix socket fits into 107 bytes; with a longer temporary folder than this, a server's would not.
const TEMPORARY_BYTES_LIMIT: usize = 60;
/// A server that recovers from a crash on a busy machine takes its time.
const START_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);
/// What of a log goes into an error.
const TAIL_LINES: usize = 20;

/// A folder that goes when this is dropped or our process dies, and the one server in it.
///
/// All takes `&self`, so that one thread can cut the power while others work.
#[derive(Debug)]
pub(crate) struct Home {
    name: String,
    folder: PathBuf,
    // Before the watchdog, which removes the folder: fields are dropped in order.
    process: Mutex<Option<Process>>,
    watchdog: Arc<Watchdog>,
}

impl Home {
    /// A new folder. `last_words` are what a shell does before it goes, with the folder as `$1`.
    pub(crate) fn new(name: &str, last_words: &str) -> Result<Self> {
        let mut parent = std::env::temp_dir();
        if parent.as_os_str().len() > TEMPORARY_BYTES_LIMIT {
            parent = PathBuf::from("/tmp");
        }
        let folder = tempfile::Builder::new().prefix("testbed-").tempdir_in(parent)?.keep();
        let watchdog = Arc::new(Watchdog::over_folder(&folder, last_words)?);
        Ok(Self { name: name.to_owned(), folder, process: Mutex::new(None), watchdog })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts the server and waits until it is ready; else the error carries the end of its log.
    pub(crate) fn start(&self, command: &mut Command, is_ready: impl Fn() -> bool) -> Result<()> {
        let mut process = self.lock();
        if process.as_ref().is_some_and(Process::is_running) {
            bail!("{} is running", self.name);
        }
        let log = File::options().create(true).append(true).open(self.log_path())?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // The one that ended must be forgotten by the watchdog before it hears of the next.
        *process = None;
        let started = process.insert(Process::start_under(command, self.watchdog.clone())?);
        let outcome = wait_until_ready(started, is_ready);
        outcome.with_context(|| format!("{} did not start; its log ends:\n{}", self.name, self.log_tail()))
    }

    /// Sends a signal upon which the server should end, and waits for that.
    pub(crate) fn stop(&self, signal: Signal, limit: Duration) -> Result<()> {
        if let Some(mut process) = self.lock().take() {
            process.signal(signal)?;
            process.wait(limit).with_context(|| format!("{} did not stop", self.name))?;
        }
        Ok(())
    }

    pub(crate) fn kill(&self) -> Result<()> {
        self.lock().take().map_or(Ok(()), |mut process| process.kill().map(drop))
    }

    pub(crate) fn freeze(&self) -> Result<()> {
        let process = self.lock();
        process.as_ref().with_context(|| format!("{} is not running", self.name))?.freeze()
    }

    pub(crate) fn thaw(&self) {
        if let Some(process) = self.lock().as_ref() {
            process.thaw();
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.lock().as_ref().is_some_and(Process::is_running)
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.lock().as_ref().map(Process::pid)
    }

    pub(crate) fn log(&self) -> String {
        fs::read(self.log_path())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn lock(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wait_until_ready(process: &Process, is_ready: impl Fn() -> bool) -> Result<()> {
    let deadline = Instant::now() + START_LIMIT;
    while !is_ready() {
        if !process.is_running() {
            bail!("it ended");
        }
        if Instant::now() > deadline {
            bail!("it was not ready after {START_LIMIT:?}");
        }
        sleep(POLL);
    }
    Ok(())
}
