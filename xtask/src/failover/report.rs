//! The results of a run: rows, broken rules, and the section of `docs/FAILOVER.md`.

use std::time::Duration;

use anyhow::{Context, Result};

use super::tally::{CUT, Counts};

/// The only event that may cut streams.
pub(crate) const NODE_KILLED: &str = "node killed";

/// The heading of the section that `--write` replaces, to the end of the document.
const SECTION: &str = "## Results\n";
pub(crate) const TABLE_HEAD: &str = "\
| event | times | right | 503 | other | broken | wrong | cut | slowest | no write |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|";

/// How long nothing could be written: since the kill, and since the order to promote a standby.
pub(crate) type WriteGap = (Duration, Duration);

/// The requests during one event, or during all events of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) event: &'static str,
    pub(crate) times: usize,
    pub(crate) counts: Counts,
    pub(crate) gap: Option<WriteGap>,
}

/// What was acknowledged during a run, and what is missing in the end.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    pub(crate) batches: usize,
    pub(crate) secrets: usize,
    pub(crate) failed_commands: Vec<String>,
    pub(crate) lost: Vec<String>,
}

impl Row {
    /// A row of a Markdown table.
    pub(crate) fn line(&self) -> String {
        let Self { event, times, counts, gap } = self;
        let requests = counts.requests.map(|count| count.to_string()).join(" | ");
        let slowest = counts.slowest.as_secs_f64();
        let gap = gap.map(|(kill, promotion)| {
            format!("{:.1} s, {:.1} s", kill.as_secs_f64(), promotion.as_secs_f64())
        });
        let gap = gap.unwrap_or_default();
        format!("| {event} | {times} | {requests} | {slowest:.2} s | {gap} |")
    }

    fn add(&mut self, more: &Self) {
        self.times += more.times;
        for (sum, count) in self.counts.requests.iter_mut().zip(more.counts.requests) {
            *sum += count;
        }
        self.counts.slowest = self.counts.slowest.max(more.counts.slowest);
        // The longest gap since a kill, with what of it was after the promotion.
        self.gap = self.gap.max(more.gap);
    }
}

/// A description of every broken rule.
pub(crate) fn broken_rules(rows: &[Row], writes: &Writes) -> Vec<String> {
    let mut broken = Vec::new();
    let mut node_was_killed = false;
    for (index, Row { event, counts, .. }) in rows.iter().enumerate() {
        if counts.failures() > 0 {
            let reasons = counts.reasons.join("; ");
            broken.push(format!("event {index}, {event}: {} requests failed: {reasons}", counts.failures()));
        }
        // A slow reader may notice during the next event: it first reads what was sent before the kill.
        if counts.requests[CUT] > 0 && *event != NODE_KILLED && !node_was_killed {
            broken.push(format!("event {index}, {event}: {} streams were cut", counts.requests[CUT]));
        }
        node_was_killed = *event == NODE_KILLED;
    }
    broken.extend(writes.lost.iter().map(|lost| format!("lost: {lost}")));
    broken
}

/// The document with its results replaced.
pub(crate) fn update(document: &str, command: &str, rows: &[Row], writes: &Writes) -> Result<String> {
    let (prose, _) = document.split_once(SECTION).with_context(|| format!("no heading {SECTION}"))?;
    let Writes { batches, secrets, failed_commands, lost } = writes;
    let totals: Vec<String> = totals(rows).iter().map(Row::line).collect();
    Ok(format!(
        "{prose}{SECTION}\nWritten by `{command}`. Sums, and the worst of all events of a kind.\n\n{TABLE_HEAD}\n{}\n\n\
         - Broken rules: {}\n- Acknowledged: {batches} batches and {secrets} secrets. Lost: {}\n\
         - Commands that failed and succeeded when repeated: {}\n",
        totals.join("\n"),
        broken_rules(rows, writes).len(),
        lost.len(),
        failed_commands.len(),
    ))
}

/// One row for each kind of event, in the order of appearance.
fn totals(rows: &[Row]) -> Vec<Row> {
    let mut totals: Vec<Row> = Vec::new();
    for row in rows {
        match totals.iter_mut().find(|total| total.event == row.event) {
            Some(total) => total.add(row),
            None => totals.push(row.clone()),
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(event: &'static str, requests: [u64; 6]) -> Row {
        let counts =
            Counts { requests, slowest: Duration::from_millis(10 * requests[0]), reasons: Vec::new() };
        Row { event, times: 1, counts, gap: None }
    }

    #[test]
    fn every_failure_and_every_loss_breaks_a_rule() {
        for (requests, count) in [([9, 0, 0, 0, 0, 0], 0), ([9, 1, 0, 0, 0, 0], 1), ([9, 0, 0, 0, 1, 0], 1)] {
            assert_eq!(broken_rules(&[row("standby killed", requests)], &Writes::default()).len(), count);
        }
        let writes = Writes { lost: vec!["added-1".to_owned()], ..Writes::default() };
        assert_eq!(broken_rules(&[], &writes), ["lost: added-1"]);
    }

    #[test]
    fn streams_may_only_be_cut_when_a_node_is_killed_or_right_after() {
        let broken = |events: &[&'static str]| {
            let rows: Vec<Row> = events.iter().map(|event| row(event, [5, 0, 0, 0, 0, 1])).collect();
            broken_rules(&rows, &Writes::default()).len()
        };
        assert_eq!(broken(&[NODE_KILLED, "primary killed"]), 0);
        assert_eq!(broken(&[NODE_KILLED, "primary killed", "standby killed"]), 1);
        assert_eq!(broken(&["rolling restart"]), 1);
    }

    #[test]
    fn the_document_keeps_its_prose_and_gets_totals() {
        let gap = |secs| Some((Duration::from_secs(secs), Duration::from_secs(1)));
        let rows = [
            Row { gap: gap(2), ..row("primary killed", [3, 0, 0, 0, 0, 0]) },
            row(NODE_KILLED, [100, 0, 0, 0, 0, 1]),
            Row { gap: gap(4), ..row("primary killed", [4, 0, 0, 0, 0, 0]) },
        ];
        let text =
            update("# Title\n\n## Results\n\nold\n", "cargo xtask failover", &rows, &Writes::default())
                .unwrap();
        assert!(text.starts_with("# Title\n\n## Results\n\nWritten by `cargo xtask failover`."), "{text}");
        let total = "| primary killed | 2 | 7 | 0 | 0 | 0 | 0 | 0 | 0.04 s | 4.0 s, 1.0 s |";
        assert!(text.contains(total) && !text.contains("old"), "{text}");
        assert!(update("# Title\n", "", &rows, &Writes::default()).is_err());
    }
}
