//! `RESULTS.md`: the targets first, then a table for each work. Pure.

use super::contenders::Contender;
use super::figures::{Figures, Key};
use super::machine::Machine;
use super::mixed;
use super::rounds::CONNECTIONS;
use super::streams::StreamFigures;
use super::targets::{Better, Measured, Results, TARGETS, Target, Verdict};
use super::works::{Data, REQUESTS, Work};
use super::{Pace, Plan};

/// The whole document.
pub(crate) fn document(
    results: &Results,
    machine: &Machine,
    plan: &Plan,
    command: &str,
    charts: &[(&str, String)],
) -> String {
    let parts = [
        opening(machine, plan.pace, command),
        targets(results),
        pictures(charts),
        READING.to_owned(),
        works(&results.figures),
        scale(&results.figures, plan.pace),
        by_connections(&results.by_connections),
        streams(&results.streams),
        mixed_load(results, plan.pace),
        bulk(results),
        not_measured(results, plan),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// A number with three digits that count, and a comma between thousands.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    let (whole, fraction) =
        text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    fraction.map_or_else(|| grouped(whole), |fraction| format!("{}.{fraction}", grouped(whole)))
}

/// Digits with a comma between thousands.
fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn opening(machine: &Machine, pace: Pace, command: &str) -> String {
    let Machine { day, processor, cores, memory_gib, kernel, system, versions } = machine;
    let versions: Vec<String> = versions.iter().map(|(name, version)| told(name, version)).collect();
    let short = if pace.is_quick {
        "\nA quick run: one round of a second each, no million batches, fewer organisations. It shows that all works; for \
         figures take the whole one.\n"
    } else {
        ""
    };
    format!(
        "# Results\n\nMade by `{command}` on {day}.\n{short}\n| | |\n|---|---|\n| machine | {processor}, {cores} cores, \
         {memory_gib:.0} GiB |\n| system | {system}, Linux {kernel} |\n| versions | {} |\n| rounds | {} of {} s each, slow \
         contenders up to {} s; {CONNECTIONS} connections where nothing else is said |\n",
        versions.join("; "),
        pace.rounds,
        pace.secs,
        pace.secs_most,
    )
}

/// A program's version; many say their own name.
fn told(name: &str, version: &str) -> String {
    if version.to_lowercase().contains(&name.to_lowercase()) {
        version.to_owned()
    } else {
        format!("{name} {version}")
    }
}

fn targets(results: &Results) -> String {
    let mut text = "## Targets\n\n**measured** is the median of the rounds' ratios, **spread** the least and the most of them; the \
                    verdict is on the median. **by CPU** is the ratio of the servers' CPU time for a request, without \
                    PostgreSQL's, which a busy machine disturbs less.\n\n| work | against | goal | at least | measured | spread | by CPU \
                    | verdict |\n|---|---|---:|---:|---:|---:|---:|---|\n"
        .to_owned();
    for target in &TARGETS {
        let (measured, verdict) = target.judge(results);
        text.push_str(&target_row(target, measured.as_ref(), verdict));
    }
    text
}

/// The charts, which lie beside the document.
fn pictures(charts: &[(&str, String)]) -> String {
    let shown = charts.iter().map(|(name, _)| {
        let title = name.trim_end_matches(".svg");
        format!("![{title}](charts/{name})\n")
    });
    shown.collect()
}

fn target_row(target: &Target, measured: Option<&Measured>, verdict: Verdict) -> String {
    let Target { work, against, better, goal, least, unit, .. } = target;
    let asked = |value: f64| match (better, target.is_lead()) {
        (_, true) => "ahead".to_owned(),
        (Better::More, _) => with_unit(&mark(value), unit),
        (Better::Less, _) => format!("≤ {}", with_unit(&mark(value), unit)),
    };
    let middle =
        measured.map_or("–".to_owned(), |measured| with_unit(&number(measured.spread.median), unit));
    let spread = measured.map_or("–".to_owned(), |measured| {
        format!("{}–{}", number(measured.spread.least), with_unit(&number(measured.spread.most), unit))
    });
    let by_cpu = measured
        .and_then(|measured| measured.by_cpu)
        .map_or("–".to_owned(), |ratio| with_unit(&number(ratio), unit));
    let note = measured.map(|measured| measured.note.as_str()).filter(|note| !note.is_empty());
    let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
    format!(
        "| {work} | {against} | {} | {} | {middle} | {spread} | {by_cpu} | {}{note} |\n",
        asked(*goal),
        asked(*least),
        verdict_text(verdict),
    )
}

fn with_unit(number: &str, unit: &str) -> String {
    if unit == "×" { format!("{number}×") } else { format!("{number} {unit}") }
}

/// A target's own number: no more digits than it has.
fn mark(value: f64) -> String {
    if value.fract() == 0.0 { grouped(&format!("{value:.0}")) } else { value.to_string() }
}

fn verdict_text(verdict: Verdict) -> String {
    match verdict {
        Verdict::GoalMet => "goal met".to_owned(),
        Verdict::Acceptable => "acceptable".to_owned(),
        Verdict::Missed(share) => format!("**MISSED** by {:.0} %", share * 100.0),
        Verdict::NotMeasured => "not measured".to_owned(),
    }
}

/// What does not change from run to run.
const READING: &str = include_str!("reading.txt");

fn works(figures: &Figures) -> String {
    let mut text = String::new();
    for work in REQUESTS {
        let keys: Vec<Key> = figures.keys().filter(|key| key.work == work).collect();
        if !keys.is_empty() {
            text.push_str(&format!("## {}\n\n{}.\n\n", work.name(), work.told()));
            text.push_str(&table(figures, &keys, "contender", |key| key.contender.title().to_owned()));
            text.push('\n');
        }
    }
    text
}

fn scale(figures: &Figures, pace: Pace) -> String {
    let keys: Vec<Key> = figures.keys().filter(|key| key.work == Work::Scale).collect();
    if keys.is_empty() {
        return String::new();
    }
    let label = |key: Key| match key.data {
        Data::Small => "1 organisation, 10,000 batches, first page".to_owned(),
        Data::Usual => "1 organisation, 100,000 batches, first page".to_owned(),
        Data::Large => "1 organisation, 1,000,000 batches, first page".to_owned(),
        Data::Anywhere => "1 organisation, 1,000,000 batches, pages from all over them".to_owned(),
        Data::Many => {
            format!(
                "{} organisations, 1,000 batches each, first pages in turn",
                number(pace.organisations as f64)
            )
        }
    };
    format!(
        "## scale\n\nbatchscan on SQLite, page-uncached. All servers run at once and are asked closely in turn.\n\n{}",
        table(figures, &keys, "data", label)
    )
}

fn by_connections(figures: &Figures) -> String {
    let mut keys: Vec<Key> = figures.keys().collect();
    if keys.is_empty() {
        return String::new();
    }
    keys.sort_by_key(|key| (key.work, key.contender, key.connections));
    let label = |key: Key| {
        format!("{}, {}, {}", key.contender.title(), key.work.name(), connections_told(key.connections))
    };
    format!("## connections\n\n{}", table(figures, &keys, "contender", label))
}

/// How many connections, in words.
pub(crate) fn connections_told(count: u32) -> String {
    if count == 1 { "1 connection".to_owned() } else { format!("{count} connections") }
}

fn table(figures: &Figures, keys: &[Key], first: &str, label: impl Fn(Key) -> String) -> String {
    let mut text = format!(
        "| {first} | rate /s | p50 ms | p99 ms | CPU ms/request | database's | peak MiB |\n|---|---:|---:|---:|---:|---:|---:|\n"
    );
    for key in keys {
        let Some(figure) = figures.middle(*key) else { continue };
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            label(*key),
            number(figure.rate),
            number(figure.p50_ms),
            number(figure.p99_ms),
            number(figure.cpu_ms),
            figure.database_cpu_ms.map(number).unwrap_or_default(),
            number(figure.peak_mib),
        ));
    }
    text
}

