//! Which column of a table has which field, for CSV, Parquet and Excel: by the mapping, then by its title.

use std::collections::HashMap;

use batchscan_model::printable::clip;
use batchscan_model::{Field, FieldError, Kind, Zone};

use super::ReadOptions;
use super::collector::{Collector, Stop, problem, unexpected};
use super::columns::{Column, Role};
use super::error::Location;
use super::mapping::quoted;
use super::title::{
    Title, Unit, hints, is_time_of_day, may_have_unit, misspelt, most_likely, other_unit, simplify,
    wrong_unit,
};

/// Rows in which the header is looked for. Titles above a table have fewer.
const HEADER_ROWS_MAX: usize = 20;

/// A mapping of which this many columns and more than half are missing is for other files.
const MISSING_MIN: usize = 3;

/// Titles that a message names.
const TITLES_MAX: usize = 30;

/// The columns of a table.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) roles: Vec<Role>,
    /// The time zone in a title.
    pub(super) zone: Option<Zone>,
}

/// Looks for the header among the first rows of a table.
pub(super) struct HeaderSearch<'o> {
    options: &'o ReadOptions,
    rows: usize,
    best: Option<Candidate>,
}

/// A row that may have been meant as the header.
struct Candidate {
    known: usize,
    filled: usize,
    location: Location,
    titles: Vec<ColumnTitle>,
}

/// The title of a column.
#[derive(Clone)]
pub(super) struct ColumnTitle {
    text: String,
    /// Where the number begins that an equal title got.
    number_at: Option<usize>,
}

impl<'o> HeaderSearch<'o> {
    pub(super) fn new(options: &'o ReadOptions) -> Self {
        Self { options, rows: 0, best: None }
    }

    /// The number of fields that the titles have.
    pub(super) fn count_fields(&self, titles: &[ColumnTitle]) -> usize {
        self.fields(titles).count_ones() as usize
    }

    /// The fields that the titles have, as bits.
    fn fields(&self, titles: &[ColumnTitle]) -> u32 {
        let field = |title: &ColumnTitle| match recognise(self.options, title) {
            Meaning::Title(Title::Field(field, _) | Title::OddUnit(field, _)) | Meaning::Mapped(field, _) => {
                1 << field as u32
            }
            Meaning::Title(Title::Extra | Title::Unknown) | Meaning::Ignored => 0,
        };
        titles.iter().fold(0, |fields, title| fields | field(title))
    }

    /// Whether this row is the header: it has all required fields. Rows are numbered from 1.
    pub(super) fn is_header(&mut self, titles: &[ColumnTitle], number: u64, location: Location) -> bool {
        self.rows += 1;
        let fields = self.fields(titles);
        match self.options.mapping.header_row {
            Some(row) if row == number => return true,
            None if required_fields(self.options).all(|field| fields & (1 << field as u32) != 0) => {
                return true;
            }
            _ => {}
        }
        let filled = titles.iter().filter(|title| !title.text.trim().is_empty()).count();
        let known = fields.count_ones() as usize;
        if (known, filled) > self.score() {
            self.best = Some(Candidate { known, filled, location, titles: titles.to_vec() });
        }
        false
    }

    /// How much the best row is like a header.
    pub(super) fn score(&self) -> (usize, usize) {
        self.best.as_ref().map_or((0, 0), |best| (best.known, best.filled))
    }

    /// Whether to stop the search after row `number`.
    pub(super) fn is_over(&self, number: u64) -> bool {
        match self.options.mapping.header_row {
            Some(row) => number >= row,
            None => self.rows >= HEADER_ROWS_MAX,
        }
    }

    /// Reports what is missing, after the search.
    pub(super) fn fail(&self, location: Location, collector: &mut Collector<'_>) -> Stop {
        match (&self.best, self.options.mapping.header_row) {
            (_, Some(row)) => {
                let found = format!("an empty or missing row {row}");
                collector.fail(location, unexpected(found, "the header, as header_row in the mapping says"))
            }
            (Some(best), None)
                if best.known == 0 && best.titles.iter().any(|title| is_number(&title.text)) =>
            {
                let found = "rows of values and no known title";
                // No mapping can help.
                let location = Location::File;
                collector.fail(location, unexpected(found, "a header with the field names above the values"))
            }
            (Some(best), None) => match match_columns(&best.titles, best.location, self.options, collector) {
                Err(stop) => stop,
                Ok(_) => Stop::Errors,
            },
            (None, None) => {
                collector.fail(Location::File, unexpected("an empty file", "a header with the field names"))
            }
        }
    }
}

