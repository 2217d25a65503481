//! The titles of columns: field names in any spelling, the titles that our own exports write, common ones that can mean
//! only one field, and units behind them. Other words need a mapping.

use std::collections::HashMap;
use std::sync::LazyLock;

use batchscan_model::printable::clip;
use batchscan_model::{Field, FieldError, Kind, Zone};

use super::mapping::RATE_FIELDS;

/// The titles of the dashboard, in English and German.
const TITLES: [(Field, &str, &str); Field::ALL.len()] = [
    (Field::BatchId, "Batch ID", "Chargen-ID"),
    (Field::BatchName, "Name", "Name"),
    (Field::BatchCreationDate, "Scanned", "Gescannt"),
    (Field::CropType, "Crop", "Kultur"),
    (Field::NumberOfImages, "Images", "Bilder"),
    (Field::TotalCellsPerTray, "Cells per tray", "Zellen pro Platte"),
    (Field::AvgGerminatedSeedlings, "Germinated seedlings", "Gekeimte Sämlinge"),
    (Field::AvgNonGerminatedSeedlings, "Non-germinated cells", "Zellen ohne Keimling"),
    (Field::AvgGerminationRate, "Germination rate", "Keimrate"),
    (Field::AvgUsableSeedlings, "Usable seedlings", "Brauchbare Sämlinge"),
    (Field::AvgNonUsableCells, "Non-usable cells", "Unbrauchbare Zellen"),
    (Field::AvgUsableSeedlingRate, "Usable rate", "Anteil brauchbar"),
    (Field::AvgCoefficientOfVariation, "Size variation", "Größenstreuung"),
    (Field::AvgMedianSeedlingSizeMm2, "Median size", "Mediangröße"),
    (Field::ScannedByEmail, "Scanned by", "Gescannt von"),
    (Field::AnalysisLink, "Analysis report", "Analysebericht"),
    (Field::Comment, "Comment", "Kommentar"),
    (Field::Warnings, "Warnings", "Warnungen"),
];

/// Common titles that can mean only one field, in English, German, French and Dutch. Not "Sorte", which may be a crop or a name;
/// not "Datum", which may be that of sowing; not "VK", which may be a price; not "Chargennummer", which many trays may have.
const COMMON: [(Field, &str); 6] = [
    (Field::BatchCreationDate, "Scan date, Scandatum, Date du scan, Date de scan"),
    (Field::CropType, "Gewas, Culture"),
    (
        Field::NumberOfImages,
        "Anzahl Bilder, Anzahl der Bilder, Bilderanzahl, Nombre d'images, Aantal beelden",
    ),
    (Field::AvgGerminationRate, "Keimquote, Taux de germination, Kiempercentage, Kiemingspercentage"),
    (
        Field::AvgCoefficientOfVariation,
        "Coefficient of variation, Variationskoeffizient, Coefficient de variation, Variatiecoëfficiënt",
    ),
    (
        Field::Comment,
        "Comments, Bemerkung, Bemerkungen, Kommentare, Remarque, Remarques, Commentaire, Opmerking, Opmerkingen",
    ),
];

/// Simplified titles that are similar to ours, but mean something else.
const NO_MISSPELLINGS: [&str; 3] = ["scanner", "chargennr", "chargenr"];

/// Columns that the dashboard adds for people.
const EXTRA: [(&str, &str); 3] =
    [("Why unusual", "Warum auffällig"), ("Seen", "Gesehen"), ("Note for everyone", "Notiz für alle")];

static KNOWN: LazyLock<HashMap<String, Field>> = LazyLock::new(|| {
    let names =
        |(field, english, german)| [field_name(field), english, german].map(|name| (simplify(name), field));
    TITLES.into_iter().flat_map(names).collect()
});

/// Apart from the others, since not every title that is similar to one of these is misspelt: "Marque" is no "Remarque".
static KNOWN_COMMON: LazyLock<HashMap<String, Field>> = LazyLock::new(|| {
    let names = |(field, titles): (Field, &'static str)| {
        titles.split(", ").map(move |title| (simplify(title), field))
    };
    COMMON.into_iter().flat_map(names).collect()
});

