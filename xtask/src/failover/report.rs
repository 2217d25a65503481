//! What came out of a run: rows, their totals, the rules, and the text of `docs/FAILOVER.md`. Pure.

use std::fmt;
use std::time::Duration;

use super::tally::Counts;

/// What was done to the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Undisturbed,
    PrimaryKilled,
    StandbyKilled,
    NodeKilled,
    RollingRestart,
}

/// The acts in the order of the totals.
const ACTS: [Act; 5] =
    [Act::Undisturbed, Act::PrimaryKilled, Act::StandbyKilled, Act::NodeKilled, Act::RollingRestart];

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Undisturbed => "undisturbed",
            Self::PrimaryKilled => "primary killed",
            Self::StandbyKilled => "standby killed",
            Self::NodeKilled => "node killed",
            Self::RollingRestart => "rolling restart",
        })
    }
}

/// For how long nothing could be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteGap {
    pub(crate) from_kill: Duration,
    pub(crate) from_promotion: Duration,
}

/// One act of one round.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) round: usize,
    pub(crate) act: Act,
    pub(crate) counts: Counts,
    /// Reads that a node repeated on another database host or connection.
    pub(crate) retries: u64,
    pub(crate) gap: Option<WriteGap>,
    pub(crate) took: Duration,
}

/// What was acknowledged during a run, and what of it was found in the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) batches: usize,
    pub(crate) credentials: usize,
    /// What commands said that failed and were run again.
    pub(crate) failed_commands: Vec<String>,
    /// What is not there although it was acknowledged, in words.
    pub(crate) lost: Vec<String>,
}

impl Row {
    /// The row for a terminal.
    pub(crate) fn line(&self) -> String {
        let Counts { right, unavailable, other, broken, wrong, cut, slowest, .. } = &self.counts;
        let gap = self.gap.map(|gap| {
            let (kill, promotion) = (gap.from_kill.as_secs_f64(), gap.from_promotion.as_secs_f64());
            format!(", no write for {kill:.1} s ({promotion:.1} s after promotion)")
        });
        format!(
            "{:>3} {:<16} {right:>6} right {unavailable} unavailable {other} other {broken} broken {wrong} wrong \
             {cut} cut, slowest {:.2} s, {} reads repeated, {:.1} s{}",
            self.round,
            self.act.to_string(),
            slowest.as_secs_f64(),
            self.retries,
            self.took.as_secs_f64(),
            gap.unwrap_or_default(),
        )
    }

    fn cells(&self, first: &str) -> String {
        let Counts { right, unavailable, other, broken, wrong, cut, slowest, .. } = &self.counts;
        let gap = self.gap.map_or("".to_owned(), |gap| {
            let (kill, promotion) = (gap.from_kill.as_secs_f64(), gap.from_promotion.as_secs_f64());
            format!("{kill:.1} s, {promotion:.1} s")
        });
        format!(
            "| {first} | {} | {right} | {unavailable} | {other} | {broken} | {wrong} | {cut} | {:.2} s | {} | {gap} |",
            self.act,
            slowest.as_secs_f64(),
            self.retries,
        )
    }
}

/// The rules that were broken, in words.
pub(crate) fn broken_rules(rows: &[Row], ledger: &Ledger) -> Vec<String> {
    let mut broken = Vec::new();
    let mut node_was_killed = false;
    for row in rows {
        if row.counts.failures() > 0 {
            let told = row.counts.told.join("; ");
            broken.push(format!(
                "round {}, {}: {} failed: {told}",
                row.round,
                row.act,
                row.counts.failures()
            ));
        }
        // Who reads slowly finds out up to an act later: what was sent before the kill is still to be read.
        if row.counts.cut > 0 && row.act != Act::NodeKilled && !node_was_killed {
            broken.push(format!("round {}, {}: {} streams were cut", row.round, row.act, row.counts.cut));
        }
        node_was_killed = row.act == Act::NodeKilled;
    }
    broken.extend(ledger.lost.iter().map(|lost| format!("lost: {lost}")));
    broken
}

/// `docs/FAILOVER.md`.
pub(crate) fn document(command: &str, rows: &[Row], ledger: &Ledger) -> String {
    let head = "| round | what was done | right | 503 | other | broken | wrong | cut | slowest | repeated | no write |\n\
                |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
    let table = |rows: &[String]| format!("{head}{}\n", rows.join("\n"));
    let totals: Vec<String> =
        ACTS.iter().filter_map(|act| total(rows, *act)).map(|row| row.cells("all")).collect();
    let all: Vec<String> = rows.iter().map(|row| row.cells(&row.round.to_string())).collect();
    let verdict = match broken_rules(rows, ledger).len() {
        0 => "No rule was broken.".to_owned(),
        count => format!("**{count} rules were broken.**"),
    };
    format!(
        "{OPENING}\nMade by `{command}`, which fails if a rule is broken.\n{verdict}\n\n{}\n## Totals\n\nSums, and the \
         worst of all rounds.\n\n{}\n## Every round\n\n{}",
        told(ledger),
        table(&totals),
        table(&all),
    )
}

