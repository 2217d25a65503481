//! Writes numbers as text. The standard library's formatting is several times slower, and a batch has about thirty
//! numbers.

/// The digits of the largest `u64`.
const DIGITS_MAX: usize = 20;

/// `00` to `99`.
const PAIRS: &str = "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
    5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

/// Appends a number, padded with zeros to `width` digits.
pub fn push_digits(text: &mut String, number: u64, width: usize) {
    // Most numbers of a batch have at most four digits.
    match (number, width) {
        (0..100, 2) => text.push_str(pair(number)),
        (0..10, 1) => text.push_str(&pair(number)[1..]),
        (10..100, 1) => text.push_str(pair(number)),
        (100..10_000, 1) | (0..10_000, 4) => {
            let zeros = usize::from(width == 1 && number < 1_000);
            text.push_str(&pair(number / 100)[zeros..]);
            text.push_str(pair(number % 100));
        }
        _ => push_any(text, number, width),
    }
}

fn pair(number: u64) -> &'static str {
    let at = 2 * (number % 100) as usize;
    &PAIRS[at..at + 2]
}

fn push_any(text: &mut String, number: u64, width: usize) {
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
        fn the_digits_equal_those_of_the_standard_library(number: u64, width in 1usize..=20) {
            for number in [number, number % 10, number % 100, number % 1_000, number % 10_000, number % 100_000] {
                let mut text = String::new();
                push_digits(&mut text, number, width);
                prop_assert_eq!(text, format!("{number:0width$}"));
            }
        }
    }
}
