//! A running `serve` or `demo`. Dropping it kills it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::NamedTempFile;

use crate::program::{HANG_LIMIT, Running, assert_no_panic, wait, wait_until};

/// A running service.
pub(crate) struct Service {
    running: Running,
    log: NamedTempFile,
    /// Standard output up to the line `listening on`.
    pub(crate) welcome: String,
    /// The address it listens on.
    pub(crate) url: String,
}

impl Service {
    /// Starts it and waits until it listens.
    pub(crate) fn start(command: &mut Command) -> Self {
        let log = NamedTempFile::new().unwrap();
        command.stderr(log.reopen().unwrap());
        Self::start_with_log(command, log)
    }

    /// The same with another standard error than the log file.
    pub(crate) fn start_with_log(command: &mut Command, log: NamedTempFile) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut running = Running(command.spawn().unwrap());
        let lines = lines_of(&mut running.0);
        let mut service = Self { running, log, welcome: String::new(), url: String::new() };
        let deadline = Instant::now() + HANG_LIMIT;
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

    /// Standard error so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.running.0), signal).unwrap();
    }

    /// Sends a signal until it ends. Returns the exit status.
    pub(crate) fn signal_until_it_ends(&mut self, signal: Signal) -> Option<i32> {
        wait_until("the service ends", || {
            self.signal(signal);
            self.running.0.try_wait().unwrap().is_some()
        });
        self.wait()
    }

    /// Sends SIGTERM and waits until it exits with 0. Returns how long it took.
    #[track_caller]
    pub(crate) fn stop(&mut self) -> Duration {
        self.signal(Signal::TERM);
        self.wait_for_success()
    }

    /// Waits until it exits with 0. Returns how long it took.
    #[track_caller]
    pub(crate) fn wait_for_success(&mut self) -> Duration {
        let started = Instant::now();
        assert_eq!(self.wait(), Some(0), "{}", self.log());
        started.elapsed()
    }

    /// Waits for its end. Returns the exit status.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> Option<i32> {
        wait(&mut self.running.0, HANG_LIMIT)
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.running.0.id()
    }

    /// Its peak memory in KiB.
    pub(crate) fn peak_kib(&self) -> u64 {
        peak_kib(&self.running.0).unwrap()
    }
}

impl Drop for Service {
    /// A panic in the service fails the test.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_no_panic(&self.log());
        }
    }
}

/// The peak memory of a process in KiB; `None` after its end.
pub(crate) fn peak_kib(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Reads all lines, so that the program never blocks on a full pipe.
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
