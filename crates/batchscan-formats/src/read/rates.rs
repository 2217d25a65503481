//! The unit of rates: percent or fraction. Never guesses it.

use std::borrow::Cow;

use batchscan_model::{Batch, Field, FieldError, Hundredths, RawBatch, Value};

use super::error::{LocatedError, Location};
use super::mapping::{RATE_FIELDS, RateUnit, RateUnits};

/// 1.00, in hundredths.
const FRACTION_MAX: i64 = 100;
/// Rates in the form of the API, texts with two fraction digits, are percentages by its contract. This many that are all
/// at most 1 are not by chance.
const API_RATES_MAX: u64 = 20;

/// If a mapping says percent, this many rates are not all at most 1 by chance.
const STATED_MIN: u64 = 2;

/// What the rates of a table show about their unit.
#[derive(Default)]
pub(super) struct Rates {
    units: RateUnits,
    /// Whether the title of a column says percent. A mapping may say otherwise.
    is_titled: [bool; RATE_FIELDS.len()],
    /// The first rate of each column that is read as a fraction although its title says percent.
    converted: [Option<(Location, String)>; RATE_FIELDS.len()],
    /// Whether the type of a column says percent, whatever the mapping says.
    is_typed: [bool; RATE_FIELDS.len()],
    /// The first rate of each column that is above 0 and at most 1.
    first: [Option<(Location, String)>; RATE_FIELDS.len()],
    /// The rates above 0 and at most 1, and those above 1.
    small: [u64; RATE_FIELDS.len()],
    large: [u64; RATE_FIELDS.len()],
    /// Rates in the form of the API, and whether there are others.
    api_rates: [u64; RATE_FIELDS.len()],
    has_others: [bool; RATE_FIELDS.len()],
    /// Whether rows were rejected, so that not all values are known.
    pub(super) is_incomplete: bool,
}

impl Rates {
    pub(super) fn new(units: RateUnits) -> Self {
        Self { units, ..Self::default() }
    }

    /// Begins the next table. Returns what the one before shows.
    pub(super) fn begin_table(&mut self) -> Self {
        std::mem::replace(self, Self::new(self.units))
    }

    /// The title of the column says percent.
    pub(super) fn set_percent_title(&mut self, field: Field) {
        set(&mut self.is_titled, field);
    }

    /// The type of the column says percent.
    pub(super) fn set_percent_type(&mut self, field: Field) {
        set(&mut self.is_typed, field);
    }

    /// Makes percentages of fractions, exactly: 0.925 is 92.5. Texts in the form of the API are percentages.
    pub(super) fn convert(&mut self, location: Location, raw: &mut RawBatch<'_>) {
        for (index, field) in RATE_FIELDS.into_iter().enumerate() {
            if self.units.get(index) != Some(RateUnit::Fraction) || self.is_typed[index] {
                continue;
            }
            let (text, is_api) = match raw.get(field) {
                Some(Value::Number(text) | Value::Cell(text)) => (text.to_string(), false),
                Some(Value::Text(text)) => (text.to_string(), is_api_form(text)),
                _ => continue,
            };
            let Ok(rate) = Hundredths::parse(&text) else { continue };
            let is_fraction = rate.count() <= FRACTION_MAX;
            let expected = match (is_api, is_fraction) {
                (true, false) => continue,
                (true, true) if rate.count() == 0 => continue,
                (true, true) => {
                    "a number: a text with two decimals is a percentage, but rates in the mapping says fraction"
                }
                (false, false) => {
                    "a fraction from 0 to 1, as rates in the mapping says; if only some rates are fractions, name them: \
                     rates = { avg_germination_rate = \"fraction\" }"
                }
                (false, true) => {
                    if self.is_titled[index] && self.is_for_all() {
                        self.converted[index].get_or_insert_with(|| (location, text.clone()));
                    }
                    if let Some(value) = raw.get_mut(field) {
                        *value = Value::Percent(Cow::Owned(times_hundred(&text)));
                    }
                    continue;
                }
            };
            raw.reject(field, FieldError::new(field.name(), text, expected));
        }
    }

    /// Takes note of the rates of a batch.
    pub(super) fn observe(&mut self, location: Location, raw: &RawBatch<'_>, batch: &Batch) {
        let rates =
            [batch.avg_germination_rate, batch.avg_usable_seedling_rate, batch.avg_coefficient_of_variation];
        self.observe_rates(location, raw, rates);
    }

    /// Takes note of the rates of a row that is rejected, perhaps for another reason.
    #[cold]
    pub(super) fn observe_rejected(&mut self, location: Location, raw: &RawBatch<'_>) {
        let rates = RATE_FIELDS.map(|field| match raw.get(field) {
            Some(Value::Number(text) | Value::Text(text) | Value::Cell(text)) => {
                let rate = Hundredths::parse(text).ok();
                self.is_incomplete |= rate.is_none();
                rate
            }
            value => {
                self.is_incomplete |= matches!(value, Some(Value::Rejected));
                None
            }
        });
        self.observe_rates(location, raw, rates);
    }

