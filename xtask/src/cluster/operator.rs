//! The operator's commands on one database: what is acknowledged by exit status 0, and nothing else.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::http::Credential;
use crate::process;

/// As long as a command may take: it waits for a primary by itself, and for others that write.
const COMMAND_LIMIT_SECS: &str = "90";

/// Who runs `batchscan` commands.
#[derive(Clone, Debug)]
pub(crate) struct Operator {
    pub(crate) executable: PathBuf,
    pub(crate) database: String,
}

impl Operator {
    pub(crate) fn new(executable: &Path, database: String) -> Self {
        Self { executable: executable.to_owned(), database }
    }

    /// Adds an organisation.
    pub(crate) fn add_organisation(&self, name: &str) -> Result<()> {
        self.run(&["org", "add", name], b"").map(drop)
    }

    /// Imports a JSON array or NDJSON, as `format` says.
    pub(crate) fn import(&self, organisation: &str, format: &str, batches: &[u8]) -> Result<()> {
        self.run(&["import", "--org", organisation, "--format", format, "-"], batches).map(drop)
    }

    /// Issues a credential.
    pub(crate) fn issue_credential(&self, organisation: &str) -> Result<Credential> {
        let printed = self.run(&["credential", "issue", "--org", organisation, "--json"], b"")?;
        serde_json::from_str(&printed).context("`credential issue --json` printed something else")
    }

    /// Gives a credential a second secret.
    pub(crate) fn rotate_credential(&self, client_id: &str) -> Result<Credential> {
        let printed = self.run(&["credential", "rotate", client_id, "--json"], b"")?;
        serde_json::from_str(&printed).context("`credential rotate --json` printed something else")
    }

    /// A command that knows the database; it goes by the environment, as it may hold a password.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.executable);
        process::without_settings(&mut command);
        command.args(arguments).env("BATCHSCAN_DATABASE", &self.database);
        command
    }

    fn run(&self, arguments: &[&str], input: &[u8]) -> Result<String> {
        let mut command = Command::new("timeout");
        process::without_settings(&mut command);
        command.args(["--signal=KILL", COMMAND_LIMIT_SECS]).arg(&self.executable).args(arguments);
        command.env("BATCHSCAN_DATABASE", &self.database);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let name = arguments[..2].join(" ");
        let mut child = command.spawn().with_context(|| format!("cannot start `batchscan {name}`"))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that fails early reads nothing; its own words say more than our broken pipe.
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
