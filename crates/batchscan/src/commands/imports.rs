//! `batchscan imports`: what was imported, and what was rejected.

use batchscan_server::clock::Clock;
use batchscan_server::operator::json::import;
use batchscan_store::ImportEntry;

use super::context::{format_time, open};
use crate::args::Imports;
use crate::numbers::grouped;
use crate::table::{sanitize, table};
use crate::terminal::print;

/// Imports read and printed at a time.
const IMPORTS_AT_ONCE: i64 = 1_000;

pub(crate) async fn run(command: Imports) -> anyhow::Result<()> {
    let store = open(&command.database).await?;
    let org = &command.org;
    if command.acknowledge {
        store.acknowledge_imports(org, command.file, Clock::system().now()).await?;
        return print("acknowledged: `batchscan status` reports later warnings and rejections only\n");
    }
    let (mut after, mut found) = (0, false);
    loop {
        let mut imports = store.imports(org, after, IMPORTS_AT_ONCE).await?;
        let Some(last) = imports.last() else { break };
        after = last.id;
        imports.retain(|import| is_wanted(&command, import));
        if !imports.is_empty() {
            found = true;
            print(&if command.json { lines(&imports) } else { list(&imports) })?;
        }
    }
    if found || command.json { Ok(()) } else { print("no imports\n") }
}

fn is_wanted(Imports { since, file, rejected, .. }: &Imports, import: &ImportEntry) -> bool {
    let name = import.file.as_deref().unwrap_or_default();
    since.as_ref().is_none_or(|since| import.at >= since.instant)
        && file.as_ref().is_none_or(|part| name.contains(part))
        && (import.is_rejected || !rejected)
}

fn list(imports: &[ImportEntry]) -> String {
    let rows: Vec<_> = imports.iter().map(row).collect();
    let listed = table(["TIME", "FILE", "RESULT", "NEW", "CORRECTED", "UNCHANGED", "WARNINGS", "BY"], &rows);
    let messages = |import: &ImportEntry| {
        let line = |message: &String| {
            format!("  {} {}: {}\n", format_time(Some(import.at)), file(import), sanitize(message))
        };
        import.messages.iter().map(line).collect::<String>()
    };
    let messages: String = imports.iter().map(messages).collect();
    if messages.is_empty() { listed } else { format!("{listed}\nwarnings and errors:\n{messages}") }
}

fn row(import: &ImportEntry) -> [String; 8] {
    let counts = &import.counts;
    let [new, corrected, unchanged, warnings] =
        [counts.new, counts.corrected, counts.unchanged, import.warnings].map(grouped);
    let result = if import.is_rejected { "rejected" } else { "imported" };
    let by = format!("{} on {}", sanitize(&import.actor), sanitize(&import.source));
    [format_time(Some(import.at)), file(import), result.to_owned(), new, corrected, unchanged, warnings, by]
}

fn file(import: &ImportEntry) -> String {
    sanitize(import.file.as_deref().unwrap_or("-"))
}

/// One JSON object per line.
fn lines(imports: &[ImportEntry]) -> String {
    imports.iter().map(|entry| format!("{}\n", import(entry))).collect()
}
