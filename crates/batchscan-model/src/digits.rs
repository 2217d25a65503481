//! Digits written straight into a text. The standard library's formatting costs several times as much, and a batch
//! holds some thirty numbers.

/// No `u64` has more digits.
const DIGITS_MAX: usize = 20;

/// Appends a number, with zeros in front up to `width` digits.
pub(crate) fn push_digits(text: &mut String, number: u64, width: usize) {
    let mut digits = [b'0'; DIGITS_MAX];
    let mut start = DIGITS_MAX;
    let mut rest = number;
    while rest > 0 {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let written = &digits[start.min(DIGITS_MAX.saturating_sub(width))..];
    text.extend(written.iter().map(|digit| char::from(*digit)));
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