    fn observe_rates(
        &mut self,
        location: Location,
        raw: &RawBatch<'_>,
        rates: [Option<Hundredths>; RATE_FIELDS.len()],
    ) {
        for (index, rate) in rates.into_iter().enumerate() {
            let Some(rate) = rate.filter(|rate| !self.is_typed[index] && rate.count() >= 0) else { continue };
            let text = match raw.get(RATE_FIELDS[index]) {
                Some(Value::Percent(_)) => continue,
                Some(_) if rate.count() > FRACTION_MAX => {
                    self.large[index] += 1;
                    continue;
                }
                Some(Value::Text(text)) if is_api_form(text) => {
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

    /// Whether a mapping states one unit for all rates, so that it may have overlooked one.
    fn is_for_all(&self) -> bool {
        matches!(self.units, RateUnits::All(_))
    }

    /// The errors of columns of which half of the rates or more are at most 1: both readings and the setting that decides.
    /// Fewer are warnings, and all of them if the title says percent.
    pub(super) fn finish(self) -> (Vec<LocatedError>, Vec<LocatedError>) {
        let (mut errors, mut warnings) = (Vec::new(), Vec::new());
        // The file is rejected, and the missing values may show the unit.
        if self.is_incomplete {
            return (errors, warnings);
        }
        for (field, converted) in RATE_FIELDS.into_iter().zip(&self.converted) {
            let Some((location, text)) = converted else { continue };
            let problem = format!(
                "{text} is read as a fraction, as rates in the mapping says, although the title says percent; \
                 rates = {{ {field} = \"fraction\" }} ends this warning"
            );
            let error = FieldError::problem(field.name(), problem);
            warnings.push(LocatedError { location: *location, error });
        }
        for (index, field) in RATE_FIELDS.into_iter().enumerate() {
            let (small, large) = (self.small[index], self.large[index]);
            let is_stated = self.units.get(index) == Some(RateUnit::Percent);
            let is_meant = is_stated && (!self.is_for_all() || large > 0 || small < STATED_MIN);
            let is_api = !self.has_others[index] && self.api_rates[index] < API_RATES_MAX;
            let first = self.first[index].as_ref().filter(|_| !is_meant && !is_api);
            let Some((location, text)) = first else { continue };
            let read =
                |text: &str| Hundredths::parse(text).map_or_else(|_| String::new(), |rate| rate.to_string());
            let how_many = match large {
                0 => "no value is above 1".to_owned(),
                _ => format!("{small} of {} values are at most 1", small + large),
            };
            let (percent, fraction) = (read(text), read(&times_hundred(text)));
            let source = if is_stated { "rates in the mapping" } else { "the title" };
            // A unit of the whole column would not help if only a few are fractions.
            let (found, problem) = if small < large {
                let problem = format!(
                    "{how_many}, {text} is the first: read as {percent} %. If {fraction} % was meant, correct the file; \
                     if not, rates = \"percent\" in a mapping ends this warning"
                );
                (&mut warnings, problem)
            } else if is_stated || self.is_titled[index] {
                let problem = format!(
                    "{how_many}, although {source} says percent: {text} is read as {percent} %. For {fraction} %, add \
                     rates = {{ {field} = \"fraction\" }} to a mapping; rates = {{ {field} = \"percent\" }} ends this warning"
                );
                (&mut warnings, problem)
            } else {
                // One unit for all rates would be wrong for those above 1.
                let setting = |unit: RateUnit| match self.large.iter().any(|large| *large > 0) {
                    true => format!("rates = {{ {field} = \"{}\" }}", unit.name()),
                    false => format!("rates = \"{}\"", unit.name()),
                };
                let (as_percent, as_fraction) = (setting(RateUnit::Percent), setting(RateUnit::Fraction));
                let problem = format!(
                    "{how_many}: {text} is {percent} % ({as_percent} in a mapping) or {fraction} % ({as_fraction})"
                );
                (&mut errors, problem)
            };
            let error = FieldError::problem(field.name(), problem);
            found.push(LocatedError { location: *location, error });
        }
        (errors, warnings)
    }
}

fn set(flags: &mut [bool; RATE_FIELDS.len()], field: Field) {
    if let Some(index) = RATE_FIELDS.iter().position(|rate| *rate == field) {
        flags[index] = true;
    }
}

/// Whether a text of at most 1 has the form of the API: two fraction digits.
fn is_api_form(text: &str) -> bool {
    text.split_once('.').is_some_and(|(_, fraction)| fraction.len() == 2)
}

/// Moves the decimal point by its exponent, so that no digit is lost.
fn times_hundred(number: &str) -> String {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    format!("{mantissa}e{}", exponent + 2)
}
