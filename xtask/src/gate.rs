//! `cargo xtask gate`: instructions of the hot paths, counted by callgrind, against a budget.
//!
//! Times on shared machines vary by half. Instruction counts hardly vary, so a lost optimisation shows in one run. Each
//! measurement runs `hot-path MODE COUNT` twice with different counts: start-up and preparation are the same
//! in both and cancel out.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use batchscan_testbed::Process;

use crate::workspace::{Workspace, command_line, run_command};

/// The profile of deployed executables. The budgets are for its code.
const PROFILE: &str = "dist";
const BUDGET_FILE: &str = "xtask/gate-budget.txt";
/// Some processors copy large texts with `rep movsb` and clear large buffers with `rep stosb`, which count as an instruction
/// per byte.
const NO_REP_INSTRUCTIONS: &str =
    "glibc.cpu.x86_rep_movsb_threshold=1000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000";
/// A measurement takes seconds; one that hangs is ended.
const COUNT_TIMEOUT_SECS: &str = "300";
/// A build from nothing on a small machine.
const BUILD_TIMEOUT: Duration = Duration::from_secs(1800);

/// A new row needs a mode of `bench/hot-path` and a line in the budget file.
const MEASUREMENTS: &[Measurement] = &[
    measurement("uncached-page-per-batch", "uncached-page", (5, 25), 1000),
    measurement("uncached-gzip-page-per-batch", "uncached-gzip-page", (10, 50), 1000),
    measurement("cached-page", "cached-page", (50, 250), 1),
    measurement("unchanged-page", "unchanged-page", (50, 250), 1),
    measurement("poll-without-news", "poll", (50, 250), 1),
    measurement("small-window", "small-window", (50, 250), 1),
    measurement("auth", "auth", (50, 250), 1),
    measurement("import-per-batch", "import", (1, 4), 2000),
    measurement("render-per-batch", "render", (5, 25), 1000),
];

struct Measurement {
    /// The name in the budget file.
    name: &'static str,
    /// The first argument of `hot-path`.
    mode: &'static str,
    /// The second argument of `hot-path`, in the smaller and in the larger run.
    counts: (u64, u64),
    /// Batches in a page or an import, or 1 if the budget is for a whole request.
    units: u64,
}

const fn measurement(name: &'static str, mode: &'static str, counts: (u64, u64), units: u64) -> Measurement {
    Measurement { name, mode, counts, units }
}

impl Measurement {
    /// Instructions per unit. Both runs go at the same time.
    fn measure(&self, executable: &Path) -> Result<u64> {
        let (few, many) = self.counts;
        let (fewer, more) = std::thread::scope(|scope| {
            let fewer = scope.spawn(|| count_instructions(executable, self.mode, few));
            let more = count_instructions(executable, self.mode, many);
            (fewer.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked"))), more)
        });
        self.per_unit(fewer?, more?)
    }

    /// Rounded up.
    fn per_unit(&self, fewer: u64, more: u64) -> Result<u64> {
        let (few, many) = self.counts;
        if more <= fewer {
            bail!(
                "`hot-path {} {many}` took no more instructions than `{few}`: COUNT has no effect",
                self.mode
            );
        }
        Ok((more - fewer).div_ceil((many - few) * self.units))
    }
}

/// Takes every measurement and fails if one is above its budget.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let text = fs::read_to_string(workspace.root.join(BUDGET_FILE)).context(BUDGET_FILE)?;
    run_command(&mut build_command(workspace))?;
    let executable = workspace.built(PROFILE, "hot-path");
    println!("{:<30}{:>14}{:>10}{:>10}", "measurement", "instructions", "budget", "headroom");
    let mut exceeded = Vec::new();
    for (measurement, budget) in MEASUREMENTS.iter().zip(budgets(&text)?) {
        let (name, cost) = (measurement.name, measurement.measure(&executable)?);
        let headroom =
            budget.checked_sub(cost).map_or("none".to_owned(), |left| format!("{} %", left * 100 / budget));
        println!("{name:<30}{cost:>14}{budget:>10}{headroom:>10}");
        if cost > budget {
            exceeded.push(name);
        }
    }
    if !exceeded.is_empty() {
        let names = exceeded.join(", ");
        bail!(
            "over budget: {names}; find what grew with callgrind_annotate, or raise the budget in {BUDGET_FILE}"
        );
    }
    Ok(())
}

