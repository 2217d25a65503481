//! `batchscan` commands on one database. Exit status 0 acknowledges a change; nothing else does.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::remove_settings;

/// A command waits by itself for a primary and for other writers.
const COMMAND_TIMEOUT_SECS: &str = "300";

/// A client id and its secret.
#[derive(Clone, Debug)]
pub(crate) struct Credential {
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
}

/// The executable and its database.
#[derive(Clone, Debug)]
pub(crate) struct Cli {
    pub(crate) executable: PathBuf,
    /// Empty for a demo, which has its own.
    pub(crate) database: String,
}

impl Cli {
    pub(crate) fn new(executable: PathBuf, database: String) -> Self {
        Self { executable, database }
    }

    pub(crate) fn add_organisation(&self, name: &str) -> Result<()> {
        self.run(&["org", "add", name], b"").map(drop)
    }

    /// Imports a JSON array or NDJSON.
    pub(crate) fn import(&self, organisation: &str, format: &str, batches: &[u8]) -> Result<()> {
        self.run(&["import", "--org", organisation, "--format", format, "-"], batches).map(drop)
    }

    pub(crate) fn issue_credential(&self, organisation: &str) -> Result<Credential> {
        parse_credential(&self.run(&["credential", "issue", "--org", organisation, "--json"], b"")?)
    }

    /// A command of the executable. The database is in its environment, since it may contain a password.
    pub(crate) fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.executable);
        remove_settings(&mut command);
        command.args(arguments);
        self.set_database(&mut command);
        command
    }

    /// A command that is killed after some seconds.
    fn killed_after(&self, secs: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        remove_settings(&mut command);
        command.args(["--signal=KILL", secs]).arg(&self.executable).args(arguments);
        self.set_database(&mut command);
        command
    }

    fn set_database(&self, command: &mut Command) {
        if !self.database.is_empty() {
            command.env("BATCHSCAN_DATABASE", &self.database);
        }
    }

    /// Runs a command with this input. Returns what it prints.
    pub(crate) fn run(&self, arguments: &[&str], input: &[u8]) -> Result<String> {
        let mut command = self.killed_after(COMMAND_TIMEOUT_SECS, arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let name = arguments[..2.min(arguments.len())].join(" ");
        let mut child = command.spawn().with_context(|| format!("cannot start `batchscan {name}`"))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that fails early reads nothing. Its own error is better than our broken pipe.
            let _ = stdin.write_all(input);
        }
        let output = child.wait_with_output()?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            bail!("`batchscan {name}` failed: {}: {}", output.status, stderr.trim_end());
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

fn parse_credential(json: &str) -> Result<Credential> {
    let json: serde_json::Value = serde_json::from_str(json)?;
    let field = |name| json[name].as_str().map(str::to_owned).with_context(|| format!("no {name} in {json}"));
    Ok(Credential { client_id: field("client_id")?, client_secret: field("client_secret")? })
}
