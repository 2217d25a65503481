//! `batchscan check`.

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use anyhow::{Context, bail};
use batchscan_check::{Secret, Target};

use crate::args::Check;
use crate::output::{bar, colours, print};

/// A secret is some 43 bytes; whatever else is piped in is not one.
const SECRET_BYTES_MAX: u64 = 4_096;

pub(crate) async fn run(command: Check) -> anyhow::Result<ExitCode> {
    let target = Target {
        base_url: command.url.clone(),
        client_id: command.client_id.clone(),
        client_secret: Secret::new(secret()?),
    };
    let bar = bar("checking", "{msg} {pos} rules {elapsed}");
    let ticking = bar.clone();
    // The run speaks HTTP in blocking calls, away from the runtime's threads.
    let report =
        tokio::task::spawn_blocking(move || batchscan_check::run(&target, &mut |_| ticking.inc(1))).await;
    bar.finish_and_clear();
    let report = report.context("the run broke off")??;
    if command.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&report)?))?;
    } else {
        print(&report.text(command.strict, colours()))?;
    }
    Ok(if report.conforms(command.strict) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// From the environment or standard input, never from the command line, where others could read it.
fn secret() -> anyhow::Result<String> {
    if let Some(secret) = std::env::var("BATCHSCAN_CLIENT_SECRET").ok().filter(|secret| !secret.is_empty()) {
        return Ok(secret);
    }
    if std::io::stdin().is_terminal() {
        bail!("the client secret is missing: set BATCHSCAN_CLIENT_SECRET, or pipe it into standard input");
    }
    let mut secret = String::new();
    std::io::stdin()
        .lock()
        .take(SECRET_BYTES_MAX)
        .read_to_string(&mut secret)
        .context("cannot read the secret")?;
    let secret = secret.trim();
    if secret.is_empty() {
        bail!("the client secret is missing: set BATCHSCAN_CLIENT_SECRET, or pipe it into standard input");
    }
    Ok(secret.to_owned())
}
