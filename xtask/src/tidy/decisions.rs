//! Decision records: numbered without gaps, listed, each upheld by a test; no citation leads nowhere.
//!
//! A citation is the word and then numbers: `decision NNN`, `decisions NNN, MMM and KKK`.

use std::collections::BTreeSet;

use super::Fault;
use super::tree::Tree;

const FOLDER: &str = "docs/decisions";

/// The tests of this very module cite numbers that are made up.
const MADE_UP: &str = "xtask/";

/// Holds records and citations against each other.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let records: Vec<Record<'_>> = tree.names_in(FOLDER).filter_map(Record::of).collect();
    let mut faults = stray_files(tree);
    faults.extend(gaps(&records));
    faults.extend(unlisted(tree, &records));
    faults.extend(unresolved(tree, &records));
    faults.extend(untested(tree, &records));
    faults
}

/// A record's file, `NNN-what-was-decided.md`.
struct Record<'a> {
    number: &'a str,
    file: &'a str,
}

impl<'a> Record<'a> {
    fn of(file: &'a str) -> Option<Self> {
        let (number, title) = file.strip_suffix(".md")?.split_once('-')?;
        let is_number = number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit());
        (is_number && !title.is_empty()).then_some(Self { number, file })
    }

    fn fault(&self, wrong: impl Into<String>, remedy: impl Into<String>) -> Fault {
        Fault::new(format!("{FOLDER}/{}", self.file), 1, wrong, remedy)
    }
}

fn stray_files(tree: &Tree) -> Vec<Fault> {
    let is_stray = |file: &&str| *file != "README.md" && Record::of(file).is_none();
    let fault = |file| {
        Fault::new(format!("{FOLDER}/{file}"), 1, "not a record's name", "call it `001-in-few-words.md`")
    };
    tree.names_in(FOLDER).filter(is_stray).map(fault).collect()
}

fn gaps(records: &[Record<'_>]) -> Vec<Fault> {
    let numbered = records.iter().zip((1..).map(|number| format!("{number:03}")));
    let first = numbered.into_iter().find(|(record, expected)| record.number != expected);
    let fault = |(record, expected): (&Record<'_>, String)| {
        let wrong = format!("is number {} where {expected} is next", record.number);
        record.fault(wrong, "number without gaps and without doubles")
    };
    first.map(fault).into_iter().collect()
}

fn unlisted(tree: &Tree, records: &[Record<'_>]) -> Vec<Fault> {
    let index = format!("{FOLDER}/README.md");
    let text = tree.text(&index).unwrap_or_default();
    let missing = records.iter().filter(|record| !text.contains(record.file));
    missing
        .map(|record| record.fault(format!("is not listed in {index}"), "add a line with a link"))
        .collect()
}

fn unresolved(tree: &Tree, records: &[Record<'_>]) -> Vec<Fault> {
    let numbers: BTreeSet<&str> = records.iter().map(|record| record.number).collect();
    let mut faults = Vec::new();
    for (path, text) in
        tree.texts(".rs").chain(tree.texts(".md")).filter(|(path, _)| !path.starts_with(MADE_UP))
    {
        for citation in citations(text).into_iter().filter(|citation| !numbers.contains(citation.number)) {
            let wrong = format!("cites decision {}, which has no record", citation.number);
            faults.push(Fault::new(
                path,
                citation.line,
                wrong,
                format!("correct the number or add it to {FOLDER}"),
            ));
        }
    }
    faults
}

fn untested(tree: &Tree, records: &[Record<'_>]) -> Vec<Fault> {
    let sources = tree.texts(".rs").filter(|(path, _)| !path.starts_with(MADE_UP));
    let cited: BTreeSet<&str> = sources
        .flat_map(|(path, text)| citations(tests_in(path, text)))
        .map(|citation| citation.number)
        .collect();
    let missing = records.iter().filter(|record| !cited.contains(record.number));
    missing
        .map(|record| record.fault("is cited by no test", "write one that upholds it and cite it there"))
        .collect()
}

/// The part of a file that is tests: all of it in a `tests` folder, else what follows `#[cfg(test)]`.
fn tests_in<'a>(path: &str, text: &'a str) -> &'a str {
    if path.split('/').any(|part| part == "tests" || part == "tests.rs") {
        return text;
    }
    text.find("#[cfg(test)]").map_or("", |start| &text[start..])
}

#[derive(Debug, PartialEq)]
struct Citation<'a> {
    line: usize,
    number: &'a str,
}

fn citations(text: &str) -> Vec<Citation<'_>> {
    let mut found = Vec::new();
    let mut position = 0;
    while let Some(offset) = text[position..].find("ecision") {
        let start = position + offset;
        position = start + "ecision".len();
        if !text[..start].ends_with(['d', 'D']) {
            continue;
        }
        let mut rest = text[position..].strip_prefix('s').unwrap_or(&text[position..]);
        while let Some((number, after)) = next_number(rest) {
            let line = 1 + text[..text.len() - after.len()].matches('\n').count();
            found.push(Citation { line, number });
            rest = after;
        }
    }
    found
}