/// The fields that need a column.
fn required_fields(options: &ReadOptions) -> impl Iterator<Item = Field> + '_ {
    let mapping = &options.mapping;
    let is_generated = move |field: &Field| {
        let has_value = mapping.values.iter().any(|(known, _)| known == field);
        has_value || *field == Field::BatchId && mapping.batch_id.is_some()
    };
    Field::ALL.into_iter().filter(move |field| !field.is_nullable() && !is_generated(field))
}

/// Titles are words.
fn is_number(title: &str) -> bool {
    !title.is_empty() && title.bytes().all(|byte| byte.is_ascii_digit())
}

/// The first titles: a hostile header may have any number.
fn list(titles: &[&str], name: impl Fn(&str) -> String) -> String {
    let names: Vec<String> = titles.iter().take(TITLES_MAX).map(|title| name(title)).collect();
    let more = match titles.len().saturating_sub(TITLES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.join(", "))
}

/// What the mapping or the title says about a column.
enum Meaning {
    Mapped(Field, Unit),
    Ignored,
    Title(Title),
}

fn recognise(options: &ReadOptions, title: &ColumnTitle) -> Meaning {
    let found = recognise_text(options, &title.text);
    let Some((first, number)) = title.number_at.map(|at| title.text.split_at(at)) else { return found };
    match (found, recognise_text(options, first)) {
        (found @ (Meaning::Mapped(..) | Meaning::Ignored), _) => found,
        (
            _,
            Meaning::Mapped(field, _) | Meaning::Title(Title::Field(field, _) | Title::OddUnit(field, _)),
        ) => Meaning::Title(Title::OddUnit(field, number.to_owned())),
        (_, first) => first,
    }
}

fn recognise_text(options: &ReadOptions, title: &str) -> Meaning {
    let mapping = &options.mapping;
    if !mapping.columns.is_empty() || !mapping.ignore.is_empty() {
        let simple = simplify(title);
        if let Some((_, field)) = mapping.columns.iter().find(|(title, _)| simplify(title) == simple) {
            return Meaning::Mapped(*field, Unit::of_mapped(*field, title));
        }
        if mapping.ignore.iter().any(|title| simplify(title) == simple) {
            return Meaning::Ignored;
        }
    }
    Meaning::Title(Title::parse(title))
}

