//! Reads the values people type: times, rates, dates, origins, names.

use std::time::Duration;

use batchscan_formats::Format;
use batchscan_model::UtcInstant;
use batchscan_model::instant::DateInput;
use batchscan_server::config::Rate;
use batchscan_store::OrgName;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// The longest time that makes sense on this command line: a hundred years.
const DURATION_SECS_MAX: u64 = 100 * 365 * 86_400;
/// The longest a "short-lived" token may live.
const TOKEN_TTL_SECS_MAX: u64 = 86_400;
/// As many demo batches as fit a disk without surprise.
const BATCHES_MAX: u64 = 10_000_000;

/// `30s`, `15m`, `1h`, `365d`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || "write a number and a unit, such as 30s, 15m, 1h or 365d".to_owned();
    let split = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit_secs = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    match number.checked_mul(unit_secs) {
        Some(secs) if secs <= DURATION_SECS_MAX => Ok(Duration::from_secs(secs)),
        _ => Err("at most 36500d".into()),
    }
}

/// A time that is not over at once.
pub(crate) fn parse_expiry(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text)?;
    if time.is_zero() { Err("at least 1s: it would have ended already".into()) } else { Ok(time) }
}

/// What a credential is for: one line of a table.
pub(crate) fn parse_label(text: &str) -> Result<String, String> {
    const LABEL_CHARS_MAX: usize = 100;
    let fits = text.chars().count() <= LABEL_CHARS_MAX && !text.chars().any(char::is_control);
    if fits { Ok(text.to_owned()) } else { Err("at most 100 characters, no control characters".into()) }
}

/// A token's life.
pub(crate) fn parse_ttl(text: &str) -> Result<Duration, String> {
    let ttl = parse_duration(text)?;
    if (1..=TOKEN_TTL_SECS_MAX).contains(&ttl.as_secs()) { Ok(ttl) } else { Err("from 1s to 24h".into()) }
}

/// `50/s`, `600/m`, `10000/h`.
pub(crate) fn parse_rate(text: &str) -> Result<Rate, String> {
    let wrong = || "write a number from 1 to 1000000 and a unit, such as 50/s, 600/m or 10000/h".to_owned();
    let (number, unit) = text.split_once('/').ok_or_else(wrong)?;
    let requests: u32 =
        number.parse().ok().filter(|number| (1..=1_000_000).contains(number)).ok_or_else(wrong)?;
    let per = match unit {
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(3_600),
        _ => return Err(wrong()),
    };
    Ok(Rate { requests, per })
}

/// `2027-12-31`, or with a time as the interface writes it.
pub(crate) fn parse_date(text: &str) -> Result<UtcInstant, String> {
    let whole_day = DateInput::parse(&format!("{text}T00:00:00Z"));
    let date = whole_day.or_else(|_| DateInput::parse(text));
    date.map(DateInput::as_end).map_err(|_| "write a date such as 2027-12-31 or 2027-12-31T12:00:00Z".into())
}

/// `https://app.example.org`: a scheme and a host, nothing after it; or `*`.
pub(crate) fn parse_origin(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let sound =
        |host: &str| !host.is_empty() && host.chars().all(|c| c.is_ascii_graphic() && !"/?#@\\".contains(c));
    if text == "*" || host.is_some_and(sound) {
        return Ok(text.to_owned());
    }
    Err("write a scheme and a host without a path, such as https://app.example.org".into())
}

/// `https://scans.example.org`, with a path if the service is mounted under one.
pub(crate) fn parse_url(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let sound = |host: &str| !host.starts_with('/') && host.chars().all(|c| c.is_ascii_graphic());
    if host.is_some_and(|host| !host.is_empty() && sound(host)) {
        return Ok(text.trim_end_matches('/').to_owned());
    }
    Err("write a URL such as https://scans.example.org".into())
}

/// The address clients use. It is told to everybody, so it holds no user, and what is appended to it must be a path.
pub(crate) fn parse_public_url(text: &str) -> Result<String, String> {
    let url = parse_url(text)?;
    let is_plain = !url.contains(['@', '?', '#', '"', '<', '>', '\\']);
    is_plain
        .then_some(url)
        .ok_or_else(|| "leave out user, query and fragment: https://scans.example.org".into())
}

/// An organisation's name.
pub(crate) fn parse_org_name(text: &str) -> Result<OrgName, String> {
    OrgName::new(text).ok_or_else(|| "1 to 100 characters, no control characters, no blanks around it".into())
}

/// How many demo batches.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    let count = text.replace('_', "").parse().ok().filter(|count| *count <= BATCHES_MAX);
    count.ok_or_else(|| format!("a whole number up to {BATCHES_MAX}"))
}

/// How many batches to list.
pub(crate) fn parse_limit(text: &str) -> Result<usize, String> {
    const LIMIT_MAX: usize = 10_000;
    let limit = text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
    limit.ok_or_else(|| format!("a whole number from 1 to {LIMIT_MAX}"))
}

/// A share of all.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a number from 0 to 1, such as 0.1".into())
}

/// Accepts the names of these formats.
pub(crate) fn format_parser(formats: &[Format]) -> impl TypedValueParser<Value = Format> {
    let names = formats.iter().map(|format| PossibleValue::new(format.name()).help(format.description()));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Format>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_number_and_a_unit() {
        assert_eq!(parse_duration("365d"), Ok(Duration::from_secs(365 * 86_400)));
        assert_eq!(parse_duration("0s"), Ok(Duration::ZERO));
        for wrong in ["", "5", "h", "1w", "-1h", "1.5h", "99999999999999999999d", "18446744073709551615d"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    /// Decision 008.
    #[test]
    fn a_token_lives_a_day_at_most() {
        assert!(parse_ttl("24h").is_ok());
        assert!(parse_ttl("0s").is_err());
        assert!(parse_ttl("25h").is_err());
    }

    #[test]
    fn rates_dates_and_origins_are_read_or_refused() {
        assert_eq!(parse_rate("600/m"), Ok(Rate { requests: 600, per: Duration::from_secs(60) }));
        assert!(parse_rate("0/s").is_err() && parse_rate("5").is_err() && parse_rate("5/d").is_err());
        assert_eq!(parse_date("2027-12-31").unwrap().to_string(), "2027-12-31T00:00:00Z");
        assert!(parse_date("31.12.2027").is_err());
        assert!(parse_origin("https://app.example.org").is_ok());
        assert!(
            parse_origin("https://app.example.org/").is_err() && parse_origin("app.example.org").is_err()
        );
    }
}
