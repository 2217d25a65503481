//! `batchscan operator token`, and the operator API of `serve --operator-listen`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;
use snapbox::file;

use crate::program::{Outcome, Running, batchscan, clean};
use crate::site::{ORG, Site};

fn listed(site: &Site) -> Vec<Value> {
    let text = site.run(&["operator", "token", "list", "--json"]).succeeds();
    serde_json::from_str(&text).unwrap()
}

/// Issues a token. Returns its id and the token.
pub(crate) fn issue(site: &Site, flags: &[&str]) -> (String, String) {
    let words = [&["operator", "token", "issue", "--json"], flags].concat();
    let issued: Value = serde_json::from_str(&site.run(&words).succeeds()).unwrap();
    let part = |name: &str| issued[name].as_str().unwrap().to_owned();
    assert!(part("token").starts_with(&format!("{}.", part("id"))), "{issued}");
    (part("id"), part("token"))
}

/// A service with an address for operators, whose log is `serve.log`. Returns its addresses, too.
pub(crate) fn serve(site: &Site, flags: &[&str], log_level: &str) -> (Running, [String; 2]) {
    let words = ["serve", "--listen", "127.0.0.1:0", "--operator-listen", "127.0.0.1:0"];
    let mut command = site.command(&[&words, flags].concat());
    let log = std::fs::File::create(site.path("serve.log")).unwrap();
    command.env("BATCHSCAN_LOG", log_level);
    let mut running = Running(command.stdout(Stdio::piped()).stderr(log).spawn().unwrap());
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    let urls = ["listening on ", "operator API on "].map(|start| {
        let line = lines.next().unwrap().unwrap();
        line.strip_prefix(start).unwrap_or_else(|| panic!("{start}: {line}")).to_owned()
    });
    (running, urls)
}

/// Sends a request with curl. Returns the body, then the status.
pub(crate) fn curl(url: &str, token: &str, flags: &[&str]) -> String {
    let mut curl = clean("curl");
    let bearer = format!("Authorization: Bearer {token}");
    curl.args(["-sS", "-w", "%{http_code}", "-H", &bearer, url]).args(flags);
    Outcome::run(&mut curl).succeeds()
}

#[test]
fn a_token_is_issued_listed_and_revoked() {
    let site = Site::new();
    let transcript = |lines: &[&str], expected| site.transcript(lines, expected);
    transcript(&["operator token list"], file!["snapshots/no_operator_tokens.txt"]);
    let words = ["operator", "token", "issue", "--role", "ingest", "--org", ORG, "--label", "hall 2"];
    let text = site.run(&[&words[..], &["--expires", "365d"]].concat()).succeeds();
    let word = |line: usize| text.lines().nth(line).unwrap().split_whitespace().last().unwrap();
    let (id, token) = (word(0), word(1));
    let shown = text.replace(token, "[TOKEN]").replace(id, "[ID]");
    let (shown, end) = shown.rsplit_once("Expires on ").unwrap();
    assert_eq!(shown, "id     [ID]\ntoken  [TOKEN]\n\nSave the token now; it cannot be shown again.\n");
    assert!(end.starts_with("20"), "{end}");
    let (admin, _) = issue(&site, &["--role", "admin"]);
    let revoke = site.run(&["operator", "token", "revoke", id]).succeeds();
    assert_eq!(revoke, format!("revoked {id}\n"));
    let all = listed(&site);
    let names = "created_at,expires_at,id,label,last_used_at,organisation,revoked_at,role,state";
    assert_eq!(all[0].as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(","), names);
    let parts = |one: &Value| ["id", "role", "organisation", "label", "state"].map(|name| one[name].clone());
    assert_eq!(parts(&all[0]), [id, "ingest", ORG, "hall 2", "revoked"].map(Value::from));
    assert_eq!(parts(&all[1]), [admin.into(), "admin".into(), Value::Null, "".into(), "active".into()]);
    let table = site.run(&["operator", "token", "list"]).succeeds();
    for cell in ["ORGANISATION", id, "all", ORG, "hall 2", "revoked", "active", "LAST USED"] {
        assert!(table.contains(cell), "{cell} in {table}");
    }
}

#[test]
fn wrong_commands_are_rejected() {
    let site = Site::new();
    site.transcript(
        &[
            "operator token issue",
            "operator token issue --role owner",
            "operator token issue --role admin --org 'Green Valley'",
            "operator token issue --role ingest --org Unknown",
            "operator token revoke op_unknown",
            "operator token revoke 'a b'",
        ],
        file!["snapshots/wrong_operator_commands.txt"],
    );
    assert_eq!(listed(&site).len(), 0);
}

#[test]
fn a_token_that_cannot_be_printed_is_revoked() {
    let site = Site::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = site.command(&["operator", "token", "issue", "--role", "admin"]);
    let output = command.stdout(full).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && error.contains("the token was revoked"), "{error}");
    assert_eq!(listed(&site)[0]["state"], "revoked");
}

#[test]
fn the_document_is_printed_without_a_database() {
    let printed = Outcome::run(&mut batchscan(&["openapi", "--operator"])).succeeds();
    let document: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(document["info"]["title"], "batchscan operator API");
}
