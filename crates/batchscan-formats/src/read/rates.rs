//! The unit of rates: percent or fraction. Never guesses it.

use std::borrow::Cow;

use batchscan_model::{Batch, Field, FieldError, Hundredths, RawBatch, Value};

use super::error::{LocatedError, Location};
use super::mapping::RateUnit;

/// The fields in percent.
pub(super) const RATE_FIELDS: [Field; 3] =
    [Field::AvgGerminationRate, Field::AvgUsableSeedlingRate, Field::AvgCoefficientOfVariation];
/// 1.00, in hundredths.
const FRACTION_MAX: i64 = 100;
/// Rates in the form of the API, texts with two fraction digits, are percentages by its contract. This many that are all
/// at most 1 are not by chance.
const API_RATES_MAX: u64 = 20;

/// What the rates of a file show about their unit.
#[derive(Default)]
pub(super) struct Rates {
    unit: Option<RateUnit>,
    /// Whether the title or the type of a column says percent, whatever the mapping says.
    is_percent: [bool; RATE_FIELDS.len()],
    /// Whether the unit of a column is stated.
    is_known: [bool; RATE_FIELDS.len()],
    /// The first rate of each column that is above 0 and at most 1.
    first: [Option<(Location, String)>; RATE_FIELDS.len()],
    /// The rates above 0 and at most 1, and those above 1.
    small: [u64; RATE_FIELDS.len()],
    large: [u64; RATE_FIELDS.len()],
    /// Rates in the form of the API, and whether there are others.
    api_rates: [u64; RATE_FIELDS.len()],
    has_others: [bool; RATE_FIELDS.len()],
}

impl Rates {
    pub(super) fn new(unit: Option<RateUnit>) -> Self {
        Self { unit, is_known: [unit.is_some(); RATE_FIELDS.len()], ..Self::default() }
    }

    /// The title or the type of the column says percent.
    pub(super) fn set_percent(&mut self, field: Field) {
        if let Some(index) = RATE_FIELDS.iter().position(|rate| *rate == field) {
            self.is_known[index] = true;
            self.is_percent[index] = true;
        }
    }

    /// Makes percentages of fractions, exactly: 0.925 is 92.5. Texts in JSON have the form of the API, which is percent.
    pub(super) fn convert(&self, raw: &mut RawBatch<'_>) {
        if self.unit != Some(RateUnit::Fraction) {
            return;
        }
        for (field, _) in RATE_FIELDS.into_iter().zip(self.is_percent).filter(|(_, is_percent)| !is_percent) {
            let Some(Value::Number(text) | Value::Cell(text)) = raw.get(field) else {
                continue;
            };
            let Ok(fraction) = Hundredths::parse(text) else { continue };
            let text = text.to_string();
            if fraction.count() > FRACTION_MAX {
                let expected = "a fraction from 0 to 1, as rates = \"fraction\" in the mapping says";
                raw.reject(field, FieldError::new(field.name(), text, expected));
            } else if let Some(value) = raw.get_mut(field) {
                *value = Value::Percent(Cow::Owned(times_hundred(&text)));
            }
        }
    }

    /// Takes note of the rates of a batch.
    pub(super) fn observe(&mut self, location: Location, raw: &RawBatch<'_>, batch: &Batch) {
        if self.is_known == [true; RATE_FIELDS.len()] {
            return;
        }
        let rates =
            [batch.avg_germination_rate, batch.avg_usable_seedling_rate, batch.avg_coefficient_of_variation];
        for (index, rate) in rates.into_iter().enumerate() {
            let Some(rate) = rate.filter(|rate| !self.is_known[index] && rate.count() >= 0) else { continue };
            let text = match raw.get(RATE_FIELDS[index]) {
                Some(Value::Percent(_)) => continue,
                Some(_) if rate.count() > FRACTION_MAX => {
                    self.large[index] += 1;
                    continue;
                }
                Some(Value::Text(text)) if text.len() == "0.50".len() => {
                    self.api_rates[index] += 1;
                    text
                }
                Some(Value::Number(text) | Value::Text(text) | Value::Cell(text)) => {
                    self.has_others[index] = true;
                    text
                }
                _ => continue,
            };
            // Also 0.001 is above 0, before it is rounded.
            if !text.starts_with('-') && text.contains(|c| ('1'..='9').contains(&c)) {
                self.small[index] += 1;
                self.first[index].get_or_insert_with(|| (location, text.to_string()));
            }
        }
    }

    /// The errors of columns of which half of the rates or more are at most 1: both readings and the setting that decides.
    /// Fewer are warnings.
    pub(super) fn finish(self) -> (Vec<LocatedError>, Vec<LocatedError>) {
        let (mut errors, mut warnings) = (Vec::new(), Vec::new());
        for (index, first) in self.first.into_iter().enumerate() {
            let (small, large) = (self.small[index], self.large[index]);
            let is_api = !self.has_others[index] && self.api_rates[index] < API_RATES_MAX;
            let Some((location, text)) = first.filter(|_| !self.is_known[index] && !is_api) else {
                continue;
            };
            let read =
                |text: &str| Hundredths::parse(text).map_or_else(|_| String::new(), |rate| rate.to_string());
            let how_many = match large {
                0 => "no value is above 1".to_owned(),
                _ => format!("{small} of {} values are at most 1", small + large),
            };
            let (percent, fraction) = (read(&text), read(&times_hundred(&text)));
            // A unit of the whole column would not help if only a few are fractions.
            let is_few = small < large;
            let problem = match is_few {
                true => format!(
                    "{how_many}, {text} is the first: read as {percent} %. If {fraction} % was meant, correct the file; \
                     if not, rates = \"percent\" in a mapping ends this warning"
                ),
                false => format!(
                    "{how_many}: {text} is {percent} % (rates = \"percent\" in a mapping) or {fraction} % \
                     (rates = \"fraction\")"
                ),
            };
            let found = if is_few { &mut warnings } else { &mut errors };
            found.push(LocatedError {
                location,
                error: FieldError::problem(RATE_FIELDS[index].name(), problem),
            });
        }
        (errors, warnings)
    }
}

/// Moves the decimal point by its exponent, so that no digit is lost.
fn times_hundred(number: &str) -> String {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    format!("{mantissa}e{}", exponent + 2)
}
