//! A `serve` or `demo` that runs beside the test. Dropping it ends it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::NamedTempFile;

use crate::program::{Running, assert_calm, wait};

/// A demo makes its batches before it listens; on a busy machine that takes a while.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Above the limit for draining (30 s), so that the service's own limit is the one that acts.
const END_LIMIT: Duration = Duration::from_secs(40);

/// A running service.
pub(crate) struct Service {
    running: Running,
    log: NamedTempFile,
    /// What it printed up to the line that says where it listens, that line included.
    pub(crate) welcome: String,
    /// Where it listens.
    pub(crate) url: String,
}

impl Service {
    /// Starts it and waits until it listens.
    pub(crate) fn start(command: &mut Command) -> Self {
        let log = NamedTempFile::new().unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.reopen().unwrap());
        let mut running = Running(command.spawn().unwrap());
        let lines = lines_of(&mut running.0);
        let mut service = Self { running, log, welcome: String::new(), url: String::new() };
        let deadline = Instant::now() + START_LIMIT;
        while service.url.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = lines.recv_timeout(left).unwrap_or_else(|_| panic!("no start: {}", service.log()));
            service.url = line.strip_prefix("listening on ").unwrap_or_default().into();
            service.welcome.push_str(&line);
            service.welcome.push('\n');
        }
        service
    }

    /// Its host and port.
    pub(crate) fn address(&self) -> &str {
        self.url.split_once("://").unwrap().1
    }

    /// All that it wrote to standard error so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.running.0), signal).unwrap();
    }

    /// Asks it to stop, and waits for its end. It must exit with 0; gives how long that took.
    #[track_caller]
    pub(crate) fn stop(&mut self) -> Duration {
        self.signal(Signal::TERM);
        self.ends_well()
    }

    /// Waits for its end, which must be regular; gives how long that took.
    #[track_caller]
    pub(crate) fn ends_well(&mut self) -> Duration {
        let asked = Instant::now();
        assert_eq!(self.ends(), Some(0), "{}", self.log());
        asked.elapsed()
    }

    /// Waits for its end, and gives its exit status.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> Option<i32> {
        wait(&mut self.running.0, END_LIMIT)
    }

    /// The most memory it ever held, in KiB.
    pub(crate) fn peak_kib(&self) -> u64 {
        peak_kib(&self.running.0).unwrap()
    }
}

impl Drop for Service {
    /// A panic inside the service is a failure of the test, whatever it was about.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_calm(&self.log());
        }
    }
}

/// The most memory a process ever held, in KiB; nothing once it has ended.
pub(crate) fn peak_kib(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Reads to the end, so that the program never blocks on a full pipe.
fn lines_of(child: &mut Child) -> Receiver<String> {
    let stdout = child.stdout.take().unwrap();
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    lines
}
