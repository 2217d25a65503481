//! Hexadecimal digits. `format!` takes ten times as long.

pub(crate) fn push_number(text: &mut String, number: u64) {
    let digits = (u64::BITS - number.leading_zeros()).div_ceil(4).max(1);
    text.extend((0..digits).rev().map(|digit| hex_digit((number >> (4 * digit)) as u8)));
}

pub(crate) fn push_bytes(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push(hex_digit(byte >> 4));
        text.push(hex_digit(*byte));
    }
}

fn hex_digit(number: u8) -> char {
    char::from(b"0123456789abcdef"[usize::from(number & 15)])
}
