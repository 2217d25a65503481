//! The service that all programs ask: where it is, who may ask, and which batches v1 says it holds.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;

use crate::cluster::http::{Ask, Client, Credential};
use crate::demo::Greeting;
use crate::process;
use crate::workspace::Workspace;

/// A running service, as programs are told of it.
pub(crate) struct Service {
    url: String,
    credential: Credential,
    /// A home folder for the programs, so that a developer's own settings do not steer them.
    home: PathBuf,
    /// The ids of v1, in its order.
    pub(crate) ids: Vec<String>,
}

impl Service {
    pub(crate) fn of(greeting: Greeting, workspace: &Workspace) -> Result<Self> {
        let credential = Credential { client_id: greeting.client_id, client_secret: greeting.client_secret };
        let ids = ids_of_v1(&Client::new(&greeting.url), &credential).context("v1 gives no ids")?;
        let home = workspace.scratch_file("clients-home")?;
        std::fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
        println!("demo on {}, {} batches", greeting.url, ids.len());
        Ok(Self { url: greeting.url, credential, home, ids })
    }

    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What it gives everybody at a path.
    pub(crate) fn text(&self, path: &str) -> Result<String> {
        Client::new(&self.url).text(path).with_context(|| format!("the service has nothing at {path}"))
    }

    /// Tells a program of the service, and of nothing else.
    pub(crate) fn tell<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        process::without_settings(command)
            .env("BATCHSCAN_URL", &self.url)
            .env("BATCHSCAN_CLIENT_ID", &self.credential.client_id)
            .env("BATCHSCAN_CLIENT_SECRET", &self.credential.client_secret)
            .env("HOME", &self.home)
            .env("DLT_DATA_DIR", self.home.join("dlt"))
            // Tests talk to loopback alone.
            .env("RUNTIME__DLTHUB_TELEMETRY", "false")
            .env("NO_PROXY", "127.0.0.1")
            .env("no_proxy", "127.0.0.1")
            // The tree stays as it is.
            .env("PYTHONDONTWRITEBYTECODE", "1")
    }
}

fn ids_of_v1(client: &Client, credential: &Credential) -> Result<Vec<String>> {
    let token = client.token(credential)?;
    let answer = client
        .get(&Ask { path: "/v1/batches", token: &token, ..Ask::default() })
        .map_err(|lost| anyhow!("{}", lost.why))?;
    if answer.status != 200 {
        bail!("status {}", answer.status);
    }
    #[derive(Deserialize)]
    struct Batch {
        batch_id: String,
    }
    let batches: Vec<Batch> = serde_json::from_slice(&answer.body)?;
    Ok(batches.into_iter().map(|batch| batch.batch_id).collect())
}
