//! `batchscan check`.

use std::process::ExitCode;

use anyhow::Context;
use batchscan_check::{Secret, Target};
use batchscan_client::ClientSecret;

use crate::args::Check;
use crate::client_secret;
use crate::connection;
use crate::progress::progress_bar;
use crate::terminal::{print, use_colours};

pub(crate) async fn run(mut command: Check) -> anyhow::Result<ExitCode> {
    if let Some(url) = &command.base_url {
        command.connection.url = Some(url.trim_end_matches('/').to_owned());
    }
    let profile = connection::resolve_or(&command.connection, |_| read_secret())?;
    let ca_cert = connection::read_ca_cert(profile.ca_cert.as_deref())?;
    let target = Target {
        base_url: profile.url,
        client_id: profile.client_id,
        client_secret: Secret::new(profile.client_secret.reveal().to_owned()),
        ca_cert,
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

/// From a pipe or the terminal.
fn read_secret() -> anyhow::Result<ClientSecret> {
    let secret = match client_secret::from_pipe()? {
        None => client_secret::from_prompt("client secret: ")?,
        piped => piped,
    };
    secret.context(
        "no client secret given: set BATCHSCAN_CLIENT_SECRET, use --client-secret-file, or pipe it into standard input",
    )
}
