//! Source files: each opens with what it owns and refuses, and none is long.

use super::Fault;
use super::tree::Tree;

/// Above this a file is about two things.
const LINES_LIMIT: usize = 500;

/// Folders of a crate whose files open with docs.
const DOCUMENTED_FOLDERS: &[&str] = &["src", "tests", "examples"];

/// Holds every Rust file against both rules.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    tree.texts(".rs")
        .flat_map(|(path, text)| opening(path, text).into_iter().chain(length(path, text)))
        .collect()
}

fn opening(path: &str, text: &str) -> Option<Fault> {
    if !wants_docs(path) || text.starts_with("//!") {
        return None;
    }
    Some(Fault::new(
        path,
        1,
        "the file does not begin with `//!`",
        "say first what it owns and what it refuses",
    ))
}

fn wants_docs(path: &str) -> bool {
    match path.split('/').collect::<Vec<_>>()[..] {
        ["crates", _, folder, _, ..] => DOCUMENTED_FOLDERS.contains(&folder),
        ["xtask", folder, _, ..] => DOCUMENTED_FOLDERS.contains(&folder),
        _ => false,
    }
}

fn length(path: &str, text: &str) -> Option<Fault> {
    let lines = text.lines().count();
    let wrong = format!("the file has {lines} lines, the limit is {LINES_LIMIT}");
    (lines > LINES_LIMIT)
        .then(|| Fault::new(path, LINES_LIMIT + 1, wrong, "cut it in two by what it is about"))
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    #[test]
    fn a_file_without_opening_docs_is_a_fault() {
        for path in ["crates/a/src/b/c.rs", "crates/a/tests/b.rs", "crates/a/examples/b.rs", "xtask/src/b.rs"]
        {
            let expected = format!(
                "{path}:1: the file does not begin with `//!`; say first what it owns and what it refuses"
            );
            assert_eq!(printed(&check(&Tree::of(&[(path, "use a;\n//! Late.\n")]))), [expected]);
        }
    }

    #[test]
    fn a_file_with_opening_docs_is_fine_and_other_folders_are_free() {
        let tree =
            Tree::of(&[("crates/a/src/b.rs", "//! Owns b.\n"), ("crates/a/build.rs", "fn main() {}\n")]);
        assert_eq!(printed(&check(&tree)), [""; 0]);
    }

    #[test]
    fn a_file_above_the_limit_is_a_fault() {
        let fits = format!("//! Long.\n{}", "\n".repeat(499));
        let exceeds = format!("{fits}\n");
        assert_eq!(printed(&check(&Tree::of(&[("crates/a/src/b.rs", &fits)]))), [""; 0]);
        assert_eq!(
            printed(&check(&Tree::of(&[("crates/a/src/b.rs", &exceeds)]))),
            [
                "crates/a/src/b.rs:501: the file has 501 lines, the limit is 500; cut it in two by what it is about"
            ]
        );
    }
}