fn known(title: &str) -> Option<Field> {
    let simple = simplify(title);
    KNOWN.get(&simple).or_else(|| KNOWN_COMMON.get(&simple)).copied()
}

const fn field_name(field: Field) -> &'static str {
    field.name()
}

/// What a title says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Title {
    Field(Field, Unit),
    /// A field, with something behind it that is not a unit of the field.
    OddUnit(Field, String),
    /// Of our own exports, without a field.
    Extra,
    Unknown,
}

/// The unit or the time zone in a title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    None,
    Percent,
    Zone(Zone),
    /// UTC as a word, which is less certain than a zone in brackets.
    Utc,
    /// An offset from UTC, which is no zone: clocks change.
    Offset,
}

impl Title {
    pub(super) fn parse(title: &str) -> Self {
        if let Some(field) = known(title) {
            return Title::Field(field, Unit::None);
        }
        let (base, unit) = split_unit(title);
        match known(base) {
            Some(field) => match Unit::parse(field, unit) {
                Some(found) => Title::Field(field, found),
                None => match Unit::of_time(field, title) {
                    Unit::None => Title::OddUnit(field, unit.to_owned()),
                    found => Title::Field(field, found),
                },
            },
            None if EXTRA
                .iter()
                .any(|(en, de)| [en, de].into_iter().any(|extra| simplify(extra) == simplify(title))) =>
            {
                Title::Extra
            }
            None => Title::Unknown,
        }
    }
}

impl Unit {
    /// The unit of a title that a mapping gives to a field. What is not understood is a part of the title.
    pub(super) fn of_mapped(field: Field, title: &str) -> Self {
        Self::parse(field, split_unit(title).1).unwrap_or_else(|| Self::of_time(field, title))
    }

    /// What the title of times says about their zone, anywhere in it.
    fn of_time(field: Field, title: &str) -> Self {
        if field.kind() != Kind::Instant {
            return Unit::None;
        }
        let mut names = title.split([' ', '(', ')', '[', ']', ',']).filter(|name| name.contains('/'));
        if let Some(zone) = names.find_map(Zone::parse) {
            return Unit::Zone(zone);
        }
        let upper = title.to_uppercase();
        for (at, name) in ["UTC", "GMT"].into_iter().flat_map(|name| upper.match_indices(name)) {
            let rest = &upper[at + name.len()..];
            let is_word =
                !upper[..at].ends_with(char::is_alphanumeric) && !rest.starts_with(char::is_alphabetic);
            if is_word {
                let is_offset = begins_with_offset(rest) || rest.starts_with(|c: char| c.is_ascii_digit());
                return if is_offset { Unit::Offset } else { Unit::Utc };
            }
        }
        match words(&upper).any(is_offset_name) {
            true => Unit::Offset,
            false if begins_with_offset(split_unit(title).1) => Unit::Offset,
            false if upper.contains("WELTZEIT") => Unit::Utc,
            false => Unit::None,
        }
    }

    fn parse(field: Field, unit: &str) -> Option<Self> {
        match (field.kind(), field.unit()) {
            (_, Some("percent")) => matches!(unit, "%" | "percent").then_some(Unit::Percent),
            (_, Some(_)) => matches!(unit, "mm²" | "mm2" | "mm^2").then_some(Unit::None),
            (Kind::Instant, _)
                if is_offset_name(&unit.to_uppercase()) || unit.eq_ignore_ascii_case("GMT") =>
            {
                None
            }
            (Kind::Instant, _) => Zone::parse(unit).map(Unit::Zone),
            (Kind::Decimal, _) => matches!(unit, "per tray" | "pro Platte").then_some(Unit::None),
            _ if field == Field::ScannedByEmail => matches!(unit, "e-mail" | "E-Mail").then_some(Unit::None),
            _ => None,
        }
    }
}

/// A title and what is behind it in brackets, or as a bare unit.
fn split_unit(title: &str) -> (&str, &str) {
    let title = title.trim();
    for (open, close) in [('(', ')'), ('[', ']')] {
        if let Some((base, unit)) = title.strip_suffix(close).and_then(|rest| rest.rsplit_once(open)) {
            return (base, unit.trim());
        }
    }
    for unit in ["%", "mm²", "‰", "cm²", "cm2", "cm^2"] {
        if let Some(base) = title.strip_suffix(unit) {
            let base = base.trim_end().trim_end_matches(',');
            return (base.strip_suffix(" in").unwrap_or(base), unit);
        }
    }
    (title, "")
}

