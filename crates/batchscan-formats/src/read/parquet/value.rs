//! What the values of a Parquet column mean, and how each becomes a value of a record. No float is made on the way;
//! one that the file holds is read by its shortest decimal text.

use std::borrow::Cow;

use batchscan_model::{UtcInstant, Value};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::schema::types::ColumnDescriptor;

use crate::read::RECORD_BYTES_MAX;

/// The largest scale a decimal of any writer has (Arrow's 256 bits hold 76 digits). It bounds the text of a hostile one.
const SCALE_MAX: usize = 76;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// What the values of a column mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// What their physical type says: a flag, a signed number, a float, text.
    Plain,
    /// A number that is not negative, whatever the sign bit says.
    Unsigned,
    /// A whole number of 10^-scale.
    Decimal { scale: usize },
    /// Days since 1970.
    Date,
    /// An instant, by so many of these since 1970.
    Instant(Tick),
}

/// The unit of a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tick {
    Milli,
    Micro,
    Nano,
}

/// Why a column is not read.
pub(super) struct Refused {
    pub(super) found: &'static str,
    pub(super) expected: &'static str,
}

const FOREIGN: Refused = Refused {
    found: "a column of a type that no field has",
    expected: "text, numbers, decimals, booleans or timestamps",
};

const NESTED: Refused = Refused { found: "a nested column", expected: "one value a row" };

const NAIVE: Refused = Refused {
    found: "timestamps without a time zone, so that they name no instant",
    expected: "timestamps that are adjusted to UTC, or text with an offset",
};

impl Meaning {
    /// What the values of this column mean.
    pub(super) fn of(column: &ColumnDescriptor) -> Result<Self, Refused> {
        if column.path().parts().len() > 1 || column.max_rep_level() > 0 {
            return Err(NESTED);
        }
        match column.physical_type() {
            Type::BOOLEAN | Type::FLOAT | Type::DOUBLE => Ok(Meaning::Plain),
            Type::INT32 | Type::INT64 => Self::of_whole_number(column),
            Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => Self::of_bytes(column),
            // The old timestamps of Impala and Hive: which time zone they were in depends on the writer.
            Type::INT96 => Err(NAIVE),
        }
    }

    fn of_whole_number(column: &ColumnDescriptor) -> Result<Self, Refused> {
        match (column.logical_type_ref(), column.converted_type()) {
            (Some(LogicalType::Decimal(decimal)), _) => Self::decimal(decimal.scale),
            (Some(LogicalType::Date), _) => Ok(Meaning::Date),
            (Some(LogicalType::Timestamp(stamp)), _) if !stamp.is_adjusted_to_u_t_c => Err(NAIVE),
            (Some(LogicalType::Timestamp(stamp)), _) => Ok(Meaning::Instant(Tick::of(stamp.unit))),
            (Some(LogicalType::Integer(number)), _) if !number.is_signed => Ok(Meaning::Unsigned),
            // Arrow writes a column of nothing but nulls as numbers of an unknown type.
            (Some(LogicalType::Integer(_) | LogicalType::Unknown), _) => Ok(Meaning::Plain),
            (Some(_), _) => Err(FOREIGN),
            (None, converted) => Self::of_converted(converted, column.type_scale()),
        }
    }

    /// As old writers tell it. Their timestamps are always adjusted to UTC.
    fn of_converted(converted: ConvertedType, scale: i32) -> Result<Self, Refused> {
        use ConvertedType as C;
        match converted {
            C::DECIMAL => Self::decimal(scale),
            C::DATE => Ok(Meaning::Date),
            C::TIMESTAMP_MILLIS => Ok(Meaning::Instant(Tick::Milli)),
            C::TIMESTAMP_MICROS => Ok(Meaning::Instant(Tick::Micro)),
            C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64 => Ok(Meaning::Unsigned),
            C::NONE | C::INT_8 | C::INT_16 | C::INT_32 | C::INT_64 => Ok(Meaning::Plain),
            _ => Err(FOREIGN),
        }
    }

    fn of_bytes(column: &ColumnDescriptor) -> Result<Self, Refused> {
        use {ConvertedType as C, LogicalType as L};
        let is_text = column.physical_type() == Type::BYTE_ARRAY;
        match (column.logical_type_ref(), column.converted_type()) {
            (Some(L::Decimal(decimal)), _) => Self::decimal(decimal.scale),
            (None, C::DECIMAL) => Self::decimal(column.type_scale()),
            (Some(L::String | L::Enum | L::Json | L::Unknown), _) if is_text => Ok(Meaning::Plain),
            (None, C::NONE | C::UTF8 | C::ENUM | C::JSON) if is_text => Ok(Meaning::Plain),
            _ => Err(FOREIGN),
        }
    }

    fn decimal(scale: i32) -> Result<Self, Refused> {
        match usize::try_from(scale) {
            Ok(scale) if scale <= SCALE_MAX => Ok(Meaning::Decimal { scale }),
            _ => Err(FOREIGN),
        }
    }

