//! `batchscan check`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use batchscan_check::{Secret, Target};

use crate::args::Check;
use crate::client_secret;
use crate::progress::progress_bar;
use crate::terminal::{print, use_colours};

pub(crate) async fn run(command: Check) -> anyhow::Result<ExitCode> {
    let target = Target {
        base_url: command.url.clone(),
        client_id: command.client_id.clone(),
        client_secret: read_secret()?,
    };
    let bar = progress_bar("checking", "{msg} {pos} rules {elapsed}");
    let ticking = bar.clone();
    // It uses a blocking HTTP client.
    let report =
        tokio::task::spawn_blocking(move || batchscan_check::run(&target, &mut |_| ticking.inc(1))).await;
    bar.finish_and_clear();
    let report = report.context("the check failed")??;
    print(&match command.json {
        true => format!("{}\n", serde_json::to_string_pretty(&report)?),
        false => report.text(command.strict, use_colours()),
    })?;
    Ok(if report.conforms(command.strict) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// From the environment, a pipe or the terminal.
fn read_secret() -> anyhow::Result<Secret> {
    let sources = [
        || client_secret::from_file_or_env(None),
        client_secret::from_pipe,
        || client_secret::from_prompt("client secret: "),
    ];
    for source in sources {
        if let Some(secret) = source()? {
            return Ok(Secret::new(secret.reveal().to_owned()));
        }
    }
    bail!("no client secret given: set BATCHSCAN_CLIENT_SECRET, or pipe it into standard input");
}
