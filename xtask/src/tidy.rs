//! `cargo xtask tidy`: what no compiler checks.
//!
//! - every decision is listed in their README and cited by a test, and every cited decision exists;
//! - every relative link in a document leads to a file or folder;
//! - both stores have the same migrations.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

const DECISIONS: &str = "docs/decisions/";

/// Prints every error and fails if there is one.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let root = &workspace.root;
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output()?;
    let listed = String::from_utf8(listed.stdout).context("git printed a path that is not UTF-8")?;
    // Deleted files and pictures have no text.
    let read = |path| Some((path, std::fs::read_to_string(root.join(path)).ok()?));
    let files: Vec<(&str, String)> = listed.split_terminator('\0').filter_map(read).collect();
    let errors = [check_decisions(&files), check_links(&files, root), check_migrations(&files)].concat();
    errors.iter().for_each(|error| println!("{error}"));
    if !errors.is_empty() {
        bail!("{} errors", errors.len());
    }
    println!("no errors in {} files", files.len());
    Ok(())
}

fn check_decisions(files: &[(&str, String)]) -> Vec<String> {
    let names = files.iter().filter_map(|(path, _)| path.strip_prefix(DECISIONS));
    let records: Vec<&str> = names.filter(|name| *name != "README.md").collect();
    let index =
        files.iter().find(|(path, _)| *path == "docs/decisions/README.md").map_or("", |(_, text)| text);
    let (mut cited_by_tests, mut errors) = (BTreeSet::new(), Vec::new());
    for (path, text) in files.iter().filter(|(path, _)| !path.starts_with("xtask/")) {
        let unknown =
            citations(text).into_iter().filter(|number| !records.iter().any(|name| name.starts_with(number)));
        errors.extend(unknown.map(|number| format!("{path}: cites decision {number}, which does not exist")));
        let is_test = path.contains("test") || path.contains("e2e/");
        let tests_start = if is_test { 0 } else { text.find("#[cfg(test)]").unwrap_or(text.len()) };
        cited_by_tests.extend(citations(&text[tests_start..]));
    }
    for name in records {
        if !cited_by_tests.iter().any(|number| name.starts_with(number)) {
            errors.push(format!("{DECISIONS}{name}: not cited by a test"));
        }
        if !index.contains(name) {
            errors.push(format!("{DECISIONS}{name}: not listed in README.md"));
        }
    }
    errors
}

/// The numbers after the word: `decision 007`, `Decisions 007, 012 and 031`, also across comment lines.
fn citations(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for rest in text.split("ecision").skip(1) {
        let words = rest.strip_prefix('s').unwrap_or(rest).split_whitespace();
        let numbers = words.filter(|word| !["and", "//", "///", "//!", "#"].contains(word));
        found.extend(numbers.map_while(|word| word.get(..3).filter(|number| number.parse::<u16>().is_ok())));
    }
    found
}

fn check_links(files: &[(&str, String)], root: &Path) -> Vec<String> {
    let mut errors = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".md")) {
        // Every second piece is code: first of fenced blocks, then of spans.
        let prose: String = text.split("```").step_by(2).collect();
        let prose: Vec<&str> = prose.split('`').step_by(2).collect();
        for target in
            prose.join("`").split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next())
        {
            if !target.contains(':') && !root.join(path).with_file_name(target).exists() {
                errors.push(format!("{path}: links to {target}, which does not exist"));
            }
        }
    }
    errors
}

fn check_migrations(files: &[(&str, String)]) -> Vec<String> {
    let names = |store: &str| -> BTreeSet<&str> {
        files
            .iter()
            .filter_map(|(path, _)| Some(path.split_once(&format!("/migrations/{store}/"))?.1))
            .collect()
    };
    let (sqlite, postgres) = (names("sqlite"), names("postgres"));
    sqlite
        .symmetric_difference(&postgres)
        .map(|name| format!("migration {name}: only one store has it"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count_errors(files: &[(&str, &str)]) -> usize {
        let files: Vec<(&str, String)> =
            files.iter().map(|(path, text)| (*path, (*text).to_owned())).collect();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        [check_decisions(&files), check_links(&files, root), check_migrations(&files)].concat().len()
    }

    #[test]
    fn decisions_links_and_migrations_are_checked() {
        let record = ("docs/decisions/001-one.md", "");
        let index = ("docs/decisions/README.md", "`001-one.md`");
        let test = ("crates/a/tests/t.rs", "// Decision 001.");
        assert_eq!(count_errors(&[record, index, test]), 0);
        assert_eq!(count_errors(&[record, index, ("crates/a/src/b.rs", "decision 001")]), 1);
        assert_eq!(count_errors(&[record, test]), 1);
        assert_eq!(count_errors(&[("a.rs", "decision 002")]), 1);
        assert_eq!(citations("decisions 007, 012\n// and 031; decision no 2"), ["007", "012", "031"]);
        assert_eq!(
            count_errors(&[("a.md", "[a](src/main.rs#x) [b](https://x.org) [c](#d) `[e](gone.md)`")]),
            0
        );
        assert_eq!(count_errors(&[("a.md", "[a](gone.md)")]), 1);
        assert_eq!(
            count_errors(&[("x/migrations/sqlite/V1__a.sql", ""), ("x/migrations/postgres/V1__b.sql", "")]),
            2
        );
    }
}
