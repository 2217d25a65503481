//! Holds the OpenAPI document against the running service, from both ends: what is made up from it, and what is made of it.
//!
//! The judges are the programs of `clients/openapi`; none of them is ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::bounded;
use super::homes::Homes;
use super::service::Service;
use crate::workspace::Workspace;

const FOLDER: &str = "clients/openapi";
/// Three times what it takes on a slow machine.
const FUZZ_LIMIT: Duration = Duration::from_secs(120);
/// Far above what any of the others takes.
const PROGRAM_LIMIT: Duration = Duration::from_secs(60);
/// The last lines of schemathesis are its summary.
const SUMMARY: &str = "Test cases:";

/// Tries the document that the service itself gives. The seed decides which requests are made up.
pub(crate) fn run(workspace: &Workspace, homes: &Homes, service: &Service, seed: u64) -> Result<()> {
    let bench = Bench::new(workspace, homes, service)?;
    bench.fuzz(seed)?;
    bench.pull()?;
    bench.look()
}

struct Bench<'a> {
    homes: &'a Homes,
    service: &'a Service,
    programs: PathBuf,
    /// Where the document is, and whatever the programs leave behind.
    folder: PathBuf,
    document: PathBuf,
}

impl<'a> Bench<'a> {
    fn new(workspace: &Workspace, homes: &'a Homes, service: &'a Service) -> Result<Self> {
        let folder = workspace.scratch_file("openapi")?;
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let document = folder.join("openapi.json");
        fs::write(&document, service.text("/openapi.json")?)?;
        Ok(Self { homes, service, programs: workspace.root.join(FOLDER), folder, document })
    }

    /// Every check of schemathesis, on every operation.
    fn fuzz(&self, seed: u64) -> Result<()> {
        let start = Instant::now();
        let mut command = Command::new(self.homes.openapi_program("schemathesis"));
        command.arg("--config-file").arg(self.programs.join("schemathesis.toml"));
        command.arg("run").arg(&self.document).args(["--url", self.service.url()]);
        command.args(["--seed", &seed.to_string()]);
        command.env("SCHEMATHESIS_HOOKS", self.programs.join("hooks.py"));
        let said = self.here(FUZZ_LIMIT, &mut command)?;
        println!("schemathesis: {}, seed {seed}, in {:.1} s", cases(&said)?, start.elapsed().as_secs_f64());
        Ok(())
    }

    /// A client that is generated from the document reads everything.
    fn pull(&self) -> Result<()> {
        let mut generate = Command::new(self.homes.openapi_program("openapi-python-client"));
        generate.args(["generate", "--meta", "none", "--fail-on-warning", "--path"]).arg(&self.document);
        generate.arg("--config").arg(self.programs.join("generator.yaml"));
        generate.arg("--output-path").arg(self.folder.join("batchscan_generated"));
        self.here(PROGRAM_LIMIT, &mut generate)?;
        self.python("pull_by_generated_client.py", Some(&self.folder))
    }

    /// The pages for people work in a browser.
    fn look(&self) -> Result<()> {
        self.python("docs_in_a_browser.py", None)
    }

    fn python(&self, program: &str, argument: Option<&Path>) -> Result<()> {
        let mut command = Command::new(self.homes.openapi_program("python"));
        command.arg(self.programs.join(program)).args(argument);
        print!("{}", self.here(PROGRAM_LIMIT, &mut command)?);
        Ok(())
    }

    fn here(&self, limit: Duration, command: &mut Command) -> Result<String> {
        bounded::stdout_within(limit, self.service.tell(command.current_dir(&self.folder)))
    }
}

/// How many requests were made up: `1062 generated, 1062 passed`.
fn cases(said: &str) -> Result<&str> {
    let mut lines = said.lines().map(str::trim);
    match lines.find(|line| *line == SUMMARY).and_then(|_| lines.next()) {
        Some(counts) if counts.contains(" passed") && !counts.contains("failure") => Ok(counts),
        _ => bail!("schemathesis does not tell how many cases passed:\n{said}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_cases_is_read_from_the_summary() {
        let said = "…\nTest cases:\n  1062 generated, 1062 passed, 8 skipped\n\nSeed: 1\n";
        assert_eq!(cases(said).unwrap(), "1062 generated, 1062 passed, 8 skipped");
    }

    #[test]
    fn a_run_without_cases_or_with_failures_is_not_taken_for_a_good_one() {
        assert!(cases("Seed: 1\n").is_err());
        assert!(cases("Test cases:\n  1651 generated, 2 found 2 unique failures, 8 skipped\n").is_err());
    }
}
