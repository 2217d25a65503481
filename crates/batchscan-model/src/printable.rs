//! Makes text from files and services safe to print.

/// How much of a text an error shows.
const CLIP_CHARS_MAX: usize = 60;

/// Whether a character can move a terminal's cursor, start an escape sequence or change the direction of text.
pub fn is_control_or_bidi(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether a character cannot be seen: control and format characters (Unicode's Cc and Cf) and line separators. Two texts
/// that differ only in those look the same.
pub fn is_invisible(c: char) -> bool {
    is_control_or_bidi(c)
        || matches!(c,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{180e}'
            | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}')
}

/// The first characters of a text, with control characters escaped.
pub fn clip(text: &str) -> String {
    let mut clipped = String::new();
    for c in text.chars().take(CLIP_CHARS_MAX) {
        if is_control_or_bidi(c) { clipped.extend(c.escape_default()) } else { clipped.push(c) }
    }
    if text.chars().nth(CLIP_CHARS_MAX).is_some() {
        clipped.push('…');
    }
    clipped
}