/// Starts the build and lowers its priority, so that it takes only CPU time that is left over.
pub(crate) fn build_in_background(workspace: &Workspace) -> Result<Process> {
    let mut command = build_command(workspace);
    println!("$ {} (in the background)", command_line(&command));
    let process = Process::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))?;
    run_command(Command::new("renice").args(["-n", "19", "-p", &process.pid().to_string()]))?;
    Ok(process)
}

/// Waits for the build. Its errors are shown by the build that [`run`] repeats.
pub(crate) fn wait_for_build(mut build: Process) -> Result<()> {
    build.wait(BUILD_TIMEOUT).map(drop)
}

fn build_command(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo(&format!("build --profile {PROFILE} --package hot-path"));
    // Not measured, and takes a minute to build.
    command.env("BATCHSCAN_DASHBOARD", "off");
    command
}

/// The instructions of all threads of `hot-path MODE COUNT`.
fn count_instructions(executable: &Path, mode: &str, count: u64) -> Result<u64> {
    let mut command = Command::new("timeout");
    command.args([COUNT_TIMEOUT_SECS, "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    // The environment lies on the stack of a process, so its size changes what is counted.
    command.arg(executable).args([mode, &count.to_string()]).env_clear();
    for name in ["PATH", "HOME"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command.env("GLIBC_TUNABLES", NO_REP_INSTRUCTIONS);
    let line = command_line(&command);
    let output = command.output().with_context(|| format!("cannot start `{line}`"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    // The last line is `==1234== Collected : 5678`.
    let collected = stderr.lines().find_map(|line| line.split_once(" Collected : ")?.1.trim().parse().ok());
    match collected {
        Some(instructions) if output.status.success() => Ok(instructions),
        _ => bail!("`{line}` failed: {}\n{}", output.status, stderr.trim_end()),
    }
}

/// The budgets in the order of [`MEASUREMENTS`], from lines of a name and a number. `#` starts a comment.
fn budgets(text: &str) -> Result<Vec<u64>> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let words: Vec<(&str, &str)> = lines.filter_map(|line| line.trim().split_once(' ')).collect();
    if let Some((name, _)) = words.iter().find(|(name, _)| !MEASUREMENTS.iter().any(|row| row.name == *name))
    {
        bail!("{BUDGET_FILE} has a budget for {name}, which is not measured");
    }
    let find = |row: &Measurement| {
        let budget = words
            .iter()
            .find(|(name, _)| *name == row.name)
            .and_then(|(_, number)| number.trim().parse().ok());
        budget.with_context(|| format!("{BUDGET_FILE} has no number for {}", row.name))
    };
    MEASUREMENTS.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preparation_cancels_out_and_a_count_without_effect_is_an_error() {
        let page = measurement("page-per-batch", "page", (5, 25), 1000);
        assert_eq!(page.per_unit(7_000_000 + 5 * 1_600_000, 7_000_000 + 25 * 1_600_000).unwrap(), 1600);
        assert_eq!(page.per_unit(0, 20_001).unwrap(), 2);
        assert!(page.per_unit(10, 10).is_err());
    }

    #[test]
    fn instructions_are_counted_and_an_error_contains_stderr() {
        assert!(count_instructions(Path::new("/bin/echo"), "x", 1).unwrap() > 0);
        let error = count_instructions(Path::new("/bin/cat"), "/no-such-file", 1).unwrap_err().to_string();
        assert!(error.contains("No such file"), "{error}");
    }

    #[test]
    fn the_budget_file_matches_the_measurements() {
        let text = include_str!("../gate-budget.txt");
        assert_eq!(budgets(text).unwrap().len(), MEASUREMENTS.len());
        assert!(budgets(&text.replace("auth ", "oauth ")).is_err());
        assert!(budgets(&text.replace("auth ", "auth x")).is_err());
    }
}
