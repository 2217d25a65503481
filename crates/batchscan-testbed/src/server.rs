//! A server's folder, log and process. Knows no particular server.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, id};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::Process;
use crate::wait_until;
use crate::watchdog::Watchdog;

/// The path of a Unix socket has at most 107 bytes. In a temporary folder with a longer path a server's socket would not
/// fit.
const TEMPORARY_BYTES_MAX: usize = 60;
/// A server may have to recover from a crash on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(300);
const LOG_TAIL_LINES: usize = 20;

/// A server in its own folder. All methods take `&self`, so that one thread can kill it while others use it.
#[derive(Debug)]
pub struct Server {
    name: String,
    folder: PathBuf,
    // Dropped before the watchdog, which removes the folder.
    process: Mutex<Option<Process>>,
    watchdog: Arc<Watchdog>,
}

impl Server {
    /// Creates the folder. `cleanup` is shell code that runs before it is removed, with the folder as `$1`.
    pub(crate) fn new(name: &str, cleanup: &str) -> Result<Self> {
        let folder = create_folder()?;
        let watchdog = Arc::new(Watchdog::start(Some(&folder), cleanup)?);
        Ok(Self { name: name.to_owned(), folder, process: Mutex::new(None), watchdog })
    }

    /// The name, which is that of a standby for its primary.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder, which contains the Unix socket of PostgreSQL.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts the server and waits until it is ready.
    pub(crate) fn start(&self, command: &mut Command, is_ready: impl Fn() -> bool) -> Result<()> {
        let mut process = self.lock();
        if process.as_ref().is_some_and(Process::is_running) {
            bail!("{} is already running", self.name);
        }
        let log = File::options().create(true).append(true).open(self.folder.join("log"))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // Reaps the previous process before the watchdog gets the next.
        *process = None;
        let process = process.insert(Process::start_with(command, self.watchdog.clone())?);
        wait_until(START_TIMEOUT, || is_ready() || !process.is_running());
        if !is_ready() {
            bail!("{} did not start; its log ends with:\n{}", self.name, self.log_tail());
        }
        Ok(())
    }

    /// Sends a signal that ends the server, and waits.
    pub(crate) fn stop(&self, signal: &str, timeout: Duration) -> Result<()> {
        if let Some(mut process) = self.lock().take() {
            process.signal(signal)?;
            process.wait(timeout).with_context(|| format!("{} did not stop", self.name))?;
        }
        Ok(())
    }

    /// SIGKILL to the process and all its children, like a power cut. Returns when none of them runs.
    pub fn kill(&self) -> Result<()> {
        self.lock().take().map_or(Ok(()), |mut process| process.kill().map(drop))
    }

    /// SIGSTOP to the process and all its children. The kernel still accepts connections; nothing responds.
    pub fn freeze(&self) -> Result<()> {
        self.lock().as_ref().with_context(|| format!("{} is not running", self.name))?.freeze()
    }

    /// Resumes it after [`Self::freeze`].
    pub fn thaw(&self) {
        if let Some(process) = self.lock().as_ref() {
            process.thaw();
        }
    }

    /// Whether its process exists, frozen or not.
    pub fn is_running(&self) -> bool {
        self.lock().as_ref().is_some_and(Process::is_running)
    }

    /// The process id, unless it was killed or stopped.
    pub fn pid(&self) -> Option<u32> {
        self.lock().as_ref().map(Process::pid)
    }

    /// The whole log.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.folder.join("log")).unwrap_or_default()).into_owned()
    }

    fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }

    fn lock(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates a folder that only we can read.
fn create_folder() -> Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mut parent = std::env::temp_dir();
    if parent.as_os_str().len() > TEMPORARY_BYTES_MAX {
        parent = PathBuf::from("/tmp");
    }
    loop {
        let folder = parent.join(format!("testbed-{}-{}", id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            // Left by an earlier process with our id.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("cannot create {}", folder.display())),
        }
    }
}