impl AsRef<str> for ColumnTitle {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

/// Gives equal titles numbers, as in "Datum (2)", so that a mapping can name each.
pub(super) fn number_equal(titles: impl IntoIterator<Item = impl Into<String>>) -> Vec<ColumnTitle> {
    let mut counts = HashMap::new();
    let number = |title: String| {
        let count = counts.entry(simplify(&title)).or_insert(0);
        *count += 1;
        match *count {
            count if count > 1 && !title.trim().is_empty() => {
                let title = title.trim();
                ColumnTitle { text: format!("{title} ({count})"), number_at: Some(title.len()) }
            }
            _ => ColumnTitle { text: title, number_at: None },
        }
    };
    titles.into_iter().map(Into::into).map(number).collect()
}

/// The roles of the columns. Each misspelt, duplicate or missing name is one error (decision 039), and all unknown ones
/// are one warning. Without a required column the rows are not read.
pub(super) fn match_columns(
    titles: &[ColumnTitle],
    location: Location,
    options: &ReadOptions,
    collector: &mut Collector<'_>,
) -> Result<Header, Stop> {
    let mut matcher = Matcher {
        options,
        header: Header { roles: Vec::new(), zone: None },
        taken: [false; Field::ALL.len()],
        misspelt: Vec::new(),
        all_titles: titles,
        titles: titles.iter().map(|title| title.text.trim()).filter(|title| !title.is_empty()).collect(),
        unknown: Vec::new(),
        errors: Vec::new(),
    };
    for title in titles {
        matcher.add(title, collector);
    }
    matcher.check_unknown();
    for error in std::mem::take(&mut matcher.errors) {
        collector.add_error(location, error)?;
    }
    collector.set_columns(location, titles, &matcher.header.roles);
    let is_complete = matcher.check_required(location, collector)?;
    // For a file of another kind, one error is enough.
    if is_complete || (matcher.taken.contains(&true) && !matcher.is_another_kind()) {
        matcher.check_mapping(location, collector)?;
    }
    if !matcher.unknown.is_empty() {
        let names = list(&matcher.unknown, |title| quoted(&clip(title)));
        let warning = format!("ignored columns: {names}{}", matcher.suggest_lines());
        collector.warn(location, problem(warning))?;
    }
    Ok(matcher.header)
}

/// The error of a title with a unit that is not the field's.
fn wrong_title(title: &str, unit: &str, field: Field) -> FieldError {
    let problem = wrong_unit("the title", unit, field);
    FieldError::problem(&clip(title), format!("{problem}, or add it to ignore in a mapping"))
}

struct Matcher<'o, 't> {
    options: &'o ReadOptions,
    header: Header,
    /// Whether a field has a column.
    taken: [bool; Field::ALL.len()],
    /// The fields whose titles are probably misspelt, which are errors.
    misspelt: Vec<Field>,
    all_titles: &'t [ColumnTitle],
    titles: Vec<&'t str>,
    unknown: Vec<&'t str>,
    errors: Vec<FieldError>,
}

impl<'t> Matcher<'_, 't> {
    fn add(&mut self, column: &'t ColumnTitle, collector: &mut Collector<'_>) {
        let title = column.text.trim();
        let role = match recognise(self.options, column) {
            Meaning::Mapped(field, _) | Meaning::Title(Title::OddUnit(field, _))
                if let Some(unit) = other_unit(field, title) =>
            {
                self.errors.push(wrong_title(title, unit, field));
                Role::Ignored
            }
            // A person has decided what the times are.
            Meaning::Mapped(field, Unit::Offset) if self.options.mapping.timezone.is_some() => {
                self.field(title, field, Unit::None, collector)
            }
            Meaning::Mapped(field, unit) | Meaning::Title(Title::Field(field, unit)) => {
                self.field(title, field, unit, collector)
            }
            Meaning::Title(Title::OddUnit(field, unit)) => {
                let reason = match column.number_at {
                    Some(_) => "another column has the same title".to_owned(),
                    None => format!("it has {}", quoted(&clip(&unit))),
                };
                let problem = format!(
                    "not sure that it is {field}, because {reason}; if so, add {} = \"{field}\" to [columns] of a mapping, or else \
                     add it to ignore",
                    quoted(&clip(title)),
                );
                self.errors.push(FieldError::problem(&clip(title), problem));
                Role::Ignored
            }
            Meaning::Title(Title::Unknown) if title.is_empty() => Role::Unnamed,
            Meaning::Title(Title::Unknown) => {
                self.unknown.push(title);
                Role::Ignored
            }
            Meaning::Title(Title::Extra) | Meaning::Ignored => Role::Ignored,
        };
        self.header.roles.push(role);
    }

    fn field(&mut self, title: &str, field: Field, unit: Unit, collector: &mut Collector<'_>) -> Role {
        match unit {
            Unit::Zone(zone) => self.header.zone = Some(zone),
            Unit::Utc | Unit::Offset => {
                if let Some(problem) = self.zone_problem(&unit) {
                    self.errors.push(FieldError::problem(&clip(title), problem));
                }
                self.header.zone = Zone::parse("UTC");
            }
            Unit::Percent => collector.set_percent_title(field),
            Unit::None => {}
        }
        if std::mem::replace(&mut self.taken[field as usize], true) {
            if self.is_date_and_time(field) {
                return Role::DateOrTime;
            }
            let problem = format!("second column for {field}; add one of them to ignore in a mapping");
            self.errors.push(FieldError::problem(&clip(title), problem));
            return Role::Ignored;
        }
        let mapping = &self.options.mapping;
        let is_plain = match field.kind() {
            Kind::Instant => mapping.date_formats.is_empty(),
            Kind::Count | Kind::Decimal => mapping.decimal.is_none(),
            Kind::Flag => mapping.true_words.is_none() && mapping.false_words.is_none(),
            _ => true,
        };
        Role::Field(Column { field, kind: field.kind(), is_plain })
    }

    /// Why the zone of a title cannot be used.
    fn zone_problem(&self, unit: &Unit) -> Option<String> {
        if *unit == Unit::Offset {
            return Some(
                "the title names an offset, which may be that of one season: map the column in [columns] of a mapping, and \
                 state timezone there, such as \"Europe/Berlin\" if its clocks change, or \"Etc/GMT-1\" for UTC+01:00 all year"
                    .into(),
            );
        }
        let stated = self.options.zone_name()?;
        let is_utc = ["UTC", "GMT", "Etc/UTC", "Etc/GMT"].contains(&stated);
        (!is_utc).then(|| {
            format!(
                "the title says UTC, and --timezone or the mapping says {stated}: correct the title, or state UTC"
            )
        })
    }