/// The ledger in words.
fn told(ledger: &Ledger) -> String {
    let Ledger { batches, credentials, failed_commands, lost } = ledger;
    let mut lines = vec![
        format!(
            "- acknowledged: {batches} batches and {credentials} secrets; missing in the end: {}",
            lost.len()
        ),
        format!("- commands that failed, said so, and were run again: {}", failed_commands.len()),
    ];
    lines.extend(failed_commands.iter().map(|said| format!("  - {said}")));
    lines.join("\n") + "\n"
}

/// What does not change from run to run.
const OPENING: &str = include_str!("opening.txt");

/// All rows of one act together: the longest gap, the slowest answer, and sums.
fn total(rows: &[Row], act: Act) -> Option<Row> {
    let of_act = rows.iter().filter(|row| row.act == act);
    of_act.cloned().reduce(|sum, row| Row {
        counts: sum.counts.and(&row.counts),
        retries: sum.retries + row.retries,
        gap: [sum.gap, row.gap].into_iter().flatten().reduce(|one, other| WriteGap {
            from_kill: one.from_kill.max(other.from_kill),
            from_promotion: one.from_promotion.max(other.from_promotion),
        }),
        took: sum.took + row.took,
        ..sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(round: usize, act: Act, counts: Counts) -> Row {
        Row { round, act, counts, retries: 2, gap: None, took: Duration::from_secs(1) }
    }

    fn right(right: u64) -> Counts {
        Counts { right, slowest: Duration::from_millis(10 * right), ..Counts::default() }
    }

    #[test]
    fn a_clean_run_breaks_no_rule_and_a_cut_stream_only_outside_its_act() {
        let cut = Counts { cut: 1, ..right(5) };
        let killed = || row(1, Act::NodeKilled, cut.clone());
        assert_eq!(
            broken_rules(&[row(1, Act::PrimaryKilled, right(9)), killed()], &Ledger::default()),
            [""; 0]
        );
        let noticed_late = row(2, Act::PrimaryKilled, cut.clone());
        assert_eq!(broken_rules(&[killed(), noticed_late], &Ledger::default()), [""; 0]);
        assert_eq!(broken_rules(&[row(1, Act::RollingRestart, cut)], &Ledger::default()).len(), 1);
    }

    #[test]
    fn every_failure_and_every_loss_breaks_a_rule() {
        let counts = [
            Counts { unavailable: 1, ..right(1) },
            Counts { other: 1, ..right(1) },
            Counts { broken: 1, ..right(1) },
            Counts { wrong: 1, ..right(1) },
        ];
        for counts in counts {
            let rows = [row(1, Act::StandbyKilled, counts)];
            assert_eq!(broken_rules(&rows, &Ledger::default()).len(), 1);
        }
        let ledger = Ledger { lost: vec!["added-1".to_owned()], ..Ledger::default() };
        assert_eq!(broken_rules(&[], &ledger), ["lost: added-1"]);
    }

    #[test]
    fn totals_add_up_and_keep_the_worst() {
        let gap = |secs| {
            let from_kill = Duration::from_secs(secs);
            Some(WriteGap { from_kill, from_promotion: Duration::from_secs(1) })
        };
        let rows = [
            Row { gap: gap(2), ..row(1, Act::PrimaryKilled, right(3)) },
            row(1, Act::NodeKilled, right(100)),
            Row { gap: gap(4), ..row(2, Act::PrimaryKilled, right(4)) },
        ];
        let total = total(&rows, Act::PrimaryKilled).unwrap();
        assert_eq!(
            total.cells("all"),
            "| all | primary killed | 7 | 0 | 0 | 0 | 0 | 0 | 0.04 s | 4 | 4.0 s, 1.0 s |"
        );
        assert!(super::total(&rows, Act::RollingRestart).is_none());
    }

    #[test]
    fn the_document_names_its_command_its_losses_and_every_row() {
        let rows = [row(1, Act::StandbyKilled, right(3)), row(2, Act::StandbyKilled, right(4))];
        let failed_commands = vec!["no primary".to_owned()];
        let ledger = Ledger { batches: 7, failed_commands, ..Ledger::default() };
        let text = document("cargo xtask failover", &rows, &ledger);
        assert!(text.starts_with("# "), "{text}");
        assert!(text.contains("Made by `cargo xtask failover`"), "{text}");
        assert!(text.contains("acknowledged: 7 batches"), "{text}");
        assert!(text.contains("run again: 1\n  - no primary\n"), "{text}");
        assert!(text.contains("No rule was broken."), "{text}");
        let lines = text.lines().filter(|line| line.contains("| standby killed |")).count();
        assert_eq!(lines, 3);
    }
}
