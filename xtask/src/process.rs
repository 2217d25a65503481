//! Runs other programs and says in one line what failed.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs a command with its output passed through; fails unless it exits with 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = command_line(command);
    println!("$ {line}");
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed: {status}");
    }
    Ok(())
}

/// Runs a command in silence and gives its stdout; the failure carries its stderr.
pub(crate) fn stdout_of(command: &mut Command) -> Result<String> {
    let line = command_line(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{line}` failed: {}\n{}", output.status, stderr.trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` did not print UTF-8"))
}

/// Removes every `BATCHSCAN_*` variable, so that a developer's own settings do not steer the tests.
pub(crate) fn without_settings(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BATCHSCAN_") {
            command.env_remove(name);
        }
    }
    command
}

/// Whether a program of this name is on the PATH.
pub(crate) fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The command as a person would type it, the program without its folder.
pub(crate) fn command_line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_and_its_exit() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err().to_string();
        assert_eq!(error, "`sh -c exit 3` failed: exit status: 3");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run(&mut Command::new("no-such-program")).unwrap_err().to_string();
        assert_eq!(error, "cannot start `no-such-program`");
        assert!(!is_on_path("no-such-program"));
        assert!(is_on_path("sh"));
    }

    #[test]
    fn a_command_line_names_the_program_without_its_folder() {
        assert_eq!(command_line(Command::new("/usr/bin/cargo").arg("fmt")), "cargo fmt");
    }

    #[test]
    fn a_silent_failure_carries_what_stood_on_stderr() {
        let error =
            stdout_of(Command::new("sh").args(["-c", "echo why >&2; false"])).unwrap_err().to_string();
        assert!(error.ends_with("exit status: 1\nwhy"), "{error}");
    }
}
