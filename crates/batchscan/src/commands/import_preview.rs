//! `batchscan import --preview` and `--write-mapping`: how a file is understood. Imports nothing.

use std::path::Path;

use anyhow::{Context, anyhow};
use batchscan_formats::read::{Implausible, Location, Mapping, Preview, PreviewColumn, ReadOptions};
use batchscan_server::clock::Clock;

use super::import_messages::display_name;
use crate::args::Import;
use crate::atomic_file::{self, check_free};
use crate::table::{sanitize, table, truncate};
use crate::terminal::print;

/// Columns of one example, before and after.
const EXAMPLE_COLUMNS: usize = 24;
/// Columns of an error, which is printed in full below.
const ERROR_COLUMNS: usize = 72;

/// The mapping of the command, and its other options.
pub(super) fn read_options(command: &Import) -> anyhow::Result<(Option<Mapping>, ReadOptions)> {
    let mapping = match &command.mapping {
        Some(file) => Some(read_mapping(file)?.1),
        None => command.no_mapping.then(Mapping::default),
    };
    let implausible = if command.strict { Implausible::Reject } else { Implausible::Warn };
    let (timezone, now) = (command.timezone.clone(), Some(Clock::system().now()));
    let is_forced = command.force;
    Ok((mapping, ReadOptions { implausible, timezone, is_forced, now, ..ReadOptions::default() }))
}

/// The text of a mapping, and what it states.
pub(super) fn read_mapping(file: &Path) -> anyhow::Result<(String, Mapping)> {
    let name = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let mapping = Mapping::parse(&text).map_err(|errors| {
        anyhow!("the mapping {name} has errors. Nothing was changed; fix them:\n{errors}")
    })?;
    Ok((text, mapping))
}

/// Prints how a file is understood, and writes that as a mapping if asked to.
pub(super) fn print_preview(command: &Import, file: &Path, shown: &Preview) -> anyhow::Result<()> {
    print(&describe(&display_name(file), shown))?;
    let Some(target) = &command.write_mapping else { return Ok(()) };
    check_free(target, false)
        .map_err(|error| anyhow!("{}", error.to_string().replace("; use --force to replace it", "")))?;
    atomic_file::write(target, shown.to_toml().as_bytes())
        .with_context(|| format!("cannot write {}", target.display()))?;
    let target = target.display();
    print(&format!("Wrote {target}. Edit it, then import with --mapping {target}\n"))
}

fn describe(name: &str, shown: &Preview) -> String {
    let place = match shown.header {
        Some(Location::Line(line)) => format!("header in line {line}"),
        Some(Location::SheetRow(_, row)) => format!("header in row {row}"),
        _ => "fields by their names".to_owned(),
    };
    let sheet =
        shown.sheet.as_ref().map_or_else(String::new, |sheet| format!("sheet \"{}\", ", sanitize(sheet)));
    let rows: Vec<[String; 4]> = shown.columns.iter().map(row).collect();
    let mut text = format!(
        "{name}: {sheet}{place}\n\n{}\n",
        table(["COLUMN", "FIELD", "CONVERSION", "EXAMPLES"], &rows)
    );
    let missing: Vec<&str> = shown.missing.iter().map(|field| field.name()).collect();
    let encoding = match &shown.encoding {
        Some((name, words)) if words.is_empty() => (*name).to_owned(),
        Some((name, words)) => format!("{name}, as in \"{}\"", words.join("\", \"")),
        None => String::new(),
    };
    for (what, names) in [
        ("Encoding", encoding),
        ("Fields without a column", missing.join(", ")),
        ("Ignored sheets", shown.ignored_sheets.join(", ")),
    ] {
        if !names.is_empty() {
            text += &format!("{what}: {}\n", sanitize(&names));
        }
    }
    text
}

fn row(column: &PreviewColumn) -> [String; 4] {
    let cut = |text: &str, columns| truncate(&sanitize(text), columns);
    let mut last = "";
    let mut examples = Vec::new();
    for (before, after) in &column.examples {
        let shown = cut(before, EXAMPLE_COLUMNS);
        examples.push(match after {
            // From a template.
            Ok(after) if column.title.is_empty() => cut(after, EXAMPLE_COLUMNS),
            Ok(after) if after == before => shown,
            Ok(after) => format!("{shown} → {}", cut(after, EXAMPLE_COLUMNS)),
            Err(error) if error == last => format!("{shown} → the same error"),
            Err(error) => format!("{shown} → error: {}", cut(error, ERROR_COLUMNS)),
        });
        last = after.as_ref().err().map_or("", String::as_str);
    }
    let field = column.field.map_or_else(|| "(ignored)".into(), |field| field.name().to_owned());
    [sanitize(&column.title), field, column.conversion.clone(), examples.join(" | ")]
}
