//! The batches that every contender serves: made once by a demo, kept in the target folder, and known here by line.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::instants::{micros_of, next_second, second_of};
use super::works::Data;
use crate::demo::Demo;
use crate::process;
use crate::workspace::Workspace;

/// Batches in a small window.
pub(crate) const WINDOW_BATCHES: usize = 20;
/// Between the last batch of a window and the next lie at least two whole seconds: the end moves in the second of them.
const WINDOW_GAP_MICROS: i64 = 3_000_000;
/// A few in a hundred places will do; more than this without one means that the data is not what it should be.
const WINDOW_TRIES_LIMIT: usize = 1_000_000;

/// Files of NDJSON, one the beginning of the other.
#[derive(Debug)]
pub(crate) struct Source {
    folder: PathBuf,
}

/// The usual data in memory, to hold answers against.
#[derive(Debug)]
pub(crate) struct Sample {
    lines: Vec<String>,
    /// When each was created: as text and in microseconds.
    dates: Vec<(String, i64)>,
}

/// A range of dates with exactly [`WINDOW_BATCHES`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Window {
    pub(crate) rows: Range<usize>,
    pub(crate) start: String,
    pub(crate) start_micros: i64,
    /// A second in which nothing was created; a fraction of it may follow.
    pub(crate) end_second: String,
    pub(crate) end_micros: i64,
}

/// Numbers that look random and are the same in every run.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Source {
    /// Makes what is not there yet.
    pub(crate) fn make(workspace: &Workspace, executable: &Path, folder: PathBuf) -> Result<Self> {
        let source = Self { folder };
        fs::create_dir_all(&source.folder)?;
        let whole = source.file(Data::Large);
        if !whole.is_file() {
            pull_demo(workspace, executable, &whole)?;
        }
        for data in [Data::Usual, Data::Small] {
            let part = source.file(data);
            if !part.is_file() {
                copy_lines(&whole, &part, data.batches())?;
            }
        }
        Ok(source)
    }

    /// NDJSON with as many batches as one organisation has.
    pub(crate) fn file(&self, data: Data) -> PathBuf {
        self.folder.join(format!("batches-{}.ndjson", data.batches()))
    }

    /// The lines of a file, one by one.
    pub(crate) fn lines(&self, data: Data) -> Result<impl Iterator<Item = std::io::Result<String>>> {
        let path = self.file(data);
        Ok(BufReader::new(File::open(&path).with_context(|| format!("cannot read {}", path.display()))?)
            .lines())
    }
}

fn pull_demo(workspace: &Workspace, executable: &Path, target: &Path) -> Result<()> {
    let batches = Data::Large.batches();
    println!("making {batches} batches, once: {}", target.display());
    let mut demo = Demo::of(executable, u32::try_from(batches)?, workspace.scratch_file("bench-demo.log")?)?;
    let greeting = demo.greeting()?;
    // It gets its name when it is whole: what broke off is made anew.
    let part = target.with_extension("part");
    let mut pull = Command::new(executable);
    process::without_settings(&mut pull).args([
        "pull",
        "--format",
        "ndjson",
        "--force",
        "--url",
        &greeting.url,
    ]);
    pull.args(["--client-id", &greeting.client_id]).arg("--output").arg(&part);
    process::run(pull.env("BATCHSCAN_CLIENT_SECRET", &greeting.client_secret))?;
    demo.end()?;
    let pulled = BufReader::new(File::open(&part)?).lines().count();
    if pulled != batches {
        bail!("{pulled} batches were pulled from a demo of {batches}");
    }
    fs::rename(part, target).context("cannot name the batches")
}

fn copy_lines(from: &Path, to: &Path, count: usize) -> Result<()> {
    let part = to.with_extension("part");
    let mut writer = BufWriter::new(File::create(&part)?);
    for line in BufReader::new(File::open(from)?).lines().take(count) {
        writeln!(writer, "{}", line?)?;
    }
    writer.flush()?;
    fs::rename(part, to).context("cannot name a part of the batches")
}

impl Sample {
    pub(crate) fn read(source: &Source) -> Result<Self> {
        #[derive(Deserialize)]
        struct Created {
            batch_creation_date: String,
        }
        let lines: Vec<String> = source.lines(Data::Usual)?.collect::<std::io::Result<_>>()?;
        let date = |line: &String| {
            let date = serde_json::from_str::<Created>(line)?.batch_creation_date;
            let micros = micros_of(&date).with_context(|| format!("{date} is no instant"))?;
            Ok((date, micros))
        };
        let dates = lines.iter().map(date).collect::<Result<Vec<_>>>()?;
        Ok(Self { lines, dates })
    }

