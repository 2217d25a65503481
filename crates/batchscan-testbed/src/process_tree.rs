//! Signals to a process and all its descendants.
//!
//! Process groups are not enough: every child of PostgreSQL's postmaster starts its own session.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::wait_until;

/// A signal acts at once unless the process is waiting for a disk.
const SIGNAL_TIMEOUT: Duration = Duration::from_secs(60);

/// Stops a process and its descendants. Returns when none of them runs.
pub(crate) fn freeze(root: u32) -> Result<()> {
    stop(root)?;
    let below = descendants(root);
    signal("STOP", &below)?;
    below.iter().try_for_each(|pid| wait_for(*pid, is_stopped))
}

pub(crate) fn thaw(root: u32) -> Result<()> {
    signal("CONT", &[descendants(root), vec![root]].concat())
}

/// Kills a process and its descendants, like a power cut. Returns when none of them runs. The root is not reaped.
pub(crate) fn kill(root: u32) -> Result<()> {
    // A stopped parent can neither replace its children nor tell them to finish their work.
    stop(root)?;
    let all = [descendants(root), vec![root]].concat();
    signal("KILL", &all)?;
    // Orphans of children that ended earlier are still in the group.
    let _ = Command::new("sh")
        .args(["-c", "kill -s KILL -- -$1 2>/dev/null", "kill", &root.to_string()])
        .status();
    all.iter().try_for_each(|pid| wait_for(*pid, has_ended))
}

/// Sends a signal to processes. One that has ended is ignored.
pub(crate) fn signal(name: &str, pids: &[u32]) -> Result<()> {
    let pids = pids.iter().map(u32::to_string);
    let script = "signal=$1; shift; for pid; do kill -s $signal $pid 2>/dev/null; done; true";
    Command::new("sh").args(["-c", script, "kill", name]).args(pids).status().context("cannot start `sh`")?;
    Ok(())
}

/// Whether a child has ended, reaped or not.
pub(crate) fn has_ended(pid: u32) -> bool {
    matches!(state(pid), None | Some('Z' | 'X'))
}

/// Waits until the process is stopped, so that it starts no more children.
fn stop(pid: u32) -> Result<()> {
    signal("STOP", &[pid])?;
    wait_for(pid, is_stopped)
}

fn is_stopped(pid: u32) -> bool {
    state(pid) == Some('T') || has_ended(pid)
}

fn descendants(root: u32) -> Vec<u32> {
    let mut found = children(root);
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        found.extend(children(pid));
        next += 1;
    }
    found
}

/// The children of all threads of a process.
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

fn wait_for(pid: u32, condition: fn(u32) -> bool) -> Result<()> {
    if !wait_until(SIGNAL_TIMEOUT, || condition(pid)) {
        bail!("process {pid} ignored a signal for {SIGNAL_TIMEOUT:?}");
    }
    Ok(())
}

/// The state letter of `man 5 proc`; none once the process is gone.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it is in parentheses and may contain anything.
    stat.rsplit_once(") ")?.1.chars().next()
}
