//! Decodes UTF-16 and Windows-1252, piece by piece. Old spreadsheet programs write them.

/// What Windows-1252 has at 0x80 to 0x9F. Five bytes are not defined: they show that it is another encoding.
const WINDOWS_1252: [char; 32] = [
    '€', INVALID, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', INVALID, 'Ž', INVALID, INVALID, '‘',
    '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', INVALID, 'ž', 'Ÿ',
];
/// Its letters among them, which are umlauts in the encoding of old Macs.
pub(super) const RARE_LETTERS: [char; 9] = ['ƒ', 'ˆ', 'Š', 'Œ', 'Ž', 'š', 'œ', 'ž', 'Ÿ'];
/// Stands for bytes that are not text.
pub(super) const INVALID: char = char::REPLACEMENT_CHARACTER;

/// An encoding, with the bytes of a character that is not complete.
pub(super) enum Decoder {
    Utf16 { is_big_endian: bool, rest: Vec<u8> },
    Windows1252,
}

impl Decoder {
    pub(super) fn utf16(is_big_endian: bool) -> Self {
        Decoder::Utf16 { is_big_endian, rest: Vec::new() }
    }

    /// Decodes the next bytes of a file. None are left at its end.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> String {
        let (is_big_endian, rest) = match self {
            Decoder::Utf16 { is_big_endian, rest } => (*is_big_endian, rest),
            Decoder::Windows1252 => return bytes.iter().map(|byte| windows_1252(*byte)).collect(),
        };
        let is_last = bytes.is_empty();
        rest.extend_from_slice(bytes);
        let unit = |pair: &[u8]| match is_big_endian {
            true => u16::from_be_bytes([pair[0], pair[1]]),
            false => u16::from_le_bytes([pair[0], pair[1]]),
        };
        let mut units: Vec<u16> = rest.chunks_exact(2).map(unit).collect();
        // The second half of a surrogate pair follows.
        if !is_last && units.last().is_some_and(|unit| (0xD800..0xDC00).contains(unit)) {
            units.pop();
        }
        rest.drain(..2 * units.len());
        let mut text: String = char::decode_utf16(units).map(|c| c.unwrap_or(INVALID)).collect();
        if is_last && !std::mem::take(rest).is_empty() {
            text.push(INVALID);
        }
        text
    }
}

fn windows_1252(byte: u8) -> char {
    match byte {
        0x80..0xA0 => WINDOWS_1252[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf_16_may_be_cut_anywhere() {
        let text = "Größe 🌱";
        let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for length in 1..5 {
            let mut decoder = Decoder::utf16(true);
            let mut decoded: String = bytes.chunks(length).map(|piece| decoder.decode(piece)).collect();
            decoded.push_str(&decoder.decode(&[]));
            assert_eq!(decoded, text);
        }
        let mut cut = Decoder::utf16(false);
        assert_eq!(cut.decode(b"a\0b") + &cut.decode(&[]), "a\u{FFFD}");
    }

    #[test]
    fn windows_1252_has_umlauts_and_undefined_bytes() {
        assert_eq!(Decoder::Windows1252.decode(b"K\xF6ln \x80 \x81"), "Köln € \u{FFFD}");
    }
}
