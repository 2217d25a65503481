//! Digits written straight into a text. The standard library's formatting costs several times as much, and a batch
//! holds some thirty numbers.

/// No `u64` has more digits.
const DIGITS_MAX: usize = 20;

/// `00` to `99`, one after the other.
const PAIRS: &str = "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
    5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

/// Appends a number, with zeros in front up to `width` digits.
pub(crate) fn push_digits(text: &mut String, number: u64, width: usize) {
    // Months, days, hours, hundredths: most numbers of a batch are two digits.
    if number < 100 && width == 2 {
        let pair = 2 * number as usize;
        return text.push_str(&PAIRS[pair..pair + 2]);
    }
    let mut digits = [b'0'; DIGITS_MAX];
    let mut start = DIGITS_MAX;
    let mut rest = number;
    while rest > 0 {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let written = &digits[start.min(DIGITS_MAX.saturating_sub(width))..];
    text.push_str(str::from_utf8(written).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn digits_are_those_of_the_standard_library(number: u64, width in 1usize..=20) {
            let mut text = String::new();
            push_digits(&mut text, number, width);
            push_digits(&mut text, number % 10, width);
            prop_assert_eq!(text, format!("{number:0width$}{:0width$}", number % 10));
        }
    }
}
