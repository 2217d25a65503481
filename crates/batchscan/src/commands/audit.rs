//! `batchscan audit`: who changed what.

use batchscan_server::operator::json::audit_entry;
use batchscan_store::{AuditEntry, AuditRange};

use super::context::{format_time, open};
use crate::args::Audit;
use crate::table::{sanitize, table};
use crate::terminal::print;

/// Entries read and printed at a time: the log may be long.
const ENTRIES_AT_ONCE: i64 = 1_000;

pub(crate) async fn run(Audit { database, since, json }: Audit) -> anyhow::Result<()> {
    let store = open(&database).await?;
    let since = since.map(|date| date.instant);
    let mut range = AuditRange { since, after: 0, limit: ENTRIES_AT_ONCE };
    loop {
        let entries = store.audit(range).await?;
        let Some(last) = entries.last() else { break };
        range.after = last.id;
        print(&if json { lines(&entries) } else { list(&entries) })?;
    }
    if range.after == 0 && !json { print("no changes\n") } else { Ok(()) }
}

fn list(entries: &[AuditEntry]) -> String {
    let rows: Vec<_> = entries.iter().map(row).collect();
    table(["TIME", "WHO", "FROM", "ACTION", "ORGANISATION", "SUBJECT", "DETAIL"], &rows)
}

fn row(entry: &AuditEntry) -> [String; 7] {
    let text = |text: &Option<String>| sanitize(text.as_deref().unwrap_or("-"));
    [
        format_time(Some(entry.at)),
        sanitize(&entry.actor),
        sanitize(&entry.source),
        entry.action.clone(),
        text(&entry.org),
        text(&entry.subject),
        text(&entry.detail),
    ]
}

/// One JSON object per line.
fn lines(entries: &[AuditEntry]) -> String {
    entries.iter().map(|entry| format!("{}\n", audit_entry(entry))).collect()
}
