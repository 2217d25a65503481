//! `batchscan mirror --follow` of an organisation that does not change, during a run: the balancer must not end its
//! requests, which wait for a change. In the end there is one, and it must arrive.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use batchscan_testbed::{Process, wait_until};

use crate::cluster::Site;
use crate::cluster::http::Credential;
use crate::workspace::Workspace;

const ORGANISATION: &str = "Idle Nursery";
const BATCH: &str = "{\"batch_id\":\"late\",\"batch_name\":\"late\",\"batch_creation_date\":\"2026-01-31T08:00:00Z\",\
                     \"number_of_images\":1,\"warnings\":false}\n";
/// Requests that must end by themselves. A node that is killed starts a wait again.
const WAITS: usize = 2;
/// A response without changes that comes later has waited as long as it may, 45 s.
const WAITED_MILLIS: u64 = 40_000;
/// Only to prevent hanging.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The running mirror.
#[derive(Debug)]
pub(crate) struct IdleMirror {
    process: Process,
    /// Its standard output.
    lines: PathBuf,
}

impl IdleMirror {
    pub(crate) fn start(workspace: &Workspace, site: &Site) -> Result<Self> {
        site.cli.add_organisation(ORGANISATION)?;
        let Credential { client_id, client_secret } = site.cli.issue_credential(ORGANISATION)?;
        let url = format!("http://127.0.0.1:{}", site.balancer.port);
        let arguments = ["mirror", "--follow", "--output", "-", "--url", &url, "--client-id", &client_id];
        let lines = workspace.log_file("idle-mirror.ndjson")?;
        let errors = File::create(workspace.log_file("idle-mirror.log")?)?;
        let mut command = site.cli.command(&arguments.map(str::to_owned));
        command.env("BATCHSCAN_CLIENT_SECRET", client_secret);
        command.stdin(Stdio::null()).stdout(File::create(&lines)?).stderr(errors);
        Ok(Self { process: Process::start(&mut command)?, lines })
    }

    /// Waits until some requests have waited to their end; then a change must arrive.
    pub(crate) fn receive_change(&self, site: &Site) -> Result<()> {
        let has_waited = || ended_waits(&site.balancer.log()).map(|count| count >= WAITS);
        self.wait_for("waiting requests do not end", || has_waited().unwrap_or(true))?;
        has_waited()?;
        site.cli.import(ORGANISATION, "ndjson", BATCH.as_bytes())?;
        let has_arrived = || fs::read_to_string(&self.lines).is_ok_and(|lines| lines.contains("\"late\""));
        self.wait_for("a change does not arrive", has_arrived)
    }

    fn wait_for(&self, problem: &str, condition: impl Fn() -> bool) -> Result<()> {
        let is_over = || condition() || !self.process.is_running();
        if !wait_until(TIMEOUT, is_over) || !condition() {
            let end = if self.process.is_running() { "" } else { "; it has ended" };
            bail!("idle mirror: {problem}{end}; see {}", self.lines.with_extension("log").display());
        }
        Ok(())
    }
}

/// The requests in HAProxy's log that waited for a change until the service responded. An error if HAProxy ended one.
fn ended_waits(log: &str) -> Result<usize> {
    let mut count = 0;
    for line in log.lines().filter(|line| line.contains("\"GET /v2/changes?")) {
        // 127.0.0.1:1 [time] clients nodes/node1 0/0/0/45001/45001 200 150 - - ---- 1/1/0/0/0 0/0 "GET …"
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, _, times, status, _, _, _, end, ..] = fields[..] else { continue };
        // The server's timeout, before the head of the response.
        if end.starts_with("sH") {
            bail!("HAProxy ended a waiting request: {line}");
        }
        let millis = times.rsplit('/').next().and_then(|total| total.parse().ok());
        let millis: u64 = millis.with_context(|| format!("no times in {line}"))?;
        count += usize::from(status == "200" && millis >= WAITED_MILLIS);
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_that_ended_are_counted_and_one_that_was_cut_is_an_error() {
        let line = |times: &str, status: u16, end: &str| {
            format!(
                "127.0.0.1:1 [17/Nov/2026:18:00:00.000] clients nodes/node1 {times} {status} 150 - - {end} \
                 8/8/1/1/0 0/0 \"GET /v2/changes?since=x&wait=45 HTTP/1.1\"\n"
            )
        };
        let short = line("0/0/0/3/3", 200, "----");
        let killed = line("0/0/0/-1/4001", 200, "CD--");
        let whole = line("0/0/0/45003/45003", 200, "----");
        assert_eq!(ended_waits(&(short + &killed + &whole + &whole + "node1 is UP\n")).unwrap(), 2);
        assert!(ended_waits(&line("0/0/0/-1/60004", 503, "sH--")).is_err());
    }
}
