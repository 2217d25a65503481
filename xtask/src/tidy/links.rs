//! Links between documents: each relative one leads to a file or folder of the tree.
//!
//! Leaves addresses on the web alone: a build must not depend on other people's servers.

use super::Fault;
use super::tree::Tree;

/// Follows every relative link of every document.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree.texts(".md") {
        for (line, target) in targets(text) {
            let leads = resolve(path, target).is_some_and(|resolved| tree.holds(&resolved));
            if !leads {
                faults.push(Fault::new(
                    path,
                    line,
                    format!("links to {target}, which is not there"),
                    "correct the link",
                ));
            }
        }
    }
    faults
}

/// The relative targets of a document, without their fragments, each with its line. Code is no link.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            found.extend(line_targets(line).into_iter().map(|target| (index + 1, target)));
        }
    }
    found
}

fn line_targets(line: &str) -> Vec<&str> {
    let outside_code = line.split('`').step_by(2);
    // A link's text may be code itself; its target then stands in the piece behind.
    let inline = outside_code
        .flat_map(|piece| piece.match_indices("](").map(move |(at, mark)| &piece[at + mark.len()..]));
    let reference =
        line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]:")).map(|(_, rest)| rest);
    let raw = inline.map(|rest| rest.split(')').next().unwrap_or_default()).chain(reference);
    raw.filter_map(relative_path).collect()
}

/// The path of a target such as `file.md#part "title"`, or nothing if it leads elsewhere.
fn relative_path(target: &str) -> Option<&str> {
    let target = target.split_whitespace().next()?.trim_start_matches('<').trim_end_matches('>');
    let path = target.split(['#', '?']).next()?;
    let scheme = path.split('/').next()?;
    (!path.is_empty() && !scheme.contains(':')).then_some(path)
}

/// The path from the root, or nothing if it leaves the tree.
fn resolve(document: &str, target: &str) -> Option<String> {
    if target.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        let files =
            [("docs/a.md", text), ("docs/decisions/001-x.md", ""), ("README.md", ""), ("LICENSE", "")];
        printed(&check(&Tree::of(&files)))
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        let text = "[x](decisions/001-x.md) [up](../README.md#run-it \"Run\") [`code`](../LICENSE) [f](decisions/)\n\
                    ![me](a.md) [top](#top) [web](https://example.org/x.md) [mail](mailto:a@example.org)\n\
                    [root](..)\n\n[ref]: ./decisions/001-x.md\n[web]: https://example.org\n";
        assert_eq!(faults(text), [""; 0]);
    }

    #[test]
    fn a_link_to_nowhere_is_a_fault_at_its_line() {
        let found = faults("fine\n[x](decisions/002-y.md#part)\n");
        assert_eq!(found, ["docs/a.md:2: links to decisions/002-y.md, which is not there; correct the link"]);
        for text in
            ["[x](README.md)", "[x](/README.md)", "[x](../../README.md)", "[x]: gone.md", "[`x`](gone.md)"]
        {
            assert_eq!(faults(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn code_is_no_link() {
        assert_eq!(faults("`[x](gone.md)`\n```\n[x](gone.md)\n```\n"), [""; 0]);
        assert_eq!(faults("```\n```\n[x](gone.md)\n").len(), 1);
    }
}
