//! Numbers as people and spreadsheets write them: `1.234,50`, `1 234.5`, `1'234`. Never guesses which mark is decimal.

use batchscan_model::Hundredths;

use super::mapping::DecimalMark;

/// A number in JSON's syntax.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) text: String,
    /// The decimal mark of the file, as far as this number shows it.
    pub(super) mark: Option<DecimalMark>,
    /// Whether the mark could also separate thousands, as in `1.234`.
    pub(super) is_ambiguous: bool,
}

impl Number {
    /// Parses a number whose decimal mark is `setting`, or shown by the number itself.
    pub(super) fn parse(cell: &str, setting: Option<DecimalMark>) -> Option<Self> {
        if cell.contains(['e', 'E']) {
            let mark = cell.contains('.').then_some(DecimalMark::Point);
            let is_valid = Hundredths::parse(cell).is_ok()
                && (mark.is_none() || setting.is_none_or(|set| Some(set) == mark));
            return is_valid.then(|| Self { text: cell.to_owned(), mark, is_ambiguous: false });
        }
        let (sign, unsigned) = match cell.strip_prefix(['-', '\u{2212}']) {
            Some(rest) => ("-", rest),
            None => ("", cell.strip_prefix('+').unwrap_or(cell)),
        };
        let (points, commas) = (unsigned.matches('.').count(), unsigned.matches(',').count());
        let mark = setting.or_else(|| shown_mark(unsigned, points, commas));
        let (whole, fraction) = match mark.and_then(|mark| unsigned.split_once(mark.text())) {
            Some((whole, fraction)) if is_digits(fraction) => (whole, Some(fraction)),
            Some(_) => return None,
            None => (unsigned, None),
        };
        let digits = if is_digits(whole) { whole.to_owned() } else { join_thousands(whole, mark)? };
        let is_ambiguous = setting.is_none()
            && points + commas == 1
            && fraction.is_some_and(|fraction| fraction.len() == 3)
            && is_digits(whole)
            && whole.len() <= 3
            && !whole.starts_with('0');
        let fraction = fraction.map_or_else(String::new, |fraction| format!(".{fraction}"));
        Some(Self { text: format!("{sign}{digits}{fraction}"), mark, is_ambiguous })
    }
}

/// The decimal mark: of two kinds the last one, of one kind the one that occurs once.
fn shown_mark(text: &str, points: usize, commas: usize) -> Option<DecimalMark> {
    match (points, commas) {
        (0, 0) => None,
        (1, 0) => Some(DecimalMark::Point),
        (0, 1) => Some(DecimalMark::Comma),
        (_, 0) => Some(DecimalMark::Comma),
        (0, _) => Some(DecimalMark::Point),
        _ if text.rfind('.') > text.rfind(',') => Some(DecimalMark::Point),
        _ => Some(DecimalMark::Comma),
    }
}

/// The digits of groups of three, such as `1 234 567`. The separator is not the decimal mark.
fn join_thousands(text: &str, mark: Option<DecimalMark>) -> Option<String> {
    let separator = text.chars().find(|c| !c.is_ascii_digit())?;
    let is_known = matches!(separator, '.' | ',' | ' ' | '\u{a0}' | '\u{202f}' | '\'' | '\u{2019}');
    let is_decimal = mark.is_some_and(|mark| mark.text().starts_with(separator));
    let mut groups = text.split(separator);
    let first = groups.next().filter(|first| is_digits(first) && first.len() <= 3)?;
    let is_group = |group: &str| is_digits(group) && group.len() == 3;
    let is_valid = is_known && !is_decimal && groups.all(is_group) && !first.is_empty();
    is_valid.then(|| text.replace(separator, ""))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_decimal_mark_is_shown_by_the_number_or_the_number_is_ambiguous() {
        use DecimalMark::{Comma, Point};
        for (cell, text, mark, is_ambiguous) in [
            ("12", "12", None, false),
            ("92,5", "92.5", Some(Comma), false),
            ("-92.50", "-92.50", Some(Point), false),
            ("+0.925", "0.925", Some(Point), false),
            ("0,925", "0.925", Some(Comma), false),
            ("1.234", "1.234", Some(Point), true),
            ("1,234", "1.234", Some(Comma), true),
            ("1234.567", "1234.567", Some(Point), false),
            ("1.234,5", "1234.5", Some(Comma), false),
            ("1,234,567", "1234567", Some(Point), false),
            ("1,234,567.5", "1234567.5", Some(Point), false),
            ("1\u{a0}234,125", "1234.125", Some(Comma), false),
            ("1'234", "1234", None, false),
            ("\u{2212}1.5e1", "", None, false),
            ("1.5e1", "1.5e1", Some(Point), false),
        ] {
            let found = Number::parse(cell, None);
            let expected = (!text.is_empty()).then(|| Number { text: text.into(), mark, is_ambiguous });
            assert_eq!(found, expected, "{cell}");
        }
        for cell in
            ["", "-", "1,2,3", "1.2,3.4", ".5", "5.", "1 23", "1.234 567", "1..2", "n/a", "1.23.456", "0x1"]
        {
            assert_eq!(Number::parse(cell, None), None, "{cell}");
        }
    }

    #[test]
    fn a_setting_decides_what_a_mark_is() {
        use DecimalMark::{Comma, Point};
        for (cell, setting, text) in [
            ("1.234", Comma, Some("1234")),
            ("1.234", Point, Some("1.234")),
            ("1,234", Comma, Some("1.234")),
            ("1,234", Point, Some("1234")),
            ("92.5", Comma, None),
            ("92,5", Point, None),
            ("1.5e1", Comma, None),
        ] {
            assert_eq!(
                Number::parse(cell, Some(setting)).map(|number| number.text).as_deref(),
                text,
                "{cell}"
            );
        }
    }
}
