//! Figures for people: `1,234,567`, `12.3 MiB`, and tables of them.

use crate::printable::width;

/// What stands between two columns.
const GAP: &str = "  ";

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
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

/// Where a cell stands in its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Figures, so that their digits line up.
    Right,
}

/// A table: columns as wide as their widest cell, two blanks apart.
pub(crate) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    aligned_table(head, [Align::Left; N], rows)
}

/// A table in which each column has its own alignment.
pub(crate) fn aligned_table<const N: usize>(
    head: [&str; N],
    align: [Align; N],
    rows: &[[String; N]],
) -> String {
    let widths = column_widths(head, rows);
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> =
            cells.zip(widths).zip(align).map(|((cell, width), align)| padded(cell, width, align)).collect();
        format!("{}\n", padded.join(GAP).trim_end())
    };
    let mut text = line(&mut head.into_iter());
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

/// How wide a table will be.
pub(crate) fn table_width<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> usize {
    column_widths(head, rows).iter().sum::<usize>() + GAP.len() * N.saturating_sub(1)
}

fn column_widths<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> [usize; N] {
    let mut widths = head.map(width);
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(cell));
        }
    }
    widths
}

/// By display width: `format!` counts characters, and neither colours nor wide scripts are one column a character.
fn padded(cell: &str, columns: usize, align: Align) -> String {
    let blanks = " ".repeat(columns.saturating_sub(width(cell)));
    match align {
        Align::Left => format!("{cell}{blanks}"),
        Align::Right => format!("{blanks}{cell}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_people_write_them() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(size(1_023), "1023 bytes");
        assert_eq!(size(1_536), "1.5 KiB");
        assert_eq!(size(700 * 1_024 * 1_024), "700.0 MiB");
        assert_eq!(count(1, "batch", "batches"), "1 batch");
    }

    #[test]
    fn a_table_lines_its_columns_up() {
        let rows = [["Ä-Nord".to_owned(), "3".to_owned()]];
        assert_eq!(table(["name", "batches"], &rows), "name    batches\nÄ-Nord  3\n");
    }

    #[test]
    fn figures_stand_to_the_right_whatever_is_coloured_or_wide_beside_them() {
        let rows = [["番茄", "7"], ["\x1b[1mLeek\x1b[0m", "1,200"]].map(|row| row.map(str::to_owned));
        let text = aligned_table(["crop", "n"], [Align::Left, Align::Right], &rows);
        assert_eq!(text, "crop      n\n番茄      7\n\x1b[1mLeek\x1b[0m  1,200\n");
    }
}
