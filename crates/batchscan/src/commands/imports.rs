//! `batchscan imports`: what was imported, and what was rejected.

use anyhow::bail;
use batchscan_server::clock::Clock;
use batchscan_server::operator::json::import;
use batchscan_store::{ImportEntry, ImportFilter, Store};

use super::context::{format_time, open};
use crate::args::Imports;
use crate::numbers::{count, grouped};
use crate::table::{sanitize, table};
use crate::terminal::print;

/// Imports read at a time.
const IMPORTS_AT_ONCE: i64 = 1_000;

pub(crate) async fn run(command: Imports) -> anyhow::Result<()> {
    let Imports { database, org, since, file, rejected, acknowledge, json } = command;
    let store = open(&database).await?;
    let filter = ImportFilter { since: since.map(|since| since.instant), file, rejected };
    let orgs = match org {
        Some(org) if acknowledge => return self::acknowledge(&store, &org, filter).await,
        Some(org) => vec![org.into()],
        None => store.org_overviews().await?.into_iter().map(|org| org.name).collect(),
    };
    let mut found = Vec::new();
    for org in &orgs {
        let mut after = 0;
        loop {
            let imports = store.imports(org, filter.clone(), after, IMPORTS_AT_ONCE).await?;
            let Some(last) = imports.last() else { break };
            after = last.id;
            if json {
                print(&lines(org, &imports))?;
            } else {
                found.extend(imports.into_iter().map(|import| (&**org, import)));
            }
        }
    }
    match (json, found.is_empty()) {
        (true, _) => Ok(()),
        (false, true) => print("no imports\n"),
        (false, false) => print(&list(&found)),
    }
}

async fn acknowledge(store: &Store, org: &str, filter: ImportFilter) -> anyhow::Result<()> {
    let file = filter.file.clone();
    let acknowledged = store.acknowledge_imports(org, filter, Clock::system().now()).await?;
    if let (0, Some(file)) = (acknowledged, file) {
        bail!(
            "no file whose name contains {file:?} has unacknowledged warnings or rejections; without --acknowledge, \
             `batchscan imports` lists all files"
        );
    }
    let imports = count(acknowledged, "import", "imports");
    print(&format!("acknowledged {imports}: `batchscan status` no longer reports them\n"))
}

fn list(imports: &[(&str, ImportEntry)]) -> String {
    let rows: Vec<_> = imports.iter().map(|(org, import)| row(org, import)).collect();
    let listed = table(
        ["ORGANISATION", "TIME", "FILE", "RESULT", "NEW", "CORRECTED", "UNCHANGED", "WARNINGS", "BY"],
        &rows,
    );
    let messages = |import: &ImportEntry| {
        let line = |message: &String| {
            format!("  {} {}: {}\n", format_time(Some(import.at)), file(import), sanitize(message))
        };
        import.messages.iter().map(line).collect::<String>()
    };
    let messages: String = imports.iter().map(|(_, import)| messages(import)).collect();
    if messages.is_empty() { listed } else { format!("{listed}\nwarnings and errors:\n{messages}") }
}

fn row(org: &str, import: &ImportEntry) -> [String; 9] {
    let counts = &import.counts;
    let [new, corrected, unchanged, warnings] =
        [counts.new, counts.corrected, counts.unchanged, import.warnings].map(grouped);
    let result = if import.is_rejected { "rejected" } else { "imported" };
    let by = format!("{} on {}", sanitize(&import.actor), sanitize(&import.source));
    [
        sanitize(org),
        format_time(Some(import.at)),
        file(import),
        result.to_owned(),
        new,
        corrected,
        unchanged,
        warnings,
        by,
    ]
}

fn file(import: &ImportEntry) -> String {
    sanitize(import.file.as_deref().unwrap_or("-"))
}

/// One JSON object per line.
fn lines(org: &str, imports: &[ImportEntry]) -> String {
    let line = |entry: &ImportEntry| {
        let mut line = import(entry);
        line["organisation"] = org.into();
        format!("{line}\n")
    };
    imports.iter().map(line).collect()
}
