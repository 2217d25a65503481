//! How a file is understood, for people: each column with its field and some values, before and after.

use std::fmt::Write as _;

use batchscan_model::printable::clip;
use batchscan_model::{Field, FieldError, Hundredths, Kind, RawBatch, UtcInstant, Value, Zone};
use encoding_rs::Encoding;

use super::ReadOptions;
use super::columns::Role;
use super::convert::Converter;
use super::dates::is_like_date;
use super::encoding::words;
use super::error::{LocatedError, Location, ReadError, ReadSummary};
use super::mapping::{DecimalMark, IdTemplate, Mapping, RATE_FIELDS, RateUnit, RateUnits, quoted};
use super::title::{hints, is_time_of_day, misspelt, most_likely, other_unit};

/// Rows that are shown.
const EXAMPLES_MAX: usize = 3;
/// Behind the value of a cell that Excel shows with a percent sign.
pub(super) const PERCENT_CELL: &str = " (percent cell)";
const MICROS_PER_DAY: i64 = 86_400_000_000;

/// How a file is understood.
#[derive(Debug)]
pub struct Preview {
    /// Where the header is. JSON has none.
    pub header: Option<Location>,
    /// The encoding of a text file that was assumed, and some words that show whether it is right.
    pub encoding: Option<(&'static str, Vec<String>)>,
    /// The sheet that is read.
    pub sheet: Option<String>,
    /// Sheets without the columns.
    pub ignored_sheets: Vec<String>,
    /// The columns, in file order.
    pub columns: Vec<PreviewColumn>,
    /// Fields without a column. The batches lack them, or the file is rejected if they are required.
    pub missing: Vec<Field>,
    /// Whether the file would be accepted.
    pub result: Result<ReadSummary, ReadError>,
    mapping: Mapping,
    /// Columns without a field, with the one that they most likely have.
    suggested: Vec<(String, Field)>,
    /// What is wrong with the file if they have it.
    needed: Vec<LocatedError>,
}

/// A column of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewColumn {
    /// The title in the file.
    pub title: String,
    /// Its field; `None` if the column is ignored.
    pub field: Option<Field>,
    /// How its values are converted. Empty if they are taken as they are.
    pub conversion: String,
    /// The first values, before and after the conversion, or why an import rejects them.
    pub examples: Vec<(String, Result<String, String>)>,
}

impl Preview {
    pub(super) fn new(notes: Notes, options: &ReadOptions, result: Result<ReadSummary, ReadError>) -> Self {
        let column = |(title, field): &(String, Option<Field>)| PreviewColumn {
            title: title.clone(),
            field: *field,
            conversion: field.map_or_else(String::new, |field| notes.conversion(field, options)),
            examples: field.map_or_else(Vec::new, |field| notes.examples(field)),
        };
        let mut columns: Vec<PreviewColumn> = notes.columns.iter().map(column).collect();
        for (index, text) in &notes.ignored_cells {
            if let Some(column) = columns.get_mut(*index) {
                column.examples.push((text.clone(), Ok(text.clone())));
            }
        }
        for (field, value) in &options.mapping.values {
            if columns.iter().all(|column| column.field != Some(*field)) {
                let (field, conversion) = (Some(*field), format!("{value} in all rows"));
                columns.push(PreviewColumn { title: String::new(), field, conversion, examples: Vec::new() });
            }
        }
        if let Some(template) = &options.mapping.batch_id {
            let (conversion, examples) = (template.to_string(), notes.examples(Field::BatchId));
            if columns.iter().all(|column| column.field != Some(Field::BatchId)) {
                let field = Some(Field::BatchId);
                columns.push(PreviewColumn { title: String::new(), field, conversion, examples });
            }
        }
        let is_missing = |field: &Field| columns.iter().all(|column| column.field != Some(*field));
        let missing = if notes.header.is_some() {
            Field::ALL.into_iter().filter(is_missing).collect()
        } else {
            Vec::new()
        };
        let mapping = notes.mapping(options);
        let Notes { header, encoding, words, sheet, ignored_sheets, .. } = notes;
        let encoding = encoding.map(|name| (name, words));
        let (suggested, needed) = (Vec::new(), Vec::new());
        Self { header, encoding, sheet, ignored_sheets, columns, missing, result, mapping, suggested, needed }
    }

