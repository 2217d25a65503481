//! `batchscan doctor`.

use std::process::ExitCode;

use batchscan_store::{DatabaseUrl, DoctorReport};
use serde_json::json;

use super::open;
use crate::args::Doctor;
use crate::figures::count;
use crate::output::{bar, print, progress_of};

pub(crate) async fn run(database: &DatabaseUrl, command: Doctor) -> anyhow::Result<ExitCode> {
    let store = open(database).await?;
    let bar = bar("examining", "{msg} {bar:32} {human_pos} of {human_len} batches");
    let found = store.doctor(progress_of(&bar)).await;
    bar.finish_and_clear();
    let found = found?;
    print(&if command.json { report_json(&found) } else { report(database, &found) })?;
    Ok(if found.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(database: &DatabaseUrl, found: &DoctorReport) -> String {
    let looked_at = format!(
        "{database}: schema {}, {}, {}",
        found.schema,
        count(found.orgs, "organisation", "organisations"),
        count(found.batches, "batch", "batches")
    );
    if found.findings.is_empty() {
        return format!("{looked_at}\nall is well\n");
    }
    let findings: String = found.findings.iter().map(|finding| format!("  {finding}\n")).collect();
    format!("{looked_at}\n{}:\n{findings}", count(found.findings.len() as u64, "finding", "findings"))
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