fn words(title: &str) -> impl Iterator<Item = &str> {
    title.split(|c: char| !c.is_alphanumeric() && !matches!(c, '^' | '‰'))
}

/// Whether a word is used for the time of one season, or of a zone in both.
fn is_offset_name(word: &str) -> bool {
    const NAMES: [&str; 14] =
        ["MEZ", "MESZ", "CEST", "EEST", "BST", "EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT", "HST"];
    NAMES.contains(&word)
}

/// Whether a text such as `+01:00` follows. `+00:00` is UTC.
fn begins_with_offset(text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    let signed = text.trim_start().strip_prefix(['+', '-', '\u{2212}', '±']).map(str::trim_start);
    signed.is_some_and(|offset| offset.trim_start_matches(['0', ':']).starts_with(is_digit))
}

/// Whether a column has times of day, which belong to the dates of another one.
pub(super) fn is_time_of_day(title: &str) -> bool {
    const TITLES: &str =
        "uhrzeit zeit scanzeit time scantime timeofday tijd tijdstip scantijd heure heurescan hora godzina";
    let simple = simplify(title);
    TITLES.split(' ').any(|title| title == simple)
}

/// A title without case, spaces, hyphens and underscores.
pub(super) fn simplify(title: &str) -> String {
    let is_kept =
        |c: &char| !c.is_whitespace() && !matches!(c, '-' | '_' | '\u{ad}' | '\u{2010}' | '\u{2011}');
    title.chars().filter(is_kept).flat_map(char::to_lowercase).collect()
}

/// The field of which the title is a misspelling, among those that are missing.
pub(super) fn misspelt(title: &str, is_missing: impl Fn(Field) -> bool) -> Option<Field> {
    let simple = simplify(split_unit(title).0);
    if NO_MISSPELLINGS.contains(&simple.trim_end_matches('.')) {
        return None;
    }
    let edits = |known: &str| strsim::levenshtein(&simple, known);
    let candidates = KNOWN.iter().filter(|(_, field)| is_missing(**field));
    let (known, field) = candidates.min_by_key(|(known, field)| (edits(known), **field as usize))?;
    let edits_max = match known.chars().count() {
        0..5 => 0,
        5..8 => 1,
        8..12 => 2,
        _ => 3,
    };
    (edits(known) <= edits_max).then_some(*field)
}

/// Parts of titles in English, German, French, Dutch, Spanish and Polish that hint at a field, or at several. Only suggested,
/// never applied. Two words with `&` are both in the title; one behind `=` is the whole title.
const HINTS: [(&[Field], &str); 17] = [
    // Numbers of rows, and dates of sowing.
    (&[], "=nr =nr. =no =no. =lfd. lfd&nr =pos =pos. aussaat siembra sowing sown zaai semis siew"),
    (&[Field::NumberOfImages], "image bild beeld photo foto picture imágen imagen zdjęć zdjęci"),
    (
        &[Field::Warnings],
        "warn waarschuwing avert alert fehler error issue problem melding meldung aviso ostrzeż",
    ),
    (&[Field::ScannedByEmail], "mail scan&durch scan&von scan&by scan&door scan&par"),
    (
        &[Field::AvgNonGerminatedSeedlings],
        "nicht&gekeimt ungekeimt non&germinated not&germinated niet&gekiemd non&germé",
    ),
    (&[Field::AvgGerminationRate], "gekeimt&% germinated&% gekiemd&% germé&%"),
    (&[Field::AvgUsableSeedlingRate], "brauchbar&% usable&% bruikba&% utilisable&%"),
    (&[Field::AvgGerminatedSeedlings, Field::AvgGerminationRate], "gekeimt germinated gekiemd germé"),
    // Seedlings of any kind, numbers of trays, and devices.
    (
        &[],
        "keimling kiemplant =platten =schalen =trays =plaques anzahl&platten anzahl&schalen number&trays scanner",
    ),
    (&[Field::AvgGerminationRate], "germination germinación keim kiem kiełk"),
    (&[Field::AvgCoefficientOfVariation], "vk variation variatie"),
    (&[Field::Comment], "comment bemerkung notiz note opmerking remarque observaci uwagi"),
    (&[Field::CropType], "crop kultur gewas culture espèce cultivo"),
    (&[Field::CropType, Field::BatchName], "sorte ras variety variété odmiana bezeichnung omschrijving"),
    (&[Field::BatchId], "id nr no nummer numéro number code key ref réf chargennr partijnr"),
    (&[Field::BatchCreationDate], "date datum scan zeit time tijd heure created fecha data skan"),
    (
        &[Field::BatchName],
        "name naam nom nombre nazwa label tray schale platte lot charge partij lote partia batch =satz",
    ),
];

