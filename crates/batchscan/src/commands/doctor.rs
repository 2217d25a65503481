//! `batchscan doctor`.

use std::process::ExitCode;

use batchscan_store::{DatabaseUrl, DoctorReport};
use serde_json::json;

use super::context::open;
use crate::args::Doctor;
use crate::numbers::count;
use crate::progress::{self, progress_bar};
use crate::terminal::print;

pub(crate) async fn run(command: Doctor) -> anyhow::Result<ExitCode> {
    let store = open(&command.database).await?;
    let bar = progress_bar("checking", "{msg} {bar:32} {human_pos} of {human_len} batches");
    let found = store.doctor(progress::callback(&bar)).await;
    bar.finish_and_clear();
    let found = found?;
    print(&if command.json { report_json(&found) } else { report(&command.database.database, &found) })?;
    Ok(if found.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(database: &DatabaseUrl, found: &DoctorReport) -> String {
    let scope = format!(
        "{database}: schema {}, {}, {}",
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

fn report_json(found: &DoctorReport) -> String {
    let report = json!({
        "ok": found.findings.is_empty(),
        "schema": found.schema,
        "organisations": found.orgs,
        "batches": found.batches,
        "findings": found.findings,
    });
    format!("{report}\n")
}
