//! A batch, and its JSON text. The text is rendered here and nowhere else: what is stored is what goes out.

use std::fmt::Write as _;

use crate::digits::push_digits;
use crate::judge::{Judge, Source};
use crate::record::clip;
use crate::{BatchId, Field, FieldError, Hundredths, Position, Record, UtcInstant};

/// The longest a batch's JSON text may be: it bounds the memory of a page, whatever an import brings.
pub const BATCH_BYTES_MAX: usize = 64 * 1024;

/// Counts stay exact in every JSON reader, also those that only know doubles.
pub const COUNT_MAX: u64 = (1 << 53) - 1;

/// One tray scan session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the field of that name in the interface, section 2")]
pub struct Batch {
    pub batch_id: BatchId,
    pub batch_name: String,
    pub batch_creation_date: UtcInstant,
    pub crop_type: Option<String>,
    pub number_of_images: u64,
    pub total_cells_per_tray: Option<u64>,
    pub avg_germinated_seedlings: Option<Hundredths>,
    pub avg_non_germinated_seedlings: Option<Hundredths>,
    pub avg_germination_rate: Option<Hundredths>,
    pub avg_usable_seedlings: Option<Hundredths>,
    pub avg_non_usable_cells: Option<Hundredths>,
    pub avg_usable_seedling_rate: Option<Hundredths>,
    pub avg_coefficient_of_variation: Option<Hundredths>,
    pub avg_median_seedling_size_mm2: Option<Hundredths>,
    pub scanned_by_email: Option<String>,
    pub analysis_link: Option<String>,
    pub comment: Option<String>,
    pub warnings: bool,
}

/// All that is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldErrors(pub Vec<FieldError>);

impl Batch {
    /// Judges a record (decision 039): the one door from a file's values to a batch.
    pub fn from_record(record: &Record<'_>) -> Result<Self, FieldErrors> {
        Self::judged(record, Source::File)
    }

    /// Judges a record of another deployment of the interface, by what the interface itself demands of a batch: an
    /// empty name or a link of another scheme is its own affair.
    pub fn from_wire(record: &Record<'_>) -> Result<Self, FieldErrors> {
        Self::judged(record, Source::Wire)
    }

    fn judged(record: &Record<'_>, source: Source) -> Result<Self, FieldErrors> {
        let mut judge = Judge::new(record, source);
        match judge.batch() {
            Some(batch) if judge.faults.is_empty() => Ok(batch),
            _ => Err(FieldErrors(judge.faults)),
        }
    }

    /// Reads a batch from its JSON text.
    pub fn from_json(text: &str) -> Result<Self, FieldErrors> {
        let record = Record::from_json(text).map_err(|error| {
            let expected = "a batch as a JSON object".into();
            FieldErrors(vec![FieldError { field: String::new(), found: error.to_string(), expected }])
        })?;
        Self::from_record(&record)
    }

    /// Where the batch stands in the order of all batches.
    pub fn position(&self) -> Position {
        Position { created: self.batch_creation_date, id: self.batch_id.clone() }
    }

    /// The batch as JSON text, fields in the interface's order.
    pub fn to_json(&self) -> String {
        // Most batches are some 700 bytes; one allocation holds them.
        let mut json = Json(String::with_capacity(768));
        json.text(Field::BatchId, Some(self.batch_id.as_str()));
        json.text(Field::BatchName, Some(&self.batch_name));
        json.instant(Field::BatchCreationDate, self.batch_creation_date);
        json.text(Field::CropType, self.crop_type.as_deref());
        json.count(Field::NumberOfImages, Some(self.number_of_images));
        json.count(Field::TotalCellsPerTray, self.total_cells_per_tray);
        json.decimal(Field::AvgGerminatedSeedlings, self.avg_germinated_seedlings);
        json.decimal(Field::AvgNonGerminatedSeedlings, self.avg_non_germinated_seedlings);
        json.decimal(Field::AvgGerminationRate, self.avg_germination_rate);
        json.decimal(Field::AvgUsableSeedlings, self.avg_usable_seedlings);
        json.decimal(Field::AvgNonUsableCells, self.avg_non_usable_cells);
        json.decimal(Field::AvgUsableSeedlingRate, self.avg_usable_seedling_rate);
        json.decimal(Field::AvgCoefficientOfVariation, self.avg_coefficient_of_variation);
        json.decimal(Field::AvgMedianSeedlingSizeMm2, self.avg_median_seedling_size_mm2);
        json.text(Field::ScannedByEmail, self.scanned_by_email.as_deref());
        json.text(Field::AnalysisLink, self.analysis_link.as_deref());
        json.text(Field::Comment, self.comment.as_deref());
        json.flag(Field::Warnings, self.warnings);
        json.0.push('}');
        json.0
    }
}

