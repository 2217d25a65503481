//! Parsers of option values: durations, rates, dates, origins, names.

use std::ffi::OsStr;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;

use batchscan_formats::Format;
use batchscan_formats::write::CsvStyle;
use batchscan_model::instant::DateInput;
use batchscan_model::{BatchId, Field, Kind, UtcInstant, Zone};
use batchscan_server::clock::Clock;
use batchscan_server::config::Rate;
use batchscan_store::{OperatorRole, OrgName, ReadFrom};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};

use crate::date_range::DateArg;

/// The longest duration of any option: 100 years.
const DURATION_SECS_MAX: u64 = 100 * 365 * 86_400;
/// The longest lifetime of a token: one day.
const TOKEN_TTL_SECS_MAX: u64 = 86_400;

/// A host or an IP address, and a port.
pub(crate) fn parse_address(text: &str) -> Result<String, String> {
    let is_valid = |(host, port): (&str, &str)| !host.is_empty() && port.parse::<u16>().is_ok();
    let address = text.rsplit_once(':').filter(|parts| is_valid(*parts)).map(|_| text.to_owned());
    address.ok_or_else(|| "expected an address and a port, such as 127.0.0.1:8080".to_owned())
}

/// `30s`, `15m`, `1h`, `365d`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a number and a unit, such as 30s, 15m, 1h or 365d".to_owned();
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
        _ => Err("must be at most 36500d".into()),
    }
}

/// `500K`, `64M`, `10G`: bytes in powers of 1024.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let number_and_shift = match text.split_at_checked(text.len().saturating_sub(1)) {
        Some((number, "K")) => Some((number, 10)),
        Some((number, "M")) => Some((number, 20)),
        Some((number, "G")) => Some((number, 30)),
        Some((number, "T")) => Some((number, 40)),
        _ => None,
    };
    let size =
        number_and_shift.and_then(|(number, shift)| number.parse::<u64>().ok()?.checked_mul(1 << shift));
    size.ok_or_else(|| "expected a number and a unit, such as 500M or 10G".into())
}

/// A duration above zero.
pub(crate) fn parse_expiry(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text)?;
    if time.is_zero() { Err("must be at least 1s".into()) } else { Ok(time) }
}

/// When a credential expires: after a time such as `365d`, or at the end of a day such as `2026-12-31`.
pub(crate) fn parse_expiry_date(text: &str) -> Result<UtcInstant, String> {
    let now = now();
    let end = match parse_expiry(text) {
        Ok(time) => now.plus_secs(i64::try_from(time.as_secs()).unwrap_or(i64::MAX)),
        Err(_) if text.contains('-') => DateArg::parse_end(text, now)?.instant,
        Err(_) => return Err("expected a time such as 365d, or a date such as 2027-12-31".into()),
    };
    if end > now { Ok(end) } else { Err("must be in the future".into()) }
}

/// The lifetime of a sign-in link.
pub(crate) fn parse_link_time(text: &str) -> Result<Duration, String> {
    const RANGE: RangeInclusive<u64> = 15 * 60..=7 * 24 * 3_600;
    let time = parse_duration(text)?;
    if RANGE.contains(&time.as_secs()) { Ok(time) } else { Err("must be from 15m to 7d".into()) }
}

/// A time zone.
pub(crate) fn parse_zone(text: &str) -> Result<Zone, String> {
    Zone::parse(text).ok_or_else(|| format!("expected {}", Zone::expected(text)))
}

/// The id of a batch.
pub(crate) fn parse_batch_id(text: &str) -> Result<BatchId, String> {
    BatchId::new(text).ok_or_else(|| format!("expected {}", Kind::Id.expected()))
}

/// The label of a credential.
pub(crate) fn parse_label(text: &str) -> Result<String, String> {
    const LABEL_CHARS_MAX: usize = 100;
    let fits = text.chars().count() <= LABEL_CHARS_MAX && !text.chars().any(char::is_control);
    if fits {
        Ok(text.to_owned())
    } else {
        Err("must have at most 100 characters and no control characters".into())
    }
}

/// The lifetime of a token.
pub(crate) fn parse_ttl(text: &str) -> Result<Duration, String> {
    let ttl = parse_duration(text)?;
    if (1..=TOKEN_TTL_SECS_MAX).contains(&ttl.as_secs()) {
        Ok(ttl)
    } else {
        Err("must be from 1s to 24h".into())
    }
}

