//! Runs the programs of `clients/matrix`, each with a library of its own, and reads what they report.
//!
//! A program reports a claim in a line of JSON once it holds, and fails if it does not.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;

use super::bounded;
use super::homes::{Homes, MATRIX, files_ending};
use super::service::Service;
use crate::process;
use crate::workspace::Workspace;

/// Far above what any takes; a client that pages in circles is ended by it.
const PROGRAM_LIMIT: Duration = Duration::from_secs(60);

/// What every client has to show, in the order of the table.
pub(crate) const CLAIMS: [&str; 3] = ["token", "paging", "wrong secret"];

/// A client, and what came of each claim.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) client: String,
    pub(crate) version: String,
    pub(crate) outcomes: [String; CLAIMS.len()],
}

/// Runs every program whose name begins with `with_`.
pub(crate) fn run(workspace: &Workspace, homes: &Homes, service: &Service) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for path in files_ending(&workspace.root.join(MATRIX), "")? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("with_") {
            continue;
        }
        let mut command = program(&path, &name, homes)?;
        let printed = bounded::stdout_within(PROGRAM_LIMIT, service.tell(&mut command))?;
        rows.extend(said(&name, &printed)?);
    }
    Ok(rows)
}

/// The `oauth2` crate is tried by a test of ours, which reports in the same way.
pub(crate) fn run_in_rust(workspace: &Workspace, executable: &Path) -> Result<Vec<Row>> {
    // The whole workspace, so that features unify as in the step "tests" and nothing is built twice.
    let test = ["test", "--workspace", "--test", "oauth2_crate"];
    process::run(workspace.cargo(&test).arg("--no-run"))?;
    let mut command = workspace.cargo(&test);
    process::without_settings(&mut command).args(["--", "--nocapture"]).env("BATCHSCAN_EXE", executable);
    said("oauth2_crate.rs", &process::stdout_of(&mut command)?)
}

fn program(path: &Path, name: &str, homes: &Homes) -> Result<Command> {
    let (interpreter, path) = match path.extension().and_then(|extension| extension.to_str()) {
        Some("py") => (homes.python(), path.to_owned()),
        Some("mjs") => ("node".into(), homes.node_program(name)),
        Some("sh") => ("bash".into(), path.to_owned()),
        _ => bail!("{name}: nothing runs such a program"),
    };
    let mut command = Command::new(interpreter);
    command.arg(path);
    Ok(command)
}

fn said(program: &str, printed: &str) -> Result<Vec<Row>> {
    let rows = rows_of(printed).with_context(|| format!("{program} reports badly"))?;
    for row in &rows {
        println!("{program}: {} {}: {}", row.client, row.version, row.outcomes.join(" | "));
    }
    Ok(rows)
}

#[derive(Clone, Deserialize)]
struct Report {
    client: String,
    version: String,
    claim: String,
    outcome: String,
}

/// The rows of all clients that a program speaks for, each with every claim once.
fn rows_of(printed: &str) -> Result<Vec<Row>> {
    let mut reports = reports_of(printed)?;
    let mut rows = Vec::new();
    while let Some(Report { client, version, .. }) = reports.first().cloned() {
        let (own, others) = reports.into_iter().partition(|report| report.client == client);
        reports = others;
        rows.push(Row { outcomes: outcomes_of(own).with_context(|| client.clone())?, client, version });
    }
    if rows.is_empty() {
        bail!("no claim at all");
    }
    Ok(rows)
}

/// A test runner may put the name of a test before a report, and prints lines of its own.
fn reports_of(printed: &str) -> Result<Vec<Report>> {
    let lines = printed.lines().filter_map(|line| line.find('{').map(|start| &line[start..]));
    lines.map(|line| serde_json::from_str(line).with_context(|| format!("not a report: {line}"))).collect()
}

fn outcomes_of(reports: Vec<Report>) -> Result<[String; CLAIMS.len()]> {
    let mut outcomes: [Option<String>; CLAIMS.len()] = Default::default();
    for report in reports {
        let claim = CLAIMS.iter().position(|claim| *claim == report.claim);
        let outcome = claim.map(|index| &mut outcomes[index]);
        match outcome {
            None => bail!("\"{}\" is no claim", report.claim),
            Some(Some(_)) => bail!("\"{}\" was reported twice", report.claim),
            Some(free) => *free = Some(report.outcome),
        }
    }
    let given: Vec<String> = outcomes.into_iter().flatten().collect();
    given.try_into().map_err(|given: Vec<_>| anyhow!("{} of {} claims", given.len(), CLAIMS.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(client: &str, claim: &str) -> String {
        format!(r#"{{"client":"{client}","version":"1","claim":"{claim}","outcome":"{claim} of {client}"}}"#)
    }

    fn complaint(lines: &[String]) -> String {
        format!("{:#}", rows_of(&lines.join("\n")).unwrap_err())
    }

    #[test]
    fn a_program_may_speak_for_many_clients_and_in_any_order() {
        let lines: Vec<String> = CLAIMS.iter().rev().flat_map(|c| [report("a", c), report("b", c)]).collect();
        let rows = rows_of(&lines.join("\n")).unwrap();
        assert_eq!(rows.iter().map(|row| row.client.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(rows[0].outcomes, ["token of a", "paging of a", "wrong secret of a"]);
    }

    #[test]
    fn reports_are_found_among_what_a_test_runner_prints() {
        let lines = CLAIMS.map(|claim| format!("test a_claim ... {}\nok\n", report("a", claim)));
        assert_eq!(rows_of(&lines.concat()).unwrap().len(), 1);
    }

    #[test]
    fn a_claim_that_lacks_or_comes_twice_or_is_unknown_is_a_failure() {
        let all = CLAIMS.map(|claim| report("a", claim));
        assert_eq!(complaint(&all[..2]), "a: 2 of 3 claims");
        assert_eq!(complaint(&[&all[..], &all[..1]].concat()), "a: \"token\" was reported twice");
        assert_eq!(complaint(&[report("a", "luck")]), "a: \"luck\" is no claim");
        assert_eq!(complaint(&["hello".into()]), "no claim at all");
    }
}
