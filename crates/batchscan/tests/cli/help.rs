//! Help, version, completions, and where settings can be given.

use snapbox::file;

use crate::program::{Outcome, batchscan, clean};
use crate::site::{ORG, Site};
use crate::snapshot::assert_snapshot;

const COMMANDS: &str = "/demo/serve/status/org/org add/org list/org rename/org set/org mapping/org remove/credential\
    /credential issue/credential list/credential rotate/credential link/credential revoke/session/session list/session end\
    /import/imports/watch/batch/batch show/batch remove/backup/copy/doctor/key/key list/key rotate/audit/pull/mirror/list\
    /summary/login/logout/check/openapi/completions";

fn commands() -> impl Iterator<Item = &'static str> {
    COMMANDS.split('/')
}

fn help(command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
    Outcome::run(&mut batchscan(&words)).succeeds()
}

#[test]
fn the_help_of_every_command_is_as_in_the_snapshot() {
    let all: String =
        commands().map(|command| format!("$ batchscan {command} --help\n{}\n", help(command))).collect();
    assert_snapshot(&all, file!["snapshots/help.txt"]);
    assert!(!all.contains('\u{1B}'), "no colours without a terminal");
}

#[test]
fn the_version_is_one_line() {
    let expected = format!("batchscan {}\n", env!("CARGO_PKG_VERSION"));
    for flag in ["--version", "-V"] {
        assert_eq!(Outcome::run(&mut batchscan(&[flag])).succeeds(), expected);
    }
}

#[test]
fn completions_are_printed_for_every_shell_and_work_in_bash() {
    for (shell, begins) in
        [("bash", "_batchscan() {"), ("zsh", "#compdef batchscan"), ("fish", "# Print an optspec")]
    {
        let script = Outcome::run(&mut batchscan(&["completions", shell])).succeeds();
        assert!(script.starts_with(begins), "{shell}: {}", &script[..60]);
        for word in ["credential", "retire-after", "operator-listen", "if-changed", "summary"] {
            assert!(script.contains(word), "{shell} has no {word}");
        }
    }
    let script = Outcome::run(&mut batchscan(&["completions", "bash"])).succeeds();
    let complete = "COMP_WORDS=(batchscan cred); COMP_CWORD=1; _batchscan batchscan cred batchscan; echo ${COMPREPLY[@]}";
    let mut bash = clean("bash");
    let outcome = Outcome::with_input(&mut bash, format!("{script}\n{complete}\n").into_bytes());
    assert_eq!(outcome.succeeds(), "credential\n");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    Outcome::run(batchscan(&["man-pages"]).arg(folder.path())).succeeds();
    for command in commands() {
        let name = format!("batchscan {command}").trim().replace(' ', "-");
        assert!(folder.path().join(format!("{name}.1")).is_file(), "{name}");
    }
}

#[test]
fn the_database_is_an_option_or_a_variable_or_a_file_in_the_current_folder() {
    let site = Site::without_org();
    let bare = |words: &[&str]| {
        let mut command = batchscan(words);
        command.current_dir(site.path(""));
        command
    };
    let url = site.url("named.db");
    Outcome::run(&mut bare(&["org", "add", ORG, "--database", &url])).succeeds();
    for words in [["org", "--database", url.as_str(), "list"], ["org", "list", "--database", &url]] {
        assert!(Outcome::run(&mut bare(&words)).succeeds().contains(ORG));
    }
    let by_variable = Outcome::run(bare(&["org", "list"]).env("BATCHSCAN_DATABASE", &url));
    assert!(by_variable.succeeds().contains(ORG));
    // The option overrides the variable.
    let mut both = bare(&["org", "list", "--database", &url]);
    assert!(Outcome::run(both.env("BATCHSCAN_DATABASE", site.url("other.db"))).succeeds().contains(ORG));
    Outcome::run(&mut bare(&["org", "add", "Here"])).succeeds();
    assert!(site.path("batchscan.db").exists());
}

#[test]
fn commands_without_a_database_reject_the_option() {
    let site = Site::without_org();
    site.transcript(
        &["demo --database sqlite:a.db", "list --database sqlite:a.db", "openapi --database sqlite:a.db"],
        file!["snapshots/commands_without_a_database_reject_the_option.txt"],
    );
}
