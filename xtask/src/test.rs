//! `cargo xtask test`: everything a change must pass, in order, up to the first failure.
//!
//! Owns the list of steps and their report; what a step does is a function below or a module of its own.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use crate::{clients, conformance, dashboard, failover, gate, install, process, pulls, tidy};

/// The steps, what is quick to fail first.
const STEPS: &[Step] = &[
    Step { name: "tools", run: install::run },
    Step { name: "format", run: format },
    Step { name: "clippy", run: clippy },
    Step { name: "docs", run: docs },
    Step { name: "tidy", run: tidy::run },
    Step { name: "release build", run: release_build },
    Step { name: "tests", run: tests },
    Step { name: "doctests", run: doctests },
    Step { name: "conformance", run: conformance::run },
    Step { name: "clients", run: clients::run_step },
    Step { name: "pulls", run: pulls::run_step },
    Step { name: "dashboard", run: dashboard::run_step },
    Step { name: "cluster", run: failover::run_short },
    Step { name: "gate", run: gate::run },
];

struct Step {
    name: &'static str,
    run: fn(&Workspace) -> Result<()>,
}

/// Runs every step; a summary closes the run, whether it succeeded or not.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut times = Vec::new();
    let outcome = run_steps(STEPS, workspace, &mut times);
    println!("\n{}", summary(STEPS, &times, outcome.is_ok()));
    outcome
}

/// Adds to `times` how long each step took, the failed one included.
fn run_steps(steps: &[Step], workspace: &Workspace, times: &mut Vec<Duration>) -> Result<()> {
    for (index, step) in steps.iter().enumerate() {
        println!("\n== {}/{} {}", index + 1, steps.len(), step.name);
        let start = Instant::now();
        let outcome = (step.run)(workspace);
        let time = start.elapsed();
        times.push(time);
        outcome.with_context(|| format!("step \"{}\" failed after {}", step.name, seconds(time)))?;
        println!("== {}: ok in {}", step.name, seconds(time));
    }
    Ok(())
}

fn summary(steps: &[Step], times: &[Duration], all_passed: bool) -> String {
    let mut table = format!("{:<16}{:<10}{:>10}\n", "step", "result", "time");
    for (index, step) in steps.iter().enumerate() {
        let is_last_run = index + 1 == times.len();
        let result = match times.get(index) {
            None => "not run",
            Some(_) if is_last_run && !all_passed => "FAILED",
            Some(_) => "ok",
        };
        let time = times.get(index).map(|time| seconds(*time)).unwrap_or_default();
        let row = format!("{:<16}{:<10}{:>10}", step.name, result, time);
        // Writing to a String cannot fail.
        let _ = writeln!(table, "{}", row.trim_end());
    }
    let _ = write!(table, "{:<16}{:<10}{:>10}", "all", "", seconds(times.iter().sum()));
    table
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn format(workspace: &Workspace) -> Result<()> {
    process::run(&mut workspace.cargo(&["fmt", "--all", "--check"]))
}

fn clippy(workspace: &Workspace) -> Result<()> {
    process::run(&mut workspace.cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn docs(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.cargo(&["doc", "--workspace", "--no-deps"]);
    process::run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

fn release_build(workspace: &Workspace) -> Result<()> {
    let start = Instant::now();
    process::run(&mut workspace.cargo(&["build", "--release", "--package", "batchscan"]))?;
    let executable = workspace.release_executable("batchscan")?;
    println!("{} built in {}", executable.display(), seconds(start.elapsed()));
    Ok(())
}

/// Unit, property and integration tests. Those that start the program start the optimised one, which users get.
fn tests(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.cargo(&["test", "--workspace", "--all-targets"]);
    process::without_settings(&mut command);
    process::run(command.env("BATCHSCAN_EXE", workspace.release_executable("batchscan")?))
}

fn doctests(workspace: &Workspace) -> Result<()> {
    process::run(process::without_settings(&mut workspace.cargo(&["test", "--workspace", "--doc"])))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSING: Step = Step { name: "passing", run: |_| Ok(()) };
    const FAILING: Step = Step { name: "failing", run: |_| anyhow::bail!("no luck") };

    fn workspace() -> Workspace {
        let json = r#"{"workspace_root": "/tree", "target_directory": "/target", "packages": []}"#;
        Workspace::from_metadata(json).unwrap()
    }

    #[test]
    fn the_first_failure_ends_the_run_and_names_its_step() {
        let mut times = Vec::new();
        let error = run_steps(&[PASSING, FAILING, PASSING], &workspace(), &mut times).unwrap_err();
        assert_eq!(times.len(), 2);
        assert_eq!(format!("{error:#}"), "step \"failing\" failed after 0.0 s: no luck");
    }

    #[test]
    fn the_summary_tells_passed_failed_and_not_run() {
        let times = [Duration::from_millis(1500), Duration::from_millis(250)];
        let table = summary(&[PASSING, FAILING, PASSING], &times, false);
        let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["passing", "ok", "1.5", "s"]);
        assert_eq!(rows[2], ["failing", "FAILED", "0.2", "s"]);
        assert_eq!(rows[3], ["passing", "not", "run"]);
        assert_eq!(rows[4], ["all", "1.8", "s"]);
    }

    #[test]
    fn a_missing_executable_is_named() {
        let error = workspace().release_executable("batchscan").unwrap_err().to_string();
        assert!(error.starts_with("/target/release/batchscan is missing"), "{error}");
    }
}
