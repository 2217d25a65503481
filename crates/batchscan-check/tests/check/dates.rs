//! The dates that the mock service accepts: exactly those of this project's decisions.

use jiff::Timestamp;

/// The type and the msg of an error.
type DateError = (&'static str, &'static str);

pub(crate) const PARSING: DateError =
    ("datetime_from_date_parsing", "Input should be a valid datetime or date, it is not");
const AWARE: DateError = ("timezone_aware", "Input should have timezone info");
const OFFSET: DateError = ("timezone_offset", "Input should be in UTC");

pub(crate) fn parse(text: &str) -> Result<Timestamp, DateError> {
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

/// Whether `text` matches `pattern`, in which 0 is any digit.
fn shaped(text: &str, pattern: &str) -> bool {
    text.len() == pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(a, b)| if b == b'0' { a.is_ascii_digit() } else { a == b })
}
