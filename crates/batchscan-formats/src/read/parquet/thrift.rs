//! A check of the metadata of a Parquet file, in Thrift's compact protocol, before the library reads it.
//!
//! The library skips an unknown list of booleans without reading a byte for each: a list that claims 2³¹ of them takes
//! seconds, and a file of some KB can contain hundreds. Parquet has no such lists in the metadata that is read here.

use std::io::{self, Read};

/// Deeper than any metadata; the library has the same limit.
const DEPTH_MAX: u8 = 64;
const I32: u8 = 5;
const STRUCT: u8 = 12;

/// What limits the memory for a page.
#[derive(Debug, Default, PartialEq)]
pub(super) struct PageHeader {
    /// The larger of the compressed and the uncompressed size.
    pub(super) bytes: u64,
    /// The number of values in a dictionary.
    pub(super) dictionary_values: u64,
}

/// Whether the input starts with a structure without collections of booleans.
pub(super) fn is_safe(mut input: impl Read) -> bool {
    skip_struct(&mut input, DEPTH_MAX).is_some()
}

/// `None` if the input does not start with a page header, or if it is not safe.
pub(super) fn read_page_header(mut input: impl Read) -> Option<PageHeader> {
    let mut header = PageHeader::default();
    let mut sizes = 0;
    for_each_field(&mut input, |input, id, kind| match (id, kind) {
        (2 | 3, I32) => {
            sizes += 1;
            header.bytes = header.bytes.max(size(input)?);
            Some(())
        }
        (7, STRUCT) => for_each_field(input, |input, id, kind| match (id, kind) {
            (1, I32) => {
                header.dictionary_values = size(input)?;
                Some(())
            }
            _ => skip_field(input, kind, DEPTH_MAX),
        }),
        _ => skip_field(input, kind, DEPTH_MAX),
    })?;
    (sizes == 2).then_some(header)
}

/// A zigzag number. Negative ones, which are invalid here, count as huge.
fn size(input: &mut impl Read) -> Option<u64> {
    let number = varint(input)?;
    Some(if number & 1 == 0 { number >> 1 } else { u64::MAX })
}

fn skip_struct(input: &mut impl Read, depth: u8) -> Option<()> {
    for_each_field(input, |input, _, kind| skip_field(input, kind, depth))
}

/// Calls `visit` with the number and the type of each field.
fn for_each_field<R: Read>(
    input: &mut R,
    mut visit: impl FnMut(&mut R, u64, u8) -> Option<()>,
) -> Option<()> {
    let mut id = 0;
    loop {
        let header = byte(input)?;
        let kind = header & 0x0F;
        if kind == 0 {
            return Some(());
        }
        // The distance to the last number, or 0 if the number follows.
        id = match header >> 4 {
            0 => size(input)?,
            distance => id.saturating_add(u64::from(distance)),
        };
        visit(input, id, kind)?;
    }
}

/// The type of a boolean field is its value.
fn skip_field(input: &mut impl Read, kind: u8, depth: u8) -> Option<()> {
    if matches!(kind, 1 | 2) { Some(()) } else { skip_value(input, kind, depth) }
}

fn skip_value(input: &mut impl Read, kind: u8, depth: u8) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    match kind {
        3 => skip_bytes(input, 1),
        4..=6 => varint(input).map(drop),
        7 => skip_bytes(input, 8),
        8 => varint(input).and_then(|length| skip_bytes(input, length)),
        9 | 10 => match byte(input)? {
            0 => Some(()),
            header => {
                let count = if header >= 0xF0 { varint(input)? } else { u64::from(header >> 4) };
                (0..count).try_for_each(|_| skip_value(input, header & 0x0F, depth))
            }
        },
        11 => match varint(input)? {
            0 => Some(()),
            count => {
                let kinds = byte(input)?;
                (0..count).try_for_each(|_| {
                    skip_value(input, kinds >> 4, depth)?;
                    skip_value(input, kinds & 0x0F, depth)
                })
            }
        },
        STRUCT => skip_struct(input, depth),
        13 => skip_bytes(input, 16),
        _ => None,
    }
}

fn byte(input: &mut impl Read) -> Option<u8> {
    let mut byte = [0];
    input.read_exact(&mut byte).ok()?;
    Some(byte[0])
}

fn varint(input: &mut impl Read) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte(input)?;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn skip_bytes(input: &mut impl Read, count: u64) -> Option<()> {
    let skipped = io::copy(&mut input.take(count), &mut io::sink()).ok()?;
    (skipped == count).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_header_has_two_sizes_and_perhaps_a_dictionary() {
        let data = [0x15, 0, 0x15, 6, 0x15, 4, 0x2C, 0x15, 2, 0, 0];
        assert_eq!(read_page_header(&data[..]), Some(PageHeader { bytes: 3, dictionary_values: 0 }));
        let dictionary =
            [0x15, 4, 0x15, 2, 0x15, 4, 0x4C, 0x15, 0xF4, 0xFF, 0xFF, 0xFF, 4, 0x15, 0, 0x12, 0, 0];
        let expected = PageHeader { bytes: 2, dictionary_values: 671_088_634 };
        assert_eq!(read_page_header(&dictionary[..]), Some(expected));
        let negative = [0x15, 0, 0x15, 1, 0x15, 4, 0];
        assert_eq!(read_page_header(&negative[..]).unwrap().bytes, u64::MAX);
        for invalid in [&data[..10], &[0x15, 0, 0x15, 6, 0], &[0x19, 0xF1, 0xFF, 0xFF, 0xFF, 0xFF, 7, 0]] {
            assert_eq!(read_page_header(invalid), None, "{invalid:?}");
        }
    }

    #[test]
    fn structures_are_safe_unless_they_contain_collections_of_booleans() {
        let safe: [&[u8]; 6] = [
            &[0],
            &[0x11, 0x12, 0x01, 40, 0],
            &[0x13, 9, 0x15, 0x80, 1, 0x17, 1, 2, 3, 4, 5, 6, 7, 8, 0x18, 2, b'a', b'b', 0],
            &[0x19, 0x25, 1, 2, 0x1A, 0, 0],
            &[0x1B, 1, 0x58, 7, 1, b'x', 0x1B, 0, 0],
            &[0x1C, 0x15, 1, 0, 0],
        ];
        for bytes in safe {
            assert!(is_safe(bytes), "{bytes:?}");
            assert!(!is_safe(&bytes[..bytes.len() - 1]), "{bytes:?} without its end");
        }
        let unsafe_: [&[u8]; 4] = [
            &[0x19, 0xF1, 0xFF, 0xFF, 0xFF, 0xFF, 7, 0],
            &[0x19, 0x11, 1, 0],
            &[0x1B, 0xFF, 0xFF, 0xFF, 0xFF, 7, 0x11, 0],
            &[0x1E, 0],
        ];
        for bytes in unsafe_ {
            assert!(!is_safe(bytes), "{bytes:?}");
        }
        assert!(!is_safe([0x1C; 100].as_slice()), "too deep");
    }
}
