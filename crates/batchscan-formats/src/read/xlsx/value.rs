//! How the cell of a workbook becomes a value of a [`RawBatch`](batchscan_model::RawBatch). The field decides: Excel has
//! no type for dates, and makes numbers of names.

use std::borrow::Cow;

use batchscan_model::{Field, Kind, UtcInstant, Value};
use calamine::{DataRef, DataType as _, Style};

use crate::read::RECORD_BYTES_MAX;
use crate::read::dates::{ONE_OF_TWO, join_date_and_time};
use crate::read::title::other_unit;

const MICROS_PER_DAY: i64 = 86_400_000_000;
/// 1970-01-01 in days of Excel's calendar.
const EPOCH_DAYS: f64 = 25_569.0;
/// 1900-03-01. Excel has a wrong 29 February before it.
const FIRST_DAY: f64 = 61.0;
/// Days between the two calendars of Excel: old ones of the Mac begin in 1904.
const DAYS_TO_1904: f64 = 1_462.0;

/// What a cell has.
#[derive(Debug, PartialEq)]
pub(super) enum CellValue<'a> {
    /// Text, which may stand for any type.
    Text(Cow<'a, str>),
    /// What clocks show: Excel has no time zones.
    Clock(UtcInstant),
    /// A value of a type that Excel has.
    Value(Value<'a>),
}

/// How numbers of a style are shown.
#[derive(Default)]
pub(super) struct Look {
    pub(super) is_percent: bool,
    /// Whether it shows more than the digits of a whole number, such as `"B-"0000` or `00-000`.
    is_decorated: bool,
    /// Its format, if it has words such as a unit.
    words: Option<String>,
    /// The number of zeros of a format such as `00000`, for ids, or `00\.00\.00`.
    digits: usize,
}

impl Look {
    pub(super) fn new(style: &Style) -> Self {
        let code = style.number_format.as_ref().map_or("", |format| &format.format_code);
        let words = (code.contains('"') || code.contains('\\')).then(|| code.to_owned());
        let is_general = code.eq_ignore_ascii_case("General") || code == "@";
        let is_decorated = !is_general && code.bytes().any(|byte| !matches!(byte, b'0' | b'#'));
        let (mut is_quoted, mut is_percent, mut is_whole, mut digits) = (false, false, true, 0);
        let mut code = code.chars();
        while let Some(c) = code.next() {
            match c {
                '"' => is_quoted = !is_quoted,
                '\\' | '_' | '*' if !is_quoted => drop(code.next()),
                // A colour or a language.
                '[' if !is_quoted => drop(code.by_ref().find(|c| *c == ']')),
                '%' if !is_quoted => is_percent = true,
                // Decimals, or the format of negative numbers.
                '.' | ';' if !is_quoted => is_whole = false,
                '0' if !is_quoted && is_whole => digits += 1,
                _ => {}
            }
        }
        Self { is_percent, is_decorated, words, digits }
    }
}

impl<'a> CellValue<'a> {
    /// The value of a cell of a field. An empty text looks like no text in Excel.
    pub(super) fn new(field: Field, cell: DataRef<'a>, look: &Look, is_1904: bool) -> Self {
        let value = match cell {
            DataRef::Empty => Value::Null,
            DataRef::SharedString(text) => return self::text(Cow::Borrowed(text)),
            DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => {
                return self::text(Cow::Owned(text));
            }
            DataRef::Bool(flag) => Value::Bool(flag),
            // A mapping may state what they mean.
            DataRef::Float(number) if field.kind() == Kind::Flag => {
                return text(number.to_string().into());
            }
            DataRef::Int(number) => Value::Cell(number.to_string().into()),
            // Shown as 041126 it may be 4 November 2026.
            DataRef::Float(_) if field.kind() == Kind::Instant && look.digits > 1 => {
                Value::Other("a number with leading zeros: format the cells as dates")
            }
            DataRef::Float(number) if field.kind() == Kind::Instant => return clock(number, is_1904),
            // Excel keeps 15 digits, and writes zeros for the others.
            DataRef::Float(number)
                if number.abs() >= 1e15 && !matches!(field.kind(), Kind::Count | Kind::Decimal) =>
            {
                Value::Other("a number of more than 15 digits, changed by Excel")
            }
            DataRef::DateTime(date) if field.kind() == Kind::Instant => return clock(date.as_f64(), is_1904),
            // Shown with a percent sign, and stored as a fraction.
            DataRef::Float(number) if look.is_percent && field.unit() == Some("percent") => {
                Value::Percent(format!("{number}e2").into())
            }
            DataRef::Float(_) if look.is_percent && matches!(field.kind(), Kind::Count | Kind::Decimal) => {
                Value::Other("a percentage")
            }
            // People take what they see.
            DataRef::Float(_) if look.is_decorated && matches!(field.kind(), Kind::Id | Kind::Name) => {
                Value::Other("a number with a format of its own: store it as text")
            }
            DataRef::Float(_)
                if look.words.as_ref().is_some_and(|words| other_unit(field, words).is_some()) =>
            {
                Value::Other("a number with another unit in its format: convert it")
            }
            DataRef::Float(number) if field.kind() == Kind::Id && number.fract() != 0.0 => {
                Value::Other("a number that is not whole: store it as text")
            }
            DataRef::Float(number)
                if number >= 0.0
                    && number.fract() == 0.0
                    && matches!(field.kind(), Kind::Id | Kind::Name | Kind::Text) =>
            {
                let digits = if look.is_decorated { 0 } else { look.digits };
                Value::Cell(format!("{number:0>digits$}").into())
            }
            DataRef::Float(number) => Value::Cell(number.to_string().into()),
            // Excel makes dates of numbers such as 1.5 if its language has a decimal comma.
            DataRef::DateTime(_) => Value::Other("a date"),
            DataRef::Error(_) => Value::Other("an error of a formula"),
        };
        CellValue::Value(value)
    }
}

impl<'a> CellValue<'a> {
    /// The value of a date and a time of day in two cells, in any order.
    pub(super) fn of_date_and_time(cells: &[DataRef<'a>], is_1904: bool) -> Self {
        let days = |cell: &DataRef<'_>| match cell {
            DataRef::DateTime(days) => Some(days.as_f64()),
            _ => None,
        };
        // 8.3 may be half past eight, or three minutes past.
        let is_fraction =
            |cell: &DataRef<'_>| matches!(cell, DataRef::Float(number) if number.fract() != 0.0);
        match cells {
            [_, _] if cells.iter().any(is_fraction) => {
                CellValue::Value(Value::Other("a number in place of a time: write 08:30, not 8.3"))
            }
            [a, b] => match (days(a), days(b)) {
                // A time of day is a part of a day.
                (Some(a), Some(b)) if a.min(b) < 1.0 && a.max(b).fract() == 0.0 => clock(a + b, is_1904),
                (Some(date), None) | (None, Some(date)) if date >= FIRST_DAY && date.fract() == 0.0 => {
                    let text = if days(a).is_some() { b } else { a };
                    let date = clock(date, is_1904).shown();
                    let day = date.split(' ').next().unwrap_or_default();
                    CellValue::Text(join_date_and_time(day, &cell_text(text)).into())
                }
                (None, None) => CellValue::Text(join_date_and_time(&cell_text(a), &cell_text(b)).into()),
                _ => CellValue::Value(Value::Other("two cells that are not a date and a time of day")),
            },
            [_] => CellValue::Value(Value::Other(ONE_OF_TWO)),
            _ => CellValue::Value(Value::Null),
        }
    }

    /// The value for people, before it is converted.
    pub(super) fn shown(&self) -> String {
        match self {
            CellValue::Text(text) => text.to_string(),
            CellValue::Clock(clock) => clock.to_string().replace('T', " ").replace('Z', ""),
            CellValue::Value(value) => value.to_string(),
        }
    }
}

fn cell_text(cell: &DataRef<'_>) -> String {
    cell.as_string().unwrap_or_default()
}

/// A cell for people.
pub(super) fn shown(cell: &DataRef<'_>, is_1904: bool) -> String {
    match cell {
        DataRef::Bool(flag) => flag.to_string(),
        DataRef::DateTime(date) => match clock(date.as_f64(), is_1904) {
            value @ CellValue::Clock(_) => value.shown(),
            _ => date.as_f64().to_string(),
        },
        cell => cell_text(cell),
    }
}

fn text(text: Cow<'_, str>) -> CellValue<'_> {
    match text.len() {
        0 => CellValue::Value(Value::Null),
        length if length > RECORD_BYTES_MAX => CellValue::Value(Value::Other("text of more than 1 MiB")),
        _ => CellValue::Text(text),
    }
}

/// Programs that write 15 digits of a number miss a whole second by some microseconds.
fn whole_second(micros: i64) -> i64 {
    let nearest = (micros + 500_000) / 1_000_000 * 1_000_000;
    if (micros - nearest).abs() <= 5 { nearest } else { micros }
}

/// A number of days. Its fraction is converted alone, which keeps the microseconds of a pulled file.
fn clock(days: f64, is_1904: bool) -> CellValue<'static> {
    let days = if is_1904 { days + DAYS_TO_1904 } else { days };
    let rest = whole_second(((days - days.floor()) * MICROS_PER_DAY as f64).round() as i64);
    // The conversion to integers saturates.
    let whole = ((days.floor() - EPOCH_DAYS) as i64).checked_mul(MICROS_PER_DAY);
    let instant = whole.and_then(|whole| UtcInstant::from_micros(whole.checked_add(rest)?));
    let is_exact = days >= FIRST_DAY;
    let out_of_range = Value::Other("a date before 1900-03-01 or after 9999");
    instant.filter(|_| is_exact).map_or(CellValue::Value(out_of_range), CellValue::Clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As openpyxl and others write them.
    #[test]
    fn a_date_with_fewer_digits_is_still_a_whole_second() {
        for days in [45979.30969907407, 45979.3096990741, 45979.309699074074] {
            let CellValue::Clock(read) = clock(days, false) else { panic!("not a date: {days}") };
            assert_eq!(read.to_string(), "2025-11-18T07:25:58Z", "{days}");
        }
    }
}