    /// The options with the row that is most like a header, if none has all required titles.
    pub(super) fn as_header(&self, options: &ReadOptions) -> Option<ReadOptions> {
        let has_examples = self.columns.iter().any(|column| !column.examples.is_empty());
        let row = self.header.and_then(Location::row).filter(|_| !has_examples && self.result.is_err())?;
        let mut options = options.clone();
        options.mapping.header_row = options.mapping.header_row.is_none().then_some(row);
        options.mapping.header_row?;
        options.mapping.sheet = options.mapping.sheet.or_else(|| self.sheet.clone());
        Some(options)
    }

    /// The place of the header was only found for the preview. The mapping does not need it.
    pub(super) fn without_place_of(mut self, first: &Self) -> Self {
        self.mapping.sheet.clone_from(&first.mapping.sheet);
        self.mapping.header_row = first.mapping.header_row;
        self
    }

    /// What was recognised as a mapping to be edited. Settings that may be missing are comments.
    pub fn to_toml(&self) -> String {
        let mut mapping = self.mapping.clone();
        let lacks_ids = self.missing.contains(&Field::BatchId) && mapping.batch_id.is_none();
        let mut text = String::from("# How to read such files: batchscan import --mapping FILE\n");
        for (is_shown, line) in [
            (mapping.timezone.is_none(), "# timezone = \"Europe/Berlin\"\n"),
            (mapping.rates == RateUnits::NONE, "# rates = \"percent\"                  # or \"fraction\"\n"),
            (mapping.decimal.is_none(), "# decimal = \",\"                      # or \".\"\n"),
            (mapping.date_formats.is_empty(), "# date_format = \"%d/%m/%Y %H:%M\"\n"),
            (mapping.empty_words.is_empty(), "# empty = [\"-\"]                       # not measured\n"),
            (lacks_ids, "# batch_id = \"{batch_name} {batch_creation_date}\"\n"),
        ] {
            text.push_str(if is_shown { line } else { "" });
        }
        // Recognised again, also if the next file has another name of the sheet or more rows above.
        if let Some(sheet) = self.sheet.as_ref().filter(|_| mapping.sheet.is_none()) {
            let _ = writeln!(text, "# sheet = {}", quoted(sheet));
        }
        if let Some(row) =
            self.header.and_then(Location::row).filter(|row| *row > 1 && mapping.header_row.is_none())
        {
            let _ = writeln!(text, "# header_row = {row}");
        }
        let is_absent = |field: &&Field| self.columns.iter().all(|column| column.field != Some(**field));
        let absent: Vec<&str> = Field::ALL.iter().filter(is_absent).map(|field| field.name()).collect();
        if !absent.is_empty() {
            let _ = writeln!(text, "# Fields without a column: {}", absent.join(", "));
        }
        let is_lost = |column: &&PreviewColumn| column.field.is_none() && !column.title.is_empty();
        let without_field: Vec<&str> =
            self.columns.iter().filter(is_lost).map(|column| &*column.title).collect();
        if self.result.is_ok() {
            mapping.ignore.retain(String::is_empty);
            mapping.ignore.extend(without_field.iter().map(ToString::to_string));
            return text + &mapping.to_toml();
        }
        text.push_str(&mapping.to_toml());
        for (title, field) in &self.suggested {
            let _ = writeln!(text, "# {} = \"{field}\"", quoted(title));
        }
        let is_unknown = |title: &&&str| {
            !mapping.ignore.iter().any(|known| known == **title)
                && self.suggested.iter().all(|(known, _)| known != **title)
        };
        for title in without_field.iter().filter(is_unknown) {
            let _ = writeln!(text, "# {} = \"FIELD\"", quoted(title));
        }
        if !self.needed.is_empty() {
            text.push_str(
                "\n# With these columns, the file would still be rejected. Add settings above [columns]:\n",
            );
        }
        for error in &self.needed {
            let _ = writeln!(text, "# {}", error.to_string().replace(char::is_control, " "));
        }
        text
    }

