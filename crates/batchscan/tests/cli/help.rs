//! What the program says of itself: help, version, completions; and where its settings may stand.

use crate::program::{Outcome, batchscan, clean};
use crate::site::{ORG, Site};

/// Every command with its flags and arguments.
const COMMANDS: [(&str, &[&str]); 28] = [
    (
        "",
        &[
            "demo",
            "serve",
            "org",
            "credential",
            "import",
            "backup",
            "copy",
            "doctor",
            "key",
            "pull",
            "list",
            "summary",
            "login",
            "logout",
            "check",
            "openapi",
            "completions",
        ],
    ),
    ("demo", &["--listen", "--batches", "--seed", "--fail-rate"]),
    (
        "serve",
        &[
            "--listen",
            "--token-ttl",
            "--page-size",
            "--public-url",
            "--tls-cert",
            "--tls-key",
            "--cors-origin",
            "--rate-limit",
            "--log-format",
            "--operator-listen",
            "--drain",
            "--cache-mib",
            "--read-from",
            "--database-connections",
            "--v1-sunset",
        ],
    ),
    ("org", &["add", "list", "rename", "remove"]),
    ("org add", &["<NAME>"]),
    ("org list", &["--json"]),
    ("org rename", &["<NAME>", "<NEW_NAME>"]),
    ("org remove", &["<NAME>", "--yes"]),
    ("credential issue", &["--org", "--label", "--expires", "--json"]),
    ("credential list", &["--org", "--json"]),
    ("credential rotate", &["<CLIENT_ID>", "--retire-after", "--json"]),
    ("credential revoke", &["<CLIENT_ID>"]),
    ("import", &["--org", "<FILE>...", "--format", "--dry-run", "--json"]),
    ("credential", &["issue", "list", "rotate", "revoke"]),
    ("backup", &["<FILE>"]),
    ("copy", &["--from", "--to", "--json"]),
    ("doctor", &["--json"]),
    ("key", &["list", "rotate"]),
    ("key list", &["--json"]),
    ("key rotate", &["--now"]),
    (
        "pull",
        &[
            "--url",
            "--client-id",
            "--client-secret-file",
            "--profile",
            "--ca-cert",
            "--retry-for",
            "--start-date",
            "--end-date",
            "-o, --output",
            "--output",
            "--format",
            "--excel",
            "--resume",
            "--force",
            "--if-changed",
            "--json",
            "BATCHSCAN_CLIENT_SECRET",
        ],
    ),
    (
        "list",
        &[
            "--url",
            "--client-id",
            "--client-secret-file",
            "--profile",
            "--ca-cert",
            "--retry-for",
            "--start-date",
            "--end-date",
            "--limit",
            "--json",
        ],
    ),
    (
        "summary",
        &[
            "--url",
            "--client-id",
            "--client-secret-file",
            "--profile",
            "--ca-cert",
            "--retry-for",
            "--start-date",
            "--end-date",
            "--json",
        ],
    ),
    (
        "login",
        &["--url", "--client-id", "--client-secret-file", "--profile", "--ca-cert", "--retry-for", "--list"],
    ),
    ("logout", &["--profile"]),
    ("openapi", &["--public-url"]),
    ("completions", &["<SHELL>"]),
    ("check", &["<URL>", "--client-id", "--strict", "--json"]),
];

#[test]
fn every_commands_help_tells_its_flags_and_their_variables() {
    for (command, parts) in COMMANDS {
        for help in ["--help", "-h"] {
            let words: Vec<&str> = command.split_whitespace().chain([help]).collect();
            let text = Outcome::of(&mut batchscan(&words)).done();
            // Lines are wrapped wherever they happen to be full.
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(&format!(
                "Usage: batchscan{}{command}",
                if command.is_empty() { "" } else { " " }
            )));
            for part in parts.iter().chain(&["--database", "BATCHSCAN_DATABASE", "--help"]) {
                assert!(text.contains(part), "{command} {help} does not tell of {part}: {text}");
            }
            for flag in parts.iter().filter_map(|part| part.strip_prefix("--")) {
                let variable = format!("[env: BATCHSCAN_{}", flag.to_uppercase().replace('-', "_"));
                // What may hold a password is named without its value.
                let is_told = ['=', ']'].iter().any(|end| text.contains(&format!("{variable}{end}")));
                assert!(is_told, "{command} {help} does not tell of {variable}: {text}");
            }
            assert!(!text.contains('\u{1B}'), "no colour where there is no terminal");
        }
    }
}

