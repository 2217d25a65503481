//! What the cells of a CSV file mean. Spreadsheets write numbers and dates in their own way, and so does `pull --excel`.

use std::borrow::Cow;

use batchscan_model::{Field, Kind, Value};

/// `1,234` could also be a thousand.
const DECIMAL_COMMA: &str = "a comma; write a point, or separate cells with semicolons";

/// How a file was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    pub(super) delimiter: u8,
    /// Whether it is for spreadsheets: it starts with a byte order mark.
    pub(super) is_for_excel: bool,
    /// Whether every cell is quoted, so that quotes mean nothing.
    pub(super) quotes_all: bool,
}

impl Dialect {
    /// The value of a cell of a field.
    pub(super) fn value<'t>(self, field: Field, cell: Cow<'t, str>, is_quoted: bool) -> Value<'t> {
        match field.kind() {
            // An empty text is quoted; nothing is nothing.
            Kind::Text if cell.is_empty() && is_quoted && !self.quotes_all => Value::Text(cell),
            _ if cell.is_empty() => Value::Null,
            Kind::Decimal if self.delimiter == b';' => Value::Cell(with_point(cell)),
            Kind::Decimal if cell.contains(',') => Value::Other(DECIMAL_COMMA),
            Kind::Instant if self.is_for_excel => Value::Cell(with_offset(cell)),
            Kind::Id | Kind::Name | Kind::Text | Kind::Link if self.is_for_excel => {
                Value::Cell(without_apostrophe(cell))
            }
            _ => Value::Cell(cell),
        }
    }
}

/// `92,50` is 92.50 where semicolons separate cells.
fn with_point(cell: Cow<'_, str>) -> Cow<'_, str> {
    if cell.contains('.') || cell.matches(',').count() != 1 { cell } else { cell.replace(',', ".").into() }
}

/// `2026-01-31 08:00:00` is in UTC, as `pull --excel` writes it.
fn with_offset(cell: Cow<'_, str>) -> Cow<'_, str> {
    let is_date = cell.len() >= "2026-01-31 08:00:00".len()
        && cell.as_bytes()[10] == b' '
        && cell.bytes().all(|byte| byte.is_ascii_digit() || b"- :.,".contains(&byte));
    if is_date { format!("{}Z", cell.replacen(' ', "T", 1).replace(',', ".")).into() } else { cell }
}

/// An apostrophe keeps spreadsheets from taking a text for a formula.
fn without_apostrophe(cell: Cow<'_, str>) -> Cow<'_, str> {
    match cell.strip_prefix('\'') {
        Some(text) if is_escaped_in_excel(text) => text.to_owned().into(),
        _ => cell,
    }
}

/// Whether a text gets an apostrophe: because Excel would evaluate it, or because it would be taken for one that has.
pub(crate) fn is_escaped_in_excel(text: &str) -> bool {
    const FORMULA: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\n'];
    text.starts_with(FORMULA) || text.strip_prefix('\'').is_some_and(is_escaped_in_excel)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(dialect: Dialect, field: Field, cell: &'static str, is_quoted: bool) -> Value<'static> {
        dialect.value(field, Cow::Borrowed(cell), is_quoted)
    }

    #[test]
    fn numbers_dates_and_texts_of_spreadsheets_are_understood() {
        let excel = Dialect { delimiter: b';', is_for_excel: true, quotes_all: false };
        let plain = Dialect { delimiter: b',', is_for_excel: false, quotes_all: false };
        let cell = |text: &'static str| Value::Cell(Cow::Borrowed(text));
        for (dialect, field, text, expected) in [
            (excel, Field::AvgGerminationRate, "92,50", cell("92.50")),
            (excel, Field::AvgGerminationRate, "1.234,50", cell("1.234,50")),
            (plain, Field::AvgGerminationRate, "92,50", Value::Other(DECIMAL_COMMA)),
            (excel, Field::BatchCreationDate, "2026-01-31 08:00:00,5", cell("2026-01-31T08:00:00.5Z")),
            (excel, Field::BatchCreationDate, "2026-01-31 08:00", cell("2026-01-31 08:00")),
            (plain, Field::BatchCreationDate, "2026-01-31 08:00:00", cell("2026-01-31 08:00:00")),
            (excel, Field::Comment, "'=1", cell("=1")),
            (excel, Field::Comment, "''=1", cell("'=1")),
            (excel, Field::Comment, "'quoted'", cell("'quoted'")),
            (plain, Field::Comment, "'=1", cell("'=1")),
        ] {
            assert_eq!(value(dialect, field, text, false), expected, "{text}");
        }
    }

    #[test]
    fn an_empty_text_is_quoted_unless_every_cell_is() {
        let mut dialect = Dialect { delimiter: b',', is_for_excel: false, quotes_all: false };
        assert_eq!(value(dialect, Field::Comment, "", true), Value::Text("".into()));
        assert_eq!(value(dialect, Field::Comment, "", false), Value::Null);
        assert_eq!(value(dialect, Field::AvgGerminationRate, "", true), Value::Null);
        dialect.quotes_all = true;
        assert_eq!(value(dialect, Field::Comment, "", true), Value::Null);
    }
}
