//! Time zones by name, from the database in the executable: results do not depend on the system's.

use std::sync::LazyLock;

use jiff::civil::{DateTime, datetime};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use crate::UtcInstant;

const EPOCH: DateTime = datetime(1970, 1, 1, 0, 0, 0, 0);
const MICROS_PER_SEC: i64 = 1_000_000;

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone of the IANA database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

/// Why a local time is not an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocalTimeError {
    /// The clocks were set forward over it.
    #[error("does not exist")]
    Skipped,
    /// The clocks were set back over it.
    #[error("exists twice")]
    Repeated,
    /// It is not in the years 0001 to 9999 in UTC.
    #[error("is out of range")]
    OutOfRange,
}

impl Zone {
    /// The zone with this name in any case, such as `Europe/Berlin` or `UTC`.
    pub fn parse(name: &str) -> Option<Self> {
        ZONES.get(name).ok().filter(|zone| !zone.is_unknown()).map(Self)
    }

    /// What is expected instead of a name that is unknown, with a name that is similar to it.
    pub fn expected(name: &str) -> String {
        const NAME_BYTES_MAX: usize = 64;
        const BYTES_PER_EDIT: usize = 5;
        let name = name.to_ascii_lowercase().replace(' ', "_");
        // A city alone is enough.
        let edits = |zone: &String| {
            let zone = zone.to_ascii_lowercase();
            let city = zone.rsplit('/').next().unwrap_or_default();
            strsim::osa_distance(&name, &zone).min(strsim::osa_distance(&name, city))
        };
        let similar = match name.len() {
            ..=NAME_BYTES_MAX => ZONES.available().map(|zone| zone.to_string()).min_by_key(edits),
            _ => None,
        };
        // Etc/GMT+1 is an hour behind GMT.
        let is_similar =
            |zone: &String| edits(zone) <= name.len() / BYTES_PER_EDIT && !zone.starts_with("Etc/");
        match similar.filter(is_similar) {
            Some(similar) => format!("the name of a time zone (did you mean {similar}?)"),
            None => "the name of a time zone, such as Europe/Berlin or UTC".into(),
        }
    }

    /// The name, such as `Europe/Berlin`.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// The instant at which the clocks of this zone show what UTC's clocks show at `clock`.
    pub fn instant(&self, clock: UtcInstant) -> Result<UtcInstant, LocalTimeError> {
        let local = EPOCH.saturating_add(SignedDuration::from_secs(clock.secs()));
        let offset = match self.0.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { .. } => return Err(LocalTimeError::Skipped),
            AmbiguousOffset::Fold { .. } => return Err(LocalTimeError::Repeated),
        };
        let micros = clock.micros() - i64::from(offset.seconds()) * MICROS_PER_SEC;
        UtcInstant::from_micros(micros).ok_or(LocalTimeError::OutOfRange)
    }

    /// What the clocks of this zone show at `instant`, as UTC's clocks would show it.
    pub fn clock(&self, instant: UtcInstant) -> Option<UtcInstant> {
        let offset = self.0.to_offset(Timestamp::from_second(instant.secs()).ok()?);
        UtcInstant::from_micros(instant.micros() + i64::from(offset.seconds()) * MICROS_PER_SEC)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_time_becomes_an_instant_unless_it_is_skipped_or_repeated() {
        for (zone, clock, expected) in [
            ("Europe/Berlin", "2026-11-16T08:00:00.5Z", Ok("2026-11-16T07:00:00.5Z")),
            ("europe/berlin", "2026-07-01T08:00:00Z", Ok("2026-07-01T06:00:00Z")),
            ("Asia/Kolkata", "2026-07-01T08:00:00Z", Ok("2026-07-01T02:30:00Z")),
            ("UTC", "9999-12-31T23:59:59.999999Z", Ok("9999-12-31T23:59:59.999999Z")),
            ("Europe/Berlin", "2026-03-29T02:30:00Z", Err(LocalTimeError::Skipped)),
            ("Europe/Berlin", "2026-10-25T02:30:00Z", Err(LocalTimeError::Repeated)),
            ("Europe/Berlin", "0001-01-01T00:00:00Z", Err(LocalTimeError::OutOfRange)),
        ] {
            let clock = UtcInstant::parse_any_offset(clock).unwrap();
            let found = Zone::parse(zone).unwrap().instant(clock).map(|instant| instant.to_string());
            assert_eq!(found, expected.map(str::to_owned), "{zone} {clock}");
            if let Ok(instant) = expected {
                let instant = UtcInstant::parse_any_offset(instant).unwrap();
                // Only the last day is out of the range of the library.
                assert_eq!(Zone::parse(zone).unwrap().clock(instant).unwrap_or(clock), clock);
            }
        }
    }

    #[test]
    fn only_names_of_the_database_are_zones() {
        assert_eq!(Zone::parse("europe/BERLIN").unwrap().name(), "Europe/Berlin");
        assert_eq!(Zone::parse("UTC").unwrap().name(), "UTC");
        for name in ["", "Berlin", "+01:00", "Etc/Unknown", "optional"] {
            assert_eq!(Zone::parse(name), None, "{name}");
        }
    }

    #[test]
    fn a_similar_name_or_the_one_of_a_city_is_suggested() {
        for (name, zone) in [
            ("Europe/Londno", Some("Europe/London")),
            ("berlin", Some("Europe/Berlin")),
            ("new york", Some("America/New_York")),
            ("", None),
            ("CET+1", None),
            ("GMT+1", None),
            ("CEST", None),
            ("+01:00", None),
            ("Etc/Unknown", None),
        ] {
            let suggestion = zone.map(|zone| format!("(did you mean {zone}?)"));
            let expected = suggestion.unwrap_or("such as Europe/Berlin or UTC".into());
            assert!(Zone::expected(name).ends_with(&expected), "{name}: {}", Zone::expected(name));
        }
    }
}
