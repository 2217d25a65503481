//! `batchscan doctor`.

use std::process::ExitCode;

use batchscan_server::clock::Clock;
use batchscan_store::{DatabaseUrl, DoctorReport};
use serde_json::json;

use super::context::open;
use crate::args::Doctor;
use crate::numbers::count;
use crate::progress::{self, progress_bar};
use crate::terminal::print;

pub(crate) async fn run(command: Doctor) -> anyhow::Result<ExitCode> {
    let store = open(&command.database).await?;
    let repaired = if command.repair { store.repair(Clock::system().now()).await? } else { Vec::new() };
    let bar = progress_bar("checking", "{msg} {bar:32} {human_pos} of {human_len} batches");
    let found = store.doctor(progress::callback(&bar)).await;
    bar.finish_and_clear();
    let found = found?;
    let database = &command.database.database;
    print(&if command.json { report_json(&found, &repaired) } else { report(database, &found, &repaired) })?;
    Ok(if found.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(database: &DatabaseUrl, found: &DoctorReport, repaired: &[String]) -> String {
    let repaired: String = repaired.iter().map(|what| format!("\nrepaired: {what}")).collect();
    let scope = format!(
        "{database}: schema {}, {}, {}{repaired}",
        found.schema,
        count(found.orgs, "organisation", "organisations"),
        count(found.batches, "batch", "batches")
    );
    if found.findings.is_empty() {
        return format!("{scope}\nno problems found\n");
    }
    let findings: String = found.findings.iter().map(|finding| format!("  {finding}\n")).collect();
    format!("{scope}\n{}:\n{findings}", count(found.findings.len() as u64, "problem", "problems"))
}

fn report_json(found: &DoctorReport, repaired: &[String]) -> String {
    let report = json!({
        "ok": found.findings.is_empty(),
        "schema": found.schema,
        "organisations": found.orgs,
        "batches": found.batches,
        "findings": found.findings,
        "repaired": repaired,
    });
    format!("{report}\n")
}
