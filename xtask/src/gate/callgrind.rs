//! Counts the instructions of a process, all its threads together. Knows nothing of what it counts.

use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, anyhow, bail};

use crate::process;

/// A count takes seconds. One that hangs must not hang the gate: its counter ends it.
const COUNT_SECS_MAX: u32 = 300;

/// The instructions that an executable takes, once with each list of arguments. Both run at the same time.
pub(super) fn count_both(executable: &Path, first: &[String; 2], second: &[String; 2]) -> Result<(u64, u64)> {
    thread::scope(|scope| {
        let beside = scope.spawn(|| count(executable, first));
        let second = count(executable, second);
        let first = beside.join().map_err(|_| anyhow!("a thread of the gate ended early"))?;
        Ok((first?, second?))
    })
}

/// The environment is fixed: variables lie on the stack of a process, and their sizes shift what lies below.
fn count(executable: &Path, arguments: &[String; 2]) -> Result<u64> {
    if !process::is_on_path("valgrind") {
        bail!("valgrind is not installed");
    }
    let mut command = Command::new("timeout");
    command.args([&COUNT_SECS_MAX.to_string(), "valgrind", "--tool=callgrind"]);
    command.arg("--callgrind-out-file=/dev/null").arg(executable).args(arguments).env_clear();
    for name in ["PATH", "HOME"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    let line = process::command_line(&command);
    let output = command.output().with_context(|| format!("cannot start `{line}`"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("`{line}` failed: {}\n{}", output.status, stderr.trim_end());
    }
    collected(&stderr).with_context(|| format!("`{line}` printed no \"Collected\" line:\n{stderr}"))
}

/// Reads callgrind's closing line, `==1234== Collected : 5678`.
fn collected(stderr: &str) -> Option<u64> {
    stderr.lines().find_map(|line| line.split_once(" Collected : ")?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callgrinds_closing_line_is_found() {
        let stderr = "==77== Events    : Ir\n==77== Collected : 123456789\n==77== \n";
        assert_eq!(collected(stderr), Some(123_456_789));
        assert_eq!(collected("==77== Events    : Ir\n"), None);
    }

    #[test]
    fn both_counts_come_back_in_their_order() {
        let rounds = |count: &str| ["-c".to_owned(), format!("for i in $(seq {count}); do :; done")];
        let (few, many) = count_both(Path::new("/bin/sh"), &rounds("1"), &rounds("2000")).unwrap();
        assert!(few < many, "{few} {many}");
    }

    #[test]
    fn a_process_that_fails_is_named_with_what_it_said() {
        let failing = ["-c".to_owned(), "echo why >&2; exit 3".to_owned()];
        let error = count(Path::new("/bin/sh"), &failing).unwrap_err().to_string();
        assert!(error.contains("sh -c") && error.contains("why"), "{error}");
    }
}