    /// The fields that columns without one most likely have.
    fn suggest(&self) -> Vec<(String, Field)> {
        let is_ignored = |title: &String| self.mapping.ignore.contains(title);
        let is_lost = |column: &&PreviewColumn| {
            column.field.is_none() && !column.title.is_empty() && !is_ignored(&column.title)
        };
        let lost: Vec<&PreviewColumn> = self.columns.iter().filter(is_lost).collect();
        // Cells may show a unit that the title lacks.
        let shown: Vec<String> = lost.iter().map(|column| column.title_with_unit()).collect();
        let mut titles: Vec<&str> = shown.iter().map(String::as_str).collect();
        let mut missing = self.missing.clone();
        let mut suggested = Vec::new();
        for title in titles.clone() {
            let is_missing = |field| missing.contains(&field) && other_unit(field, title).is_none();
            if let Some(field) = misspelt(title, is_missing) {
                missing.retain(|other| *other != field);
                titles.retain(|other| *other != title);
                suggested.push((title, field));
            }
        }
        let (times, mut titles): (Vec<&str>, Vec<&str>) =
            titles.into_iter().partition(|title| is_time_of_day(title));
        for field in missing {
            let is_date = field == Field::BatchCreationDate;
            let has_dates = || {
                let with_dates = lost.iter().zip(&shown).find(|(column, _)| is_date && column.has_dates());
                with_dates.map(|(_, title)| title.as_str()).filter(|title| titles.contains(title))
            };
            let likely = most_likely(field, &titles).or_else(has_dates);
            let time = times.first().copied().filter(|_| is_date);
            titles.retain(|title| Some(*title) != likely);
            suggested.extend(likely.into_iter().chain(time).map(|title| (title, field)));
        }
        let title = |shown_title: &str| {
            let index = shown.iter().position(|known| known == shown_title);
            index.map_or_else(String::new, |index| lost[index].title.clone())
        };
        suggested.into_iter().map(|(shown_title, field)| (title(shown_title), field)).collect()
    }

    /// The options with the suggested columns, if the file would be rejected.
    pub(super) fn as_suggested(&mut self, options: &ReadOptions) -> Option<ReadOptions> {
        if self.result.is_ok() {
            return None;
        }
        self.suggested = self.suggest();
        let mut options = options.clone();
        options.mapping.columns.extend(self.suggested.iter().cloned());
        let has_id = |(_, field): &(String, Field)| *field == Field::BatchId;
        if self.missing.contains(&Field::BatchId) && !options.mapping.columns.iter().any(has_id) {
            let template = IdTemplate::parse("{batch_name} {batch_creation_date}");
            options.mapping.batch_id = options.mapping.batch_id.or(template);
        }
        Some(options)
    }

    /// Notes what is wrong with the file also with the suggested columns: the first error of each field.
    pub(super) fn set_needed(&mut self, with_suggested: Self) {
        let Err(ReadError::Invalid { errors, .. }) = with_suggested.result else { return };
        for error in errors {
            if self.needed.iter().all(|known| known.error.field != error.error.field) {
                self.needed.push(error);
            }
        }
    }
}

impl PreviewColumn {
    /// The title, with a percent sign if the cells have it or are fractions.
    fn title_with_unit(&self) -> String {
        let is_fraction = |text: &str| text.len() > 2 && (text.starts_with("0.") || text.starts_with("0,"));
        let is_percent =
            |text: &str| text.ends_with('%') || text.ends_with(PERCENT_CELL) || is_fraction(text);
        let has_unit =
            !self.examples.is_empty() && self.examples.iter().all(|(before, _)| is_percent(before));
        if has_unit && !self.title.contains('%') { format!("{} %", self.title) } else { self.title.clone() }
    }

    fn has_dates(&self) -> bool {
        let is_of_sowing = hints(&self.title) == Some(&[]);
        !is_of_sowing
            && !self.examples.is_empty()
            && self.examples.iter().all(|(before, _)| is_like_date(before))
    }
}

/// What is noted while a file is read.
#[derive(Default)]
pub(super) struct Notes {
    header: Option<Location>,
    encoding: Option<&'static str>,
    /// The first words that are not ASCII.
    words: Vec<String>,
    sheet: Option<String>,
    ignored_sheets: Vec<String>,
    columns: Vec<(String, Option<Field>)>,
    /// The cells of the current row.
    cells: Vec<(Field, String)>,
    rows: usize,
    /// Cells of ignored columns, with the number of the column from 0.
    ignored_cells: Vec<(usize, String)>,
    examples: Vec<Example>,
    /// The number of examples before those of the last row.
    examples_before: usize,
    zone: Option<Zone>,
    decimal: Option<DecimalMark>,
}

