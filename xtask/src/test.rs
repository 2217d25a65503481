//! `cargo xtask test`: the steps that every change must pass. After a failure, those that do not need it still run.
//!
//! Everything is built with one profile and one set of features, `--workspace --all-targets`, so that each dependency
//! compiles once. Only the gate needs another profile.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::workspace::{Workspace, run_command};
use crate::{conformance, dependencies, failover, gate, tidy, windows};

/// Quick failures first.
const STEPS: &[Step] = &[
    step("setup", &[], |workspace| run_command(&mut workspace.command("xtask/setup.sh"))),
    step("format", &[], |workspace| run_command(&mut workspace.cargo("fmt --all --check"))),
    step("tidy", &[], tidy::run),
    step("dependencies", &[], dependencies::check),
    step("clippy", &[], |workspace| {
        run_command(&mut workspace.cargo("clippy --workspace --all-targets -- -D warnings"))
    }),
    step("windows-check", &["setup"], windows::check),
    step("docs", &[], docs),
    step("build", &[], |workspace| {
        run_command(&mut workspace.cargo("test --workspace --all-targets --no-run"))
    }),
    step("tests", SETUP_AND_BUILD, run_tests),
    step("doctests", SETUP_AND_BUILD, |workspace| {
        run_command(&mut workspace.cargo("test --workspace --doc --no-fail-fast"))
    }),
    step("bench", &["setup"], |workspace| {
        let mut command = workspace.command("python3");
        run_command(command.args(["-B", "-m", "unittest", "discover", "bench"]))
    }),
    step("conformance", SETUP_AND_BUILD, conformance::run),
    step(CLIENTS, SETUP_AND_BUILD, clients),
    step("dashboard", SETUP_AND_BUILD, dashboard),
    step("cluster", SETUP_AND_BUILD, failover::run_short),
    step(GATE, SETUP_AND_BUILD, gate::run),
    step(WINDOWS, SETUP_AND_BUILD, windows::run),
];
const SETUP_AND_BUILD: &[&str] = &["setup", "build"];
const CLIENTS: &str = "clients";
const GATE: &str = "gate";
/// Runs only if it is named: compiling for another system takes a third of the time of all others.
const WINDOWS: &str = "windows";

struct Step {
    name: &'static str,
    /// It is skipped if one of these has failed.
    needs: &'static [&'static str],
    run: fn(&Workspace) -> Result<()>,
}

