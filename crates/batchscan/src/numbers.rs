//! Numbers for people: `1,234,567`, `12.3 MiB`, `1 batch`.

/// A number with thousands separators.
pub(crate) fn grouped(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// A number of bytes.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let (mut tenths, mut unit) = (bytes.saturating_mul(10) / 1_024, 0);
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        (tenths, unit) = (tenths / 1_024, unit + 1);
    }
    if bytes < 1_024 {
        format!("{bytes} bytes")
    } else {
        format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
    }
}

/// `1 batch`, `2 batches`.
pub(crate) fn count(number: u64, one: &str, more: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { more })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_for_people() {
        assert_eq!((grouped(0), grouped(1_234_567)), ("0".into(), "1,234,567".into()));
        assert_eq!((size(1_023), size(1_536)), ("1023 bytes".into(), "1.5 KiB".into()));
        assert_eq!(size(700 * 1_024 * 1_024), "700.0 MiB");
        assert_eq!(count(1, "batch", "batches"), "1 batch");
    }
}
