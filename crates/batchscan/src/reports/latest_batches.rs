//! The newest batches with a trend of their crop: the report of `batchscan list`.

use std::collections::BTreeMap;

use batchscan_formats::write::Columns;
use batchscan_model::{Batch, Field, Hundredths, Kind, Position, UtcInstant};

use super::cells::{YELLOW, percent, value_text};
use super::sparkline::{Scale, TREND_RATES};
use crate::table::{Align, aligned_table, sanitize, table_width, truncate, width};
use crate::terminal::Screen;

/// Bounds the memory. The trend of further crops starts with the batches shown.
const CROPS_MAX: usize = 10_000;
/// Bounds the memory. Longer crop names have no earlier rates.
const CROP_BYTES_MAX: usize = 256;

/// Longer names are cut.
const NAME_COLUMNS_MAX: usize = 32;
/// Shorter names are not readable; a narrower screen wraps the lines.
const NAME_COLUMNS_MIN: usize = 12;

const HEAD: [&str; 7] = ["CREATED (UTC)", "BATCH", "CROP", "GERMINATION", "USABLE", "WARN", "TREND"];
/// For narrow screens.
const SHORT_HEAD: [&str; 7] = ["CREATED (UTC)", "BATCH", "CROP", "GERM.", "USABLE", "!", "TREND"];
const ALIGN: [Align; 7] =
    [Align::Left, Align::Left, Align::Left, Align::Right, Align::Right, Align::Left, Align::Right];
const BATCH: usize = 1;
const CROP: usize = 2;

/// Keeps the newest of the batches added, in any order.
#[derive(Debug)]
pub(crate) struct Latest {
    limit: usize,
    shown: BTreeMap<Position, Batch>,
    /// By crop, the last rates of batches older than those shown.
    earlier: BTreeMap<String, BTreeMap<Position, Hundredths>>,
}

impl Latest {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, shown: BTreeMap::new(), earlier: BTreeMap::new() }
    }

    /// Adds a batch. Drops the oldest if there are too many.
    pub(crate) fn add(&mut self, batch: Batch) {
        self.shown.insert(batch.position(), batch);
        if self.shown.len() > self.limit
            && let Some((position, oldest)) = self.shown.pop_first()
        {
            self.keep_rate(position, &oldest);
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
        let trends = self.trends();
        let mut rows: Vec<[String; 7]> = self
            .shown
            .iter()
            .rev()
            .map(|(position, batch)| row(batch, trends.get(position).cloned().unwrap_or_default(), screen))
            .collect();
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

    fn keep_rate(&mut self, position: Position, batch: &Batch) {
        let (Some(crop), Some(rate)) = (&batch.crop_type, batch.avg_germination_rate) else { return };
        let known = self.earlier.contains_key(crop);
        if !known && (self.earlier.len() >= CROPS_MAX || crop.len() > CROP_BYTES_MAX) {
            return;
        }
        let rates = self.earlier.entry(crop.clone()).or_default();
        rates.insert(position, rate);
        // The last bar is for the shown batch.
        if rates.len() >= TREND_RATES {
            rates.pop_first();
        }
    }

    /// The trend of each shown batch that has a crop and a rate.
    fn trends(&self) -> BTreeMap<&Position, String> {
        let mut by_crop: BTreeMap<&str, Vec<(&Position, Hundredths)>> = BTreeMap::new();
        for (position, batch) in &self.shown {
            if let (Some(crop), Some(rate)) = (&batch.crop_type, batch.avg_germination_rate) {
                by_crop.entry(crop).or_default().push((position, rate));
            }
        }
        let lines = by_crop.into_iter().flat_map(|(crop, shown)| {
            let earlier = self.earlier.get(crop).into_iter().flat_map(BTreeMap::values).copied();
            let rates: Vec<Hundredths> = earlier.chain(shown.iter().map(|(_, rate)| *rate)).collect();
            let scale = Scale::covering(&rates);
            let first = rates.len() - shown.len();
            shown.into_iter().enumerate().map(move |(index, (position, _))| {
                let end = first + index + 1;
                (position, scale.line(&rates[end.saturating_sub(TREND_RATES)..end]))
            })
        });
        lines.collect()
    }
}

fn row(batch: &Batch, trend: String, screen: Screen) -> [String; 7] {
    let crop = batch.crop_type.as_deref().unwrap_or("-");
    [
        format_minute(batch.batch_creation_date),
        truncate(&sanitize(&batch.batch_name), NAME_COLUMNS_MAX),
        truncate(&sanitize(crop), NAME_COLUMNS_MAX),
        percent(batch.avg_germination_rate),
        percent(batch.avg_usable_seedling_rate),
        if batch.warnings { screen.paint(YELLOW, "!") } else { String::new() },
        trend,
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
fn fit(rows: &mut [[String; 7]], columns: Option<usize>) -> [&'static str; 7] {
    let excess = |head: [&str; 7], rows: &[[String; 7]]| {
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
    use proptest::prelude::*;

    const PLAIN: Screen = Screen { colours: false, columns: None };

    fn latest(limit: usize, batches: impl IntoIterator<Item = Batch>) -> Latest {
        let mut latest = Latest::new(limit);
        batches.into_iter().for_each(|batch| latest.add(batch));
        latest
    }

    #[test]
    fn the_newest_batches_come_first_with_the_trend_of_their_crop() {
        let days = 1..=31;
        let all = days.map(|day| batch(day, (day % 4 != 0).then_some("Tomato"), Some(8_000 + day * 50)));
        let text = latest(3, all).table(PLAIN);
        assert_eq!(
            text,
            "CREATED (UTC)     BATCH    CROP    GERMINATION   USABLE  WARN     TREND\n\
             2026-01-31 08:00  Tray 31  Tomato      95.50 %  90.50 %        ▃▄▅▅▅▆▇▇\n\
             2026-01-30 08:00  Tray 30  Tomato      95.00 %  90.00 %  !     ▃▃▄▅▅▅▆▇\n\
             2026-01-29 08:00  Tray 29  Tomato      94.50 %  89.50 %        ▂▃▃▄▅▅▅▆\n"
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

    #[test]
    fn the_number_of_crops_in_memory_is_limited() {
        let mut latest = Latest::new(1);
        for n in 0..CROPS_MAX + 10 {
            latest.add(batch(1, Some(&format!("{n} {}", "x".repeat(n % 2 * CROP_BYTES_MAX))), Some(1)));
            latest.add(batch(2, Some(&n.to_string()), Some(1)));
        }
        assert!(latest.earlier.len() <= CROPS_MAX);
        assert!(latest.earlier.keys().all(|crop| crop.len() <= CROP_BYTES_MAX));
    }

    proptest! {
        #[test]
        fn the_order_of_arrival_does_not_matter(
            order in Just((1..=31).collect::<Vec<i64>>()).prop_shuffle(), limit in 1usize..40,
        ) {
            let of = |day: &i64| batch(*day, Some(["Leek", "Kale"][*day as usize % 2]), Some(day * 97 % 50 * 100));
            let shuffled = latest(limit, order.iter().map(of)).table(PLAIN);
            prop_assert_eq!(shuffled, latest(limit, (1..=31).collect::<Vec<_>>().iter().map(of)).table(PLAIN));
        }
    }
}
