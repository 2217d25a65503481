//! Batches by crop and ISO week (UTC): the report of `batchscan summary`.

use std::collections::BTreeMap;

use anyhow::bail;
use batchscan_formats::write::{WriteError, table_to_csv, table_to_xlsx};
use batchscan_model::{Batch, FieldValue, Hundredths, UtcInstant};
use jiff::ToSpan;
use jiff::civil::Date;
use serde_json::{Value, json};

use super::cells::{BOLD, YELLOW, percent};
use super::statistics::Sums;
use crate::date_range::{day_of, start_of};
use crate::numbers::grouped;
use crate::table::{Align, aligned_table, sanitize, truncate};
use crate::terminal::Screen;

/// A thousand crops in every week of four years. Bounds the memory.
const GROUPS_MAX: usize = 200_000;
/// Total size of the crop names. Bounds the memory: one name can have 64 KiB.
const CROP_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A crop name is on a line of its own, which must not wrap.
const CROP_COLUMNS_MAX: usize = 72;

const HEAD: [&str; 7] = ["CROP, WEEK", "BATCHES", "GERMINATION", "SPREAD", "USABLE", "SPREAD", "WARNINGS"];
const ALIGN: [Align; 7] =
    [Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Right, Align::Right];

/// Summarises the batches added, in any order.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    crops: BTreeMap<Crop, BTreeMap<Monday, Group>>,
    groups: usize,
    crop_bytes: usize,
}

impl Summary {
    pub(crate) fn add(&mut self, batch: &Batch) -> anyhow::Result<()> {
        let crop = (batch.crop_type.is_none(), batch.crop_type.clone());
        let monday = monday_of(day_of(batch.batch_creation_date));
        if let Some(group) = self.crops.get_mut(&crop).and_then(|weeks| weeks.get_mut(&monday)) {
            group.push(batch);
            return Ok(());
        }
        self.groups += 1;
        if !self.crops.contains_key(&crop) {
            self.crop_bytes += batch.crop_type.as_deref().map_or(0, str::len);
        }
        if self.groups > GROUPS_MAX || self.crop_bytes > CROP_BYTES_MAX {
            bail!(
                "too many crops and weeks for one summary (at most {}): choose a shorter date range",
                grouped(GROUPS_MAX as u64)
            );
        }
        self.crops.entry(crop).or_default().entry(monday).or_default().push(batch);
        Ok(())
    }

    /// A table by crop and week, with totals.
    pub(crate) fn table(&self, screen: Screen) -> String {
        let mut lines = Lines::new(screen);
        let mut all = Group::default();
        for (crop, weeks) in &self.crops {
            let mut total = Group::default();
            lines.heading(crop.1.as_deref().unwrap_or("no crop"));
            for (monday, group) in weeks {
                lines.group(&week_of(*monday), group);
                total.add(group);
            }
            lines.group("total", &total);
            all.add(&total);
        }
        lines.heading("all crops");
        lines.group("total", &all);
        lines.text()
    }

    /// A JSON array of the groups, in the order of the table.
    pub(crate) fn json(&self) -> String {
        let object = |line: &Line<'_>| COLUMNS.into_iter().zip(line.values().map(json_value)).collect();
        let groups: Vec<BTreeMap<&str, Value>> = self.lines().iter().map(object).collect();
        format!("{}\n", json!(groups))
    }

    /// A CSV file with a line per group.
    pub(crate) fn csv(&self) -> String {
        let lines = self.lines();
        table_to_csv(&COLUMNS, &rows(&lines))
    }

    /// An Excel workbook with a row per group.
    pub(crate) fn xlsx(&self) -> Result<Vec<u8>, WriteError> {
        let lines = self.lines();
        table_to_xlsx("Summary", &COLUMNS, &workbook_rows(&lines))
    }

    pub(crate) fn batches(&self) -> u64 {
        self.crops.values().flat_map(BTreeMap::values).map(|group| group.batches).sum()
    }

    /// The groups in the order of the table.
    fn lines(&self) -> Vec<Line<'_>> {
        let mut lines = Vec::with_capacity(self.groups);
        for ((_, crop), weeks) in &self.crops {
            lines.extend(weeks.iter().map(|(monday, group)| Line {
                crop: crop.as_deref(),
                week: week_of(*monday),
                monday: monday.to_string(),
                start: start_of(*monday),
                group,
            }));
        }
        lines
    }
}

