//! `batchscan org`: added, listed, renamed, removed.

use serde_json::Value;

use crate::program::{Outcome, clean, executable};
use crate::site::{ORG, Site};
use crate::{scans, wire};

/// The JSON list, without the instants, which are today's.
pub(crate) fn listed(site: &Site) -> Vec<(String, u64, u64)> {
    let all: Value = serde_json::from_str(&site.run(&["org", "list", "--json"]).done()).unwrap();
    let row = |org: &Value| {
        assert_eq!(org.as_object().unwrap().len(), 4);
        assert!(org["created_at"].as_str().unwrap().ends_with('Z'));
        let count = |name: &str| org[name].as_u64().unwrap();
        (org["name"].as_str().unwrap().to_owned(), count("batches"), count("credentials"))
    };
    all.as_array().unwrap().iter().map(row).collect()
}

/// A command on a terminal, with `typed` on its keyboard.
fn on_a_terminal(site: &Site, words: &str, typed: &str) -> Outcome {
    let line = format!("{} {words}", executable().to_str().unwrap());
    let mut script = clean("script");
    script.args(["-qec", &line, "/dev/null"]).env("BATCHSCAN_DATABASE", site.url("scans.db"));
    Outcome::with_input(&mut script, typed.into())
}

#[test]
fn organisations_are_added_listed_and_renamed() {
    let site = Site::empty();
    assert_eq!(site.run(&["org", "add", "Nord"]).done(), "added organisation \"Nord\"\n");
    assert_eq!(site.run(&["org", "add", "Green Valley Ä"]).done(), "added organisation \"Green Valley Ä\"\n");
    site.run(&["credential", "issue", "--org", "Nord"]).done();
    let table = site.run(&["org", "list"]).done();
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows[0], "NAME            BATCHES  CREDENTIALS  ADDED");
    assert!(rows[1].starts_with("Green Valley Ä  0        0            20"), "{table}");
    assert!(rows[2].starts_with("Nord            0        1            20"), "{table}");
    assert_eq!(rows.len(), 3);
    assert_eq!(site.run(&["org", "rename", "Nord", "Süd"]).done(), "renamed \"Nord\" to \"Süd\"\n");
    assert_eq!(listed(&site), [("Green Valley Ä".into(), 0, 0), ("Süd".into(), 0, 1)]);
}

#[test]
fn an_empty_list_says_how_to_begin() {
    let site = Site::new();
    site.run(&["org", "remove", ORG, "--yes"]).done();
    let out = site.run(&["org", "list"]).done();
    assert_eq!(out, "no organisations yet: add one with `batchscan org add NAME`\n");
    assert_eq!(site.run(&["org", "list", "--json"]).done(), "[]\n");
}

#[test]
fn a_name_that_is_taken_or_unknown_is_refused() {
    let site = Site::new();
    site.run(&["org", "add", "Nord"]).done();
    let taken = "there is an organisation named \"Nord\" already: `batchscan org list` shows all";
    site.run(&["org", "add", "Nord"]).fails(taken);
    site.run(&["org", "rename", ORG, "Nord"]).fails(taken);
    let unknown = "there is no organisation named \"Nort\": `batchscan org list` shows them, `batchscan org add` adds one";
    site.run(&["org", "rename", "Nort", "Ost"]).fails(unknown);
    site.run(&["org", "remove", "Nort", "--yes"]).fails(unknown);
    site.run(&["credential", "issue", "--org", "Nort"]).fails(unknown);
    site.run(&["credential", "list", "--org", "Nort"]).fails(unknown);
    for name in ["", " Nord", "a\tb", &"x".repeat(101)] {
        let outcome = site.run(&["org", "add", name]);
        assert_eq!(outcome.code, Some(2), "{name:?}");
        let why = "for '<NAME>': 1 to 100 characters, no control characters, no blanks around it\n";
        assert!(outcome.err.contains(why) || name.is_empty(), "{}", outcome.err);
    }
    assert_eq!(listed(&site).len(), 2);
}

#[test]
fn removing_without_a_terminal_wants_yes() {
    let site = Site::new();
    let message = "removing asks first, and there is no terminal to ask on: add --yes if you are sure";
    site.run(&["org", "remove", ORG]).fails(message);
    let (mut piped, name) = (site.command(&["org", "remove", ORG]), format!("{ORG}\n"));
    Outcome::with_input(&mut piped, name.into()).fails(message);
    assert_eq!(listed(&site).len(), 1);
}

#[test]
fn removing_on_a_terminal_asks_for_the_name() {
    let site = Site::new();
    let question = "Remove organisation \"Green Valley\" with 0 batches and 0 credentials? It cannot be undone. \
        Type the name to go on: ";
    let refused = on_a_terminal(&site, "org remove 'Green Valley'", "yes\n");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.out.contains(question), "{refused:?}");
    assert!(refused.out.ends_with("error: the name did not match: nothing was removed\r\n"), "{refused:?}");
    assert_eq!(listed(&site).len(), 1);
    let agreed = on_a_terminal(&site, "org remove 'Green Valley'", "Green Valley\n");
    assert_eq!(agreed.code, Some(0), "{agreed:?}");
    let removed = "removed organisation \"Green Valley\" with 0 batches and 0 credentials\r\n";
    assert!(agreed.out.ends_with(removed), "{agreed:?}");
    assert_eq!(listed(&site), []);
}

/// Decision 022: a cursor is bound to its organisation, and so is a token.
#[test]
fn what_a_removed_organisation_gave_out_opens_nothing_even_if_its_name_comes_back() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..20, "x")));
    let credential = site.credential();
    let service = site.serve(&["--page-size", "10"]);
    let token = wire::token(&service, &credential);
    let page = wire::get(&service, "/v2/batches", &token).json();
    let removed = site.run(&["org", "remove", ORG, "--yes"]).done();
    assert_eq!(removed, "removed organisation \"Green Valley\" with 20 batches and 1 credential\n");
    site.run(&["org", "add", ORG]).done();
    site.import(&site.name("a.ndjson"));
    assert_eq!(wire::get(&service, "/v1/batches", &token).status, 401);
    assert_eq!(wire::auth(&service, &credential).status, 401);
    let stranger = wire::token(&service, &site.credential());
    let cursor = page["next_token"].as_str().unwrap();
    let answer = wire::get(&service, &format!("/v2/batches?next_token={cursor}"), &stranger);
    assert_eq!(answer.status, 422);
    assert_eq!(answer.json()["detail"][0]["loc"], serde_json::json!(["query", "next_token"]));
}