    /// The batches of some lines, as JSON objects.
    pub(crate) fn lines(&self, rows: Range<usize>) -> &[String] {
        &self.lines[rows]
    }

    /// When the batch of a line was created.
    pub(crate) fn date(&self, row: usize) -> &(String, i64) {
        &self.dates[row]
    }

    /// A line at or after this one whose batch was created later than the one before it: a date finds it.
    pub(crate) fn findable(&self, row: usize) -> usize {
        (row..self.dates.len()).find(|row| self.begins_an_instant(*row)).unwrap_or(row)
    }

    /// The first line whose batch was created in the same instant as this one's; this one, if it is not in the sample.
    pub(crate) fn first_of_instant(&self, row: usize) -> usize {
        if row >= self.dates.len() {
            return row;
        }
        (0..=row).rev().find(|row| self.begins_an_instant(*row)).unwrap_or(row)
    }

    /// Whether these lines are in the sample.
    pub(crate) fn holds(&self, rows: &Range<usize>) -> bool {
        rows.end <= self.lines.len()
    }

    /// Windows at random places.
    pub(crate) fn windows(&self, count: usize) -> Result<Vec<Window>> {
        let mut dice = Dice::new(20);
        let rows = self.dates.len().saturating_sub(WINDOW_BATCHES + 1);
        let tries = std::iter::repeat_with(|| self.window(dice.below(rows))).take(WINDOW_TRIES_LIMIT);
        let windows: Vec<Window> = tries.flatten().take(count).collect();
        if windows.len() < count {
            bail!("the data has too few windows of exactly {WINDOW_BATCHES} batches");
        }
        Ok(windows)
    }

    fn window(&self, first: usize) -> Option<Window> {
        let end = first + WINDOW_BATCHES;
        let (last, next) = (self.dates[end - 1].1, self.dates[end].1);
        if !self.begins_an_instant(first) || next - last < WINDOW_GAP_MICROS {
            return None;
        }
        let (start, start_micros) = self.dates[first].clone();
        let end_micros = next_second(last);
        Some(Window { rows: first..end, start, start_micros, end_second: second_of(end_micros), end_micros })
    }

    fn begins_an_instant(&self, row: usize) -> bool {
        row == 0 || self.dates[row - 1].1 < self.dates[row].1
    }
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below a limit.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (limit.max(1) as u64)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches a number of seconds apart; the first two share an instant.
    fn sample(count: usize, apart: i64) -> Sample {
        let date = |index: usize| {
            let micros = i64::try_from(index.max(1)).unwrap() * apart * 1_000_000;
            (format!("{}Z", second_of(micros)), micros)
        };
        Sample { lines: vec![String::new(); count], dates: (0..count).map(date).collect() }
    }

    #[test]
    fn a_window_holds_twenty_and_ends_before_the_next() {
        let window = sample(100, 10).window(5).unwrap();
        assert_eq!(window.rows, 5..25);
        assert_eq!(window.start, "1970-01-01T00:00:50Z");
        assert_eq!(window.end_second, "1970-01-01T00:04:01");
        assert_eq!((window.start_micros, window.end_micros), (50_000_000, 241_000_000));
    }

    #[test]
    fn no_window_begins_within_an_instant_or_ends_close_to_the_next() {
        assert_eq!(sample(100, 10).window(1), None);
        assert_eq!(sample(100, 2).window(5), None);
        assert!(sample(100, 2).windows(1).is_err());
        assert_eq!(sample(100, 10).windows(7).unwrap().len(), 7);
    }

    #[test]
    fn a_date_finds_a_batch_that_is_the_first_of_its_instant() {
        assert_eq!(sample(9, 10).findable(1), 2);
        assert_eq!(sample(9, 10).findable(0), 0);
        assert_eq!(sample(9, 10).first_of_instant(1), 0);
        assert_eq!(sample(9, 10).first_of_instant(5), 5);
        assert_eq!(sample(9, 10).first_of_instant(50), 50);
    }

    #[test]
    fn dice_are_the_same_in_every_run_and_below_their_limit() {
        let (mut one, mut other) = (Dice::new(1), Dice::new(1));
        let numbers: Vec<usize> = (0..100).map(|_| one.below(10)).collect();
        assert_eq!(numbers, (0..100).map(|_| other.below(10)).collect::<Vec<_>>());
        assert!(
            numbers.iter().all(|number| *number < 10) && numbers.iter().any(|number| *number != numbers[0])
        );
    }
}
