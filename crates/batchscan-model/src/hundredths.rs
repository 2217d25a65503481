//! Decimals with two fraction digits, stored as integers. Never converted to a float.

use std::fmt;

use crate::digits::push_digits;

/// A decimal number in hundredths: `Hundredths::parse("92.5")` prints `92.50`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hundredths(i64);

/// Values stay between -10^12 and 10^12 (decision 039), so that sums fit an i64 and doubles keep them exact.
const HUNDREDTHS_LIMIT: u128 = 100_000_000_000_000;

/// Bounds the work for a malicious input.
const TEXT_BYTES_MAX: usize = 400;

/// The exponents of doubles are smaller.
const EXPONENT_MAX: i32 = 400;

impl Hundredths {
    /// From a count of hundredths, if the value is between -10^12 and 10^12.
    pub fn from_hundredths(count: i64) -> Option<Self> {
        (u128::from(count.unsigned_abs()) < HUNDREDTHS_LIMIT).then_some(Self(count))
    }

    /// The count of hundredths.
    pub fn count(self) -> i64 {
        self.0
    }

    /// Parses a decimal in JSON's number syntax.
    ///
    /// More than two fraction digits are rounded half away from zero (decision 035), on the text: `1.005` becomes
    /// `1.01`, which a float would miss.
    pub fn parse(text: &str) -> Result<Self, InvalidDecimal> {
        if let Some(value) = Self::parse_usual(text) {
            return Ok(value);
        }
        let number = Decimal::split(text).ok_or(InvalidDecimal::Malformed)?;
        let size = number.hundredths().filter(|size| *size < HUNDREDTHS_LIMIT);
        let size = size.and_then(|size| i64::try_from(size).ok()).ok_or(InvalidDecimal::OutOfRange)?;
        Ok(Self(if number.negative { -size } else { size }))
    }

    /// Appends the decimal as [`Display`](fmt::Display) prints it.
    pub fn push_to(self, text: &mut String) {
        if self.0 < 0 {
            text.push('-');
        }
        let size = self.0.unsigned_abs();
        push_digits(text, size / 100, 1);
        text.push('.');
        push_digits(text, size % 100, 2);
    }

    /// Parses the usual form: two fraction digits, at most twelve before them. It needs no rounding and no range check.
    fn parse_usual(text: &str) -> Option<Self> {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let (whole, [point, tenth, hundredth]) = digits.as_bytes().split_last_chunk()?;
        if *point != b'.' || !(1..=12).contains(&whole.len()) {
            return None;
        }
        let mut size = 0;
        for byte in whole.iter().chain([tenth, hundredth]) {
            size = size * 10 + byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        }
        Some(Self(sign * size))
    }
}

impl fmt::Display for Hundredths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.push_to(&mut text);
        f.write_str(&text)
    }
}

/// Why a text is not a [`Hundredths`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDecimal {
    /// It is not a decimal.
    #[error("a decimal such as 92.5")]
    Malformed,
    /// It is not between -10^12 and 10^12.
    #[error("a decimal between -1000000000000 and 1000000000000")]
    OutOfRange,
}

struct Decimal<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    exponent: i32,
}

impl<'a> Decimal<'a> {
    fn split(text: &'a str) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (text, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) if is_digits(fraction) => (whole, fraction),
            Some(_) => return None,
            None => (mantissa, ""),
        };
        is_digits(whole).then_some(Self { negative, whole, fraction, exponent })
    }

    /// The absolute value in hundredths, rounded half away from zero; `None` on overflow.
    fn hundredths(&self) -> Option<u128> {
        let digits = || self.whole.bytes().chain(self.fraction.bytes()).map(|byte| u128::from(byte - b'0'));
        // How many of the digits are part of the result.
        let kept = i32::try_from(self.whole.len()).ok()? + self.exponent + 2;
        let mut size: u128 = 0;
        for digit in digits().take(usize::try_from(kept.max(0)).ok()?) {
            size = size.checked_mul(10)?.checked_add(digit)?;
        }
        let written = i32::try_from(self.whole.len() + self.fraction.len()).ok()?;
        for _ in written..kept {
            if size == 0 {
                break;
            }
            size = size.checked_mul(10)?;
        }
        let next = usize::try_from(kept).ok().and_then(|index| digits().nth(index));
        Some(size + u128::from(next.is_some_and(|digit| digit >= 5)))
    }
}

fn parse_exponent(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let exponent: i32 = is_digits(digits).then(|| text.parse().ok())??;
    (exponent.abs() <= EXPONENT_MAX).then_some(exponent)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Decisions 035 (rounding) and 039 (range).
    #[test]
    fn decimals_are_rounded_on_the_text_half_away_from_zero() {
        for (text, printed) in [
            ("1.005", "1.01"),
            ("-1.005", "-1.01"),
            ("1.00499999999999999999999", "1.00"),
            ("2.675", "2.68"),
            ("0.994999", "0.99"),
            ("99.999", "100.00"),
            ("-0.001", "0.00"),
            ("1e2", "100.00"),
            ("1.5E+1", "15.00"),
            ("5e-3", "0.01"),
            ("4e-3", "0.00"),
            ("9e-300", "0.00"),
            ("0e300", "0.00"),
            ("999999999999.99", "999999999999.99"),
            ("-999999999999.99", "-999999999999.99"),
        ] {
            assert_eq!(Hundredths::parse(text).unwrap().to_string(), printed);
        }
    }

    /// Decision 039.
    #[test]
    fn invalid_decimals_are_rejected() {
        for text in ["1000000000000", "999999999999.995", "-1e12", "1e300"] {
            assert_eq!(Hundredths::parse(text), Err(InvalidDecimal::OutOfRange), "{text}");
        }
        for text in
            ["", "-", ".5", "5.", "1,5", "+1", " 1", "1e", "1e+", "0x10", "NaN", "1_000", "١", "1e1.5", "--1"]
        {
            assert_eq!(Hundredths::parse(text), Err(InvalidDecimal::Malformed), "{text}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_parsing_round_trip(count in -99_999_999_999_999i64..=99_999_999_999_999) {
            let value = Hundredths::from_hundredths(count).unwrap();
            prop_assert_eq!(Hundredths::parse(&value.to_string()), Ok(value));
        }

        #[test]
        fn the_usual_form_parses_like_any_other(text in "-?[0-9]{0,13}[.][0-9]{1,3}") {
            let long = format!("{text}e0");
            prop_assert_eq!(Hundredths::parse(&text), Hundredths::parse(&long));
        }

        #[test]
        fn no_text_causes_a_panic(text in "[-+0-9eE.]{0,24}|.{0,12}") {
            let _ = Hundredths::parse(&text);
        }
    }
}
