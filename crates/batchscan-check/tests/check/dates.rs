//! The dates the toy service takes: just those this project decided on.

use jiff::Timestamp;

pub(crate) const PARSING: &str = "datetime_from_date_parsing";
const AWARE: &str = "timezone_aware";
const OFFSET: &str = "timezone_offset";

/// The instant, or the word for what is wrong.
pub(crate) fn parse(text: &str) -> Result<Timestamp, &'static str> {
    let date = text.get(..10).filter(|date| shaped(date, "0000-00-00")).ok_or(PARSING)?;
    if date.starts_with("0000") || format!("{date}T00:00:00Z").parse::<Timestamp>().is_err() {
        return Err(PARSING);
    }
    if text.len() == 10 {
        return Err(AWARE);
    }
    let time = text.get(10..19).filter(|time| shaped(time, "T00:00:00")).ok_or(PARSING)?;
    if time > "T23:59:59" || &time[4..5] > "5" || &time[7..] > "59" {
        return Err(PARSING);
    }
    let rest = &text[19..];
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())),
        None => ("0", rest),
    };
    if fraction.is_empty() || fraction.len() > 9 {
        return Err(PARSING);
    }
    match zone {
        "Z" | "+00:00" | " 00:00" => format!("{date}{time}.{fraction}Z").parse().map_err(|_| PARSING),
        "" => Err(AWARE),
        zone if shaped(zone, "+00:00") || shaped(zone, "-00:00") => Err(OFFSET),
        _ => Err(PARSING),
    }
}

pub(crate) fn msg(kind: &str) -> &'static str {
    match kind {
        AWARE => "Input should have timezone info",
        OFFSET => "Input should be in UTC",
        _ => "Input should be a valid datetime or date, it is not",
    }
}

/// Whether `text` looks like `pattern`, in which 0 stands for any digit.
fn shaped(text: &str, pattern: &str) -> bool {
    text.len() == pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(a, b)| if b == b'0' { a.is_ascii_digit() } else { a == b })
}
