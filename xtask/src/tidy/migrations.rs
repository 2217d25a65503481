//! Migrations: numbered from 1 without gaps, and the same numbers and names for every store.

use super::Fault;
use super::tree::Tree;

const SQLITE: &str = "crates/batchscan-server/migrations/sqlite";
const POSTGRES: &str = "crates/batchscan-server/migrations/postgres";

/// Holds the folders against the rules and against each other.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = numbering(tree, SQLITE);
    if tree.holds(POSTGRES) {
        faults.extend(numbering(tree, POSTGRES));
        faults.extend(missing_siblings(tree, SQLITE, POSTGRES));
        faults.extend(missing_siblings(tree, POSTGRES, SQLITE));
    }
    faults
}

fn numbering(tree: &Tree, folder: &str) -> Vec<Fault> {
    let (numbered, strange): (Vec<_>, Vec<_>) =
        tree.names_in(folder).map(|name| (number(name), name)).partition(|(number, _)| number.is_some());
    let misnamed = |(_, name): &(_, &str)| {
        Fault::new(format!("{folder}/{name}"), 1, "not a migration's name", "call it `V1__what_it_does.sql`")
    };
    let mut faults: Vec<Fault> = strange.iter().map(misnamed).collect();
    if numbered.is_empty() {
        faults.push(Fault::new(folder, 1, "holds no migration", "add `V1__what_it_does.sql`"));
    }
    let mut names: Vec<(u32, &str)> =
        numbered.into_iter().filter_map(|(number, name)| Some((number?, name))).collect();
    names.sort_unstable();
    // The first that is out of line says it all: those behind it are, too.
    if let Some(((number, name), next)) = names.iter().zip(1..).find(|((number, _), next)| number != next) {
        let wrong = format!("is number {number} where {next} is next");
        faults.push(Fault::new(
            format!("{folder}/{name}"),
            1,
            wrong,
            "number without gaps and without doubles",
        ));
    }
    faults
}

/// The number in `V1__name.sql`, written without leading zeros.
fn number(file_name: &str) -> Option<u32> {
    let (number, name) = file_name.strip_prefix('V')?.strip_suffix(".sql")?.split_once("__")?;
    let is_plain =
        number.starts_with(|c: char| matches!(c, '1'..='9')) && number.bytes().all(|b| b.is_ascii_digit());
    let is_named = !name.is_empty() && name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_'));
    (is_plain && is_named).then(|| number.parse().ok()).flatten()
}

fn missing_siblings(tree: &Tree, folder: &str, sibling: &str) -> Vec<Fault> {
    let is_missing = |name: &&str| !tree.holds(&format!("{sibling}/{name}"));
    let fault = |name: &str| {
        let wrong = format!("has no file of the same name in {sibling}");
        Fault::new(format!("{folder}/{name}"), 1, wrong, "every store migrates by the same numbers and names")
    };
    tree.names_in(folder).filter(is_missing).map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    fn faults(names: &[&str]) -> Vec<String> {
        let paths: Vec<String> =
            names.iter().map(|n| format!("crates/batchscan-server/migrations/{n}")).collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
        let strip = |line: String| line.replace("crates/batchscan-server/migrations/", "");
        printed(&check(&Tree::of(&files))).into_iter().map(strip).collect()
    }

    #[test]
    fn numbers_without_gaps_in_both_folders_are_fine() {
        assert_eq!(faults(&["sqlite/V1__a.sql", "sqlite/V2__b.sql"]), [""; 0]);
        assert_eq!(faults(&["sqlite/V1__a.sql", "postgres/V1__a.sql"]), [""; 0]);
    }

    #[test]
    fn tens_come_after_ones() {
        let names: Vec<String> = (1..=11).map(|number| format!("sqlite/V{number}__a.sql")).collect();
        assert_eq!(faults(&names.iter().map(String::as_str).collect::<Vec<_>>()), [""; 0]);
    }

    #[test]
    fn a_gap_a_double_and_an_empty_folder_are_faults() {
        assert_eq!(
            faults(&["sqlite/V1__a.sql", "sqlite/V3__b.sql", "sqlite/V4__c.sql"]),
            ["sqlite/V3__b.sql:1: is number 3 where 2 is next; number without gaps and without doubles"]
        );
        assert_eq!(
            faults(&["sqlite/V1__a.sql", "sqlite/V1__b.sql"]),
            ["sqlite/V1__b.sql:1: is number 1 where 2 is next; number without gaps and without doubles"]
        );
        assert_eq!(faults(&[]), ["sqlite:1: holds no migration; add `V1__what_it_does.sql`"]);
    }

    #[test]
    fn a_name_of_another_form_is_a_fault() {
        for name in ["v2__b.sql", "V2_b.sql", "V02__b.sql", "V2__.sql", "V2__B.sql", "V2__b.txt"] {
            let expected = format!("sqlite/{name}:1: not a migration's name; call it `V1__what_it_does.sql`");
            assert_eq!(faults(&["sqlite/V1__a.sql", &format!("sqlite/{name}")]), [expected]);
        }
    }

    #[test]
    fn a_migration_of_one_store_alone_is_a_fault() {
        let found = faults(&["sqlite/V1__a.sql", "sqlite/V2__b.sql", "postgres/V1__a.sql"]);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("sqlite/V2__b.sql:1: has no file of the same name in postgres;"),
            "{}",
            found[0]
        );
        let found = faults(&["sqlite/V1__a.sql", "postgres/V1__b.sql"]);
        assert_eq!(found.len(), 2);
    }
}
