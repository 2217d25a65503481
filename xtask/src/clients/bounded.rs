//! A program that must end within a limit: whatever it started ends with it.

use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process;

const END_POLL: Duration = Duration::from_millis(5);

/// How much of what a failed program said is shown.
const TAIL_LINES: usize = 40;

/// Runs a command in silence and gives its stdout; the failure carries the end of all that it said.
pub(crate) fn stdout_within(limit: Duration, command: &mut Command) -> Result<String> {
    let line = process::command_line(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own, so that a pipeline can be ended as one.
    let mut child = command.process_group(0).spawn().with_context(|| format!("cannot start `{line}`"))?;
    let stdout = text_of(child.stdout.take());
    let stderr = text_of(child.stderr.take());
    let status = wait(&mut child, limit)?;
    let (stdout, stderr) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
    match status {
        Some(status) if status.success() => Ok(stdout),
        Some(status) => bail!("`{line}` failed: {status}\n{}", tail(&stdout, &stderr)),
        None => bail!("`{line}` did not end within {limit:?}\n{}", tail(&stdout, &stderr)),
    }
}

/// Nothing if the limit was reached and the whole group was killed.
fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a program")? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            process::stdout_of(Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]))?;
            child.wait().context("cannot wait for a program")?;
            return Ok(None);
        }
        std::thread::sleep(END_POLL);
    }
}

/// Reads while the program runs, so that it never blocks on a full pipe.
fn text_of(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before a failure is still worth showing.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn tail(stdout: &str, stderr: &str) -> String {
    let lines: Vec<&str> = stdout.lines().chain(stderr.lines()).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(limit: Duration, script: &str) -> Result<String> {
        stdout_within(limit, Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn what_a_program_prints_is_given() {
        assert_eq!(run(Duration::from_secs(20), "echo one; echo two >&2").unwrap(), "one\n");
    }

    #[test]
    fn a_failure_carries_all_that_was_said() {
        let error = run(Duration::from_secs(20), "echo one; echo two >&2; exit 3").unwrap_err().to_string();
        assert!(error.ends_with("failed: exit status: 3\none\ntwo"), "{error}");
    }

    #[test]
    fn a_pipeline_that_does_not_end_is_ended_as_a_whole() {
        let start = Instant::now();
        let error = run(Duration::from_millis(200), "echo begun; sleep 60 | sleep 60").unwrap_err();
        assert!(error.to_string().ends_with("did not end within 200ms\nbegun"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(30), "the pipes stayed open");
    }
}