const fn step(name: &'static str, needs: &'static [&'static str], run: fn(&Workspace) -> Result<()>) -> Step {
    Step { name, needs, run }
}

/// The result of a step.
struct Report {
    name: &'static str,
    outcome: Outcome,
    time: Duration,
    /// Of the processes that it started.
    cpu: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// Runs the named steps, or all but the manual one, and prints a summary. Fails if a step has failed.
pub(crate) fn run(workspace: &Workspace, names: &[&str]) -> Result<()> {
    let reports = run_steps(&select(names)?, workspace);
    println!("\n{}", summary(&reports));
    let failed = reports.iter().filter(|report| report.outcome == Outcome::Failed);
    let failed: Vec<&str> = failed.map(|report| report.name).collect();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

/// The names of all steps, in order.
pub(crate) fn step_names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

fn select(names: &[&str]) -> Result<Vec<&'static Step>> {
    if names.is_empty() {
        return Ok(STEPS.iter().filter(|step| step.name != WINDOWS).collect());
    }
    let find = |name: &&str| {
        let step = STEPS.iter().find(|step| step.name == *name);
        step.with_context(|| format!("no step {name}; the steps are: {}", step_names().join(" ")))
    };
    names.iter().map(find).collect()
}

#[expect(clippy::print_stderr, reason = "errors belong on stderr")]
fn run_steps(steps: &[&Step], workspace: &Workspace) -> Vec<Report> {
    let mut reports: Vec<Report> = Vec::new();
    let mut background_build = None;
    for (index, Step { name, needs, run }) in steps.iter().enumerate() {
        let (start, cpu_before) = (Instant::now(), children_cpu());
        let is_missing = |need: &&str| {
            reports.iter().any(|report| report.name == *need && report.outcome == Outcome::Failed)
        };
        println!("\n== {}/{} {name}", index + 1, steps.len());
        let is_skipped = needs.iter().any(is_missing);
        // From here on the steps mostly wait, and leave the CPU to the build for the gate.
        if *name == CLIENTS && !is_skipped && steps.iter().any(|step| step.name == GATE) {
            background_build = gate::build_in_background(workspace).ok();
        }
        if *name == GATE {
            background_build.take().map(gate::wait_for_build);
        }
        let outcome = match (!is_skipped).then(|| run(workspace)) {
            None => Outcome::Skipped,
            Some(Ok(())) => Outcome::Passed,
            Some(Err(error)) => {
                eprintln!("error: step {name} failed: {error:#}");
                Outcome::Failed
            }
        };
        let cpu = children_cpu().saturating_sub(cpu_before);
        reports.push(Report { name, outcome, time: start.elapsed(), cpu });
    }
    reports
}

/// The CPU time, user and system, of all processes that were started from here and have ended.
fn children_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the name in parentheses, which may contain spaces; the 16th and 17th are ticks of 10 ms.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(13).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

fn summary(reports: &[Report]) -> String {
    let mut table = format!("{:<16}{:<10}{:>10}{:>12}\n", "step", "", "time", "CPU");
    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    let mut add = |name: &str, outcome: &str, time: Duration, cpu: Duration| {
        // Writing to a String cannot fail.
        let _ = writeln!(table, "{name:<16}{outcome:<10}{:>10}{:>12}", seconds(time), seconds(cpu));
    };
    for Report { name, outcome, time, cpu } in reports {
        let outcome = match outcome {
            Outcome::Passed => "ok",
            Outcome::Failed => "FAILED",
            Outcome::Skipped => "skipped",
        };
        add(name, outcome, *time, *cpu);
    }
    let (time, cpu) = (reports.iter().map(|report| report.time), reports.iter().map(|report| report.cpu));
    add("total", "", time.sum(), cpu.sum());
    table
}

/// With `--examples` cargo also resolves the features of dev-dependencies, as in the other steps.
fn docs(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.cargo("doc --workspace --no-deps --lib --bins --examples");
    run_command(command.env("RUSTDOCFLAGS", "-D warnings"))
}

fn run_tests(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.cargo("test --workspace --all-targets --no-fail-fast");
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

    #[test]
    fn after_a_failure_only_steps_that_need_it_are_skipped() {
        let steps = [
            step("build", &[], |_| bail!("no luck")),
            step("tests", &["build"], |_| Ok(())),
            step("bench", &["setup"], |_| Ok(())),
        ];
        let reports = run_steps(&steps.iter().collect::<Vec<_>>(), &Workspace::find().unwrap());
        let outcomes: Vec<Outcome> = reports.iter().map(|report| report.outcome).collect();
        assert_eq!(outcomes, [Outcome::Failed, Outcome::Skipped, Outcome::Passed]);
    }

    #[test]
    fn every_needed_step_comes_before() {
        for (index, step) in STEPS.iter().enumerate() {
            let is_before = |need: &&str| STEPS[..index].iter().any(|before| before.name == *need);
            assert!(step.needs.iter().all(is_before), "{}", step.name);
        }
    }

    #[test]
    fn the_summary_lists_passed_failed_and_skipped_steps_with_time_and_cpu() {
        let report = |name, outcome, millis: u64| Report {
            name,
            outcome,
            time: Duration::from_millis(millis),
            cpu: Duration::from_millis(3 * millis),
        };
        let reports = [
            report("build", Outcome::Passed, 1_500),
            report("tests", Outcome::Failed, 250),
            report("gate", Outcome::Skipped, 0),
        ];
        let table = summary(&reports);
        let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["build", "ok", "1.5", "s", "4.5", "s"]);
        assert_eq!(rows[2], ["tests", "FAILED", "0.2", "s", "0.8", "s"]);
        assert_eq!(rows[3], ["gate", "skipped", "0.0", "s", "0.0", "s"]);
        assert_eq!(rows[4], ["total", "1.8", "s", "5.2", "s"]);
    }

    #[test]
    fn the_cpu_time_of_processes_that_have_ended_is_counted() {
        let before = children_cpu();
        let mut command = std::process::Command::new("sh");
        run_command(command.args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done"])).unwrap();
        assert!(children_cpu() > before);
    }

    #[test]
    fn steps_are_selected_by_name() {
        let names = |steps: Vec<&Step>| steps.iter().map(|step| step.name).collect::<Vec<_>>();
        assert_eq!(names(select(&["tidy", "gate"]).unwrap()), ["tidy", "gate"]);
        assert_eq!(names(select(&[]).unwrap()), step_names()[..STEPS.len() - 1], "all but the manual one");
        assert!(select(&["tidi"]).is_err());
    }
}
