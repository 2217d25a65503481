//! The table of `docs/CLIENTS.md`: written from what the programs reported, or held against it.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result, bail};

use super::matrix::{CLAIMS, Row};
use crate::workspace::Workspace;

const DOCUMENT: &str = "docs/CLIENTS.md";

/// The table stands between these lines.
const BEGIN: &str = "<!-- written by `cargo xtask clients --write`: begin -->\n";
const END: &str = "<!-- written by `cargo xtask clients --write`: end -->\n";

/// Writes the table, or fails where it differs from what was seen.
pub(crate) fn settle(workspace: &Workspace, rows: &[Row], write: bool) -> Result<()> {
    let path = workspace.root.join(DOCUMENT);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {DOCUMENT}"))?;
    let settled = with_table(&text, &table(rows))?;
    if settled == text {
        println!("{DOCUMENT} tells what was seen, of {} clients", rows.len());
    } else if write {
        fs::write(&path, settled).with_context(|| format!("cannot write {DOCUMENT}"))?;
        println!("wrote {} clients into {DOCUMENT}", rows.len());
    } else {
        bail!("{DOCUMENT} tells otherwise; run `cargo xtask clients --write`\n{}", table(rows));
    }
    Ok(())
}

/// By name, whatever the order in which they ran.
fn table(rows: &[Row]) -> String {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| row.client.to_lowercase());
    let mut table = format!("| client | version | {} |\n|---|---|---|---|---|\n", CLAIMS.join(" | "));
    for row in rows {
        let cells = [&row.client, &row.version].into_iter().chain(&row.outcomes);
        let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|")).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(table, "| {} |", cells.join(" | "));
    }
    table
}

fn with_table(text: &str, table: &str) -> Result<String> {
    let lacks = || format!("{DOCUMENT} lacks the lines between which its table stands");
    let (before, rest) = text.split_once(BEGIN).with_context(lacks)?;
    let (_, after) = rest.split_once(END).with_context(lacks)?;
    Ok(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(client: &str) -> Row {
        let outcomes = ["bearer", "all | sundry", "raises"].map(str::to_owned);
        Row { client: client.into(), version: "1".into(), outcomes }
    }

    #[test]
    fn a_table_is_sorted_and_its_cells_stay_cells() {
        let expected = "| client | version | token | paging | wrong secret |\n|---|---|---|---|---|\n\
                        | a | 1 | bearer | all \\| sundry | raises |\n\
                        | B | 1 | bearer | all \\| sundry | raises |\n";
        assert_eq!(table(&[row("B"), row("a")]), expected);
    }

    #[test]
    fn only_what_stands_between_the_lines_changes() {
        let text = format!("# Clients\n\n{BEGIN}old\n{END}\nmore\n");
        let new = with_table(&text, "new\n").unwrap();
        assert_eq!(new, format!("# Clients\n\n{BEGIN}\nnew\n\n{END}\nmore\n"));
        assert_eq!(with_table(&new, "new\n").unwrap(), new);
        assert!(with_table("# Clients\n", "new\n").is_err());
    }
}
