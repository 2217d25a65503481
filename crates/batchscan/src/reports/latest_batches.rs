//! The newest batches: the report of `batchscan list`.

use std::collections::BTreeMap;

use batchscan_formats::write::Columns;
use batchscan_model::{Batch, Field, Kind, Position, UtcInstant};

use super::cells::{YELLOW, percent, value_text};
use crate::table::{Align, aligned_table, sanitize, table_width, truncate, width};
use crate::terminal::Screen;

/// Longer names are cut.
const NAME_COLUMNS_MAX: usize = 32;
/// Shorter names are not readable; a narrower screen wraps the lines.
const NAME_COLUMNS_MIN: usize = 12;

const HEAD: [&str; 6] = ["CREATED (UTC)", "BATCH", "CROP", "GERMINATION", "USABLE", "WARN"];
/// For narrow screens.
const SHORT_HEAD: [&str; 6] = ["CREATED (UTC)", "BATCH", "CROP", "GERM.", "USABLE", "!"];
const ALIGN: [Align; 6] = [Align::Left, Align::Left, Align::Left, Align::Right, Align::Right, Align::Left];
const BATCH: usize = 1;
const CROP: usize = 2;

/// Keeps the newest of the batches added, in any order.
#[derive(Debug)]
pub(crate) struct Latest {
    limit: usize,
    shown: BTreeMap<Position, Batch>,
}

impl Latest {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, shown: BTreeMap::new() }
    }

    /// Adds a batch. Drops the oldest if there are too many.
    pub(crate) fn add(&mut self, batch: Batch) {
        self.shown.insert(batch.position(), batch);
        if self.shown.len() > self.limit {
            self.shown.pop_first();
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.shown.len() >= self.limit
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// A table, newest first. Names are cut to fit the screen.
    pub(crate) fn table(&self, screen: Screen) -> String {
        let mut rows: Vec<[String; 6]> = self.shown.values().rev().map(|batch| row(batch, screen)).collect();
        aligned_table(&fit(&mut rows, screen.columns), &ALIGN, &rows)
    }

    /// A table of these fields, newest first.
    pub(crate) fn table_of(&self, columns: &Columns) -> String {
        let cell = |(_, value)| truncate(&value_text(value), NAME_COLUMNS_MAX);
        let row = |batch| columns.values(batch).map(cell).collect();
        let rows: Vec<Vec<String>> = self.shown.values().rev().map(row).collect();
        let fields = columns.fields();
        let head: Vec<&str> = fields.iter().map(|field| field.name()).collect();
        let align: Vec<Align> = fields.iter().map(|field| alignment(*field)).collect();
        aligned_table(&head, &align, &rows)
    }

    /// A JSON array of the batches with these fields, newest first.
    pub(crate) fn json(&self, fields: &[Field]) -> String {
        let mut text = String::from("[");
        for batch in self.shown.values().rev() {
            text.push_str(if text.len() > 1 { "," } else { "" });
            batch.push_json(&mut text, fields);
        }
        text + "]\n"
    }
}

fn row(batch: &Batch, screen: Screen) -> [String; 6] {
    let crop = batch.crop_type.as_deref().unwrap_or("-");
    [
        format_minute(batch.batch_creation_date),
        truncate(&sanitize(&batch.batch_name), NAME_COLUMNS_MAX),
        truncate(&sanitize(crop), NAME_COLUMNS_MAX),
        percent(batch.avg_germination_rate),
        percent(batch.avg_usable_seedling_rate),
        if batch.warnings { screen.paint(YELLOW, "!") } else { String::new() },
    ]
}

fn alignment(field: Field) -> Align {
    match field.kind() {
        Kind::Count | Kind::Decimal => Align::Right,
        _ => Align::Left,
    }
}

/// `2026-01-31 08:00`.
fn format_minute(instant: UtcInstant) -> String {
    let text = instant.to_string();
    let minute = text.split_once('T').and_then(|(day, time)| Some(format!("{day} {}", time.get(..5)?)));
    minute.unwrap_or(text)
}

/// Shortens the column heads, then the crops, then the batch names, until the table fits the screen.
fn fit(rows: &mut [[String; 6]], columns: Option<usize>) -> [&'static str; 6] {
    let excess = |head: [&str; 6], rows: &[[String; 6]]| {
        table_width(&head, rows).saturating_sub(columns.unwrap_or(usize::MAX))
    };
    if excess(HEAD, rows) == 0 {
        return HEAD;
    }
    for name in [CROP, BATCH] {
        let widest = rows.iter().map(|row| width(&row[name])).max().unwrap_or(0);
        let fitting = widest.saturating_sub(excess(SHORT_HEAD, rows)).max(NAME_COLUMNS_MIN);
        for row in rows.iter_mut() {
            row[name] = truncate(&row[name], fitting);
        }
    }
    SHORT_HEAD
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reports::cells::tests::batch;

    const PLAIN: Screen = Screen { colours: false, columns: None };

    fn latest(limit: usize, batches: impl IntoIterator<Item = Batch>) -> Latest {
        let mut latest = Latest::new(limit);
        batches.into_iter().for_each(|batch| latest.add(batch));
        latest
    }

    #[test]
    fn the_newest_batches_come_first() {
        let all = (1..=31).map(|day| batch(day, (day % 4 != 0).then_some("Tomato"), Some(8_000 + day * 50)));
        assert_eq!(
            latest(2, all).table(PLAIN),
            "CREATED (UTC)     BATCH    CROP    GERMINATION   USABLE  WARN\n\
             2026-01-31 08:00  Tray 31  Tomato      95.50 %  90.50 %\n\
             2026-01-30 08:00  Tray 30  Tomato      95.00 %  90.00 %  !\n"
        );
    }

    #[test]
    fn names_cannot_control_the_terminal_or_break_the_table() {
        let mut hostile = batch(1, Some("\x1b]0;x\x07"), Some(9_000));
        hostile.batch_name = format!("\x1b[2J{}", "x".repeat(60));
        let text = latest(9, [hostile]).table(Screen { colours: true, columns: None });
        assert!(
            !text.contains('\x1b') && text.contains(&format!("�[2J{}…  �]0;x�", "x".repeat(27))),
            "{text}"
        );
    }

    #[test]
    fn a_warning_is_yellow_where_there_are_colours() {
        let text = latest(9, [batch(2, None, None)]).table(Screen { colours: true, columns: None });
        assert!(text.contains("\x1b[33m!\x1b[0m"));
    }

    #[test]
    fn names_are_cut_on_a_narrow_screen() {
        let mut long = batch(1, Some("Leek 'Bleu de Solaise' (late)"), Some(10_000));
        long.batch_name = "North house, table 17, tray 7204".into();
        let latest = latest(9, [long]);
        for columns in [80, 90, 100, 110] {
            let text = latest.table(Screen { colours: false, columns: Some(columns) });
            assert!(text.lines().all(|line| width(line) <= columns), "{text}");
        }
        let narrow = latest.table(Screen { colours: false, columns: Some(20) });
        assert!(narrow.contains("North house…  Leek 'Bleu…"), "{narrow}");
    }
}