fn streams(figures: &StreamFigures) -> String {
    if figures.0.is_empty() {
        return String::new();
    }
    let mut text = "## v1\n\nEverything in one answer; several readers begin together. Memory is the peak above what was \
                    resident before.\n\n| batches | readers | contender | first byte ms | all in s | MiB/s | CPU s | MiB above \
                    idle |\n|---:|---:|---|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for key in figures.0.keys() {
        let median = |value: fn(&super::streams::StreamFigure) -> f64| {
            figures.spread(*key, value).map(|spread| number(spread.median)).unwrap_or_default()
        };
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
            number(key.data.batches() as f64),
            key.streams,
            key.contender.title(),
            median(|figure| figure.first_byte_ms),
            median(|figure| figure.total_secs),
            median(|figure| figure.mib_per_sec),
            median(|figure| figure.cpu_secs),
            median(|figure| figure.above_idle_mib),
        ));
    }
    text
}

fn mixed_load(results: &Results, pace: Pace) -> String {
    if results.mixed.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "## mixed\n\n{} organisations, {} connections, nothing kept to a core. Of a hundred requests 40 are first pages, 30 \
         first pages that the client has, 20 windows of about twenty, 5 first pages with a new question, 5 with gzip; an \
         eighth of the organisations asks half of all. Beside it `batchscan import` corrects 100,000 batches of another \
         organisation, over and over.\n\n| round | alone /s | p50 ms | p99 ms | beside an import /s | p50 ms | p99 ms | p99 \
         ratio | batches written /s |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        number(pace.organisations as f64),
        mixed::CONNECTIONS,
    );
    for (round, figure) in (1..).zip(&results.mixed) {
        let ms = |micros: u64| number(micros as f64 / 1e3);
        let (alone, beside) = (&figure.alone, &figure.beside_import);
        text.push_str(&format!(
            "| {round} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            number(alone.rate()),
            ms(alone.p50_us),
            ms(alone.p99_us),
            number(beside.rate()),
            ms(beside.p50_us),
            ms(beside.p99_us),
            number(figure.p99_ratio()),
            number(figure.written_per_sec),
        ));
    }
    text
}

