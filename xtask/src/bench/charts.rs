//! Charts as SVG, written by hand: horizontal bars with their numbers, readable on light and on dark ground. Pure.

use super::contenders::Contender;
use super::figures::{Figures, Key};
use super::report::{connections_told, number};
use super::rounds::CONNECTIONS;
use super::targets::Results;
use super::works::{Data, Work};

const WIDTH: f64 = 760.0;
const LABELS: f64 = 190.0;
/// Room for the number behind the longest bar.
const NUMBERS: f64 = 110.0;
const ROW: f64 = 26.0;
const BAR: f64 = 16.0;
const HEAD: f64 = 58.0;
const FOOT: f64 = 14.0;
/// The shortest bar that is seen.
const SHORTEST: f64 = 2.0;

/// One bar.
struct Bar {
    label: String,
    value: f64,
    text: String,
    /// The class that colours it.
    class: &'static str,
    is_pale: bool,
}

/// How long a bar is for its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    Linear,
    /// Every step to the right is ten times the one before.
    Logarithmic,
}

/// All charts that the results allow, with their file names.
pub(crate) fn all(results: &Results) -> Vec<(&'static str, String)> {
    [
        ("pages.svg", pages(&results.figures)),
        ("latency.svg", latency(&results.figures)),
        ("connections.svg", connections(&results.by_connections)),
    ]
    .into_iter()
    .filter_map(|(name, chart)| Some((name, chart?)))
    .collect()
}

/// Pages a second of everybody, on one core.
fn pages(figures: &Figures) -> Option<String> {
    let mut rows: Vec<Bar> = page_keys(figures)
        .filter_map(|key| {
            let rate = figures.middle(key)?.rate;
            Some(bar(key.contender.title().to_owned(), rate, number(rate), key.contender))
        })
        .collect();
    rows.sort_by(|one, other| other.value.total_cmp(&one.value));
    draw(
        "Pages of 1,000 batches a second, one server core",
        "v2, 100,000 batches, no two requests alike; nginx sends a file. Logarithmic.",
        &rows,
        Scale::Logarithmic,
    )
}

/// What half of all and what all but one in a hundred wait for a page.
fn latency(figures: &Figures) -> Option<String> {
    let told = |ms: f64| format!("{} ms", number(ms));
    let rows: Vec<Bar> = page_keys(figures)
        .filter_map(|key| Some((key, figures.middle(key)?)))
        .flat_map(|(key, figure)| {
            let half =
                bar(key.contender.title().to_owned(), figure.p50_ms, told(figure.p50_ms), key.contender);
            let most = bar("p99".to_owned(), figure.p99_ms, told(figure.p99_ms), key.contender);
            [half, Bar { is_pale: true, ..most }]
        })
        .collect();
    let below = format!(
        "Half of all wait less, and all but one in a hundred (p99). v2, uncached, {CONNECTIONS} connections. Logarithmic."
    );
    draw("Wait for a page of 1,000 batches", &below, &rows, Scale::Logarithmic)
}

/// Pages a second by the number of connections.
fn connections(figures: &Figures) -> Option<String> {
    let mut keys: Vec<Key> = figures.keys().filter(|key| key.contender != Contender::FastApi).collect();
    keys.sort_by_key(|key| (key.work, key.contender, key.connections));
    let rows: Vec<Bar> = keys
        .into_iter()
        .filter_map(|key| {
            let kind = match (key.contender, key.work) {
                (Contender::Nginx, _) => "nginx",
                (_, Work::PageCached) => "cached",
                _ => "uncached",
            };
            let rate = figures.middle(key)?.rate;
            Some(bar(
                format!("{kind}, {}", connections_told(key.connections)),
                rate,
                number(rate),
                key.contender,
            ))
        })
        .collect();
    draw(
        "Pages a second by the number of connections",
        "batchscan on SQLite, one server core; nginx sends a file.",
        &rows,
        Scale::Linear,
    )
}

/// The uncached page of each contender; of nginx, its file.
fn page_keys(figures: &Figures) -> impl Iterator<Item = Key> {
    figures.keys().filter(|key| {
        let work = if key.contender == Contender::Nginx { Work::PageCached } else { Work::PageUncached };
        key.work == work && key.data == Data::Usual && key.connections == CONNECTIONS
    })
}