/// The next number of a citation: behind blanks, a comma, an "and", or the marks of a comment that was wrapped.
fn next_number(rest: &str) -> Option<(&str, &str)> {
    let is_gap = |c: char| c.is_whitespace() || matches!(c, ',' | '/' | '!');
    let behind = rest.trim_start_matches(is_gap);
    let behind = behind.strip_prefix("and ").unwrap_or(behind).trim_start_matches(is_gap);
    let digits = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
    (behind.len() < rest.len() && digits > 0).then(|| behind.split_at(digits))
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    const RECORD: (&str, &str) = ("docs/decisions/001-one.md", "# One\n");
    const INDEX: (&str, &str) = ("docs/decisions/README.md", "- [One](001-one.md)\n");
    const TEST: (&str, &str) = ("crates/a/tests/t.rs", "//! T.\n\n// Decision 001.\n");

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        printed(&check(&Tree::of(files)))
    }

    fn numbers(text: &str) -> Vec<(usize, &str)> {
        citations(text).into_iter().map(|citation| (citation.line, citation.number)).collect()
    }

    #[test]
    fn a_listed_and_tested_record_is_fine() {
        assert_eq!(faults(&[RECORD, INDEX, TEST]), [""; 0]);
    }

    #[test]
    fn citations_are_found_in_every_form() {
        assert_eq!(numbers("see decision 001."), [(1, "001")]);
        assert_eq!(numbers("Decisions 001, 002 and 003 say"), [(1, "001"), (1, "002"), (1, "003")]);
        assert_eq!(numbers("[decision 004](x.md)\n(decision 12)"), [(1, "004"), (2, "12")]);
        assert_eq!(numbers("/// as decision\n/// 005 has it"), [(2, "005")]);
        assert_eq!(numbers("decisions are 3; precision 001; decision: 002; decision001"), []);
    }

    #[test]
    fn a_citation_without_a_record_is_a_fault_at_its_line() {
        let expected = |path: &str| {
            format!(
                "{path}:2: cites decision 002, which has no record; correct the number or add it to docs/decisions"
            )
        };
        for path in ["crates/a/src/b.rs", "docs/a.md", "README.md"] {
            assert_eq!(faults(&[RECORD, INDEX, TEST, (path, "\ndecisions 001, 002\n")]), [expected(path)]);
        }
    }

    #[test]
    fn a_record_that_no_test_cites_is_a_fault() {
        let expected =
            "docs/decisions/001-one.md:1: is cited by no test; write one that upholds it and cite it there";
        assert_eq!(faults(&[RECORD, INDEX]), [expected]);
        let above = ("crates/a/src/b.rs", "// decision 001\n#[cfg(test)]\nmod tests {}\n");
        assert_eq!(faults(&[RECORD, INDEX, above]), [expected]);
        let below = ("crates/a/src/b.rs", "#[cfg(test)]\nmod tests {\n    // decision 001\n}\n");
        assert_eq!(faults(&[RECORD, INDEX, below]), [""; 0]);
    }

    #[test]
    fn an_unlisted_record_is_a_fault() {
        let expected =
            "docs/decisions/001-one.md:1: is not listed in docs/decisions/README.md; add a line with a link";
        assert_eq!(faults(&[RECORD, TEST]), [expected]);
    }

    #[test]
    fn gaps_doubles_and_strange_names_are_faults() {
        let index = ("docs/decisions/README.md", "001-one.md 003-three.md 001-uno.md");
        let test = ("crates/a/tests/t.rs", "decisions 001, 003");
        let three = ("docs/decisions/003-three.md", "");
        assert_eq!(
            faults(&[RECORD, index, test, three]),
            [
                "docs/decisions/003-three.md:1: is number 003 where 002 is next; number without gaps and without doubles"
            ]
        );
        let double = faults(&[RECORD, index, TEST, ("docs/decisions/001-uno.md", "")]);
        assert!(double[0].contains("001-uno.md:1: is number 001 where 002 is next"), "{}", double[0]);
        let stray = faults(&[RECORD, INDEX, TEST, ("docs/decisions/2-two.md", "")]);
        assert_eq!(stray, ["docs/decisions/2-two.md:1: not a record's name; call it `001-in-few-words.md`"]);
    }
}
