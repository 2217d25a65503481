//! Makes foreign text fit for a line of a terminal: nothing in it steers the terminal, and its width is known.
//! Decides nothing about colours.

use batchscan_model::printable::is_control_or_bidi;

/// The text with a `�` in place of whatever could move the cursor, start an escape or turn the writing around.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if is_control_or_bidi(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// The text, or as much of it as fits the columns, with `…` for the rest.
pub(crate) fn clipped(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (mut kept, mut used) = (String::new(), 0);
    for c in text.chars() {
        used += columns_of(c);
        // One column is the ellipsis's.
        if used >= columns {
            break;
        }
        kept.push(c);
    }
    format!("{}…", kept.trim_end())
}

/// How many columns a text takes on a terminal. The colours that this program puts around it take none.
pub(crate) fn width(text: &str) -> usize {
    let mut columns = 0;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            // Foreign text has no escapes left, and ours are all of the form ESC [ … m.
            chars.by_ref().find(|c| *c == 'm');
        } else {
            columns += columns_of(c);
        }
    }
    columns
}

/// Good enough to line up names: the blocks of wide scripts and emoji, and the marks that join the character
/// before them. What terminals themselves disagree on counts as one.
fn columns_of(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{200b}'..='\u{200d}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{fe20}'..='\u{fe2f}'
        | '\u{e0100}'..='\u{e01ef}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1f6ff}'
        | '\u{1f900}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_foreign_steers_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\u{9b}c\r\nd\u{202e}e"), "a�[2Jb�c��d�e");
        assert_eq!(printable("Pepper 'Jalapeño' 番茄 🍅"), "Pepper 'Jalapeño' 番茄 🍅");
    }

    #[test]
    fn wide_characters_take_two_columns_and_joined_marks_and_colours_none() {
        assert_eq!(width("Ä-Nord"), 6);
        assert_eq!(width("番茄 🍅"), 7);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(width("\x1b[33m!\x1b[0m"), 1);
    }

    #[test]
    fn what_does_not_fit_ends_in_an_ellipsis() {
        assert_eq!(clipped("Tomato", 6), "Tomato");
        assert_eq!(clipped("Tomatoes", 6), "Tomat…");
        assert_eq!(clipped("Sweet pea", 7), "Sweet…");
        assert_eq!(clipped("番茄番茄", 6), "番茄…");
    }

    proptest! {
        #[test]
        fn a_clipped_text_never_exceeds_its_columns(text in ".{0,40}", columns in 1usize..40) {
            prop_assert!(width(&clipped(&printable(&text), columns)) <= columns);
        }
    }
}
