//! Decimals with two fraction digits, as integers. No float is ever made of them.

use std::fmt;

use crate::digits::push_digits;

/// A decimal number in hundredths: `Hundredths::parse("92.5")` prints `92.50`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hundredths(i64);

/// Sizes stay below 10^12 (decision 039): every sum of a page fits an i64 and every JSON reader's double.
const HUNDREDTHS_LIMIT: u128 = 100_000_000_000_000;

/// No honest decimal is longer; it bounds the work for a hostile one.
const TEXT_BYTES_MAX: usize = 400;

/// An exponent past this is out of every range that a double can print.
const EXPONENT_MAX: i32 = 400;

impl Hundredths {
    /// From a count of hundredths, if it is below 10^12 in size.
    pub fn from_hundredths(count: i64) -> Option<Self> {
        (u128::from(count.unsigned_abs()) < HUNDREDTHS_LIMIT).then_some(Self(count))
    }

    /// The count of hundredths.
    pub fn count(self) -> i64 {
        self.0
    }

    /// Reads decimal text as JSON writes numbers, with or without fraction and exponent.
    ///
    /// More than two fraction digits are rounded on the text, half away from zero (decision 035):
    /// `1.005` is `1.01`, which no float would give.
    pub fn parse(text: &str) -> Result<Self, NotHundredths> {
        if let Some(value) = Self::parse_plain(text) {
            return Ok(value);
        }
        let number = Decimal::split(text).ok_or(NotHundredths::Malformed)?;
        let magnitude = number.hundredths().filter(|size| *size < HUNDREDTHS_LIMIT);
        let size =
            i64::try_from(magnitude.ok_or(NotHundredths::TooLarge)?).map_err(|_| NotHundredths::TooLarge)?;
        Ok(Self(if number.negative { -size } else { size }))
    }

    /// Appends the number as it is printed.
    pub fn push_to(self, text: &mut String) {
        if self.0 < 0 {
            text.push('-');
        }
        let size = self.0.unsigned_abs();
        push_digits(text, size / 100, 1);
        text.push('.');
        push_digits(text, size % 100, 2);
    }

    /// Reads the form that most decimals of a file have, two fraction digits and no more than twelve before them:
    /// nothing is to be rounded, and nothing can be too large.
    fn parse_plain(text: &str) -> Option<Self> {
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

/// Why a text is no decimal of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotHundredths {
    /// It is not a decimal number.
    #[error("a decimal number such as 92.50")]
    Malformed,
    /// It is 10^12 or more in size.
    #[error("a decimal number below 1000000000000 in size")]
    TooLarge,
}

/// A decimal text taken apart, its digits still as written.
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

    /// The size in hundredths, rounded half away from zero; `None` if it overflows.
    fn hundredths(&self) -> Option<u128> {
        let digits = || self.whole.bytes().chain(self.fraction.bytes()).map(|byte| u128::from(byte - b'0'));
        // How many of the digits stand before the end of the hundredths.
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
        let next = usize::try_from(kept).ok().and_then(|place| digits().nth(place));
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

    fn read(text: &str) -> String {
        Hundredths::parse(text).map_or_else(|fault| fault.to_string(), |value| value.to_string())
    }

    /// Decision 035.
    #[test]
    fn more_digits_are_rounded_on_the_text_half_away_from_zero() {
        assert_eq!(read("1.005"), "1.01");
        assert_eq!(read("-1.005"), "-1.01");
        assert_eq!(read("1.00499999999999999999999"), "1.00");
        assert_eq!(read("2.675"), "2.68");
        assert_eq!(read("0.994999"), "0.99");
        assert_eq!(read("99.999"), "100.00");
        assert_eq!(read("-0.001"), "0.00");
    }

    #[test]
    fn exponents_are_read_as_json_writes_them() {
        assert_eq!(read("1e2"), "100.00");
        assert_eq!(read("1.5E+1"), "15.00");
        assert_eq!(read("5e-3"), "0.01");
        assert_eq!(read("4e-3"), "0.00");
        assert_eq!(read("9e-300"), "0.00");
        assert_eq!(read("0e300"), "0.00");
    }

    /// Decision 039.
    #[test]
    fn a_size_of_ten_to_the_twelfth_is_refused() {
        assert_eq!(read("999999999999.99"), "999999999999.99");
        assert_eq!(read("-999999999999.99"), "-999999999999.99");
        for large in ["1000000000000", "999999999999.995", "-1e12", "1e300"] {
            assert_eq!(Hundredths::parse(large), Err(NotHundredths::TooLarge), "{large}");
        }
    }

    #[test]
    fn what_is_no_decimal_is_refused() {
        for text in
            ["", "-", ".5", "5.", "1,5", "+1", " 1", "1e", "1e+", "0x10", "NaN", "1_000", "١", "1e1.5", "--1"]
        {
            assert_eq!(Hundredths::parse(text), Err(NotHundredths::Malformed), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back_as_itself(count in -99_999_999_999_999i64..=99_999_999_999_999) {
            let value = Hundredths::from_hundredths(count).unwrap();
            prop_assert_eq!(Hundredths::parse(&value.to_string()), Ok(value));
        }

        #[test]
        fn the_plain_form_is_read_as_any_other(text in "-?[0-9]{0,13}[.][0-9]{1,3}") {
            let long = format!("{text}e0");
            prop_assert_eq!(Hundredths::parse(&text), Hundredths::parse(&long));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-+0-9eE.]{0,24}|.{0,12}") {
            let _ = Hundredths::parse(&text);
        }
    }
}
