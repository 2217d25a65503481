//! `batchscan org`.

use serde_json::Value;
use snapbox::file;

use crate::program::{Outcome, clean, executable};
use crate::site::{ORG, Site};
use crate::snapshot::{assert_snapshot, transcript};

/// Name, batches and credentials of each organisation.
pub(crate) fn listed(site: &Site) -> Vec<(String, u64, u64)> {
    let all: Value = serde_json::from_str(&site.run(&["org", "list", "--json"]).succeeds()).unwrap();
    let row = |org: &Value| {
        assert_eq!(org.as_object().unwrap().len(), 4);
        assert!(org["created_at"].as_str().unwrap().ends_with('Z'));
        let count = |name: &str| org[name].as_u64().unwrap();
        (org["name"].as_str().unwrap().to_owned(), count("batches"), count("credentials"))
    };
    all.as_array().unwrap().iter().map(row).collect()
}

/// Runs a command on a terminal and types a line.
pub(crate) fn on_a_terminal(site: &Site, words: &str, typed: &str) -> Outcome {
    let line = format!("{} {words}", executable().to_str().unwrap());
    let mut script = clean("script");
    script.args(["-qec", &line, "/dev/null"]).env("BATCHSCAN_DATABASE", site.url("scans.db"));
    Outcome::with_input(&mut script, typed.into())
}

#[test]
fn organisations_are_added_listed_renamed_and_removed() {
    const LINES: [&str; 15] = [
        "org add Nord",
        "org add 'Green Valley Ä'",
        "org list",
        "org add Nord",
        "org rename Nord 'Green Valley Ä'",
        "org rename Nord Süd",
        "org rename Nort Ost",
        "org remove Nort --yes",
        "credential issue --org Nort",
        "credential list --org Nort",
        "org list",
        "org remove Süd --yes",
        "org remove 'Green Valley Ä' --yes",
        "org list",
        "org list --json",
    ];
    for site in [Site::without_org, Site::empty_on_postgres] {
        let site = site();
        let text = transcript(&LINES, |words| site.command(words));
        // Only with SQLite.
        let text = text.replace(&format!("created the database {}\n", site.database), "");
        assert_snapshot(&text, file!["snapshots/organisations.txt"]);
    }
}

#[test]
fn the_next_step_is_shown_on_a_terminal_only() {
    let site = Site::new();
    let added = on_a_terminal(&site, "org add \"Tom's\"", "");
    let hint =
        r"Next: batchscan import --org 'Tom'\''s' FILE, and batchscan credential issue --org 'Tom'\''s'";
    assert!(added.out.contains(hint), "{added:?}");
    let issued = on_a_terminal(&site, "credential issue --org \"Tom's\"", "");
    assert!(
        issued.out.contains("Next, on the client: batchscan login --url URL --client-id bs_"),
        "{issued:?}"
    );
    let json = on_a_terminal(&site, "credential issue --org \"Tom's\" --json", "");
    let piped = site.run(&["credential", "issue", "--org", ORG]);
    for outcome in [json, piped, site.run(&["org", "add", "Nord"])] {
        assert!(outcome.code == Some(0) && !outcome.out.contains("Next"), "{outcome:?}");
    }
}

#[test]
fn an_invalid_name_is_rejected() {
    let site = Site::new();
    site.transcript(&["org add ' Nord'", "org add ''"], file!["snapshots/an_invalid_name_is_rejected.txt"]);
    for name in ["a\tb", &"x".repeat(101)] {
        assert_eq!(site.run(&["org", "add", name]).code, Some(2), "{name:?}");
    }
    assert_eq!(listed(&site).len(), 1);
}

#[test]
fn removing_needs_a_confirmation() {
    let site = Site::new();
    site.transcript(&["org remove 'Green Valley'"], file!["snapshots/removing_needs_a_confirmation.txt"]);
    let mut piped = site.command(&["org", "remove", ORG]);
    assert_eq!(Outcome::with_input(&mut piped, format!("{ORG}\n").into()).code, Some(1));
    let refused = on_a_terminal(&site, "org remove 'Green Valley'", "yes\n");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.out.contains("Type the name to confirm: "), "{refused:?}");
    assert_eq!(listed(&site).len(), 1);
    let confirmed = on_a_terminal(&site, "org remove 'Green Valley'", "Green Valley\n");
    assert_eq!(confirmed.code, Some(0), "{confirmed:?}");
    assert_eq!(listed(&site), []);
}
