//! A column with dates of Excel and dates as text: Excel may have read day and month in the wrong order, which it does
//! only up to the 12th of a month.

use batchscan_model::printable::clip;
use batchscan_model::{Field, FieldError};

use super::value::CellValue;
use crate::read::error::{LocatedError, Location};
use crate::read::mapping::quoted;

/// The dates of a sheet.
#[derive(Default)]
pub(super) struct MixedDates {
    has_dates: bool,
    /// Whether a date of Excel is after the 12th of a month.
    has_late_dates: bool,
    /// The first date as text, unless its year comes first.
    text: Option<(Location, String)>,
    /// Whether Excel could have made a date of a text in any order.
    has_early_texts: bool,
    /// The first whole number that Excel does not show as a date, and its date.
    number: Option<(Location, String, String)>,
}

impl MixedDates {
    pub(super) fn observe(&mut self, value: &CellValue<'_>, location: Location) {
        match value {
            CellValue::Clock(clock) => {
                self.has_dates = true;
                self.has_late_dates |= clock.to_string().get(8..10) > Some("12");
            }
            CellValue::Text(text) => {
                let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
                let parts: Vec<&str> = numbers.take(2).collect();
                let [first, second] = parts.as_slice() else { return };
                if first.len() <= 2 {
                    let is_early = |part: &str| part.parse().is_ok_and(|number: u32| number <= 12);
                    self.has_early_texts |= is_early(first) && is_early(second);
                    self.text.get_or_insert_with(|| (location, clip(text)));
                }
            }
            CellValue::Value(_) => {}
        }
    }

    /// Takes note of a whole number that Excel does not show as a date.
    pub(super) fn observe_number(&mut self, number: f64, value: &CellValue<'_>, location: Location) {
        if let CellValue::Clock(_) = value {
            self.number.get_or_insert_with(|| (location, number.to_string(), value.shown()));
        }
    }

    /// 41126 may be 4 November 2026, and is read as 5 August 2012.
    pub(super) fn warn_about_number(&self) -> Option<LocatedError> {
        let (location, number, date) = self.number.as_ref()?;
        let day = date.split(' ').next().unwrap_or_default();
        let problem = format!(
            "{number} is not shown as a date by Excel, and is read as {day}: format the cells as dates, and check what Excel \
             then shows"
        );
        let error = FieldError::problem(Field::BatchCreationDate.name(), problem);
        Some(LocatedError { location: *location, error })
    }

    /// The error about dates that are probably wrong, or the warning about others.
    pub(super) fn finish(&self) -> Option<Result<LocatedError, LocatedError>> {
        let (location, text) = self.text.as_ref().filter(|_| self.has_dates)?;
        let text = quoted(text);
        let is_swapped = !self.has_late_dates && !self.has_early_texts;
        let problem = match is_swapped {
            true => format!(
                "{text} is text, and all dates of Excel are up to the 12th of a month: Excel has probably read day and month \
                 in the wrong order; import the original file, or correct all dates"
            ),
            false => format!(
                "{text} is text, and others are dates of Excel: check that Excel has not swapped day and month"
            ),
        };
        let error = FieldError::problem(Field::BatchCreationDate.name(), problem);
        let found = LocatedError { location: *location, error };
        Some(if is_swapped { Err(found) } else { Ok(found) })
    }
}
