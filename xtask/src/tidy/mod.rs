//! `cargo xtask tidy`: the rules of the tree that no compiler checks.
//!
//! Each module below owns one kind of rule as a pure function from the [`Tree`] to [`Fault`]s, so that each can
//! be shown to fail on a tree made up for it. Only [`run`] and [`Tree::load`] touch the machine.

use std::fmt;

use anyhow::{Result, bail};

use crate::workspace::Workspace;
use tree::Tree;

mod crate_walls;
mod decisions;
mod dependencies;
mod links;
mod mentions;
mod migrations;
mod module_walls;
mod source_files;
mod tree;

/// Prints every fault of the tree, and fails if there is one.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let tree = Tree::load(&workspace.root)?;
    let mut faults = crate_walls::check(workspace, &tree);
    for check in CHECKS {
        faults.extend(check(&tree));
    }
    faults.sort();
    for fault in &faults {
        println!("{fault}");
    }
    match faults.len() {
        0 => println!("tidy: {} files in order", tree.len()),
        1 => bail!("tidy found 1 fault"),
        count => bail!("tidy found {count} faults"),
    }
    Ok(())
}

/// The checks that need the tree alone.
const CHECKS: &[fn(&Tree) -> Vec<Fault>] = &[
    module_walls::check,
    source_files::check,
    migrations::check,
    decisions::check,
    links::check,
    dependencies::check,
];

/// A breach of a rule: where, what, and what to do.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fault {
    path: String,
    line: usize,
    wrong: String,
    remedy: String,
}

impl Fault {
    /// `line` counts from 1; what concerns a file as a whole is on line 1.
    fn new(
        path: impl Into<String>,
        line: usize,
        wrong: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), line, wrong: wrong.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, wrong, remedy } = self;
        write!(f, "{path}:{line}: {wrong}; {remedy}")
    }
}

/// The faults as lines, as the tests of the checks compare them.
#[cfg(test)]
fn printed(faults: &[Fault]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_says_where_what_and_what_to_do() {
        assert_eq!(Fault::new("a.rs", 3, "it is long", "cut it").to_string(), "a.rs:3: it is long; cut it");
    }
}