#[test]
fn the_version_is_one_line() {
    let expected = format!("batchscan {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(Outcome::of(&mut batchscan(&["--version"])).done(), expected);
    assert_eq!(Outcome::of(&mut batchscan(&["-V"])).done(), expected);
}

#[test]
fn completions_are_printed_for_every_shell() {
    for (shell, begins) in
        [("bash", "_batchscan() {"), ("zsh", "#compdef batchscan"), ("fish", "# Print an optspec")]
    {
        let script = Outcome::of(&mut batchscan(&["completions", shell])).done();
        assert!(script.starts_with(begins), "{shell}: {}", &script[..60]);
        for word in ["credential", "retire-after", "operator-listen", "if-changed", "summary"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    Outcome::of(&mut batchscan(&["completions", "tcl"])).misused(
        "invalid value 'tcl' for '<SHELL>'\n  [possible values: bash, elvish, fish, powershell, zsh]",
    );
}

#[test]
fn bash_takes_its_completions() {
    let script = Outcome::of(&mut batchscan(&["completions", "bash"])).done();
    let asking = "COMP_WORDS=(batchscan cred); COMP_CWORD=1; _batchscan batchscan cred batchscan; echo ${COMPREPLY[@]}";
    let mut bash = clean("bash");
    let outcome = Outcome::with_input(&mut bash, format!("{script}\n{asking}\n").into_bytes());
    assert_eq!(outcome.done(), "credential\n");
}

#[test]
fn the_database_may_be_named_anywhere_on_the_line_or_in_the_environment() {
    let site = Site::empty();
    let bare = |words: &[&str]| {
        let mut command = batchscan(words);
        command.current_dir(site.path(""));
        command
    };
    let url = site.url("named.db");
    Outcome::of(&mut bare(&["--database", &url, "org", "add", ORG])).done();
    for words in [
        ["--database", url.as_str(), "org", "list"],
        ["org", "--database", &url, "list"],
        ["org", "list", "--database", &url],
    ] {
        assert!(Outcome::of(&mut bare(&words)).done().contains(ORG));
    }
    let by_environment = Outcome::of(bare(&["org", "list"]).env("BATCHSCAN_DATABASE", &url));
    assert!(by_environment.done().contains(ORG));
    // The command line wins over the environment, and without either it is a file in the folder at hand.
    let mut both = bare(&["org", "list", "--database", &url]);
    assert!(Outcome::of(both.env("BATCHSCAN_DATABASE", site.url("other.db"))).done().contains(ORG));
    Outcome::of(&mut bare(&["org", "add", "Here"])).done();
    assert!(site.path("batchscan.db").exists());
    assert!(
        Outcome::of(bare(&["org", "list", "--database", "sqlite:batchscan.db"]).env_clear())
            .done()
            .contains("Here")
    );
}

#[test]
fn every_flag_may_stand_in_the_environment() {
    let site = Site::new();
    let mut issue = site.command(&["credential", "issue"]);
    issue.env("BATCHSCAN_ORG", ORG).env("BATCHSCAN_LABEL", "from outside").env("BATCHSCAN_JSON", "true");
    assert!(Outcome::of(&mut issue).done().starts_with("{\"client_id\":\"bs_"));
    assert!(site.run(&["credential", "list", "--org", ORG]).done().contains("from outside"));
}