/// The title that most likely has this field: a similar one, or one with a word that hints at it.
pub(super) fn most_likely<'t>(field: Field, titles: &[&'t str]) -> Option<&'t str> {
    const SIMILARITY_MIN: f64 = 0.8;
    // With less, a word that hints at another field decides.
    const SAME_MIN: f64 = 0.95;
    let similarity = |title: &str| {
        // A percentage is no count, and a size is no rate.
        if !may_have_unit(field, title) {
            return 0.0;
        }
        let simple = simplify(split_unit(title).0);
        let names = KNOWN.iter().filter(|(_, known)| **known == field);
        let similarity = names.map(|(name, _)| strsim::jaro_winkler(&simple, name)).fold(0.0, f64::max);
        let is_other = similarity < SAME_MIN && hints(title).is_some_and(|hints| !hints.contains(&field));
        if is_other { 0.0 } else { similarity }
    };
    let best = titles.iter().copied().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    best.filter(|title| similarity(title) >= SIMILARITY_MIN).or_else(|| {
        let count = |title: &str| hints(title).filter(|hints| hints.contains(&field)).map(<[Field]>::len);
        let hinted = titles.iter().copied().filter(|title| may_have_unit(field, title));
        hinted.filter(|title| count(title).is_some()).min_by_key(|title| count(title))
    })
}

/// Units that a size must be converted from.
const OTHER_UNITS: [&str; 19] = [
    "cm²", "cm2", "cm^2", "m²", "m2", "m^2", "dm²", "dm2", "µm²", "in²", "in2", "inch²", "inch", "sq in",
    "sq. in.", "mm", "cm", "px", "pixel",
];

/// The unit in a title, if the values of the field have another one.
pub(super) fn other_unit(field: Field, title: &str) -> Option<&str> {
    if !matches!(field.kind(), Kind::Decimal | Kind::Count) {
        return None;
    }
    let unit = split_unit(title).1;
    let is_known = OTHER_UNITS.contains(&unit) || ["%", "‰", "percent", "mm²", "mm2", "mm^2"].contains(&unit);
    if is_known && Unit::parse(field, unit).is_none() {
        return Some(unit);
    }
    words(title).find(|word| is_other_unit(field, &word.to_lowercase(), &title.to_lowercase()))
}

/// Whether a word of a title in lower case is another unit than the field's.
fn is_other_unit(field: Field, word: &str, title: &str) -> bool {
    let has_any = |text: &str, parts: &[&str]| parts.iter().any(|part| text.contains(part));
    match field.unit() {
        Some("percent") => word == "ppm" || has_any(word, &["‰", "promill", "permill"]),
        // Square millimetres in words.
        Some(_) if word == "mm" => !has_any(title, &["sq", "carr", "quad"]),
        Some(_) => OTHER_UNITS.contains(&word) || has_any(word, &["cm²", "cm2", "centim", "zentim"]),
        None => false,
    }
}

/// The error of a unit that is not the field's.
pub(super) fn wrong_unit(place: &str, unit: &str, field: Field) -> String {
    let own = match field.unit() {
        Some("percent") => "is in percent",
        Some(_) => "is in mm²",
        None => "has no unit",
    };
    format!("{place} says {unit}, and {field} {own}: convert the values and correct {place}")
}

/// The error of a row below the header that names another unit than the field's.
pub(super) fn wrong_unit_in_row(field: Field, cell: &str) -> Option<FieldError> {
    let unit = other_unit(field, cell)?;
    Some(FieldError::problem(field.name(), wrong_unit("this row", &clip(unit), field)))
}

