//! `batchscan check`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use batchscan_check::{Secret, Target};

use crate::args::Check;
use crate::output::{bar, colours, print};
use crate::secret;

pub(crate) async fn run(command: Check) -> anyhow::Result<ExitCode> {
    let target = Target {
        base_url: command.url.clone(),
        client_id: command.client_id.clone(),
        client_secret: secret()?,
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

/// From the environment, a pipe or the terminal, never from the command line, where others could read it.
fn secret() -> anyhow::Result<Secret> {
    let sources = [|| secret::given(None), secret::piped, || secret::asked("client secret: ")];
    for source in sources {
        if let Some(secret) = source()? {
            return Ok(Secret::new(secret.reveal().to_owned()));
        }
    }
    bail!("the client secret is missing: set BATCHSCAN_CLIENT_SECRET, or pipe it into standard input");
}
