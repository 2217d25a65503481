//! Dependencies: versions are chosen once, in the root manifest, and each carries its reason there.
//!
//! Reads manifests by lines, as people do: one entry a line, or a few if its features are many.

use super::Fault;
use super::tree::Tree;

/// Holds the root manifest and those of the crates against the two rules.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree.texts("Cargo.toml") {
        for entry in entries(text) {
            faults.extend(if path == "Cargo.toml" {
                without_reason(&entry)
            } else {
                with_version(path, &entry)
            });
        }
    }
    faults
}

/// One dependency: `name = …`, or a table of its own.
#[derive(Debug, Default)]
struct Entry<'a> {
    line: usize,
    name: &'a str,
    /// All after the name, without comments.
    value: String,
    has_comment: bool,
}

fn without_reason(entry: &Entry<'_>) -> Option<Fault> {
    let is_path = has_key(&entry.value, "path");
    let wrong = format!("{} has no reason", entry.name);
    let remedy = "say in a comment at the end of its line what it is for";
    (!is_path && !entry.has_comment).then(|| Fault::new("Cargo.toml", entry.line, wrong, remedy))
}

fn with_version(path: &str, entry: &Entry<'_>) -> Option<Fault> {
    let is_inherited = has_key(&entry.value, "workspace") && !has_key(&entry.value, "version");
    let wrong = format!("{} is not taken from the workspace", entry.name);
    let remedy = "choose its version in the root Cargo.toml and write `workspace = true` here";
    (!is_inherited).then(|| Fault::new(path, entry.line, wrong, remedy))
}

/// Whether a value sets a key, as in `.key = true`, `{ key = "x" }` or a table's line `key = "x"`.
fn has_key(value: &str, key: &str) -> bool {
    let is_boundary = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-'));
    value.match_indices(key).any(|(at, _)| {
        let starts = value[..at].chars().next_back().is_none_or(is_boundary);
        starts && value[at + key.len()..].trim_start().starts_with('=')
    })
}

/// The dependencies of a manifest, in all their sections.
fn entries(manifest: &str) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut section = Section::Other;
    let mut is_open = false;
    for (index, line) in manifest.lines().enumerate() {
        let (code, has_comment) = split_comment(line);
        if code.is_empty() {
            continue;
        }
        if code.starts_with('[') && !is_open {
            section = Section::of(code);
            if let Section::One(name) = section {
                entries.push(Entry { line: index + 1, name, value: String::new(), has_comment });
            }
            continue;
        }
        let begins = matches!(section, Section::Many) && !is_open;
        if begins {
            let end = code.find([' ', '=', '.']).unwrap_or(code.len());
            entries.push(Entry { line: index + 1, name: &code[..end], ..Entry::default() });
        }
        if let (Some(entry), Section::Many | Section::One(_)) = (entries.last_mut(), &section) {
            let value = if begins { &code[entry.name.len()..] } else { code };
            entry.value.push_str(value);
            entry.value.push('\n');
            entry.has_comment |= has_comment;
            is_open = entry.value.matches(['[', '{']).count() > entry.value.matches([']', '}']).count();
        }
    }
    entries
}

enum Section<'a> {
    /// `[dependencies]` and its kin: an entry a line.
    Many,
    /// `[dependencies.name]`: one entry over many lines.
    One(&'a str),
    Other,
}

impl<'a> Section<'a> {
    fn of(header: &'a str) -> Self {
        let name = header.trim_matches(['[', ']']);
        let is_kind = |last: &str| matches!(last, "dependencies" | "dev-dependencies" | "build-dependencies");
        match name.rsplit_once('.') {
            None if is_kind(name) => Self::Many,
            Some((_, last)) if is_kind(last) => Self::Many,
            Some((before, last)) if is_kind(before.rsplit('.').next().unwrap_or(before)) => Self::One(last),
            _ => Self::Other,
        }
    }
}

/// The line without its comment, and whether the comment says anything. A `#` inside quotes is none.
fn split_comment(line: &str) -> (&str, bool) {
    let mut is_quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '#' if !is_quoted => return (line[..at].trim(), !line[at + 1..].trim().is_empty()),
            _ => {}
        }
    }
    (line.trim(), false)
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<String> {
        printed(&check(&Tree::of(&[(path, text)])))
    }

    #[test]
    fn a_dependency_with_its_reason_is_fine_and_ours_need_none() {
        let text = "[workspace.dependencies]\n\
                    # A group.\n\
                    ours = { path = \"crates/ours\" }\n\
                    a = \"1\" # why\n\
                    b = { version = \"1\", features = [\n  \"x\",\n] } # why\n\
                    [workspace.lints.rust]\nunsafe_code = \"forbid\"\n";
        assert_eq!(faults("Cargo.toml", text), [""; 0]);
    }

    #[test]
    fn a_dependency_without_a_reason_is_a_fault_at_its_line() {
        let text = "[workspace.dependencies]\na = \"1\" # why\nb = \"1#2\"\nc = { version = \"2\" } #\n";
        assert_eq!(
            faults("Cargo.toml", text),
            [
                "Cargo.toml:3: b has no reason; say in a comment at the end of its line what it is for",
                "Cargo.toml:4: c has no reason; say in a comment at the end of its line what it is for",
            ]
        );
    }

    #[test]
    fn a_crate_takes_its_dependencies_from_the_workspace() {
        let text = "[package]\nversion = \"1\"\n[dependencies]\na.workspace = true\n\
                    b = { workspace = true, features = [\"x\"] }\n[dev-dependencies.c]\nworkspace = true\n";
        assert_eq!(faults("crates/a/Cargo.toml", text), [""; 0]);
    }

    #[test]
    fn a_crate_that_names_a_version_is_at_fault() {
        let remedy = "choose its version in the root Cargo.toml and write `workspace = true` here";
        let expected =
            |name: &str| format!("xtask/Cargo.toml:2: {name} is not taken from the workspace; {remedy}");
        for line in ["a = \"1\"", "a = { version = \"1\" }", "a.version = \"1\"", "a = { path = \"../a\" }"] {
            for section in
                ["dependencies", "dev-dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"]
            {
                assert_eq!(faults("xtask/Cargo.toml", &format!("[{section}]\n{line}\n")), [expected("a")]);
            }
        }
        assert_eq!(faults("xtask/Cargo.toml", "\n[dependencies.b]\nversion = \"1\"\n"), [expected("b")]);
    }
}
