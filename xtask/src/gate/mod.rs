//! `cargo xtask gate`: instructions of the hot paths, counted by callgrind, against a budget.
//!
//! Times on shared machines vary by half; instruction counts hardly vary at all, so that a lost optimisation
//! shows in one run. Each measurement runs the example `hot_path MODE COUNT` twice with different counts: start-up and
//! preparation are the same in both and cancel out of the difference.

mod budget;
mod callgrind;

use std::fs;

use anyhow::{Context, Result, bail};

use crate::process;
use crate::workspace::Workspace;
use budget::{BUDGET_FILE, budgets_of};

/// What is measured. A new row wants a mode of the example and a line in the budget file.
const MEASUREMENTS: &[Measurement] = &[
    Measurement { name: "uncached-page-per-batch", mode: "uncached-page", few: 5, many: 25, units: 1000 },
    Measurement {
        name: "uncached-gzip-page-per-batch",
        mode: "uncached-gzip-page",
        few: 2,
        many: 8,
        units: 1000,
    },
    Measurement { name: "cached-page", mode: "cached-page", few: 50, many: 250, units: 1 },
    Measurement { name: "unchanged-page", mode: "unchanged-page", few: 50, many: 250, units: 1 },
    Measurement { name: "small-window", mode: "small-window", few: 50, many: 250, units: 1 },
    Measurement { name: "auth", mode: "auth", few: 50, many: 250, units: 1 },
    Measurement { name: "import-per-batch", mode: "import", few: 1, many: 4, units: 2000 },
    Measurement { name: "render-per-batch", mode: "render", few: 5, many: 25, units: 1000 },
];

struct Measurement {
    /// Its name in the budget file.
    name: &'static str,
    /// The first argument of `hot_path`.
    mode: &'static str,
    /// The second argument of `hot_path`, in the smaller and in the larger run.
    few: u64,
    many: u64,
    /// What one count amounts to: a page is 1000 batches, an import 2000, a request itself.
    units: u64,
}

impl Measurement {
    /// The arguments of `hot_path`.
    fn arguments(&self, count: u64) -> [String; 2] {
        [self.mode.to_owned(), count.to_string()]
    }

    /// Instructions per unit, rounded up.
    fn cost(&self, (few_counted, many_counted): (u64, u64)) -> Result<u64> {
        let Self { mode, few, many, units, .. } = self;
        if many_counted <= few_counted {
            bail!("`hot_path {mode} {many}` took no more than `hot_path {mode} {few}`: COUNT has no effect");
        }
        Ok((many_counted - few_counted).div_ceil((many - few) * units))
    }
}

/// Measures every row and fails if one is above its budget.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let budgets = read_budgets(workspace)?;
    let build = ["build", "--release", "--package", "batchscan-server", "--example", "hot_path"];
    process::run(&mut workspace.cargo(&build))?;
    let executable = workspace.release_executable("examples/hot_path")?;

    println!("{:<30}{:>14}{:>10}{:>10}", "measurement", "instructions", "budget", "headroom");
    let mut exceeded = Vec::new();
    for (measurement, budget) in MEASUREMENTS.iter().zip(budgets) {
        let (few, many) = (measurement.arguments(measurement.few), measurement.arguments(measurement.many));
        let cost = measurement.cost(callgrind::count_both(&executable, &few, &many)?)?;
        println!("{:<30}{cost:>14}{budget:>10}{:>10}", measurement.name, headroom(cost, budget));
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
    budgets_of(&names(), &text)
}

fn names() -> Vec<&'static str> {
    MEASUREMENTS.iter().map(|measurement| measurement.name).collect()
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
        assert_eq!(PAGE.cost((preparation + 5 * 1_600_000, preparation + 25 * 1_600_000)).unwrap(), 1600);
        assert_eq!(PAGE.cost((0, 20_001)).unwrap(), 2);
    }

    #[test]
    fn a_count_without_effect_is_refused() {
        assert!(PAGE.cost((10, 9)).is_err());
        let error = PAGE.cost((10, 10)).unwrap_err().to_string();
        assert!(error.ends_with("COUNT has no effect"), "{error}");
    }

    #[test]
    fn every_measurement_counts_more_in_its_larger_run() {
        for measurement in MEASUREMENTS {
            assert!(measurement.few < measurement.many && measurement.units > 0, "{}", measurement.name);
        }
    }

    #[test]
    fn the_headroom_is_a_share_of_the_budget() {
        assert_eq!(headroom(1500, 2000), "25 %");
        assert_eq!(headroom(2000, 2000), "0 %");
        assert_eq!(headroom(2001, 2000), "none");
    }

    #[test]
    fn the_budget_file_fits_the_measurements() {
        let budgets = budgets_of(&names(), include_str!("../../gate-budget.txt")).unwrap();
        assert_eq!(budgets.len(), MEASUREMENTS.len());
    }
}
