//! The eighteen fields of a batch, stated once. Everything that lists fields is generated from the table below.

use std::fmt;

use crate::ids::BATCH_ID_BYTES_MAX;

/// The largest count: every JSON reader keeps it exact, also those that only have doubles.
pub const COUNT_MAX: u64 = (1 << 53) - 1;

/// Passes the table to a macro, one row per field in wire order:
/// `Variant name presence Kind (unit, example, description);`
///
/// An example is the value as a CSV cell, free of characters that JSON escapes.
macro_rules! batch_fields {
    ($apply:ident) => {
        $apply! {
            BatchId batch_id required Id
                ("", "b-000123", "Identifier of the batch, unique within the organisation");
            BatchName batch_name required Name
                ("", "Roma wk 5 house 1", "Name of the batch");
            BatchCreationDate batch_creation_date required Instant
                ("", "2026-01-31T08:00:00Z", "When the batch was created, in UTC");
            CropType crop_type nullable Text
                ("", "Tomato 'Roma'", "Crop and variety in the tray");
            NumberOfImages number_of_images required Count
                ("", "12", "Number of images taken");
            TotalCellsPerTray total_cells_per_tray nullable Count
                ("", "128", "Number of cells of a tray");
            AvgGerminatedSeedlings avg_germinated_seedlings nullable Decimal
                ("", "118.40", "Average number of germinated seedlings per tray");
            AvgNonGerminatedSeedlings avg_non_germinated_seedlings nullable Decimal
                ("", "9.60", "Average number of seedlings per tray that did not germinate");
            AvgGerminationRate avg_germination_rate nullable Decimal
                ("percent", "92.50", "Average germination rate");
            AvgUsableSeedlings avg_usable_seedlings nullable Decimal
                ("", "110.00", "Average number of usable seedlings per tray");
            AvgNonUsableCells avg_non_usable_cells nullable Decimal
                ("", "18.00", "Average number of cells per tray without a usable seedling");
            AvgUsableSeedlingRate avg_usable_seedling_rate nullable Decimal
                ("percent", "85.94", "Average rate of usable seedlings");
            AvgCoefficientOfVariation avg_coefficient_of_variation nullable Decimal
                ("percent", "24.07", "Average coefficient of variation of the seedling size");
            AvgMedianSeedlingSizeMm2 avg_median_seedling_size_mm2 nullable Decimal
                ("square millimetres", "41.25", "Average of the median seedling sizes of the trays");
            ScannedByEmail scanned_by_email nullable Text
                ("", "ann@example.org", "Email address of the person who ran the scan");
            AnalysisLink analysis_link nullable Link
                ("", "https://reports.example.org/b-000123", "URL of the full report");
            Comment comment nullable Text
                ("", "sown a day late", "Comment on the batch");
            Warnings warnings required Flag
                ("", "false", "Whether the scan raised any warning");
        }
    };
}
pub(crate) use batch_fields;

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Identifier of a batch.
    Id,
    /// Text that is not empty.
    Name,
    /// Any text.
    Text,
    /// Absolute web address.
    Link,
    /// Date and time.
    Instant,
    /// Whole number that is not negative.
    Count,
    /// Decimal with two fraction digits.
    Decimal,
    /// True or false.
    Flag,
}

impl Kind {
    /// The values it accepts, for error messages and help texts.
    pub fn expected(self) -> String {
        match self {
            Kind::Id => format!("1 to {BATCH_ID_BYTES_MAX} bytes of text without control characters"),
            Kind::Name => "text that is not empty".into(),
            Kind::Text => "text".into(),
            Kind::Link => "an absolute http or https URL".into(),
            Kind::Instant => "a date and time with a UTC offset, such as 2026-01-31T08:00:00Z".into(),
            Kind::Count => format!("a whole number from 0 to {COUNT_MAX}"),
            Kind::Decimal => "a decimal such as 92.5".into(),
            Kind::Flag => "true or false".into(),
        }
    }

    const fn is_quoted_in_json(self) -> bool {
        !matches!(self, Kind::Count | Kind::Flag)
    }
}

macro_rules! is_nullable {
    (required) => {
        false
    };
    (nullable) => {
        true
    };
}