fn bulk(results: &Results) -> String {
    if results.bulk.is_empty() {
        return String::new();
    }
    let mut text = "## import and pull\n\nOnce each, on both cores. The peers' loader trusts its input and checks nothing; it \
                    is there as a rough comparison.\n\n| what | batches | s | batches /s | peak MiB |\n|---|---:|---:|---:|---:|\n"
        .to_owned();
    for figure in &results.bulk {
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            figure.what,
            number(figure.batches as f64),
            number(figure.secs),
            number(figure.rate()),
            figure.peak_mib.map(number).unwrap_or_default(),
        ));
    }
    text
}

fn not_measured(results: &Results, plan: &Plan) -> String {
    let mut lines = vec![
        "- TLS, HTTP/2, a network, a cold disk, more than one server core: all is on loopback, warm, in HTTP/1.1."
            .to_owned(),
        "- conditional requests and zstd of the peers, gzip of Datasette and ROAPI: they have none."
            .to_owned(),
        "- auth and cursors of Datasette and ROAPI: they have none; their deep page begins at a date.".to_owned(),
        "- v1 of 1,000,000 by the peers to more than one reader: gigabytes of memory. They do it once.".to_owned(),
    ];
    if plan.pace.is_quick {
        lines.push("- whatever needs 1,000,000 batches: this was a quick run.".to_owned());
    }
    let missing = |contender: &Contender| !results.figures.keys().any(|key| key.contender == *contender);
    let left_out: Vec<&str> = <Contender as clap::ValueEnum>::value_variants()
        .iter()
        .filter(|contender| missing(contender))
        .map(|contender| contender.title())
        .collect();
    if !left_out.is_empty() {
        lines.push(format!("- requests to these, which this run left out: {}.", left_out.join("; ")));
    }
    format!("## What was not measured\n\n{}\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figures::Figure;

    #[test]
    fn numbers_have_three_digits_that_count() {
        let told: Vec<String> =
            [12_345_678.0, 1234.4, 99.96, 42.25, 9.996, 1.0, 0.034, 0.0].map(number).to_vec();
        assert_eq!(told, ["12,345,678", "1,234", "100", "42.2", "10.0", "1.00", "0.034", "0.000"]);
    }

    #[test]
    fn a_missed_target_is_said_plainly() {
        let mut results = Results::default();
        let key =
            |contender| Key { work: Work::Window, data: Data::Usual, connections: CONNECTIONS, contender };
        let figure = |rate| Figure {
            rate,
            p50_ms: 1.0,
            p99_ms: 2.0,
            cpu_ms: 1.0,
            database_cpu_ms: None,
            peak_mib: 9.0,
        };
        results.figures.add(key(Contender::Batchscan), 0, figure(400.0));
        results.figures.add(key(Contender::FastApi), 0, figure(10.0));
        let text = targets(&results);
        let row = text.lines().find(|line| line.contains("window of 20")).unwrap();
        assert_eq!(
            row,
            "| small window of 20 | FastAPI | 80× | 50× | 40.0× | 40.0–40.0× | 1.00× | **MISSED** by 20 % (the other core was the limit for batchscan, SQLite and FastAPI) |"
        );
        assert!(
            text.contains(
                "| every work that it has | plain Rust | ahead | ahead | – | – | – | not measured |"
            )
        );
        assert!(works(&results.figures).contains("| FastAPI | 10.0 | 1.00 | 2.00 | 1.00 |  | 9.00 |"));
    }

    #[test]
    fn a_mark_has_its_own_digits() {
        assert_eq!([1_000.0, 600.0, 1.0, 0.95, 1.15].map(mark), ["1,000", "600", "1", "0.95", "1.15"]);
    }

    #[test]
    fn a_version_is_named_once() {
        assert_eq!(told("wrk", "wrk debian/4.1.0"), "wrk debian/4.1.0");
        assert_eq!(told("asyncpg", "0.32.0"), "asyncpg 0.32.0");
    }
}
