//! The type of a Parquet column, and how its values become values of a [`RawBatch`](batchscan_model::RawBatch). Floats
//! are read by their shortest decimal text.

use std::borrow::Cow;

use batchscan_model::{UtcInstant, Value};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::schema::types::ColumnDescriptor;

use crate::read::RECORD_BYTES_MAX;

/// The largest scale of a decimal (Arrow's 256 bits have 76 digits). Bounds the text for a malicious file.
const SCALE_MAX: usize = 76;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    /// The physical type alone: a boolean, a signed number, a float, text.
    Plain,
    /// A number without a sign bit.
    Unsigned,
    /// A number in units of 10^-scale.
    Decimal { scale: usize },
    /// Days since 1970.
    Date,
    /// A time since 1970 in UTC.
    Instant(TimeUnit),
    /// What clocks show, as a time since 1970.
    Clock(TimeUnit),
}

/// Why a column cannot be read: what was found, and what was expected.
type Unsupported = (&'static str, &'static str);

const OTHER_TYPE: Unsupported =
    ("a column of another type", "text, numbers, decimals, booleans or timestamps");
const NESTED: Unsupported = ("a nested column", "one value per row");
const NO_TIME_ZONE: Unsupported =
    ("timestamps without a time zone", "timestamps adjusted to UTC, or text with a UTC offset");

impl ColumnType {
    pub(super) fn new(column: &ColumnDescriptor) -> Result<Self, Unsupported> {
        if column.path().parts().len() > 1 || column.max_rep_level() > 0 {
            return Err(NESTED);
        }
        match column.physical_type() {
            Type::BOOLEAN | Type::FLOAT | Type::DOUBLE => Ok(ColumnType::Plain),
            Type::INT32 | Type::INT64 => Self::from_integer(column),
            Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => Self::from_bytes(column),
            // Old timestamps of Impala and Hive: the time zone depends on the writer.
            Type::INT96 => Err(NO_TIME_ZONE),
        }
    }

    fn from_integer(column: &ColumnDescriptor) -> Result<Self, Unsupported> {
        match (column.logical_type_ref(), column.converted_type()) {
            (Some(LogicalType::Decimal(decimal)), _) => Self::decimal(decimal.scale),
            (Some(LogicalType::Date), _) => Ok(ColumnType::Date),
            (Some(LogicalType::Timestamp(stamp)), _) if !stamp.is_adjusted_to_u_t_c => {
                Ok(ColumnType::Clock(stamp.unit))
            }
            (Some(LogicalType::Timestamp(stamp)), _) => Ok(ColumnType::Instant(stamp.unit)),
            (Some(LogicalType::Integer(number)), _) if !number.is_signed => Ok(ColumnType::Unsigned),
            // Arrow writes a column of nulls as integers of an unknown type.
            (Some(LogicalType::Integer(_) | LogicalType::Unknown), _) => Ok(ColumnType::Plain),
            (Some(_), _) => Err(OTHER_TYPE),
            (None, converted) => Self::from_converted(converted, column.type_scale()),
        }
    }

    /// The type as old writers declare it. Their timestamps are always adjusted to UTC.
    fn from_converted(converted: ConvertedType, scale: i32) -> Result<Self, Unsupported> {
        use ConvertedType as C;
        match converted {
            C::DECIMAL => Self::decimal(scale),
            C::DATE => Ok(ColumnType::Date),
            C::TIMESTAMP_MILLIS => Ok(ColumnType::Instant(TimeUnit::MILLIS)),
            C::TIMESTAMP_MICROS => Ok(ColumnType::Instant(TimeUnit::MICROS)),
            C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64 => Ok(ColumnType::Unsigned),
            C::NONE | C::INT_8 | C::INT_16 | C::INT_32 | C::INT_64 => Ok(ColumnType::Plain),
            _ => Err(OTHER_TYPE),
        }
    }