    /// A number of 32 bits.
    pub(super) fn int32(self, number: i32) -> Value<'static> {
        match self {
            Meaning::Unsigned => digits(number.cast_unsigned()),
            _ => self.int64(i64::from(number)),
        }
    }

    /// A number of 64 bits.
    pub(super) fn int64(self, number: i64) -> Value<'static> {
        match self {
            Meaning::Plain => digits(number),
            Meaning::Unsigned => digits(number.cast_unsigned()),
            Meaning::Decimal { scale } => decimal(i128::from(number), scale),
            Meaning::Date => date(number),
            Meaning::Instant(tick) => instant(number, tick),
        }
    }

    /// Text, or a decimal of any size.
    pub(super) fn bytes(self, bytes: &[u8]) -> Value<'_> {
        match self {
            Meaning::Decimal { scale } => unscaled(bytes)
                .map_or(Value::Other("a decimal of more than 38 digits"), |number| decimal(number, scale)),
            _ if bytes.len() > RECORD_BYTES_MAX => Value::Other("text of more than 1 MiB"),
            _ => std::str::from_utf8(bytes)
                .map_or(Value::Other("bytes that are not UTF-8"), |text| Value::Text(Cow::Borrowed(text))),
        }
    }
}

impl Tick {
    fn of(unit: TimeUnit) -> Self {
        match unit {
            TimeUnit::MILLIS => Tick::Milli,
            TimeUnit::MICROS => Tick::Micro,
            TimeUnit::NANOS => Tick::Nano,
        }
    }
}

/// A float by its shortest decimal text that reads back as itself. Data frames write NaN for a value that is missing.
pub(super) fn float(number: impl Into<f64> + Copy + std::fmt::Display) -> Value<'static> {
    if number.into().is_nan() { Value::Null } else { digits(number) }
}

fn digits(number: impl std::fmt::Display) -> Value<'static> {
    Value::Number(Cow::Owned(number.to_string()))
}

fn decimal(unscaled: i128, scale: usize) -> Value<'static> {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let point = if fraction.is_empty() { "" } else { "." };
    Value::Number(Cow::Owned(format!("{sign}{whole}{point}{fraction}")))
}

/// A two's complement number, most significant byte first, if it has at most 128 bits.
fn unscaled(bytes: &[u8]) -> Option<i128> {
    let (surplus, low) = bytes.split_at(bytes.len().saturating_sub(16));
    let sign = if low.first()? & 0x80 == 0 { 0x00 } else { 0xFF };
    if surplus.iter().any(|byte| *byte != sign) {
        return None;
    }
    let mut wide = [sign; 16];
    wide[16 - low.len()..].copy_from_slice(low);
    Some(i128::from_be_bytes(wide))
}

/// A date is text: it names no instant, and whether a field takes it is for the judge to say.
fn date(days: i64) -> Value<'static> {
    let midnight = days.checked_mul(MICROS_PER_DAY).and_then(UtcInstant::from_micros);
    midnight.map_or(Value::Other("a date out of all calendars"), |instant| {
        let mut text = instant.to_string();
        text.truncate("2026-01-31".len());
        Value::Text(Cow::Owned(text))
    })
}

/// Digits below the microsecond are cut off, towards the past, as in text.
fn instant(count: i64, tick: Tick) -> Value<'static> {
    let micros = match tick {
        Tick::Milli => count.checked_mul(1_000),
        Tick::Micro => Some(count),
        Tick::Nano => Some(count.div_euclid(1_000)),
    };
    micros
        .and_then(UtcInstant::from_micros)
        .map_or(Value::Other("a timestamp out of all calendars"), Value::Instant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: Value<'_>) -> String {
        match value {
            Value::Number(text) => text.into_owned(),
            other => other.to_string(),
        }
    }

    /// Decision 035.
    #[test]
    fn a_decimal_keeps_every_digit_of_its_own() {
        assert_eq!(number(decimal(9_250, 2)), "92.50");
        assert_eq!(number(decimal(-5, 3)), "-0.005");
        assert_eq!(number(decimal(7, 0)), "7");
        assert_eq!(number(decimal(i128::MIN, 38)), "-1.70141183460469231731687303715884105728");
    }

    #[test]
    fn an_unscaled_number_may_be_shorter_or_longer_than_16_bytes() {
        assert_eq!(unscaled(&[0x24, 0x22]), Some(9_250));
        assert_eq!(unscaled(&[0xFF]), Some(-1));
        assert_eq!(unscaled(&[0xFF; 32]), Some(-1));
        assert_eq!(unscaled(&[&[0; 16], &i128::MAX.to_be_bytes()[..]].concat()), Some(i128::MAX));
        assert_eq!(unscaled(&[&[1; 1], &[0; 16][..]].concat()), None);
        assert_eq!(unscaled(&[&[0; 1], &i128::MIN.to_be_bytes()[..]].concat()), None);
        assert_eq!(unscaled(&[]), None);
    }

    /// Decision 035: `1.005` must become `1.01`, so it must still be `1.005` here.
    #[test]
    fn a_float_is_its_shortest_text_and_nan_is_null() {
        assert_eq!(number(float(1.005_f64)), "1.005");
        assert_eq!(number(float(0.07_f32)), "0.07");
        assert_eq!(number(float(128_f64)), "128");
        assert_eq!(float(f64::NAN), Value::Null);
        assert_eq!(number(float(f64::INFINITY)), "inf");
    }

    #[test]
    fn what_no_calendar_holds_is_no_date_and_no_instant() {
        assert_eq!(date(i64::MAX), Value::Other("a date out of all calendars"));
        assert_eq!(instant(i64::MAX, Tick::Milli), Value::Other("a timestamp out of all calendars"));
        assert_eq!(instant(-1, Tick::Nano), Value::Instant(UtcInstant::from_micros(-1).unwrap()));
    }

    #[test]
    fn a_decimal_of_a_hostile_scale_is_refused() {
        assert!(Meaning::decimal(76).is_ok());
        assert!(Meaning::decimal(77).is_err() && Meaning::decimal(-1).is_err());
    }
}