pub(super) fn may_have_unit(field: Field, title: &str) -> bool {
    let is_rate = RATE_FIELDS.contains(&field);
    other_unit(field, title).is_none() && (is_rate || !title.contains('%'))
}

/// The fields that a title hints at. An empty list is for a word that hints at no certain field.
pub(super) fn hints(title: &str) -> Option<&'static [Field]> {
    let title = title.to_lowercase().replace('#', " nr ");
    let has = |word: &str| match (word.strip_prefix('='), word.len()) {
        (Some(whole), _) => title.trim() == whole,
        // Short words are also parts of others.
        (None, 2..=3) => title.split(|c: char| !c.is_alphanumeric()).any(|part| part == word),
        _ => title.contains(word),
    };
    let is_hint = |words: &str| words.split(' ').any(|words| words.split('&').all(has));
    HINTS.iter().find(|(_, words)| is_hint(words)).map(|(fields, _)| *fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_names_and_our_titles_are_known_in_any_spelling_and_with_their_units() {
        for field in Field::ALL {
            assert_eq!(TITLES[field as usize].0, field);
            for title in [field.name(), &field.name().to_uppercase(), &field.name().replace('_', " ")] {
                assert_eq!(Title::parse(title), Title::Field(field, Unit::None), "{title}");
            }
        }
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        let rate = Field::AvgGerminationRate;
        for (title, expected) in [
            ("Batch-ID", Title::Field(Field::BatchId, Unit::None)),
            ("  Größen\u{ad}streuung (%)", Title::Field(Field::AvgCoefficientOfVariation, Unit::Percent)),
            ("Germination rate [%]", Title::Field(rate, Unit::Percent)),
            ("Keimrate in %", Title::Field(rate, Unit::Percent)),
            ("avg_germination_rate, %", Title::Field(rate, Unit::Percent)),
            ("Median size mm²", Title::Field(Field::AvgMedianSeedlingSizeMm2, Unit::None)),
            ("Median size (cm²)", Title::OddUnit(Field::AvgMedianSeedlingSizeMm2, "cm²".into())),
            ("Keimrate (0-1)", Title::OddUnit(rate, "0-1".into())),
            ("Gekeimte Sämlinge (pro Platte)", Title::Field(Field::AvgGerminatedSeedlings, Unit::None)),
            (
                "batch_creation_date (Europe/Berlin)",
                Title::Field(Field::BatchCreationDate, Unit::Zone(berlin.clone())),
            ),
            ("Comment (optional)", Title::OddUnit(Field::Comment, "optional".into())),
            ("Chargen-Nr.", Title::Unknown),
            ("Variationskoeffizient [%]", Title::Field(Field::AvgCoefficientOfVariation, Unit::Percent)),
            ("Scan-Datum (Europe/Berlin)", Title::Field(Field::BatchCreationDate, Unit::Zone(berlin))),
            ("Sorte", Title::Unknown),
            ("VK", Title::Unknown),
            ("Datum", Title::Unknown),
            ("Bezeichnung", Title::Unknown),
            ("Warum auffällig", Title::Extra),
            ("Note for everyone", Title::Extra),
            ("Naam", Title::Unknown),
            ("germination", Title::Unknown),
            ("", Title::Unknown),
        ] {
            assert_eq!(Title::parse(title), expected, "{title}");
        }
    }

    #[test]
    fn other_units_are_found_anywhere_in_a_title() {
        let (size, rate) = (Field::AvgMedianSeedlingSizeMm2, Field::AvgGerminationRate);
        for (field, title, expected) in [
            (size, "size_cm2", Some("cm2")),
            (size, "Größe cm²", Some("cm²")),
            (size, "Größe in cm2", Some("cm2")),
            (size, "Area cm^2", Some("cm^2")),
            (size, "Taille (cm carrés)", Some("cm")),
            (size, "Größe (0,01 cm²)", Some("cm²")),
            (size, "Taille (mm carrés)", None),
            (size, "Größe mm2, Median", None),
            (rate, "Keimrate ‰", Some("‰")),
            (rate, "Keimrate (Promille)", Some("Promille")),
            (rate, "Keimung ppm", Some("ppm")),
            (rate, "Keimrate > 2 cm", None),
            (Field::AvgUsableSeedlings, "Seedlings > 5 mm", None),
            (Field::AvgUsableSeedlings, "Seedlings %", Some("%")),
            (Field::Comment, "Comment (cm²)", None),
        ] {
            assert_eq!(other_unit(field, title), expected, "{title}");
        }
    }

    #[test]
    fn a_title_of_times_names_utc_or_an_offset_anywhere() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        for (title, expected) in [
            ("Datum UTC", Unit::Utc),
            ("Scanzeit_UTC", Unit::Utc),
            ("UTC-Zeit", Unit::Utc),
            ("Zeit (Weltzeit)", Unit::Utc),
            ("Date (GMT+00:00)", Unit::Utc),
            ("Date (UTC+2)", Unit::Offset),
            ("Date GMT +1", Unit::Offset),
            ("Date_UTC2", Unit::Offset),
            ("Date (+01:00)", Unit::Offset),
            ("Datum (MEZ)", Unit::Offset),
            ("Zeit Europe/Berlin", Unit::Zone(berlin)),
            ("Datum (2026-11)", Unit::None),
            ("Outcome", Unit::None),
        ] {
            assert_eq!(Unit::of_mapped(Field::BatchCreationDate, title), expected, "{title}");
        }
    }

    #[test]
    fn the_titles_are_those_of_the_dashboard() {
        let english = include_str!("../../../../web/src/text/en.ts");
        let german = include_str!("../../../../web/src/text/de.ts").replace("\\u00AD", "");
        for (field, en, de) in TITLES {
            assert!(english.contains(&format!("    {field}: '{en}',\n")), "{en}");
            assert!(german.contains(&format!("    {field}: '{de}',\n")), "{de}");
        }
        for (en, de) in EXTRA {
            assert!(english.contains(&format!("'{en}'")) && german.contains(&format!("'{de}'")), "{en}");
        }
    }

    #[test]
    fn a_misspelling_finds_a_missing_field_only() {
        assert_eq!(misspelt("coment", |_| true), Some(Field::Comment));
        assert_eq!(misspelt("coment", |field| field != Field::Comment), None);
        assert_eq!(misspelt("Kiemrate [%]", |_| true), Some(Field::AvgGerminationRate));
        assert_eq!(misspelt("Notes", |_| true), None);
        assert_eq!(misspelt("Marque", |_| true), None);
        for title in ["Scanner", "Chargen-Nr", "Charge-Nr.", "Platten", "Keimlinge", "Scan durch", "gekeimt"]
        {
            assert_eq!(misspelt(title, |_| true), None, "{title}");
        }
        let without_seedling = Some(Field::AvgNonGerminatedSeedlings);
        assert_eq!(misspelt("Zellen ohne Keimlinge", |_| true), without_seedling);
        for (field, titles, expected) in [
            (Field::BatchId, ["Naam", "Batch nr"], Some("Batch nr")),
            (Field::BatchCreationDate, ["Scan durch", "Scanner"], None),
            (Field::ScannedByEmail, ["Scan durch", "Scanner"], Some("Scan durch")),
            (Field::BatchName, ["Platten", "Keimlinge"], None),
            (Field::BatchName, ["Satz", "Einsatz"], Some("Satz")),
            (Field::BatchId, ["Nr.", "Lfd. Nr."], None),
            (Field::BatchCreationDate, ["Fecha de siembra", "Fecha escaneo"], Some("Fecha escaneo")),
            (Field::AvgUsableSeedlingRate, ["Usable", "Usable %"], Some("Usable %")),
            (Field::BatchName, ["Sorte", "Name der Platte"], Some("Name der Platte")),
            (Field::BatchName, ["Sorte", "Rest"], Some("Sorte")),
            (Field::AvgGerminationRate, ["nicht gekeimt", "gekeimt %"], Some("gekeimt %")),
            (Field::AvgGerminatedSeedlings, ["gekeimt %", "gekeimt"], Some("gekeimt")),
            (Field::AvgCoefficientOfVariation, ["VK", "Rest"], Some("VK")),
        ] {
            assert_eq!(most_likely(field, &titles), expected, "{field} {titles:?}");
        }
    }
}
