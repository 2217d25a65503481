//! `batchscan session`, and sign-in links: `credential link` and `credential issue --link`.

use qrcode::{Color, QrCode};
use serde_json::Value;
use snapbox::file;

use crate::http;
use crate::organisations::on_a_terminal;
use crate::program::Outcome;
use crate::service::Service;
use crate::site::{ORG, Site};
use crate::snapshot::assert_snapshot;

const URL: &str = "https://scans.example.org";

/// What `--json` prints about a link: the client id and the secret of the link.
#[track_caller]
fn link(site: &Site, words: &[&str]) -> (String, String) {
    let text = site.run(&[words, &["--json", "--public-url", URL]].concat()).succeeds();
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json.as_object().unwrap().len(), 3, "{text}");
    let link = json["link"].as_str().unwrap();
    let secret = link.strip_prefix("https://scans.example.org/#sign-in-link=").unwrap();
    (json["client_id"].as_str().unwrap().to_owned(), secret.to_owned())
}

/// Signs in with a link.
fn sign_in(service: &Service, secret: &str) -> http::Reply {
    let head = "POST /session HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded";
    http::request(service, head, &format!("link={secret}"))
}

fn listed(site: &Site) -> Vec<Value> {
    let text = site.run(&["session", "list", "--org", ORG, "--json"]).succeeds();
    serde_json::from_str(&text).unwrap()
}

fn ended(client: &str) -> String {
    format!(
        "ended 1 session; a token it already has works until it expires, 1 h by default. To stop it now: batchscan \
        credential revoke {client}\n"
    )
}

#[test]
fn a_link_signs_in_once_and_its_session_can_be_ended() {
    let site = Site::new();
    let service = site.serve(&[]);
    assert_eq!(
        site.run(&["session", "list", "--org", ORG]).succeeds(),
        "no sessions, and no unused sign-in links\n"
    );
    let (client, first) = link(&site, &["credential", "issue", "--org", ORG, "--label", "Ann", "--link"]);
    let (same, second) = link(&site, &["credential", "link", &client, "--link-valid", "7d"]);
    assert_eq!(same, client);
    let text = site.run(&["session", "list", "--org", ORG]).succeeds();
    assert_snapshot(&text, file!["snapshots/a_link_signs_in_once_and_its_session_can_be_ended.txt"]);
    assert!(!text.contains(first.split('.').nth(1).unwrap()), "{text}");
    for secret in [&first, &second] {
        assert_eq!(sign_in(&service, secret).status, 200);
        assert_eq!(sign_in(&service, secret).status, 401, "a link works once");
    }
    let sessions = listed(&site);
    assert!(sessions.iter().all(|one| one["is_link"] == false && one["client_id"] == client.as_str()));
    let id = sessions[0]["id"].as_str().unwrap();
    assert_eq!(site.run(&["session", "end", id]).succeeds(), ended("CLIENT_ID"));
    assert_eq!(listed(&site).len(), 1);
    assert_eq!(site.run(&["session", "end", &client]).succeeds(), ended(&client));
    assert_eq!(listed(&site), Vec::<Value>::new());
}

#[test]
fn invalid_links_and_sessions_are_rejected() {
    let site = Site::new();
    site.transcript(
        &[
            "session end nothing",
            "session end -ZmPs24lbjaN7d0E",
            "session end -hhhhhhhhhhhhhhA",
            "session end --mPs24lbjaN7d0E",
            "session list --org Nort",
            "credential link bs_unknown",
            "credential link 'a b'",
            "credential issue --org 'Green Valley' --link --link-valid 14m",
            "credential issue --org 'Green Valley' --link --link-valid 8d",
            "credential issue --org 'Green Valley' --link-valid 1d",
            "credential issue --org 'Green Valley' --public-url https://scans.example.org",
        ],
        file!["snapshots/invalid_links_and_sessions_are_rejected.txt"],
    );
    let revoked = site.credential().id;
    site.run(&["credential", "revoke", &revoked]).succeeds();
    let outcome = site.run(&["credential", "link", &revoked]);
    assert!(outcome.code == Some(1) && outcome.err.contains("revoked"), "{outcome:?}");
}

/// The address of the service is usually set as a variable, for all commands.
#[test]
fn a_credential_without_a_link_ignores_the_variables_of_links() {
    let site = Site::new();
    let mut command = site.command(&["credential", "issue", "--org", ORG]);
    Outcome::run(command.env("BATCHSCAN_PUBLIC_URL", URL)).succeeds();
}

#[test]
fn a_link_is_not_valid_longer_than_its_credential() {
    let site = Site::new();
    let words =
        ["credential", "issue", "--org", ORG, "--expires", "1h", "--link", "--link-valid", "7d", "--json"];
    let link: Value = serde_json::from_str(&site.run(&words).succeeds()).unwrap();
    let listed = site.run(&["credential", "list", "--org", ORG, "--json"]).succeeds();
    let credentials: Value = serde_json::from_str(&listed).unwrap();
    assert!(link["link_expires_at"].is_string());
    assert_eq!(link["link_expires_at"], credentials[0]["expires_at"]);
}

/// The colours of the code, which must not depend on those of the terminal.
const BLACK_ON_WHITE: &str = "\u{1B}[38;5;16;48;5;231m";
/// The light modules around the code.
const QUIET: usize = 4;

/// The modules of the code on the terminal: two rows in each line of half blocks.
fn printed_modules(screen: &str) -> Vec<Vec<bool>> {
    let lines = screen.lines().filter_map(|line| line.strip_prefix(BLACK_ON_WHITE)?.split('\u{1B}').next());
    let rows = lines.flat_map(|line| {
        let upper = line.chars().map(|c| "▀█".contains(c)).collect();
        let lower = line.chars().map(|c| "▄█".contains(c)).collect();
        [upper, lower]
    });
    rows.collect()
}

#[test]
fn the_code_on_a_terminal_is_the_link() {
    let site = Site::new();
    let id = site.credential().id;
    let shown = on_a_terminal(&site, &format!("credential link {id} --public-url {URL}"), "");
    let link = shown.out.lines().find_map(|line| line.split("sign-in link  ").nth(1)).unwrap().trim();
    let code = QrCode::new(link).unwrap();
    let (width, colors) = (code.width(), code.to_colors());
    let printed = printed_modules(&shown.out);
    assert!(printed.len() >= width + 2 * QUIET, "{}", shown.out);
    for (y, row) in printed.iter().enumerate().take(width + 2 * QUIET) {
        assert_eq!(row.len(), width + 2 * QUIET);
        for (x, is_drawn) in row.iter().enumerate() {
            let inside = |at: usize| (QUIET..QUIET + width).contains(&at);
            let is_dark = inside(x) && inside(y) && colors[(y - QUIET) * width + x - QUIET] == Color::Dark;
            assert_eq!(*is_drawn, is_dark, "module {x}, {y}");
        }
    }
    let local = "the link works on this machine only";
    assert!(!shown.out.contains(local), "{}", shown.out);
    let shown = on_a_terminal(&site, &format!("credential link {id}"), "");
    assert!(shown.out.contains(local), "{}", shown.out);
    let piped = site.run(&["credential", "link", &id]).out;
    assert!(!piped.contains('█') && piped.contains("http://127.0.0.1:8080/#sign-in-link="), "{piped}");
}
