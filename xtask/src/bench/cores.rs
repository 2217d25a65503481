//! Who runs on which core: the server on one, whoever loads it and PostgreSQL on another, for every contender alike.
//!
//! So a rate is the rate of one core, and a load generator takes nothing from the server it measures.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

/// Two cores of those that we may run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cores {
    server: usize,
    load: usize,
}

impl Cores {
    /// Chooses the first two.
    pub(crate) fn choose() -> Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status").context("no /proc/self/status")?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let [server, load, ..] = allowed(list.unwrap_or_default())[..] else {
            bail!(
                "this measures a server on one core and its load on another; only one core is to be had here"
            );
        };
        Ok(Self { server, load })
    }

    /// A command for the server's core. `taskset` becomes the program, so the id of the child is the server's.
    pub(crate) fn server(self, program: impl AsRef<OsStr>) -> Command {
        on(&self.server.to_string(), program)
    }

    /// A command that may use both cores.
    pub(crate) fn both(self, program: impl AsRef<OsStr>) -> Command {
        on(&format!("{},{}", self.server, self.load), program)
    }

    /// From now on a process and what it starts run on the load's core.
    pub(crate) fn load_side(self, pid: u32) -> Result<()> {
        move_to(&self.load.to_string(), pid)
    }

    /// From now on a process and what it starts may use both cores.
    pub(crate) fn both_sides(self, pid: u32) -> Result<()> {
        move_to(&format!("{},{}", self.server, self.load), pid)
    }
}

fn on(cores: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", cores]).arg(program);
    command
}

fn move_to(cores: &str, pid: u32) -> Result<()> {
    let pid = pid.to_string();
    process::stdout_of(Command::new("taskset").args(["--all-tasks", "--pid", "--cpu-list", cores, &pid]))
        .map(drop)
}

/// The numbers in a list such as `0-2,5`.
fn allowed(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<usize>().ok()?..=last.trim().parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cores_is_spread_out() {
        assert_eq!(allowed("\t0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(allowed("3"), [3]);
        assert_eq!(allowed(""), [0; 0]);
    }

    #[test]
    fn a_server_runs_on_its_own_core() {
        let command = Cores { server: 0, load: 1 }.server("batchscan");
        assert_eq!(process::command_line(&command), "taskset --cpu-list 0 batchscan");
    }
}