fn bar(label: String, value: f64, text: String, contender: Contender) -> Bar {
    let class = match contender {
        contender if contender.is_ours() => "ours",
        Contender::Nginx => "limit",
        _ => "peer",
    };
    Bar { label, value, text, class, is_pale: false }
}

fn draw(title: &str, below: &str, rows: &[Bar], scale: Scale) -> Option<String> {
    let most = rows.iter().map(|row| row.value).max_by(f64::total_cmp)?;
    let least = rows.iter().map(|row| row.value).min_by(f64::total_cmp)?;
    let height = HEAD + rows.len() as f64 * ROW + FOOT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n{STYLE}\n\
         <text class=\"title\" x=\"0\" y=\"18\">{}</text>\n<text class=\"below\" x=\"0\" y=\"38\">{}</text>\n",
        escaped(title),
        escaped(title),
        escaped(below),
    );
    for (index, row) in rows.iter().enumerate() {
        let top = HEAD + index as f64 * ROW;
        let length = length(row.value, least, most, scale);
        let middle = top + BAR / 2.0 + 4.5;
        svg.push_str(&format!(
            "<text class=\"label\" x=\"{:.0}\" y=\"{middle:.1}\">{}</text>\
             <rect class=\"{}{}\" x=\"{LABELS:.0}\" y=\"{top:.0}\" width=\"{length:.1}\" height=\"{BAR:.0}\" rx=\"2\"/>\
             <text class=\"number\" x=\"{:.1}\" y=\"{middle:.1}\">{}</text>\n",
            LABELS - 8.0,
            escaped(&row.label),
            row.class,
            if row.is_pale { " pale" } else { "" },
            LABELS + length + 6.0,
            escaped(&row.text),
        ));
    }
    Some(svg + "</svg>\n")
}

/// On the logarithmic scale the bars begin at the power of ten below the smallest value.
fn length(value: f64, least: f64, most: f64, scale: Scale) -> f64 {
    let room = WIDTH - LABELS - NUMBERS;
    let share = match scale {
        Scale::Linear => value / most,
        Scale::Logarithmic => {
            let floor = least.log10().floor() - if least.log10().fract() == 0.0 { 1.0 } else { 0.0 };
            (value.log10() - floor) / (most.log10() - floor)
        }
    };
    (room * share).max(SHORTEST)
}

/// Text between tags or quotes.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = "<style>
text { font: 13px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2328; }
.title { font-size: 15px; font-weight: 600; } .below { font-size: 12px; fill: #59636e; }
.label { text-anchor: end; } .number { font-variant-numeric: tabular-nums; }
.ours { fill: #2f8f4e; } .peer { fill: #8c959f; } .limit { fill: #4a7fc1; } .pale { opacity: 0.55; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .below { fill: #9198a1; }
  .ours { fill: #4fbf73; } .peer { fill: #6e7681; } .limit { fill: #6ea3e0; }
}
</style>";

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str, value: f64) -> Bar {
        bar(label.to_owned(), value, number(value), Contender::Batchscan)
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("a < b & \"c\" > d"), "a &lt; b &amp; &quot;c&quot; &gt; d");
        let svg = draw("R & D", "x < y", &[row("<b>", 1.0)], Scale::Linear).unwrap();
        assert!(svg.contains("R &amp; D") && svg.contains("x &lt; y") && svg.contains("&lt;b&gt;"), "{svg}");
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let room = WIDTH - LABELS - NUMBERS;
        assert_eq!(length(10.0, 5.0, 10.0, Scale::Linear), room);
        assert_eq!(length(5.0, 5.0, 10.0, Scale::Linear), room / 2.0);
        // From 10 to 1000 in two steps; the smallest is a step long.
        assert_eq!(length(1000.0, 100.0, 1000.0, Scale::Logarithmic), room);
        assert_eq!(length(100.0, 100.0, 1000.0, Scale::Logarithmic), room / 2.0);
        assert_eq!(length(0.0001, 0.0001, 1.0e9, Scale::Linear), SHORTEST);
    }

    #[test]
    fn a_chart_without_rows_is_not_drawn() {
        assert!(draw("", "", &[], Scale::Linear).is_none());
        assert!(all(&Results::default()).is_empty());
    }
}