/// JSON text in the making. A field without a value is null, never left out.
struct Json(String);

impl Json {
    fn name(&mut self, field: Field) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push('"');
        self.0.push_str(field.name());
        self.0.push_str("\":");
    }

    fn text(&mut self, field: Field, value: Option<&str>) {
        self.name(field);
        match value {
            Some(text) => push_quoted(&mut self.0, text),
            None => self.0.push_str("null"),
        }
    }

    fn decimal(&mut self, field: Field, value: Option<Hundredths>) {
        self.name(field);
        match value {
            Some(value) => {
                self.0.push('"');
                value.push_to(&mut self.0);
                self.0.push('"');
            }
            None => self.0.push_str("null"),
        }
    }

    fn instant(&mut self, field: Field, value: UtcInstant) {
        self.name(field);
        self.0.push('"');
        value.push_to(&mut self.0);
        self.0.push('"');
    }

    fn count(&mut self, field: Field, value: Option<u64>) {
        self.name(field);
        match value {
            Some(value) => push_digits(&mut self.0, value, 1),
            None => self.0.push_str("null"),
        }
    }

    fn flag(&mut self, field: Field, value: bool) {
        self.name(field);
        self.0.push_str(if value { "true" } else { "false" });
    }
}

/// Quotes as RFC 8259 demands and no more: quote, backslash and control characters.
fn push_quoted(json: &mut String, text: &str) {
    let is_plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    json.push('"');
    // Most texts hold nothing to escape. Without an early exit the compiler looks at many bytes at once.
    if text.bytes().fold(true, |all, byte| all & is_plain(byte)) {
        json.push_str(text);
        json.push('"');
        return;
    }
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if is_plain(byte) {
            continue;
        }
        json.push_str(&text[plain..at]);
        plain = at + 1;
        match byte {
            b'"' => json.push_str("\\\""),
            b'\\' => json.push_str("\\\\"),
            b'\n' => json.push_str("\\n"),
            b'\r' => json.push_str("\\r"),
            b'\t' => json.push_str("\\t"),
            _ => drop(write!(json, "\\u{byte:04x}")),
        }
    }
    json.push_str(&text[plain..]);
    json.push('"');
}

impl std::fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let faults: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&faults.join("; "))
    }
}

impl std::error::Error for FieldErrors {}

