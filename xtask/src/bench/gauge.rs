//! What a process and all that descends from it cost: CPU time and memory, as the kernel counts them.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The kernel's unit for CPU times, which is the same on every Linux.
const TICK: Duration = Duration::from_millis(10);
/// Written to `clear_refs`, it lets the peak of a process begin anew.
const FORGET_PEAK: &str = "5";
/// A server that uses less than this in a moment has nothing left to do.
const IDLE_MOMENT: Duration = Duration::from_millis(60);
const IDLE_TICKS: u64 = 1;
/// What is left over from a load that was cut off: 512 answers of the slowest contender.
const IDLE_LIMIT: Duration = Duration::from_secs(60);

/// A process and its descendants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree {
    root: u32,
}

impl Tree {
    pub(crate) fn of(root: u32) -> Self {
        Self { root }
    }

    /// CPU time so far, in user space and in the kernel. What ended children used is counted with their parents.
    pub(crate) fn cpu(self) -> Duration {
        let ticks = self.ticks();
        TICK * u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    /// The memory that is resident now, in bytes. Pages shared by processes are counted in each.
    pub(crate) fn resident_bytes(self) -> u64 {
        self.status_sum("VmRSS:")
    }

    /// The sum of the peaks of all, in bytes, since the start or [`Self::forget_peak`].
    pub(crate) fn peak_bytes(self) -> u64 {
        self.status_sum("VmHWM:")
    }

    /// Lets the peaks begin anew, at what is resident now.
    pub(crate) fn forget_peak(self) -> Result<()> {
        for pid in self.processes() {
            let path = format!("/proc/{pid}/clear_refs");
            fs::write(&path, FORGET_PEAK).with_context(|| format!("cannot write {path}"))?;
        }
        Ok(())
    }

    /// Waits until nothing of an earlier load is left to be done.
    pub(crate) fn settle(self) -> Result<()> {
        let deadline = Instant::now() + IDLE_LIMIT;
        let mut before = self.ticks();
        loop {
            sleep(IDLE_MOMENT);
            let now = self.ticks();
            if now.saturating_sub(before) <= IDLE_TICKS {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("process {} is still busy {IDLE_LIMIT:?} after its load ended", self.root);
            }
            before = now;
        }
    }

    fn ticks(self) -> u64 {
        self.processes()
            .iter()
            .filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok())
            .filter_map(|stat| ticks_in(&stat))
            .sum()
    }

    fn status_sum(self, label: &str) -> u64 {
        self.processes()
            .iter()
            .filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/status")).ok())
            .filter_map(|status| kibibytes_in(&status, label))
            .sum::<u64>()
            * 1024
    }

    fn processes(self) -> Vec<u32> {
        let mut found = vec![self.root];
        let mut next = 0;
        while let Some(pid) = found.get(next).copied() {
            found.extend(children(pid));
            next += 1;
        }
        found
    }
}

/// The children of all threads of a process.
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.collect::<String>().split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Fields 14 to 17 of `/proc/PID/stat`: its own user and system time, and those of children that it waited for.
fn ticks_in(stat: &str) -> Option<u64> {
    // The name comes before them, in parentheses, and may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
    fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum()
}

fn kibibytes_in(status: &str, label: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(label))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read_behind_a_name_that_holds_anything() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 4194560 100 0 0 0 40 3 2 1 20 0 1 0 5 6 7";
        assert_eq!(ticks_in(stat), Some(46));
        assert_eq!(ticks_in("7 (short) S 1"), None);
    }

    #[test]
    fn memory_is_read_by_its_label() {
        let status = "Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t   128 kB\nVmRSS:\t    64 kB\n";
        assert_eq!(kibibytes_in(status, "VmHWM:"), Some(128));
        assert_eq!(kibibytes_in(status, "VmSwap:"), None);
    }

    #[test]
    fn a_tree_holds_its_children() {
        let mut child = std::process::Command::new("sleep").arg("10").spawn().unwrap();
        let tree = Tree::of(std::process::id());
        assert!(tree.processes().contains(&child.id()));
        assert!(tree.resident_bytes() > 0 && tree.peak_bytes() >= tree.resident_bytes() / 2);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
