//! `cargo xtask test`: the steps that every change must pass, up to the first failure.
//!
//! Everything is built with one profile and one set of features, `--workspace --all-targets`, so that each dependency
//! compiles once. Only the gate needs another profile.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::workspace::{Workspace, run_command};
use crate::{conformance, dependencies, failover, gate, tidy};

/// Quick failures first.
const STEPS: &[Step] = &[
    Step("setup", |workspace| run_command(&mut workspace.command("xtask/setup.sh"))),
    Step("format", |workspace| run_command(&mut workspace.cargo("fmt --all --check"))),
    Step("tidy", tidy::run),
    Step("dependencies", dependencies::check),
    Step("clippy", |workspace| {
        run_command(&mut workspace.cargo("clippy --workspace --all-targets -- -D warnings"))
    }),
    Step("docs", docs),
    Step("build", |workspace| run_command(&mut workspace.cargo("test --workspace --all-targets --no-run"))),
    Step("tests", run_tests),
    Step("doctests", |workspace| run_command(&mut workspace.cargo("test --workspace --doc"))),
    Step("bench", |workspace| {
        let mut command = workspace.command("python3");
        run_command(command.args(["-B", "-m", "unittest", "discover", "bench"]))
    }),
    Step("conformance", conformance::run),
    Step(CLIENTS, clients),
    Step("dashboard", dashboard),
    Step("cluster", failover::run_short),
    Step(GATE, gate::run),
];
const CLIENTS: &str = "clients";
const GATE: &str = "gate";

/// A name and what it runs.
struct Step(&'static str, fn(&Workspace) -> Result<()>);

/// Runs the named steps, or all of them, and prints a summary whether they succeed or not.
pub(crate) fn run(workspace: &Workspace, names: &[&str]) -> Result<()> {
    let steps = select(names)?;
    let mut times = Vec::new();
    let result = run_steps(&steps, workspace, &mut times);
    println!("\n{}", summary(&steps, &times, result.is_ok()));
    result
}

/// The names of all steps, in order.
pub(crate) fn step_names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.0).collect()
}

fn select(names: &[&str]) -> Result<Vec<&'static Step>> {
    if names.is_empty() {
        return Ok(STEPS.iter().collect());
    }
    let find = |name: &&str| {
        let step = STEPS.iter().find(|step| step.0 == *name);
        step.with_context(|| format!("no step {name}; the steps are: {}", step_names().join(" ")))
    };
    names.iter().map(find).collect()
}

/// Appends the time of each step to `times`, also of the failed one.
fn run_steps(steps: &[&Step], workspace: &Workspace, times: &mut Vec<Duration>) -> Result<()> {
    let mut background_build = None;
    for (index, step) in steps.iter().enumerate() {
        println!("\n== {}/{} {}", index + 1, steps.len(), step.0);
        // From here on the steps mostly wait, and leave the CPU to the build for the gate.
        if step.0 == CLIENTS && steps.iter().any(|step| step.0 == GATE) {
            background_build = Some(gate::build_in_background(workspace)?);
        }
        let start = Instant::now();
        if step.0 == GATE {
            background_build.take().map_or(Ok(()), gate::wait_for_build)?;
        }
        let result = (step.1)(workspace);
        times.push(start.elapsed());
        result.with_context(|| format!("step {} failed", step.0))?;
    }
    Ok(())
}

fn summary(steps: &[&Step], times: &[Duration], all_passed: bool) -> String {
    let seconds = |time: &Duration| format!("{:.1} s", time.as_secs_f64());
    let mut table = String::new();
    for (index, step) in steps.iter().enumerate() {
        let result = match times.get(index) {
            None => "skipped",
            Some(_) if index + 1 == times.len() && !all_passed => "FAILED",
            Some(_) => "ok",
        };
        let time = times.get(index).map(seconds).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(table, "{}", format!("{:<16}{result:<10}{time:>10}", step.0).trim_end());
    }
    let _ = write!(table, "{:<26}{:>10}", "total", seconds(&times.iter().sum()));
    table
}

/// With `--examples` cargo also resolves the features of dev-dependencies, as in the other steps.
fn docs(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.cargo("doc --workspace --no-deps --lib --bins --examples");
    run_command(command.env("RUSTDOCFLAGS", "-D warnings"))
}

fn run_tests(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.cargo("test --workspace --all-targets");
    // Most tests wait for other processes, so more of them run than there are cores.
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        command.env("RUST_TEST_THREADS", (3 * std::thread::available_parallelism()?.get()).to_string());
    }
    run_command(command.env("BATCHSCAN_EXE", workspace.executable()?))
}

/// Other people's clients, the Python package and the recipes.
fn clients(workspace: &Workspace) -> Result<()> {
    run_command(workspace.command("clients/test.sh").env("BATCHSCAN_EXE", workspace.executable()?))
}

/// Types and units of the dashboard, then a browser.
fn dashboard(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.command("sh");
    command.args(["-c", "cd web && npm ci --no-audit --no-fund && npm test"]);
    run_command(command.env("BATCHSCAN_EXE", workspace.executable()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSING: &Step = &Step("passing", |_| Ok(()));
    const FAILING: &Step = &Step("failing", |_| anyhow::bail!("no luck"));

    #[test]
    fn the_first_failure_ends_the_run_and_names_its_step() {
        let mut times = Vec::new();
        let error =
            run_steps(&[PASSING, FAILING, PASSING], &Workspace::find().unwrap(), &mut times).unwrap_err();
        assert_eq!(times.len(), 2);
        assert_eq!(format!("{error:#}"), "step failing failed: no luck");
    }

    #[test]
    fn the_summary_lists_passed_failed_and_skipped_steps() {
        let times = [Duration::from_millis(1500), Duration::from_millis(250)];
        let table = summary(&[PASSING, FAILING, PASSING], &times, false);
        let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["passing", "ok", "1.5", "s"]);
        assert_eq!(rows[1], ["failing", "FAILED", "0.2", "s"]);
        assert_eq!(rows[2], ["passing", "skipped"]);
        assert_eq!(rows[3], ["total", "1.8", "s"]);
    }

    #[test]
    fn steps_are_selected_by_name() {
        let names = |steps: Vec<&Step>| steps.iter().map(|step| step.0).collect::<Vec<_>>();
        assert_eq!(names(select(&["tidy", "gate"]).unwrap()), ["tidy", "gate"]);
        assert_eq!(names(select(&[]).unwrap()), step_names());
        assert!(select(&["tidi"]).is_err());
    }
}
