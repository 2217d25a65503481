//! `batchscan audit`: who changed what.

use serde_json::Value;

use crate::program::Outcome;
use crate::scans;
use crate::site::{ORG, Site, postgres};

fn entries(site: &Site, flags: &[&str]) -> Vec<Value> {
    let words: Vec<&str> = ["audit", "--json"].iter().chain(flags).copied().collect();
    let lines = site.run(&words).succeeds();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_change_is_listed_with_who_made_it_and_without_secrets() {
    let site = Site::new();
    let credential = site.credential();
    site.import(&site.write("a.ndjson", scans::ndjson(0..3, "x")));
    let mut revoke = site.command(&["credential", "revoke", &credential.id]);
    Outcome::run(revoke.env("SUDO_USER", "anna")).succeeds();
    let all = entries(&site, &[]);
    let actions: Vec<&str> = all.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    let keys = actions.iter().filter(|action| **action == "key create").count();
    assert_eq!(keys, 3, "{actions:?}");
    let others: Vec<&str> = actions.into_iter().filter(|action| *action != "key create").collect();
    assert_eq!(others, ["org add", "credential issue", "import", "credential revoke"]);
    let last = all.last().unwrap();
    assert_eq!(
        (&last["actor"], &last["organisation"], &last["subject"]),
        (&"anna".into(), &ORG.into(), &credential.id.clone().into())
    );
    let table = site.run(&["audit"]).succeeds();
    assert!(table.contains("3 new, 0 corrected, 0 unchanged"), "{table}");
    assert!(!format!("{all:?}{table}").contains(&credential.secret), "a secret is shown");
    assert_eq!(entries(&site, &["--since", "yesterday"]).len(), all.len());
}

#[test]
fn an_entry_cannot_be_changed_or_removed() {
    let site = Site::new();
    for statement in ["UPDATE audit SET actor = 'x'", "DELETE FROM audit"] {
        let error = site.sql().execute(statement, []).unwrap_err().to_string();
        assert!(error.contains("entries of the audit log cannot be"), "{error}");
    }
    let site = Site::on_postgres();
    let (_, name) = site.database.rsplit_once('/').unwrap();
    for statement in ["UPDATE audit SET actor = 'x'", "DELETE FROM audit", "TRUNCATE audit"] {
        let error = format!("{:#}", postgres().sql(name, statement).unwrap_err());
        assert!(error.contains("entries of the audit log cannot be"), "{error}");
    }
    assert_eq!(entries(&site, &[])[0]["action"], "org add");
}
