//! Signals to a process and to all that descends from it.
//!
//! Process groups do not do: every child of PostgreSQL's postmaster makes a session of its own.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// A signal acts at once, unless the process is in the kernel, waiting for a disk.
const SIGNAL_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(1);

/// Stops a process and its descendants; when this returns, none of them runs.
pub(crate) fn freeze(root: Pid) -> Result<()> {
    stop(root)?;
    let below = descendants(root);
    below.iter().for_each(|pid| send(*pid, Signal::STOP));
    below.iter().try_for_each(|pid| wait_until(*pid, "stop", is_stopped))
}

/// Lets a frozen process and its descendants go on.
pub(crate) fn thaw(root: Pid) {
    descendants(root).iter().for_each(|pid| send(*pid, Signal::CONT));
    send(root, Signal::CONT);
}

/// Ends a process and its descendants, like a power cut; when this returns, none of them runs. The root is
/// left to be reaped.
pub(crate) fn kill(root: Pid) -> Result<()> {
    // While the parent is stopped it can neither replace its children nor tell them to finish their work.
    let stopped = stop(root);
    let all = [descendants(root), vec![root]].concat();
    all.iter().for_each(|pid| send(*pid, Signal::KILL));
    let _ = kill_process_group(root, Signal::KILL);
    stopped?;
    all.iter().try_for_each(|pid| wait_until(*pid, "end", is_gone))
}

/// Children are listed after this, so it waits until no new one can come.
fn stop(pid: Pid) -> Result<()> {
    send(pid, Signal::STOP);
    wait_until(pid, "stop", is_stopped)
}

/// A process that is gone already needs no signal.
fn send(pid: Pid, signal: Signal) {
    let _ = kill_process(pid, signal);
}

fn descendants(root: Pid) -> Vec<Pid> {
    let mut found = children(root);
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        found.extend(children(pid));
        next += 1;
    }
    found
}

/// The children of all threads of a process.
fn children(pid: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())) else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids = lists.collect::<String>();
    pids.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

fn wait_until(pid: Pid, what: &str, holds: impl Fn(Option<char>) -> bool) -> Result<()> {
    let deadline = Instant::now() + SIGNAL_LIMIT;
    while !holds(state(pid)) {
        if Instant::now() > deadline {
            bail!("process {} did not {what} in {SIGNAL_LIMIT:?}", pid.as_raw_nonzero());
        }
        sleep(POLL);
    }
    Ok(())
}

/// The letter for which `man 5 proc` has a table; nothing once the process is gone.
fn state(pid: Pid) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name comes before it, in parentheses, and may hold anything.
    stat.rsplit_once(") ")?.1.chars().next()
}

fn is_stopped(state: Option<char>) -> bool {
    state == Some('T') || is_gone(state)
}

fn is_gone(state: Option<char>) -> bool {
    matches!(state, None | Some('Z' | 'X'))
}
