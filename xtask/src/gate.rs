//! `cargo xtask gate`: instructions of the hot path, counted by callgrind, against a budget.
//!
//! Times on shared machines vary by half; instruction counts hardly vary at all, so that a lost optimisation
//! shows in one run. Each measurement runs the example `hot_path MODE COUNT` twice with different counts: start-up and
//! preparation are the same in both and cancel out of the difference.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use crate::process;
use crate::workspace::Workspace;

const BUDGET_FILE: &str = "xtask/gate-budget.txt";

/// What is measured. A new row wants a mode of the example and a line in the budget file.
const MEASUREMENTS: &[Measurement] =
    &[Measurement { name: "uncached-page-per-batch", mode: "uncached-page", few: 5, many: 25, units: 1000 }];

struct Measurement {
    /// Its name in the budget file.
    name: &'static str,
    /// The first argument of `hot_path`.
    mode: &'static str,
    /// The second argument of `hot_path`, in the smaller and in the larger run.
    few: u64,
    many: u64,
    /// What one count amounts to: a page is 1000 batches.
    units: u64,
}

impl Measurement {
    /// Instructions per unit, rounded up.
    fn cost(&self, few_collected: u64, many_collected: u64) -> Result<u64> {
        let Self { mode, few, many, units, .. } = self;
        if many_collected <= few_collected {
            bail!("`hot_path {mode} {many}` took no more than `hot_path {mode} {few}`: COUNT has no effect");
        }
        Ok((many_collected - few_collected).div_ceil((many - few) * units))
    }
}

/// Measures every row and fails if one is above its budget.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let budgets = read_budgets(workspace)?;
    let build = ["build", "--release", "--package", "batchscan-server", "--example", "hot_path"];
    process::run(&mut workspace.cargo(&build))?;
    let executable = workspace.release_executable("examples/hot_path")?;

    println!("{:<28}{:>14}{:>10}{:>10}", "measurement", "instructions", "budget", "headroom");
    let mut exceeded = Vec::new();
    for (measurement, budget) in MEASUREMENTS.iter().zip(budgets) {
        let few = collected(workspace, &executable, measurement.mode, measurement.few)?;
        let many = collected(workspace, &executable, measurement.mode, measurement.many)?;
        let cost = measurement.cost(few, many)?;
        println!("{:<28}{cost:>14}{budget:>10}{:>10}", measurement.name, headroom(cost, budget));
        if cost > budget {
            exceeded.push(format!("{} takes {cost} instructions, budget {budget}", measurement.name));
        }
    }
    if !exceeded.is_empty() {
        bail!(
            "{}; find what grew with callgrind_annotate, or raise the budget in {BUDGET_FILE} and say why",
            exceeded.join("; ")
        );
    }
    Ok(())
}

/// The budgets, in the order of the measurements.
fn read_budgets(workspace: &Workspace) -> Result<Vec<u64>> {
    let path = workspace.root.join(BUDGET_FILE);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    budgets_for(MEASUREMENTS, parse_budgets(&text)?)
}

/// Lines of a name and a number; `#` begins a comment.
fn parse_budgets(text: &str) -> Result<BTreeMap<&str, u64>> {
    let mut budgets = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let malformed = || anyhow!("{BUDGET_FILE}:{}: a line is a name and a number, once", index + 1);
        match words[..] {
            [] => {}
            [name, number] => {
                let budget = number.parse().map_err(|_| malformed())?;
                if budgets.insert(name, budget).is_some() {
                    return Err(malformed());
                }
            }
            _ => return Err(malformed()),
        }
    }
    Ok(budgets)
}

/// Neither a measurement without a budget nor a budget that nothing is held against goes unnoticed.
fn budgets_for(measurements: &[Measurement], mut budgets: BTreeMap<&str, u64>) -> Result<Vec<u64>> {
    let take = |measurement: &Measurement| {
        budgets
            .remove(measurement.name)
            .with_context(|| format!("{BUDGET_FILE} has no line for {}", measurement.name))
    };
    let taken = measurements.iter().map(take).collect::<Result<_>>()?;
    if let Some(name) = budgets.keys().next() {
        bail!("{BUDGET_FILE} has a budget for {name}, which nothing measures");
    }
    Ok(taken)
}

