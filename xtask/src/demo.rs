//! `batchscan demo` as a child: a service with made-up data, and the credentials it prints.
//!
//! Whatever happens, the demo is ended. Knows nothing of what is asked of it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use crate::process;

/// The demo makes a year of batches before it listens; on a slow, busy machine that is a matter of seconds.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Above the service's own limit for draining connections (30 s), so that its limit is the one that acts.
const END_LIMIT: Duration = Duration::from_secs(40);

const END_POLL: Duration = Duration::from_millis(20);

/// How much of the demo's log a failure shows.
const LOG_TAIL_LINES: usize = 20;

/// A running demo. Dropping it ends it.
pub(crate) struct Demo {
    child: Child,
    lines: Receiver<String>,
    log: PathBuf,
}

impl Demo {
    /// Starts a demo of so many batches on a port of its own choice.
    pub(crate) fn of(executable: &Path, batches: u32, log: PathBuf) -> Result<Self> {
        Self::failing(executable, batches, 0.0, log)
    }

    /// The same, and answers this share of batch requests with 503.
    pub(crate) fn failing(executable: &Path, batches: u32, share: f64, log: PathBuf) -> Result<Self> {
        let mut command = Command::new(executable);
        process::without_settings(&mut command);
        command.args(["demo", "--listen", "127.0.0.1:0", "--batches", &batches.to_string()]);
        if share > 0.0 {
            command.args(["--fail-rate", &share.to_string()]);
        }
        Self::start(command, log)
    }

    fn start(mut command: Command, log: PathBuf) -> Result<Self> {
        let log_file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log_file);
        let line = process::command_line(&command);
        println!("$ {line}");
        let mut child = command.spawn().with_context(|| format!("cannot start `{line}`"))?;
        let lines = child.stdout.take().map(lines_of);
        let mut demo = Self { child, lines: mpsc::channel().1, log };
        demo.lines = lines.context("the demo has no stdout")?;
        Ok(demo)
    }

    /// Waits until the demo listens, and gives what it printed.
    pub(crate) fn greeting(&self) -> Result<Greeting> {
        let deadline = Instant::now() + START_LIMIT;
        Greeting::read(|| {
            let left = deadline.saturating_duration_since(Instant::now());
            self.lines.recv_timeout(left).map_err(|error| match error {
                mpsc::RecvTimeoutError::Timeout => anyhow!("the demo did not listen within {START_LIMIT:?}"),
                mpsc::RecvTimeoutError::Disconnected => anyhow!("the demo ended before it listened"),
            })
        })
    }

    /// Asks the demo to end and requires that it ends well.
    pub(crate) fn end(&mut self) -> Result<()> {
        process::run(Command::new("kill").args(["-TERM", &self.child.id().to_string()]))?;
        let status = self.wait()?;
        if status.code() != Some(0) {
            bail!("the demo did not exit with 0 after SIGTERM: {status}");
        }
        println!("demo ended with 0");
        Ok(())
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        let deadline = Instant::now() + END_LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().context("cannot wait for the demo")? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                bail!("the demo did not end within {END_LIMIT:?} after SIGTERM");
            }
            std::thread::sleep(END_POLL);
        }
    }

    /// The end of its log, for a failure.
    pub(crate) fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let tail = &lines[lines.len().saturating_sub(LOG_TAIL_LINES)..];
        format!("the demo's log, {}, ends in:\n{}", self.log.display(), tail.join("\n"))
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Both do nothing to a child that was waited for; there is nobody left to tell of a failure.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads on after the greeting has been taken, so that the demo never blocks on a full pipe.
fn lines_of(stdout: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    receiver
}

/// What a demo prints for its user.
#[derive(Debug, PartialEq)]
pub(crate) struct Greeting {
    pub(crate) url: String,
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
}

impl Greeting {
    /// Reads lines up to the one that says where the service listens.
    fn read(mut next_line: impl FnMut() -> Result<String>) -> Result<Self> {
        let (mut client_id, mut client_secret) = (None, None);
        loop {
            let line = next_line()?;
            client_id = client_id.or_else(|| labelled(&line, "client id"));
            client_secret = client_secret.or_else(|| labelled(&line, "client secret"));
            if let Some(url) = line.trim().strip_prefix("listening on ") {
                return Ok(Self {
                    url: url.to_owned(),
                    client_id: client_id.context("the demo printed no client id before it listened")?,
                    client_secret: client_secret
                        .context("the demo printed no client secret before it listened")?,
                });
            }
        }
    }
}

/// The value of a line `  label  value`; two spaces or more part them.
fn labelled(line: &str, label: &str) -> Option<String> {
    let value = line.trim().strip_prefix(label)?.strip_prefix("  ")?.trim_start();
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Result<Greeting> {
        let mut lines = lines.iter();
        Greeting::read(|| lines.next().map(ToString::to_string).context("ended"))
    }

    /// A stand-in for the executable: a shell that prints a first line once its traps are set.
    fn start(name: &str, body: &str) -> Demo {
        let log = std::env::temp_dir().join(format!("xtask-{name}-{}.log", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", body]);
        let demo = Demo::start(command, log).unwrap();
        demo.lines.recv_timeout(START_LIMIT).unwrap();
        std::fs::remove_file(&demo.log).unwrap();
        demo
    }

    #[test]
    fn a_greeting_is_read_from_what_a_demo_prints() {
        let lines = [
            "A demo nursery.",
            "",
            "  client id      abc",
            "  client secret  s3 cret",
            "listening on http://x:1",
        ];
        let expected =
            Greeting { url: "http://x:1".into(), client_id: "abc".into(), client_secret: "s3 cret".into() };
        assert_eq!(read(&lines).unwrap(), expected);
    }

    #[test]
    fn a_greeting_without_credentials_is_refused() {
        let error = read(&["  client id      abc", "listening on http://x:1"]).unwrap_err().to_string();
        assert_eq!(error, "the demo printed no client secret before it listened");
        assert_eq!(labelled("client identity  abc", "client id"), None);
    }

    #[test]
    fn a_demo_that_ends_early_is_a_failure() {
        let demo = start("early", "echo hello");
        assert_eq!(demo.greeting().unwrap_err().to_string(), "the demo ended before it listened");
    }

    #[test]
    fn a_demo_must_exit_with_0_on_sigterm() {
        let wait = "echo ready; while :; do sleep 0.05; done";
        start("well", &format!("trap 'exit 0' TERM; {wait}")).end().unwrap();
        let error = start("badly", &format!("trap 'exit 7' TERM; {wait}")).end().unwrap_err().to_string();
        assert_eq!(error, "the demo did not exit with 0 after SIGTERM: exit status: 7");
        let error = start("rudely", wait).end().unwrap_err().to_string();
        assert!(error.contains("signal: 15"), "{error}");
    }

    #[test]
    fn a_dropped_demo_is_gone() {
        let demo = start("dropped", "trap '' TERM; echo ready; while :; do sleep 0.05; done");
        let folder = PathBuf::from(format!("/proc/{}", demo.child.id()));
        assert!(folder.exists());
        drop(demo);
        assert!(!folder.exists());
    }
}