    /// A mapping may give the date of a batch two columns: one with the date, one with the time of day.
    fn is_date_and_time(&mut self, field: Field) -> bool {
        let mapped = self.options.mapping.columns.iter().filter(|(_, mapped)| *mapped == field).count();
        let is_first = |role: &&mut Role| matches!(role, Role::Field(column) if column.field == field);
        if field.kind() != Kind::Instant || mapped != 2 {
            return false;
        }
        let first = self.header.roles.iter_mut().find(is_first);
        first.map(|role| *role = Role::DateOrTime).is_some()
    }

    /// A typo in a title must not become a silent null.
    fn check_unknown(&mut self) {
        let taken = self.taken;
        let (mut misspellings, unknown) = (Vec::new(), std::mem::take(&mut self.unknown));
        for title in unknown {
            match misspelt(title, |field| !taken[field as usize] && !self.has_template(field)) {
                None if is_time_of_day(title) && taken[Field::BatchCreationDate as usize] => {
                    misspellings.push(FieldError::problem(&clip(title), self.time_of_another_column(title)));
                }
                Some(field) if let Some(unit) = other_unit(field, title) => {
                    misspellings.push(wrong_title(title, unit, field));
                }
                Some(field) => {
                    self.misspelt.push(field);
                    let problem = format!(
                        "unknown field; did you mean {field}? Then add {} = \"{field}\" to [columns] of a mapping, or else add it to ignore",
                        quoted(&clip(title))
                    );
                    misspellings.push(FieldError::problem(&clip(title), problem));
                }
                None => self.unknown.push(title),
            }
        }
        self.errors.append(&mut misspellings);
    }

    /// Whether the mapping makes the values of a field.
    fn has_template(&self, field: Field) -> bool {
        field == Field::BatchId && self.options.mapping.batch_id.is_some()
    }

    /// Dates without their times would be midnight.
    fn time_of_another_column(&self, title: &str) -> String {
        let is_date = |role: &Role| matches!(role, Role::Field(column) if column.kind == Kind::Instant);
        let date = self.header.roles.iter().position(is_date).and_then(|index| self.all_titles.get(index));
        let (date, title) = (quoted(&clip(date.map_or("", |date| date.text.trim()))), quoted(&clip(title)));
        let field = Field::BatchCreationDate;
        format!(
            "may be the time of day for the dates of {date}; if so, add {date} = \"{field}\" and {title} = \"{field}\" to \
             [columns] of a mapping, or else add {title} to ignore"
        )
    }

    /// A field of the mapping without a column: if the file has columns with other titles, one of them may be it. A
    /// missing field without another value is already an error.
    fn check_mapping(&self, location: Location, collector: &mut Collector<'_>) -> Result<(), Stop> {
        let mapping = &self.options.mapping;
        for (title, field) in &mapping.columns {
            let has_value = mapping.values.iter().any(|(known, _)| known == field);
            if self.taken[*field as usize] || !field.is_nullable() && !has_value {
                continue;
            }
            let title = clip(title);
            match self.unknown.first() {
                None if has_value => {
                    let problem = format!(
                        "not in this file, although the mapping names it for {field}; if no column has it, remove it from \
                         [columns], so that {field} below [values] is for all rows"
                    );
                    collector.add_error(location, FieldError::problem(&title, problem))?;
                }
                Some(other) => {
                    let problem = format!(
                        "not in this file, although the mapping names it for {field}. Has {} replaced it? Add that to \
                         [columns] or to ignore in the mapping",
                        quoted(&clip(other))
                    );
                    collector.add_error(location, FieldError::problem(&title, problem))?;
                }
                None => {
                    let warning =
                        format!("not in this file, although the mapping names it; {field} is left empty");
                    collector.warn(location, FieldError::problem(&title, warning))?;
                }
            }
        }
        Ok(())
    }