/// Runs one mode of the example under callgrind and gives the instructions it took.
///
/// The environment is fixed: variables lie on the stack of a process, and their sizes shift what lies below.
fn collected(workspace: &Workspace, executable: &Path, mode: &str, count: u64) -> Result<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(executable).args([mode, &count.to_string()]).current_dir(&workspace.root).env_clear();
    for name in ["PATH", "HOME"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    let line = process::command_line(&command);
    let output =
        command.output().with_context(|| format!("cannot start `{line}`; is valgrind installed?"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("`{line}` failed: {}\n{}", output.status, stderr.trim_end());
    }
    parse_collected(&stderr).with_context(|| format!("`{line}` printed no \"Collected\" line:\n{stderr}"))
}

/// Reads callgrind's closing line, `==1234== Collected : 5678`.
fn parse_collected(stderr: &str) -> Option<u64> {
    stderr.lines().find_map(|line| line.split_once(" Collected : ")?.1.trim().parse().ok())
}

fn headroom(cost: u64, budget: u64) -> String {
    if cost > budget {
        return "none".to_owned();
    }
    format!("{} %", (budget - cost) * 100 / budget.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Measurement =
        Measurement { name: "page-per-batch", mode: "page", few: 5, many: 25, units: 1000 };

    #[test]
    fn what_is_the_same_in_both_runs_cancels_out() {
        let preparation = 7_000_000;
        assert_eq!(PAGE.cost(preparation + 5 * 1_600_000, preparation + 25 * 1_600_000).unwrap(), 1600);
        assert_eq!(PAGE.cost(0, 20_001).unwrap(), 2);
    }

    #[test]
    fn a_count_without_effect_is_refused() {
        assert!(PAGE.cost(10, 9).is_err());
        let error = PAGE.cost(10, 10).unwrap_err().to_string();
        assert!(error.ends_with("COUNT has no effect"), "{error}");
    }

    #[test]
    fn callgrinds_closing_line_is_found() {
        let stderr = "==77== Events    : Ir\n==77== Collected : 123456789\n==77== \n";
        assert_eq!(parse_collected(stderr), Some(123_456_789));
        assert_eq!(parse_collected("==77== Events    : Ir\n"), None);
    }

    #[test]
    fn budgets_are_names_with_numbers() {
        let budgets = parse_budgets("# comment\n\npage-per-batch 1800 # why\n").unwrap();
        assert_eq!(budgets_for(&[PAGE], budgets).unwrap(), [1800]);
        for malformed in ["page", "page many", "page 1 2", "page 1\npage 2"] {
            assert!(parse_budgets(malformed).is_err(), "{malformed}");
        }
    }

    #[test]
    fn measurements_and_budgets_must_match() {
        let missing = budgets_for(&[PAGE], BTreeMap::new()).unwrap_err().to_string();
        assert_eq!(missing, "xtask/gate-budget.txt has no line for page-per-batch");
        let stray = budgets_for(&[], BTreeMap::from([("old", 1)])).unwrap_err().to_string();
        assert_eq!(stray, "xtask/gate-budget.txt has a budget for old, which nothing measures");
    }

    #[test]
    fn the_headroom_is_a_share_of_the_budget() {
        assert_eq!(headroom(1500, 2000), "25 %");
        assert_eq!(headroom(2000, 2000), "0 %");
        assert_eq!(headroom(2001, 2000), "none");
    }

    #[test]
    fn the_budget_file_fits_the_measurements() {
        let budgets = parse_budgets(include_str!("../gate-budget.txt")).unwrap();
        assert_eq!(budgets_for(MEASUREMENTS, budgets).unwrap().len(), MEASUREMENTS.len());
    }
}
