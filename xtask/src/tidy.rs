//! `cargo xtask tidy`: what no compiler checks.
//!
//! - every decision is listed in their README and cited by a test, and no citation leads nowhere;
//! - every relative link in a document leads to a file or folder;
//! - both stores have the same migrations.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

const DECISIONS: &str = "docs/decisions/";

/// Prints every error and fails if there is one.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(&workspace.root).output()?;
    let listed = String::from_utf8(listed.stdout).context("git printed a path that is not UTF-8")?;
    let mut files = Vec::new();
    // A deleted file is listed until the deletion is committed; pictures are not text.
    for path in listed.split_terminator('\0').filter(|path| workspace.root.join(path).exists()) {
        files.push((path, std::fs::read_to_string(workspace.root.join(path)).unwrap_or_default()));
    }
    let errors =
        [check_decisions(&files), check_links(&files, &workspace.root), check_migrations(&files)].concat();
    errors.iter().for_each(|error| println!("{error}"));
    if !errors.is_empty() {
        bail!("{} errors", errors.len());
    }
    println!("no errors in {} files", files.len());
    Ok(())
}

type Files<'a> = [(&'a str, String)];

fn check_decisions(files: &Files<'_>) -> Vec<String> {
    let records =
        files.iter().filter_map(|(path, _)| path.strip_prefix(DECISIONS)).filter(|name| *name != "README.md");
    let records: Vec<(&str, &str)> = records.map(|name| (name.get(..3).unwrap_or(name), name)).collect();
    let index =
        files.iter().find(|(path, _)| *path == "docs/decisions/README.md").map_or("", |(_, text)| text);
    let (mut cited, mut errors) = (BTreeSet::new(), Vec::new());
    for (path, text) in files.iter().filter(|(path, _)| !path.starts_with("xtask/")) {
        for number in citations(text) {
            if !records.iter().any(|(record, _)| *record == number) {
                errors.push(format!("{path}: cites decision {number}, which does not exist"));
            }
        }
        cited.extend(citations(tests_in(path, text)));
    }
    for (number, name) in records {
        if !cited.contains(number) {
            errors.push(format!("{DECISIONS}{name}: not cited by a test"));
        }
        if !index.contains(name) {
            errors.push(format!("{DECISIONS}{name}: not listed in README.md"));
        }
    }
    errors
}

/// The tests of a file: all of it in a folder `tests`, else what follows `#[cfg(test)]`.
fn tests_in<'a>(path: &str, text: &'a str) -> &'a str {
    let is_test = path.contains("tests/") || path.ends_with("tests.rs");
    if is_test { text } else { text.find("#[cfg(test)]").map_or("", |start| &text[start..]) }
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

fn check_links(files: &Files<'_>, root: &Path) -> Vec<String> {
    let mut errors = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".md")) {
        // Every second piece is code: first of fenced blocks, then of spans.
        let prose: String = text.split("```").step_by(2).collect();
        let prose = prose.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for target in prose.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ', '?']).next()) {
            let resolved: PathBuf = root.join(path).parent().unwrap_or(root).join(target);
            if !target.contains(':') && !resolved.exists() {
                errors.push(format!("{path}: links to {target}, which does not exist"));
            }
        }
    }
    errors
}

fn check_migrations(files: &Files<'_>) -> Vec<String> {
    let names = |store: &str| -> BTreeSet<&str> {
        files
            .iter()
            .filter_map(|(path, _)| Some(path.split_once(&format!("/migrations/{store}/"))?.1))
            .collect()
    };
    let differing = names("sqlite").symmetric_difference(&names("postgres")).copied().collect::<Vec<_>>();
    differing.iter().map(|name| format!("migration {name}: only one store has it")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
        files.iter().map(|(path, text)| (*path, (*text).to_owned())).collect()
    }

    #[test]
    fn decisions_are_listed_and_cited_by_tests() {
        let record = ("docs/decisions/001-one.md", "");
        let index = ("docs/decisions/README.md", "[one](001-one.md)");
        let test = ("crates/a/tests/t.rs", "// Decision 001.");
        assert_eq!(check_decisions(&files(&[record, index, test])), [""; 0]);
        assert_eq!(check_decisions(&files(&[record, index, ("crates/a/src/b.rs", "decision 001")])).len(), 1);
        assert_eq!(
            check_decisions(&files(&[record, test])),
            ["docs/decisions/001-one.md: not listed in README.md"]
        );
        assert_eq!(check_decisions(&files(&[("a.rs", "decision 002")])).len(), 1);
        assert_eq!(
            citations("decisions 007, 012\n// and 031; decision no 2, indecision"),
            ["007", "012", "031"]
        );
    }

    #[test]
    fn links_lead_somewhere_and_migrations_match() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = "[a](src/main.rs#x) [web](https://example.org) [top](#top) `[b](gone.md)` [c](gone.md)";
        assert_eq!(
            check_links(&files(&[("a.md", text)]), root),
            ["a.md: links to gone.md, which does not exist"]
        );
        let one = files(&[("x/migrations/sqlite/V1__a.sql", ""), ("x/migrations/postgres/V1__b.sql", "")]);
        assert_eq!(check_migrations(&one).len(), 2);
    }
}