/// The values of a group in JSON and in files.
const COLUMNS: [&str; 10] = [
    "crop_type",
    "week",
    "week_start",
    "batches",
    "with_germination",
    "avg_germination_rate",
    "spread_germination_rate",
    "avg_usable_seedling_rate",
    "spread_usable_seedling_rate",
    "warnings",
];
const WEEK_START: usize = 2;

/// A group with its crop and week.
struct Line<'a> {
    crop: Option<&'a str>,
    week: String,
    monday: String,
    start: Option<UtcInstant>,
    group: &'a Group,
}

impl Line<'_> {
    fn values(&self) -> [FieldValue<'_>; COLUMNS.len()] {
        let decimal = |value: Option<Hundredths>| value.map_or(FieldValue::Null, FieldValue::Decimal);
        let Group { batches, germination, usable, warnings } = self.group;
        [
            self.crop.map_or(FieldValue::Null, FieldValue::Text),
            FieldValue::Text(&self.week),
            FieldValue::Text(&self.monday),
            FieldValue::Count(*batches),
            FieldValue::Count(germination.count()),
            decimal(germination.mean()),
            decimal(germination.spread()),
            decimal(usable.mean()),
            decimal(usable.spread()),
            FieldValue::Count(*warnings),
        ]
    }
}

fn rows<'a>(lines: &'a [Line<'_>]) -> Vec<Vec<FieldValue<'a>>> {
    lines.iter().map(|line| line.values().to_vec()).collect()
}

/// The same, with the start of the week as a date.
fn workbook_rows<'a>(lines: &'a [Line<'_>]) -> Vec<Vec<FieldValue<'a>>> {
    let mut rows = rows(lines);
    for (row, line) in rows.iter_mut().zip(lines) {
        row[WEEK_START] = line.start.map_or(row[WEEK_START], FieldValue::Instant);
    }
    rows
}

fn json_value(value: FieldValue<'_>) -> Value {
    match value {
        FieldValue::Null => Value::Null,
        FieldValue::Text(text) => text.into(),
        FieldValue::Instant(instant) => instant.to_string().into(),
        FieldValue::Count(count) => count.into(),
        FieldValue::Decimal(decimal) => decimal.to_string().into(),
        FieldValue::Flag(flag) => flag.into(),
    }
}

/// Whether there is no crop, and its name: no crop sorts last.
type Crop = (bool, Option<String>);

/// A week, by its first day.
type Monday = Date;

fn monday_of(day: Date) -> Monday {
    day.saturating_sub(day.weekday().to_monday_zero_offset().days())
}

/// `2026-W05`.
fn week_of(monday: Monday) -> String {
    let week = monday.iso_week_date();
    format!("{:04}-W{:02}", week.year(), week.week())
}

/// Statistics of one group of batches.
#[derive(Debug, Default)]
struct Group {
    batches: u64,
    germination: Sums,
    usable: Sums,
    warnings: u64,
}

impl Group {
    fn push(&mut self, batch: &Batch) {
        self.batches += 1;
        self.germination.push(batch.avg_germination_rate);
        self.usable.push(batch.avg_usable_seedling_rate);
        self.warnings += u64::from(batch.warnings);
    }

    fn add(&mut self, other: &Self) {
        self.batches += other.batches;
        self.germination.add(&other.germination);
        self.usable.add(&other.usable);
        self.warnings += other.warnings;
    }
}

/// Builds the table. The crop names are lines between its rows.
struct Lines {
    screen: Screen,
    rows: Vec<[String; 7]>,
    /// Crop names with the row they precede.
    headings: Vec<(usize, String)>,
}

impl Lines {
    fn new(screen: Screen) -> Self {
        Self { screen, rows: Vec::new(), headings: Vec::new() }
    }

    fn heading(&mut self, name: &str) {
        let name = truncate(&sanitize(name), CROP_COLUMNS_MAX);
        self.headings.push((self.rows.len(), self.screen.paint(BOLD, &name)));
    }

    fn group(&mut self, label: &str, group: &Group) {
        let spread = |sums: &Sums| sums.spread().map_or_else(|| "-".into(), |spread| spread.to_string());
        let warnings = if group.warnings > 0 { grouped(group.warnings) } else { "-".into() };
        self.rows.push([
            format!("  {label}"),
            grouped(group.batches),
            percent(group.germination.mean()),
            spread(&group.germination),
            percent(group.usable.mean()),
            spread(&group.usable),
            if group.warnings > 0 { self.screen.paint(YELLOW, &warnings) } else { warnings },
        ]);
    }

    fn text(self) -> String {
        let table = aligned_table(&HEAD, &ALIGN, &self.rows);
        let mut lines = table.lines();
        let mut headings = self.headings.into_iter().peekable();
        let mut text = format!("{}\n", lines.next().unwrap_or_default());
        for (row, line) in lines.enumerate() {
            if let Some((_, name)) = headings.next_if(|(above, _)| *above == row) {
                text.push_str(&format!("{name}\n"));
            }
            text.push_str(&format!("{line}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reports::cells::tests::batch;

    const PLAIN: Screen = Screen { colours: false, columns: None };

    fn summary(batches: &[Batch]) -> Summary {
        let mut summary = Summary::default();
        batches.iter().for_each(|batch| summary.add(batch).unwrap());
        summary
    }

    fn nursery() -> Summary {
        summary(&[
            batch(5, Some("Tomato"), Some(9_000)),
            batch(4, Some("Tomato"), Some(8_000)),
            batch(1, None, None),
            batch(2, Some("Tomato"), None),
            batch(3, Some("Tomato"), Some(8_001)),
            batch(6, Some("Leek"), Some(10_000)),
        ])
    }

    #[test]
    fn weeks_follow_iso_8601() {
        let of = |year, month, day| week_of(monday_of(Date::new(year, month, day).unwrap()));
        assert_eq!(of(2025, 12, 28), "2025-W52");
        assert_eq!(of(2025, 12, 29), "2026-W01");
        assert_eq!(of(2021, 1, 3), "2020-W53");
        assert_eq!(of(1, 1, 1), "0001-W01");
        assert_eq!(of(9999, 12, 31), "9999-W52");
    }

    #[test]
    fn the_start_of_the_week_is_a_date_in_a_workbook() {
        let nursery = nursery();
        let start = |row: &Vec<FieldValue<'_>>| json_value(row[WEEK_START]);
        let lines = nursery.lines();
        assert_eq!(workbook_rows(&lines).iter().map(start).collect::<Vec<_>>()[0], "2026-01-05T00:00:00Z");
        assert_eq!(rows(&lines).iter().map(start).collect::<Vec<_>>()[0], "2026-01-05");
    }

    #[test]
    fn a_crop_cannot_control_the_terminal() {
        let text = summary(&[batch(1, Some("\x1b[2J\n"), None)]).table(PLAIN);
        assert!(!text.contains('\x1b') && text.contains("�[2J�\n"), "{text}");
    }

    #[test]
    fn colours_do_not_move_the_columns() {
        let painted = nursery().table(Screen { colours: true, columns: None });
        let plain = ["\x1b[1m", "\x1b[33m", "\x1b[0m"]
            .iter()
            .fold(painted.clone(), |text, code| text.replace(code, ""));
        assert!(painted.contains("\x1b[1mLeek\x1b[0m") && plain == nursery().table(PLAIN));
    }

    #[test]
    fn too_many_crops_are_rejected() {
        let mut full = Summary { groups: GROUPS_MAX - 1, ..Summary::default() };
        full.add(&batch(1, Some("Leek"), None)).unwrap();
        full.add(&batch(1, Some("Leek"), None)).unwrap();
        let error = full.add(&batch(1, Some("Kale"), None)).unwrap_err().to_string();
        assert!(error.starts_with("too many crops and weeks for one summary (at most 200,000)"), "{error}");
        let mut long = Summary { crop_bytes: CROP_BYTES_MAX - 4, ..Summary::default() };
        long.add(&batch(1, Some("Leek"), None)).unwrap();
        assert!(long.add(&batch(1, Some("x"), None)).is_err());
    }
}
