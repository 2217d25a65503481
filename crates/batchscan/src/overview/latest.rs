//! The newest batches of a window, each with its crop's trend up to it: what `batchscan list` shows.

use std::collections::BTreeMap;

use batchscan_model::{Batch, Hundredths, Position, UtcInstant};

use super::trend::{Scale, TREND_RATES};
use super::{NOTHING, YELLOW, percent};
use crate::figures::{Align, aligned_table, table_width};
use crate::output::Screen;
use crate::printable::{clipped, printable, width};

/// A nursery grows dozens of crops. Past this, a further one's trend begins with what is shown, and the memory
/// stays bounded whatever the data.
const CROPS_MAX: usize = 10_000;
/// The longest crop whose earlier rates are remembered.
const CROP_BYTES_MAX: usize = 256;

/// Names are told apart by their first words.
const NAME_COLUMNS_MAX: usize = 32;
/// Below this a name says nothing; a narrower screen breaks the lines.
const NAME_COLUMNS_MIN: usize = 12;

const HEAD: [&str; 7] = ["CREATED (UTC)", "BATCH", "CROP", "GERMINATION", "USABLE", "WARN", "TREND"];
/// For a screen on which the names would have to be clipped.
const SHORT_HEAD: [&str; 7] = ["CREATED (UTC)", "BATCH", "CROP", "GERM.", "USABLE", "!", "TREND"];
const ALIGN: [Align; 7] =
    [Align::Left, Align::Left, Align::Left, Align::Right, Align::Right, Align::Left, Align::Right];
const BATCH: usize = 1;
const CROP: usize = 2;

/// Keeps the newest batches of all that it is handed, in any order.
#[derive(Debug)]
pub(crate) struct Latest {
    limit: usize,
    shown: BTreeMap<Position, Batch>,
    /// By crop, the last rates of batches older than all that are shown. With those shown they make every trend.
    earlier: BTreeMap<String, BTreeMap<Position, Hundredths>>,
}

impl Latest {
    /// Keeps so many.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, shown: BTreeMap::new(), earlier: BTreeMap::new() }
    }

    /// Takes a batch, and lets go of the oldest one if it is one too many.
    pub(crate) fn push(&mut self, batch: Batch) {
        self.shown.insert(batch.position(), batch);
        if self.shown.len() > self.limit
            && let Some((position, oldest)) = self.shown.pop_first()
        {
            self.remember(position, &oldest);
        }
    }

    /// Whether there are as many as are wanted.
    pub(crate) fn is_full(&self) -> bool {
        self.shown.len() >= self.limit
    }

    /// A table, newest first, that fits the screen if names can be clipped that far.
    pub(crate) fn table(&self, screen: Screen) -> String {
        if self.shown.is_empty() {
            return NOTHING.into();
        }
        let trends = self.trends();
        let mut rows: Vec<[String; 7]> = self
            .shown
            .iter()
            .rev()
            .map(|(position, batch)| row(batch, trends.get(position).cloned().unwrap_or_default(), screen))
            .collect();
        aligned_table(fit(&mut rows, screen.columns), ALIGN, &rows)
    }

    /// The batches' own JSON objects, newest first, in an array.
    pub(crate) fn json(&self) -> String {
        let batches: Vec<String> = self.shown.values().rev().map(Batch::to_json).collect();
        format!("[{}]\n", batches.join(","))
    }

    fn remember(&mut self, position: Position, batch: &Batch) {
        let (Some(crop), Some(rate)) = (&batch.crop_type, batch.avg_germination_rate) else { return };
        let known = self.earlier.contains_key(crop);
        if !known && (self.earlier.len() >= CROPS_MAX || crop.len() > CROP_BYTES_MAX) {
            return;
        }
        let rates = self.earlier.entry(crop.clone()).or_default();
        rates.insert(position, rate);
        // The last bar is the shown batch's own.
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
            let scale = Scale::of(&rates);
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
        to_the_minute(batch.batch_creation_date),
        clipped(&printable(&batch.batch_name), NAME_COLUMNS_MAX),
        clipped(&printable(crop), NAME_COLUMNS_MAX),
        percent(batch.avg_germination_rate),
        percent(batch.avg_usable_seedling_rate),
        if batch.warnings { screen.painted(YELLOW, "!") } else { String::new() },
        trend,
    ]
}

/// `2026-01-31 08:00`.
fn to_the_minute(instant: UtcInstant) -> String {
    let text = instant.to_string();
    let minute = text.split_once('T').and_then(|(day, time)| Some(format!("{day} {}", time.get(..5)?)));
    minute.unwrap_or(text)
}

/// Shortens the heads, then the crops, then the batches' names, as far as the screen demands. A crop is known by
/// its first word, and a batch often only by its last.
fn fit(rows: &mut [[String; 7]], columns: Option<usize>) -> [&'static str; 7] {
    let excess =
        |head, rows: &[[String; 7]]| table_width(head, rows).saturating_sub(columns.unwrap_or(usize::MAX));
    if excess(HEAD, rows) == 0 {
        return HEAD;
    }
    for name in [CROP, BATCH] {
        let widest = rows.iter().map(|row| width(&row[name])).max().unwrap_or(0);
        let fitting = widest.saturating_sub(excess(SHORT_HEAD, rows)).max(NAME_COLUMNS_MIN);
        for row in rows.iter_mut() {
            row[name] = clipped(&row[name], fitting);
        }
    }
    SHORT_HEAD
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overview::tests::batch;
    use proptest::prelude::*;

    const PLAIN: Screen = Screen { colours: false, columns: None };

    fn latest(limit: usize, batches: impl IntoIterator<Item = Batch>) -> Latest {
        let mut latest = Latest::new(limit);
        batches.into_iter().for_each(|batch| latest.push(batch));
        latest
    }

    #[test]
    fn the_newest_batches_stand_first_with_their_crops_trend() {
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
    fn what_has_no_crop_or_no_rate_has_a_dash_and_no_trend() {
        let text = latest(9, [batch(1, None, Some(9_000)), batch(2, Some("Leek"), None)]).table(PLAIN);
        assert_eq!(
            text,
            "CREATED (UTC)     BATCH   CROP  GERMINATION   USABLE  WARN  TREND\n\
             2026-01-02 08:00  Tray 2  Leek            -        -  !\n\
             2026-01-01 08:00  Tray 1  -         90.00 %  85.00 %\n"
        );
    }

    #[test]
    fn a_name_cannot_steer_the_terminal_nor_break_the_table() {
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
    fn names_give_way_to_a_narrow_screen() {
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
    fn json_is_the_batches_own_newest_first() {
        let (old, new) = (batch(1, Some("Leek"), None), batch(2, None, None));
        let text = format!("[{},{}]\n", new.to_json(), old.to_json());
        assert_eq!(latest(9, [new, old]).json(), text);
        assert_eq!(latest(9, []).json(), "[]\n");
        assert_eq!(latest(9, []).table(PLAIN), "no batches in this window\n");
        assert_eq!(latest(0, [batch(1, None, None)]).json(), "[]\n");
    }

    #[test]
    fn a_flood_of_crops_is_not_remembered() {
        let mut latest = Latest::new(1);
        for n in 0..CROPS_MAX + 10 {
            latest.push(batch(1, Some(&format!("{n} {}", "x".repeat(n % 2 * CROP_BYTES_MAX))), Some(1)));
            latest.push(batch(2, Some(&n.to_string()), Some(1)));
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
