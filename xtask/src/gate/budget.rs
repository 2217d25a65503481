//! The budget file: which measurement may take how many instructions.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, bail};

/// Where it is, from the root of the workspace.
pub(super) const BUDGET_FILE: &str = "xtask/gate-budget.txt";

/// The budgets that the file's text gives to the measurements, in their order.
///
/// Neither a measurement without a budget nor a budget that nothing is held against goes unnoticed.
pub(super) fn budgets_of(measurements: &[&str], text: &str) -> Result<Vec<u64>> {
    let mut budgets = parse(text)?;
    let take =
        |name: &&str| budgets.remove(*name).with_context(|| format!("{BUDGET_FILE} has no line for {name}"));
    let taken = measurements.iter().map(take).collect::<Result<_>>()?;
    if let Some(name) = budgets.keys().next() {
        bail!("{BUDGET_FILE} has a budget for {name}, which nothing measures");
    }
    Ok(taken)
}

/// Lines of a name and a number; `#` begins a comment.
fn parse(text: &str) -> Result<BTreeMap<&str, u64>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_names_with_numbers_in_the_order_of_the_measurements() {
        let text = "# comment\n\nauth 90\npage-per-batch 1800 # why\n";
        assert_eq!(budgets_of(&["page-per-batch", "auth"], text).unwrap(), [1800, 90]);
        for malformed in ["page", "page many", "page 1 2", "page 1\npage 2"] {
            assert!(parse(malformed).is_err(), "{malformed}");
        }
    }

    #[test]
    fn measurements_and_budgets_must_match() {
        let missing = budgets_of(&["page-per-batch"], "").unwrap_err().to_string();
        assert_eq!(missing, "xtask/gate-budget.txt has no line for page-per-batch");
        let stray = budgets_of(&[], "old 1").unwrap_err().to_string();
        assert_eq!(stray, "xtask/gate-budget.txt has a budget for old, which nothing measures");
    }
}
