//! Tables on a terminal: column widths, and text from the data that must not control the terminal.

use batchscan_model::printable::is_control_or_bidi;
use unicode_width::UnicodeWidthChar;

const GAP: &str = "  ";

/// Replaces characters that could move the cursor, start an escape sequence or reverse the text direction by `�`.
pub(crate) fn sanitize(text: &str) -> String {
    text.chars().map(|c| if is_control_or_bidi(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// The text, cut to a number of columns with `…` at the end.
pub(crate) fn truncate(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (mut kept, mut used) = (String::new(), 0);
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        // One column is for the ellipsis.
        if used >= columns {
            break;
        }
        kept.push(c);
    }
    format!("{}…", kept.trim_end())
}

/// The width of a text in columns, without our own colour codes (`ESC [ … m`).
pub(crate) fn width(text: &str) -> usize {
    let mut columns = 0;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            chars.by_ref().find(|c| *c == 'm');
        } else {
            columns += c.width().unwrap_or(0);
        }
    }
    columns
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table with left-aligned columns.
pub(crate) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    aligned_table(&head, &[Align::Left; N], rows)
}

/// A table in which each column has its own alignment.
pub(crate) fn aligned_table(head: &[&str], align: &[Align], rows: &[impl AsRef<[String]>]) -> String {
    let widths = column_widths(head, rows);
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> =
            cells.zip(&widths).zip(align).map(|((cell, width), align)| pad(cell, *width, *align)).collect();
        format!("{}\n", padded.join(GAP).trim_end())
    };
    let mut text = line(&mut head.iter().copied());
    for row in rows {
        text.push_str(&line(&mut row.as_ref().iter().map(String::as_str)));
    }
    text
}

pub(crate) fn table_width(head: &[&str], rows: &[impl AsRef<[String]>]) -> usize {
    column_widths(head, rows).iter().sum::<usize>() + GAP.len() * head.len().saturating_sub(1)
}

fn column_widths(head: &[&str], rows: &[impl AsRef<[String]>]) -> Vec<usize> {
    let mut widths: Vec<usize> = head.iter().map(|name| width(name)).collect();
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row.as_ref()) {
            *widest = (*widest).max(width(cell));
        }
    }
    widths
}

fn pad(cell: &str, columns: usize, align: Align) -> String {
    let spaces = " ".repeat(columns.saturating_sub(width(cell)));
    match align {
        Align::Left => format!("{cell}{spaces}"),
        Align::Right => format!("{spaces}{cell}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(sanitize("a\x1b[2Jb\u{9b}c\r\nd\u{202e}e"), "a�[2Jb�c��d�e");
        assert_eq!(sanitize("Pepper 'Jalapeño' 番茄 🍅"), "Pepper 'Jalapeño' 番茄 🍅");
    }

    #[test]
    fn wide_characters_have_two_columns_and_colours_none() {
        for (text, columns) in [("Ä-Nord", 6), ("番茄 🍅", 7), ("e\u{301}", 1), ("\x1b[33m!\x1b[0m", 1)]
        {
            assert_eq!(width(text), columns, "{text}");
        }
    }

    #[test]
    fn long_texts_end_in_an_ellipsis() {
        for (text, columns, expected) in [
            ("Tomato", 6, "Tomato"),
            ("Tomatoes", 6, "Tomat…"),
            ("Sweet pea", 7, "Sweet…"),
            ("番茄番茄", 6, "番茄…"),
        ] {
            assert_eq!(truncate(text, columns), expected);
        }
    }

    #[test]
    fn columns_line_up_with_colours_and_wide_characters() {
        let rows = [["Ä-Nord".to_owned(), "3".to_owned()]];
        assert_eq!(table(["name", "batches"], &rows), "name    batches\nÄ-Nord  3\n");
        let rows = [["番茄", "7"], ["\x1b[1mLeek\x1b[0m", "1,200"]].map(|row| row.map(str::to_owned));
        let text = aligned_table(&["crop", "n"], &[Align::Left, Align::Right], &rows);
        assert_eq!(text, "crop      n\n番茄      7\n\x1b[1mLeek\x1b[0m  1,200\n");
    }

    proptest! {
        #[test]
        fn a_truncated_text_fits_its_columns(text in ".{0,40}", columns in 1usize..40) {
            prop_assert!(width(&truncate(&sanitize(&text), columns)) <= columns);
        }
    }
}
