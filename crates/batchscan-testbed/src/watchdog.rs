//! A shell that outlives us: when our process is gone, it ends our child and removes its folder.
//!
//! It reads a pipe whose only write end is ours. The end of that pipe is the end of us, however we died: the
//! kernel closes it after a SIGKILL as well. Rust opens pipes close-on-exec, so no other child holds it open.

use std::io::{PipeWriter, Write, pipe};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use rustix::process::Pid;

/// A parent is stopped before its children are listed, so that no new one escapes. They are walked one by one
/// because PostgreSQL's are each in a process group of their own.
const END: &str = r#"
end() {
    kill -s STOP "$1"
    for child in $(cat /proc/"$1"/task/*/children); do end "$child"; done
    kill -s KILL "$1"
}
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then end "$pid"; kill -s KILL -- "-$pid"; fi
"#;

/// A process that dies may still be writing; five attempts in a second are plenty for that.
const REMOVE: &str = r#"
for attempt in 1 2 3 4 5; do rm -rf -- "$1" && break; sleep 0.2; done
"#;

/// The shell, and our end of its pipe.
#[derive(Debug)]
pub(crate) struct Watchdog {
    shell: Child,
    orders: Option<PipeWriter>,
}

impl Watchdog {
    /// A watchdog over a process that it will be told of.
    pub(crate) fn over_process() -> Result<Self> {
        Self::start(Command::new("sh").args(["-c", END]))
    }

    /// A watchdog over a folder, and over a process that it may be told of. Before the folder goes, the shell
    /// runs `last_words`, with the folder as `$1`.
    pub(crate) fn over_folder(folder: &Path, last_words: &str) -> Result<Self> {
        let script = format!("{END}{last_words}{REMOVE}");
        Self::start(Command::new("sh").args(["-c", &script, "watchdog"]).arg(folder))
    }

    /// From now on this process ends with us.
    pub(crate) fn watch(&self, pid: Pid) -> Result<()> {
        self.order(&format!("{}\n", pid.as_raw_nonzero()))
    }

    /// Say this before the process is reaped: its id may then become another's.
    pub(crate) fn forget(&self) -> Result<()> {
        self.order("\n")
    }

    fn start(command: &mut Command) -> Result<Self> {
        let (reader, writer) = pipe()?;
        // A group of its own, so that Ctrl-C in a terminal ends us and not the one who clears up after us.
        command.process_group(0).current_dir("/");
        command.stdin(reader).stdout(Stdio::null()).stderr(Stdio::null());
        let shell = command.spawn().context("cannot start `sh`")?;
        Ok(Self { shell, orders: Some(writer) })
    }

    fn order(&self, line: &str) -> Result<()> {
        let Some(mut orders) = self.orders.as_ref() else { return Ok(()) };
        orders.write_all(line.as_bytes()).context("the watchdog is gone")
    }
}

impl Drop for Watchdog {
    /// Closing the pipe is the order to clear up; after the wait all is gone.
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.shell.wait();
    }
}