    fn from_bytes(column: &ColumnDescriptor) -> Result<Self, Unsupported> {
        use {ConvertedType as C, LogicalType as L};
        let is_text = column.physical_type() == Type::BYTE_ARRAY;
        match (column.logical_type_ref(), column.converted_type()) {
            (Some(L::Decimal(decimal)), _) => Self::decimal(decimal.scale),
            (None, C::DECIMAL) => Self::decimal(column.type_scale()),
            (Some(L::String | L::Enum | L::Json | L::Unknown), _) if is_text => Ok(ColumnType::Plain),
            (None, C::NONE | C::UTF8 | C::ENUM | C::JSON) if is_text => Ok(ColumnType::Plain),
            _ => Err(OTHER_TYPE),
        }
    }

    fn decimal(scale: i32) -> Result<Self, Unsupported> {
        match usize::try_from(scale) {
            Ok(scale) if scale <= SCALE_MAX => Ok(ColumnType::Decimal { scale }),
            _ => Err(OTHER_TYPE),
        }
    }

    pub(super) fn int32(self, number: i32) -> Value<'static> {
        match self {
            ColumnType::Unsigned => digits(number.cast_unsigned()),
            _ => self.int64(i64::from(number)),
        }
    }

    pub(super) fn int64(self, number: i64) -> Value<'static> {
        match self {
            ColumnType::Plain => digits(number),
            ColumnType::Unsigned => digits(number.cast_unsigned()),
            ColumnType::Decimal { scale } => decimal(i128::from(number), scale),
            ColumnType::Date => date(number),
            ColumnType::Instant(unit) | ColumnType::Clock(unit) => instant(number, unit),
        }
    }

    /// Text or a decimal.
    pub(super) fn bytes(self, bytes: &[u8]) -> Value<'_> {
        match self {
            ColumnType::Decimal { scale } => unscaled(bytes)
                .map_or(Value::Other("a decimal of more than 38 digits"), |number| decimal(number, scale)),
            _ if bytes.len() > RECORD_BYTES_MAX => Value::Other("text of more than 1 MiB"),
            _ => std::str::from_utf8(bytes)
                .map_or(Value::Other("bytes that are not UTF-8"), |text| Value::Text(Cow::Borrowed(text))),
        }
    }
}

/// A float as its shortest decimal text. Data frames write NaN for a missing value.
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

/// Parses a big-endian two's complement number of at most 128 bits.
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

/// A date as text: without a time it is not an instant.
fn date(days: i64) -> Value<'static> {
    let midnight = days.checked_mul(MICROS_PER_DAY).and_then(UtcInstant::from_micros);
    midnight.map_or(Value::Other("a date out of range"), |instant| {
        let mut text = instant.to_string();
        text.truncate("2026-01-31".len());
        Value::Text(Cow::Owned(text))
    })
}

/// Drops digits below the microsecond, rounding down as in text.
fn instant(count: i64, unit: TimeUnit) -> Value<'static> {
    let micros = match unit {
        TimeUnit::MILLIS => count.checked_mul(1_000),
        TimeUnit::MICROS => Some(count),
        TimeUnit::NANOS => Some(count.div_euclid(1_000)),
    };
    micros.and_then(UtcInstant::from_micros).map_or(Value::Other("a timestamp out of range"), Value::Instant)
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
    fn a_decimal_keeps_all_its_digits() {
        for (unscaled, scale, text) in [
            (9_250, 2, "92.50"),
            (-5, 3, "-0.005"),
            (7, 0, "7"),
            (i128::MIN, 38, "-1.70141183460469231731687303715884105728"),
        ] {
            assert_eq!(number(decimal(unscaled, scale)), text);
        }
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
    fn dates_timestamps_and_the_scale_of_a_decimal_have_a_range() {
        assert_eq!(date(i64::MAX), Value::Other("a date out of range"));
        assert_eq!(instant(i64::MAX, TimeUnit::MILLIS), Value::Other("a timestamp out of range"));
        assert_eq!(instant(-1, TimeUnit::NANOS), Value::Instant(UtcInstant::from_micros(-1).unwrap()));
        assert!(ColumnType::decimal(76).is_ok());
        assert!(ColumnType::decimal(77).is_err() && ColumnType::decimal(-1).is_err());
    }
}
