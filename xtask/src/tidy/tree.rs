//! The files of the tree: those that git tracks or would add, with the texts that checks read.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// Endings of files whose texts are read; of the others only the path counts.
const TEXT_ENDINGS: &[&str] = &[".rs", ".md", ".toml", ".sql"];

/// Paths from the root, with `/` between their parts, and texts.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, Option<String>>,
}

impl Tree {
    /// Reads the tree under `root`.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let mut command = Command::new("git");
        command.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let listed = process::stdout_of(&mut command)?;
        let mut tree = Self::default();
        for path in listed.split_terminator('\0') {
            let absolute = root.join(path);
            // Git lists what is deleted and not yet committed.
            if !absolute.exists() {
                continue;
            }
            let is_text = absolute.is_file() && TEXT_ENDINGS.iter().any(|ending| path.ends_with(ending));
            let read = || std::fs::read_to_string(&absolute).with_context(|| format!("cannot read {path}"));
            tree.files.insert(path.to_owned(), is_text.then(read).transpose()?);
        }
        Ok(tree)
    }

    /// A tree made up for a test.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let own = |(path, text): &(&str, &str)| ((*path).to_owned(), Some((*text).to_owned()));
        Self { files: files.iter().map(own).collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// The texts of all files with this ending, in the order of their paths.
    pub(crate) fn texts(&self, ending: &str) -> impl Iterator<Item = (&str, &str)> {
        let with_text = self.files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)));
        with_text.filter(move |(path, _)| path.ends_with(ending))
    }

    /// The names of the files that lie directly in a folder.
    pub(crate) fn names_in(&self, folder: &str) -> impl Iterator<Item = &str> {
        let inside =
            move |path: &'_ String| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let from_folder =
            self.files.keys().skip_while(move |path| !inside(path)).take_while(move |path| inside(path));
        from_folder.filter_map(move |path| path.get(folder.len() + 1..)).filter(|name| !name.contains('/'))
    }

    /// Whether there is a file or a folder of this path; the empty path is the root.
    pub(crate) fn holds(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty() || self.files.keys().any(|file| file == path || file.starts_with(&folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_holds_its_own_files_alone() {
        let tree = Tree::of(&[("a/b.md", ""), ("a/c/d.md", ""), ("ab/e.md", ""), ("f.rs", "")]);
        assert_eq!(tree.names_in("a").collect::<Vec<_>>(), ["b.md"]);
        assert_eq!(tree.names_in("a/c").collect::<Vec<_>>(), ["d.md"]);
        assert_eq!(tree.names_in("x").count(), 0);
    }

    #[test]
    fn files_and_folders_are_held_and_parts_of_names_are_not() {
        let tree = Tree::of(&[("docs/a.md", "")]);
        assert!(["", "docs", "docs/a.md"].iter().all(|path| tree.holds(path)));
        assert!(["doc", "docs/a", "docs/b.md"].iter().all(|path| !tree.holds(path)));
    }

    #[test]
    fn texts_are_chosen_by_ending() {
        let tree = Tree::of(&[("a.md", "one"), ("b.rs", "two")]);
        assert_eq!(tree.texts(".rs").collect::<Vec<_>>(), [("b.rs", "two")]);
        assert_eq!(tree.text("a.md"), Some("one"));
        assert_eq!((tree.text("c.md"), tree.len()), (None, 2));
    }
}