macro_rules! define_field {
    ($($variant:ident $name:ident $presence:ident $kind:ident
        ($unit:literal, $example:literal, $description:literal);)*) => {
        /// A field of a batch.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Field {
            $(#[doc = $description] $variant,)*
        }

        impl Field {
            /// Every field, in wire order.
            pub const ALL: [Field; [$(Field::$variant),*].len()] = [$(Field::$variant),*];

            /// The name on the wire and in files.
            pub const fn name(self) -> &'static str {
                match self { $(Field::$variant => stringify!($name),)* }
            }

            /// The name as JSON has it before a value: `"batch_id":`.
            pub(crate) const fn json_key(self) -> &'static str {
                match self { $(Field::$variant => concat!("\"", stringify!($name), "\":"),)* }
            }

            /// What the field holds.
            pub const fn kind(self) -> Kind {
                match self { $(Field::$variant => Kind::$kind,)* }
            }

            /// Whether a batch may lack a value.
            pub const fn is_nullable(self) -> bool {
                match self { $(Field::$variant => is_nullable!($presence),)* }
            }

            /// The unit of its numbers, if they have one.
            pub fn unit(self) -> Option<&'static str> {
                let unit = match self { $(Field::$variant => $unit,)* };
                (!unit.is_empty()).then_some(unit)
            }

            /// The meaning, in a phrase without the unit.
            pub const fn description(self) -> &'static str {
                match self { $(Field::$variant => $description,)* }
            }

            /// A usual value, as a CSV cell.
            pub const fn example(self) -> &'static str {
                match self { $(Field::$variant => $example,)* }
            }
        }
    };
}
batch_fields!(define_field);

impl Field {
    /// The field with this name.
    pub fn from_name(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.name() == name)
    }

    /// The field whose name is most similar to `name`, if it is close enough for a typo.
    pub fn most_similar(name: &str) -> Option<Field> {
        const EDITS_MAX: usize = 3;
        const NAME_BYTES_MAX: usize = 64;
        if name.len() > NAME_BYTES_MAX {
            return None;
        }
        let name = name.trim().to_ascii_lowercase().replace([' ', '-'], "_");
        let edits = |field: &Field| strsim::levenshtein(&name, field.name());
        Field::ALL.into_iter().min_by_key(edits).filter(|field| edits(field) <= EDITS_MAX)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The fields with the values they accept, a line each, for help texts. A `*` marks required fields.
pub fn help() -> String {
    let line = |field: Field| {
        let name = format!("{field}{}", if field.is_nullable() { "" } else { " *" });
        let unit = field.unit().map_or_else(String::new, |unit| format!(", in {unit}"));
        format!("  {name:<30}{}{unit}\n", field.kind().expected())
    };
    Field::ALL.map(line).concat()
}

/// A batch with a value in every field, as JSON in wire order. For documentation and tests.
pub fn example_json() -> String {
    let members = Field::ALL.map(|field| {
        let quote = if field.kind().is_quoted_in_json() { "\"" } else { "" };
        format!("{}{quote}{}{quote}", field.json_key(), field.example())
    });
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_its_name_and_index() {
        for (index, field) in Field::ALL.into_iter().enumerate() {
            assert_eq!(Field::from_name(field.name()), Some(field));
            assert_eq!(field as usize, index);
        }
    }

    #[test]
    fn a_typo_finds_the_field_and_another_word_does_not() {
        for (name, found) in [
            ("Batch Name", Some(Field::BatchName)),
            ("coment", Some(Field::Comment)),
            ("germination_rate", None),
            ("price", None),
            (&"x".repeat(1_000), None),
        ] {
            assert_eq!(Field::most_similar(name), found, "{name}");
        }
    }

    #[test]
    fn the_help_lists_every_field_and_marks_the_required_ones() {
        let help = help();
        assert_eq!(help.lines().count(), Field::ALL.len());
        assert!(help.contains("  warnings *                    true or false\n"), "{help}");
        assert!(
            help.contains("  avg_germination_rate          a decimal such as 92.5, in percent\n"),
            "{help}"
        );
    }
}