/// A value of one of the first rows.
struct Example {
    field: Field,
    location: Location,
    before: String,
    /// What is stored, or why it is rejected. Without a reason, it is that of an earlier row.
    after: Result<String, String>,
}

impl Example {
    /// The value itself is already shown.
    fn reject(&mut self, FieldError { found, expected, .. }: &FieldError) {
        self.after = Err(match expected.is_empty() || !found.contains(&self.before) {
            true => found.clone(),
            false => format!("expected {expected}"),
        });
    }
}

impl Notes {
    /// Whether the cells of the next row are to be noted.
    pub(super) fn wants_examples(&self) -> bool {
        self.rows < EXAMPLES_MAX
    }

    pub(super) fn set_columns<T: AsRef<str>>(&mut self, location: Location, titles: &[T], roles: &[Role]) {
        if self.header.is_some() {
            return;
        }
        self.header = Some(location);
        let column = |(title, role): (&T, &Role)| {
            let field = match role {
                Role::Field(column) => Some(column.field),
                Role::DateOrTime => Some(Field::BatchCreationDate),
                Role::Ignored | Role::Unnamed => None,
            };
            (title.as_ref().trim().to_owned(), field)
        };
        self.columns = titles.iter().zip(roles).map(column).collect();
    }

    pub(super) fn set_encoding(&mut self, encoding: &'static Encoding) {
        self.encoding = Some(encoding.name());
    }

    /// The words of a row that show its encoding.
    pub(super) fn add_words(&mut self, row: &str) {
        if self.words.len() < EXAMPLES_MAX {
            for word in words(row).map(clip).take(EXAMPLES_MAX) {
                if !self.words.contains(&word) && self.words.len() < EXAMPLES_MAX {
                    self.words.push(word);
                }
            }
        }
    }

    pub(super) fn set_sheet(&mut self, name: &str) {
        self.sheet.get_or_insert_with(|| name.to_owned());
    }

    pub(super) fn ignore_sheet(&mut self, name: &str) {
        self.ignored_sheets.push(name.to_owned());
    }

    /// No sheet has the columns, but this one is most like it.
    pub(super) fn set_likely_sheet(&mut self, name: &str) {
        self.ignored_sheets.retain(|ignored| ignored != name);
        self.set_sheet(name);
    }

    /// A cell of the next row, as the file has it.
    pub(super) fn add_cell(&mut self, field: Field, text: &str) {
        if self.wants_examples() {
            self.cells.push((field, clip(text)));
        }
    }

    /// A cell of an ignored column.
    pub(super) fn add_ignored_cell(&mut self, column: usize, text: &str) {
        self.ignored_cells.push((column, clip(text)));
    }

    /// The values of the next row, if the format has no cells.
    pub(super) fn add_values(&mut self, raw: &RawBatch<'_>) {
        if !self.cells.is_empty() {
            return;
        }
        for field in Field::ALL {
            let Some(value) = raw.get(field) else { continue };
            if self.columns.iter().all(|(_, known)| *known != Some(field)) {
                self.columns.push((field.name().to_owned(), Some(field)));
            }
            self.cells.push((field, shown(Field::Comment, value).unwrap_or_else(|| value.to_string())));
        }
    }

    /// The row is not one.
    pub(super) fn forget_cells(&mut self) {
        self.cells.clear();
    }

    pub(super) fn add_row(&mut self, location: Location, raw: &RawBatch<'_>) {
        self.rows += 1;
        self.examples_before = self.examples.len();
        let example = |(field, before)| {
            let after = raw.get(field).and_then(|value| shown(field, value)).ok_or_else(String::new);
            Example { field, location, before, after }
        };
        self.examples.extend(self.cells.drain(..).map(example));
    }

    /// The last row has values that are rejected.
    pub(super) fn reject_row(&mut self, errors: &[FieldError]) {
        for example in &mut self.examples[self.examples_before..] {
            if let Some(error) = errors.iter().find(|error| error.field == example.field.name()) {
                example.reject(error);
            }
        }
    }

    /// These values turn out to be rejected at the end of the table.
    pub(super) fn reject_values(&mut self, errors: &[LocatedError]) {
        for example in &mut self.examples {
            let is_it = |found: &&LocatedError| {
                found.location == example.location && found.error.field == example.field.name()
            };
            if let Some(LocatedError { error, .. }) = errors.iter().find(is_it) {
                example.reject(error);
            }
        }
    }