/// The one fault of a batch whose text would be too long to serve.
pub fn too_long(batch: &Batch, bytes: usize) -> FieldError {
    FieldError {
        field: String::new(),
        found: format!("{bytes} bytes of JSON for batch \"{}\"", clip(batch.batch_id.as_str())),
        expected: format!("at most {BATCH_BYTES_MAX} bytes for a batch"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use proptest::prelude::*;
    use std::borrow::Cow;

    const FULL: &str = r#"{"batch_id":"b-1","batch_name":"Tray 7 \"early\"","batch_creation_date":"2026-01-31T08:00:00.5Z","crop_type":"Tomate Fußball","number_of_images":12,"total_cells_per_tray":128,"avg_germinated_seedlings":"118.40","avg_non_germinated_seedlings":"9.60","avg_germination_rate":"92.50","avg_usable_seedlings":"110.00","avg_non_usable_cells":"18.00","avg_usable_seedling_rate":"85.94","avg_coefficient_of_variation":"0.07","avg_median_seedling_size_mm2":"-0.50","scanned_by_email":"ann@example.org","analysis_link":"https://example.org/a?b=1","comment":"line\nbreak \u0001","warnings":false}"#;

    fn faults(text: &str) -> String {
        Batch::from_json(text).unwrap_err().to_string()
    }

    /// Interface section 2: every field, in its type; and what is stored is what goes out.
    #[test]
    fn a_batch_prints_all_eighteen_fields_and_reads_back_as_itself() {
        assert_eq!(Batch::from_json(FULL).unwrap().to_json(), FULL);
    }

    /// Interface section 2: nullable fields are present with null.
    #[test]
    fn a_field_without_a_value_is_null_and_never_left_out() {
        let text = r#"{"batch_id":"b","batch_name":"n","batch_creation_date":"2026-01-31T09:00:00+01:00","number_of_images":0,"warnings":true}"#;
        let json = Batch::from_json(text).unwrap().to_json();
        for field in Field::ALL {
            assert!(json.contains(&format!("\"{field}\":")), "{field} in {json}");
        }
        assert_eq!(json.matches(":null").count(), 13);
        assert!(json.contains("2026-01-31T08:00:00Z"));
    }

    /// Decision 039.
    #[test]
    fn every_fault_of_a_record_is_told_at_once() {
        let text = r#"{"batch_id":"","batch_name":"","batch_creation_date":"2026-01-31T08:00:00","number_of_images":-1,"total_cells_per_tray":1.5,"avg_germination_rate":"92,5","analysis_link":"ftp://x","coment":"x","warnings":"yes"}"#;
        let told = faults(text);
        for field in
            ["batch_id", "batch_name", "batch_creation_date", "number_of_images", "total_cells_per_tray"]
        {
            assert!(told.contains(&format!("{field}: found ")), "{field} in {told}");
        }
        for part in [
            "did you mean comment?",
            "an absolute http or https URL",
            "true or false",
            "an offset at the end",
        ] {
            assert!(told.contains(part), "{part} in {told}");
        }
    }

    /// Decision 039.
    #[test]
    fn a_missing_required_field_a_wrong_type_and_a_repeated_field_are_faults() {
        assert!(faults("{}").contains("warnings: found nothing"));
        assert!(faults("[]").contains("a batch as a JSON object"));
        assert!(faults(&FULL.replace(r#""b-1""#, "7")).contains("batch_id: found 7, expected text"));
        assert!(faults(&FULL.replace(":12,", ":\"12\",")).contains("number_of_images: found \"12\""));
        assert!(faults(&FULL.replace(":12,", ":9007199254740992,")).contains("at most 9007199254740991"));
        assert!(faults(&FULL.replace("\"comment\":", "\"comment\":null,\"comment\":")).contains("twice"));
        assert!(faults(&FULL.replace("Tray 7", "\\ud800")).contains("batch_name: found"));
    }

    /// Decision 039: spreadsheets and data frames write whole numbers and flags in their own ways.
    #[test]
    fn an_untyped_cell_may_spell_a_flag_or_a_whole_number() {
        let cell = |text: &'static str| Value::Cell(Cow::Borrowed(text));
        let mut record = Record::from_json(r#"{"batch_id":"b","batch_name":"n"}"#).unwrap();
        record.set(Field::BatchCreationDate, cell("2026-01-31 08:00:00+00:00"));
        record.set(Field::NumberOfImages, cell("12.0"));
        record.set(Field::Warnings, cell("TRUE"));
        let batch = Batch::from_record(&record).unwrap();
        assert_eq!((batch.number_of_images, batch.warnings), (12, true));
    }

    #[test]
    fn a_batch_of_another_deployment_may_have_an_empty_name_any_link_and_fields_of_its_own() {
        let text = FULL
            .replace(r#""Tray 7 \"early\"""#, r#""""#)
            .replace("https://example.org", "ftp://example.org");
        let text = text.replace("{\"batch_id\"", "{\"tray_colour\":{\"rgb\": [1, 2]},\"batch_id\"");
        assert!(faults(&text).contains("tray_colour"));
        let text = format!("{text} , more");
        let mut record = Record::default();
        let (strangers, end) = record.read_wire(&text).unwrap();
        assert_eq!(strangers, [("tray_colour".to_owned(), r#"{"rgb": [1, 2]}"#)]);
        assert_eq!(&text[end..], " , more");
        let batch = Batch::from_wire(&record).unwrap();
        assert_eq!((batch.batch_name.as_str(), batch.batch_id.as_str()), ("", "b-1"));
        let mut record = Record::default();
        record.read_wire(r#"{"batch_id":"b"}"#).unwrap();
        assert!(Batch::from_wire(&record).unwrap_err().to_string().contains("warnings: found nothing"));
    }

    prop_compose! {
        fn any_batch()(
            id in "[^\\p{Cc}]{1,32}", name in ".{1,40}", comment in proptest::option::of("(?s).{0,80}"),
            micros in -62_135_596_800_000_000i64..253_402_300_800_000_000, images in 0..=COUNT_MAX,
            rate in proptest::option::of(-99_999_999_999_999i64..=99_999_999_999_999), warnings: bool,
        ) -> Batch {
            let mut batch = Batch::from_json(FULL).unwrap();
            batch.batch_id = BatchId::new(id).unwrap();
            batch.batch_name = name;
            batch.comment = comment;
            batch.batch_creation_date = UtcInstant::from_micros(micros).unwrap();
            batch.number_of_images = images;
            batch.avg_germination_rate = rate.and_then(Hundredths::from_hundredths);
            batch.warnings = warnings;
            batch
        }
    }

    proptest! {
        #[test]
        fn json_rendering_round_trips(batch in any_batch()) {
            let text = batch.to_json();
            let plain: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(plain["comment"].as_str(), batch.comment.as_deref());
            prop_assert_eq!(Batch::from_json(&text).unwrap(), batch);
        }

        #[test]
        fn no_text_makes_it_panic(text in r#"[{}\[\]",:a-z0-9\\]{0,60}"#) {
            let _ = Batch::from_json(&text);
        }
    }
}
