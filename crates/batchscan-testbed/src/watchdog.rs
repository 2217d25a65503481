//! Cleanup after our own death: a shell that kills our child and removes its folder when our process is gone.
//!
//! The shell reads a pipe whose only write end is ours. The kernel closes that end however we die. Rust opens pipes
//! close-on-exec, so no other child keeps it open.

use std::io::{PipeWriter, Write, pipe};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// Each line is the id of the process to kill, or empty. A parent is stopped before its children are listed, so that it
/// cannot start another.
const KILL: &str = r#"
end() {
    kill -s STOP "$1"
    for child in $(cat /proc/"$1"/task/*/children); do end "$child"; done
    kill -s KILL "$1"
}
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then end "$pid"; kill -s KILL -- "-$pid"; fi
"#;

/// A dying process may still be writing, so this is repeated.
const REMOVE: &str = r#"
if [ -n "$1" ]; then for attempt in 1 2 3 4 5; do rm -rf -- "$1" && break; sleep 0.2; done; fi
"#;

/// The shell and our end of its pipe.
#[derive(Debug)]
pub(crate) struct Watchdog {
    shell: Child,
    pipe: Option<PipeWriter>,
}

impl Watchdog {
    /// Starts a watchdog for a process and for a folder. Before the folder is removed, the shell runs `cleanup` with the
    /// folder as `$1`.
    pub(crate) fn start(folder: Option<&Path>, cleanup: &str) -> Result<Self> {
        let (reader, writer) = pipe()?;
        let mut command = Command::new("sh");
        command.args(["-c", &[KILL, cleanup, REMOVE].concat(), "watchdog"]).args(folder);
        // In its own process group, so that Ctrl-C in a terminal does not end it.
        command.process_group(0).current_dir("/").stdin(reader).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { shell: command.spawn().context("cannot start `sh`")?, pipe: Some(writer) })
    }

    /// Sets the process to kill.
    pub(crate) fn watch(&self, pid: Option<u32>) -> Result<()> {
        let Some(mut pipe) = self.pipe.as_ref() else { return Ok(()) };
        let line = pid.map_or(String::new(), |pid| pid.to_string()) + "\n";
        pipe.write_all(line.as_bytes()).context("the watchdog has ended")
    }
}

impl Drop for Watchdog {
    /// Closing the pipe starts the cleanup.
    fn drop(&mut self) {
        self.pipe = None;
        let _ = self.shell.wait();
    }
}