    /// The values of a column turn out to be rejected, except those with a unit of their own.
    pub(super) fn reject_column(&mut self, error: &FieldError) {
        let has_unit = |text: &str| text.contains('%') || text.ends_with(PERCENT_CELL);
        let is_it =
            |example: &&mut Example| example.field.name() == error.field && !has_unit(&example.before);
        self.examples.iter_mut().filter(is_it).for_each(|example| example.reject(error));
    }

    /// What the cells showed about the file.
    pub(super) fn set_conversion(&mut self, converter: &Converter<'_>) {
        self.zone = converter.zone().cloned();
        self.decimal = converter.decimal();
    }

    fn examples(&self, field: Field) -> Vec<(String, Result<String, String>)> {
        let mut last = String::from("rejected");
        let mut shown = Vec::new();
        for Example { before, after, .. } in self.examples.iter().filter(|example| example.field == field) {
            if let Err(error) = after
                && !error.is_empty()
            {
                last.clone_from(error);
            }
            shown.push((before.clone(), after.clone().map_err(|_| last.clone())));
        }
        shown
    }

    fn conversion(&self, field: Field, options: &ReadOptions) -> String {
        let examples = self.examples(field);
        let changes =
            examples.iter().any(|(before, after)| after.as_ref().is_ok_and(|after| after != before));
        let rate = RATE_FIELDS.iter().position(|rate| *rate == field);
        let is_fraction =
            rate.is_some_and(|rate| options.mapping.rates.get(rate) == Some(RateUnit::Fraction));
        match field.kind() {
            Kind::Instant => self.zone.as_ref().map_or_else(String::new, |zone| in_zone(&examples, zone)),
            Kind::Decimal if is_fraction && examples.iter().any(|(before, _)| !before.contains('%')) => {
                "fraction × 100".into()
            }
            Kind::Decimal | Kind::Count
                if self.decimal == Some(DecimalMark::Comma)
                    && examples.iter().any(|(before, _)| before.contains([',', '.'])) =>
            {
                "decimal comma".into()
            }
            Kind::Flag if changes => "true or false".into(),
            _ => String::new(),
        }
    }

    fn mapping(&self, options: &ReadOptions) -> Mapping {
        let mut mapping = options.mapping.clone();
        mapping.timezone = options.timezone.clone().or(mapping.timezone);
        mapping.decimal = mapping.decimal.or(self.decimal);
        let known =
            self.columns.iter().filter_map(|(title, field)| field.map(|field| (title.clone(), field)));
        mapping.columns = known.collect();
        mapping
    }
}

/// How times without a zone become instants: dates alone are midnight.
fn in_zone(examples: &[(String, Result<String, String>)], zone: &Zone) -> String {
    let instant = |text: &String| UtcInstant::parse_any_offset(text).ok();
    let is_local = |before: &&(String, Result<String, String>)| instant(&before.0).is_none();
    let local =
        examples.iter().filter(is_local).filter_map(|(_, after)| after.as_ref().ok().and_then(instant));
    let clocks: Vec<UtcInstant> = local.filter_map(|instant| zone.clock(instant)).collect();
    let midnights = clocks.iter().filter(|clock| clock.micros() % MICROS_PER_DAY == 0).count();
    match midnights {
        _ if clocks.is_empty() => String::new(),
        0 => format!("time in {}", zone.name()),
        _ if midnights == clocks.len() => format!("midnight in {}", zone.name()),
        _ => format!("time in {}, or midnight", zone.name()),
    }
}

/// A value as it would be stored; `None` if it is rejected.
fn shown(field: Field, value: &Value<'_>) -> Option<String> {
    match value {
        Value::Rejected | Value::Other(_) => None,
        Value::Null => Some(String::new()),
        Value::Number(text) | Value::Text(text) | Value::Cell(text) | Value::Percent(text) => {
            match field.kind() {
                Kind::Decimal => Hundredths::parse(text).ok().map(|decimal| decimal.to_string()),
                Kind::Instant => UtcInstant::parse_any_offset(text).ok().map(|instant| instant.to_string()),
                _ => Some(clip(text)),
            }
        }
        other => Some(other.to_string()),
    }
}
