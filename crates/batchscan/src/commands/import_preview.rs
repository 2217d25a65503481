//! `batchscan import --preview` and `--write-mapping`: how a file is understood. Imports nothing.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use batchscan_formats::Format;
use batchscan_formats::read::{
    Implausible, Location, Mapping, Preview, PreviewColumn, ReadError, ReadOptions, preview,
};
use batchscan_server::clock::Clock;

use super::import_messages::{describe_rejection, display_name, print_warnings};
use crate::args::Import;
use crate::atomic_file::{self, check_free};
use crate::numbers::count;
use crate::table::{sanitize, table, truncate};
use crate::terminal::{note, print};

/// Columns of one example, before and after.
const EXAMPLE_COLUMNS: usize = 24;

/// The options of the reader, with the mapping of `--mapping`.
pub(super) fn read_options(command: &Import) -> anyhow::Result<ReadOptions> {
    let implausible = if command.strict { Implausible::Reject } else { Implausible::Warn };
    let mapping = match &command.mapping {
        Some(file) => read_mapping(file)?.1,
        None => Mapping::default(),
    };
    Ok(ReadOptions {
        implausible,
        mapping,
        timezone: command.timezone.clone(),
        now: Some(Clock::system().now()),
    })
}

/// The text of a mapping, and what it states.
pub(super) fn read_mapping(file: &Path) -> anyhow::Result<(String, Mapping)> {
    let name = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let mapping = Mapping::parse(&text).map_err(|errors| {
        anyhow!("the mapping {name} has errors. Nothing was changed; fix them:\n{errors}")
    })?;
    if mapping == Mapping::default() {
        bail!("the mapping {name} states nothing: without it, the same is recognised");
    }
    Ok((text, mapping))
}

/// Prints how a file is understood, and writes that as a mapping if asked to. Fails if the file would be rejected.
pub(super) fn run(
    command: &Import,
    file: &Path,
    (format, input): (Format, File),
    options: &ReadOptions,
) -> anyhow::Result<()> {
    let shown = preview(format, input, options);
    let name = display_name(file);
    print(&describe(&name, &shown))?;
    if let Some(target) = &command.write_mapping {
        check_free(target, false)
            .map_err(|error| anyhow!("{}", error.to_string().replace("; use --force to replace it", "")))?;
        atomic_file::write(target, shown.to_toml().as_bytes())
            .with_context(|| format!("cannot write {}", target.display()))?;
        let target = target.display();
        print(&format!("Wrote {target}. Edit it, then import with --mapping {target}\n"))?;
        if shown.result.is_err() {
            print("Without changes, the file would be rejected:\n")?;
        }
    }
    match &shown.result {
        Ok(summary) => {
            let first: Vec<String> = summary.warnings.first.iter().map(ToString::to_string).collect();
            print_warnings(file, summary.warnings.count, &first);
            print(&format!("{name} would be accepted: {}\n", count(summary.batches, "batch", "batches")))
        }
        Err(error @ ReadError::Invalid { .. }) => {
            let (errors, summary) = describe_rejection(
                &name,
                error,
                "Nothing was imported",
                "fix the file or state more in a mapping",
            );
            errors.iter().for_each(|error| note(error));
            if command.write_mapping.is_some() && !command.preview {
                return Ok(());
            }
            bail!("{name} would be rejected: {summary}")
        }
        Err(error) => bail!("cannot read {name}: {error}"),
    }
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
    for (what, names) in
        [("Fields without a column", missing.join(", ")), ("Ignored sheets", shown.ignored_sheets.join(", "))]
    {
        if !names.is_empty() {
            text += &format!("{what}: {}\n", sanitize(&names));
        }
    }
    text
}

fn row(column: &PreviewColumn) -> [String; 4] {
    let cut = |text: &str| truncate(&sanitize(text), EXAMPLE_COLUMNS);
    let example = |(before, after): &(String, Option<String>)| match after {
        // From a template.
        Some(after) if column.title.is_empty() => cut(after),
        Some(after) if after == before => cut(before),
        Some(after) => format!("{} → {}", cut(before), cut(after)),
        None => format!("{} → rejected", cut(before)),
    };
    let examples: Vec<String> = column.examples.iter().map(example).collect();
    let field = column.field.map_or_else(|| "(ignored)".into(), |field| field.name().to_owned());
    [sanitize(&column.title), field, column.conversion.clone(), examples.join(" | ")]
}