/// `50/s`, `600/m`, `10000/h`.
pub(crate) fn parse_rate(text: &str) -> Result<Rate, String> {
    let wrong =
        || "expected a number from 1 to 1000000 and a unit, such as 50/s, 600/m or 10000/h".to_owned();
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

/// `2027-12-31`, or with a time: `2027-12-31T12:00:00Z`.
pub(crate) fn parse_date(text: &str) -> Result<UtcInstant, String> {
    let whole_day = DateInput::parse(&format!("{text}T00:00:00Z"));
    let date = whole_day.or_else(|_| DateInput::parse(text));
    date.map(DateInput::as_end)
        .map_err(|_| "expected a date such as 2027-12-31 or 2027-12-31T12:00:00Z".into())
}

/// `https://app.example.org`: a scheme and a host, nothing after it; or `*`.
pub(crate) fn parse_origin(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_valid =
        |host: &str| !host.is_empty() && host.chars().all(|c| c.is_ascii_graphic() && !"/?#@\\".contains(c));
    if text == "*" || host.is_some_and(is_valid) {
        return Ok(text.to_owned());
    }
    Err("expected a scheme and a host without a path, such as https://app.example.org".into())
}

/// `https://scans.example.org`, with a path if the service is mounted under one.
pub(crate) fn parse_url(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_valid = |host: &str| !host.starts_with('/') && host.chars().all(|c| c.is_ascii_graphic());
    if host.is_some_and(|host| !host.is_empty() && is_valid(host)) {
        return Ok(text.trim_end_matches('/').to_owned());
    }
    let hint = if host.is_none() { "; add http:// or https://" } else { "" };
    Err(format!("expected a URL such as https://scans.example.org{hint}"))
}

/// The address clients use. It is public, so it has no user. The dashboard and its cookie need the root of a host.
pub(crate) fn parse_public_url(text: &str) -> Result<String, String> {
    let url = parse_url(text)?;
    let is_plain = !url.contains(['@', '?', '#', '"', '<', '>', '\\']) && url.matches('/').count() == 2;
    is_plain.then_some(url).ok_or_else(|| {
        "must not have a user, path, query or fragment, such as https://scans.example.org".into()
    })
}

/// An organisation's name.
pub(crate) fn parse_org_name(text: &str) -> Result<OrgName, String> {
    OrgName::new(text).ok_or_else(|| {
        "must have 1 to 100 characters, no slash, no invisible characters, no leading or trailing spaces, and not be . or .."
            .into()
    })
}

/// A time zone to set, or none.
#[derive(Clone, Debug)]
pub(crate) struct ZoneOrNone(pub(crate) Option<Zone>);

/// A time zone, or `none`.
pub(crate) fn parse_zone_or_none(text: &str) -> Result<ZoneOrNone, String> {
    if text == "none" { Ok(ZoneOrNone(None)) } else { parse_zone(text).map(Some).map(ZoneOrNone) }
}

/// A whole number in a range.
pub(crate) fn whole_number<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + Display + PartialOrd + Clone + Send + Sync + 'static,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("expected a whole number from {} to {}", range.start(), range.end()))
    }
}

/// A number from 0 to 1.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1, such as 0.1".into())
}

/// The start of a date range.
pub(crate) fn parse_start_date(text: &str) -> Result<DateArg, String> {
    DateArg::parse_start(text, now())
}

/// The end of a date range.
pub(crate) fn parse_end_date(text: &str) -> Result<DateArg, String> {
    DateArg::parse_end(text, now())
}

/// The same instant for both ends of a range.
fn now() -> UtcInstant {
    static NOW: OnceLock<UtcInstant> = OnceLock::new();
    *NOW.get_or_init(|| Clock::system().now())
}

/// Accepts the names of these formats.
pub(crate) fn format_parser(formats: &[Format]) -> impl TypedValueParser<Value = Format> {
    let names = formats.iter().map(|format| PossibleValue::new(format.name()).help(format.description()));
    PossibleValuesParser::new(names).try_map(|name| Format::from_name(&name).ok_or("unknown format"))
}

/// Accepts the names of the fields of a batch.
pub(crate) fn field_parser() -> impl TypedValueParser<Value = Field> {
    let names = Field::ALL.map(|field| PossibleValue::new(field.name()).help(field.description()));
    let names = Trimmed(PossibleValuesParser::new(names));
    names.try_map(|name| Field::from_name(&name).ok_or("unknown field"))
}

/// Ignores spaces around a value, as in `a, b`.
#[derive(Clone)]
struct Trimmed(PossibleValuesParser);

impl TypedValueParser for Trimmed {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        self.0.parse_ref(command, arg, value.to_str().map_or(value, |text| OsStr::new(text.trim())))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// The name of a crop.
pub(crate) fn parse_crop(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("must not be empty".into()) } else { Ok(text.to_owned()) }
}

/// Accepts the hosts to read from.
pub(crate) fn read_from_parser() -> impl TypedValueParser<Value = ReadFrom> {
    let parse = |name: String| if name == "standby" { ReadFrom::Standby } else { ReadFrom::Any };
    PossibleValuesParser::new(["any", "standby"]).map(parse)
}

/// Accepts the roles of operator tokens.
pub(crate) fn role_parser() -> impl TypedValueParser<Value = OperatorRole> {
    let parse = |name: String| OperatorRole::from_name(&name).unwrap_or(OperatorRole::Ingest);
    PossibleValuesParser::new(OperatorRole::ALL.map(OperatorRole::name)).map(parse)
}

/// Accepts the separators of a CSV file for Excel.
pub(crate) fn excel_parser() -> impl TypedValueParser<Value = CsvStyle> {
    let parse = |name: String| if name == "comma" { CsvStyle::ExcelComma } else { CsvStyle::ExcelSemicolon };
    PossibleValuesParser::new(["semicolon", "comma"]).map(parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_number_and_a_unit() {
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
    fn invalid_rates_dates_and_origins_are_rejected() {
        assert_eq!(parse_rate("600/m"), Ok(Rate { requests: 600, per: Duration::from_secs(60) }));
        assert!(parse_rate("0/s").is_err() && parse_rate("5").is_err() && parse_rate("5/d").is_err());
        assert_eq!(parse_date("2027-12-31").unwrap().to_string(), "2027-12-31T00:00:00Z");
        assert!(parse_date("31.12.2027").is_err());
        assert!(parse_origin("https://app.example.org").is_ok());
        for wrong in ["https://app.example.org/", "app.example.org"] {
            assert!(parse_origin(wrong).is_err(), "{wrong}");
        }
    }
}