    /// Whether all required columns are there.
    fn check_required(&mut self, location: Location, collector: &mut Collector<'_>) -> Result<bool, Stop> {
        let is_missing = |field: &Field| !self.taken[*field as usize];
        let missing: Vec<Field> = required_fields(self.options).filter(is_missing).collect();
        if missing.is_empty() {
            return Ok(true);
        }
        let unknown = self.unknown.len();
        let missing: Vec<Field> =
            missing.into_iter().filter(|field| !self.misspelt.contains(field)).collect();
        let mut errors: Vec<FieldError> = missing.iter().map(|field| self.missing(*field)).collect();
        let is_like_batches =
            self.taken.contains(&true) || self.unknown.len() < unknown || !self.misspelt.is_empty();
        if !is_like_batches || self.is_another_kind() {
            errors = vec![self.no_title_known()];
        }
        errors.into_iter().try_for_each(|error| collector.add_error(location, error))?;
        collector.stop_after_examples()?;
        Ok(false)
    }

    /// Whether most columns of the mapping are not in the file.
    fn is_another_kind(&self) -> bool {
        let columns = &self.options.mapping.columns;
        let missing = columns.iter().filter(|(_, field)| !self.taken[*field as usize]).count();
        missing >= MISSING_MIN && missing * 2 > columns.len()
    }

    /// For a file of another kind, one error says more than one for each field.
    fn no_title_known(&self) -> FieldError {
        let titles = list(&self.titles, |title| quoted(&clip(title)));
        problem(match self.options.mapping.columns.is_empty() {
            true => format!(
                "no title is known: {titles}; if these are batches, name their fields in a mapping \
                 (--write-mapping begins one)"
            ),
            false => format!(
                "most columns of the mapping are missing: is it another kind of file? It has {titles}"
            ),
        })
    }

    /// The lines of a mapping that unknown columns may need.
    fn suggest_lines(&self) -> String {
        let line = |title: &&str| {
            let is_free = |field: &&Field| {
                !self.taken[**field as usize] && !self.has_template(**field) && may_have_unit(**field, title)
            };
            let fields = hints(title)?.iter().filter(is_free);
            let names: Vec<String> = fields.map(|field| format!("\"{field}\"")).collect();
            (!names.is_empty()).then(|| format!("{} = {}", quoted(&clip(title)), names.join(" or ")))
        };
        let lines: Vec<String> = self.unknown.iter().take(TITLES_MAX).filter_map(line).collect();
        match lines.is_empty() {
            true => String::new(),
            false => format!("; to read them, add lines to [columns] of a mapping: {}", lines.join(", ")),
        }
    }

    /// Names the most likely setting, each title once.
    fn missing(&mut self, field: Field) -> FieldError {
        let mapped = self.options.mapping.columns.iter().find(|(_, mapped)| *mapped == field);
        let is_date = field == Field::BatchCreationDate;
        let (times, others): (Vec<&str>, Vec<&str>) =
            self.unknown.iter().partition(|title| is_date && is_time_of_day(title));
        let likely = most_likely(field, if others.is_empty() { &times } else { &others });
        let likely = likely.filter(|_| mapped.is_none());
        let time = times.first().copied().filter(|time| likely.is_some_and(|likely| likely != *time));
        self.unknown.retain(|other| Some(*other) != likely && Some(*other) != time);
        let mut text = String::from("missing required column");
        text += &match (mapped, likely) {
            (Some((title, _)), _) => format!("; the mapping says that its title is {}", quoted(&clip(title))),
            (None, Some(title)) => format!(
                "; if it has another title here, such as {0}, add {0} = \"{field}\" to [columns] of a mapping",
                quoted(&clip(title))
            ),
            (None, None) if self.unknown.is_empty() => String::new(),
            (None, None) => format!(
                "; if it has another title here, add \"TITLE\" = \"{field}\" to [columns] of a mapping"
            ),
        };
        if let Some(time) = time {
            text += &format!(", and {} = \"{field}\" for its time of day", quoted(&clip(time)));
        }
        text += match field {
            Field::BatchId => {
                "; if the file has no ids, add batch_id = \"{batch_name} {batch_creation_date}\" to a mapping"
            }
            _ if mapped.is_some() || likely.is_some() => "",
            Field::BatchName if self.taken[Field::BatchId as usize] => {
                "; if the ids are the names, map their column to batch_name, and add batch_id = \"{batch_name}\" to the mapping"
            }
            Field::NumberOfImages => "; if no column has it, state it below [values]: number_of_images = 1",
            Field::Warnings => "; if no column has it, state it below [values]: warnings = false",
            _ => "",
        };
        FieldError::problem(field.name(), text)
    }
}
