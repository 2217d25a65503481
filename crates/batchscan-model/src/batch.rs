//! A batch and its JSON text. Only this module renders it: the stored text is the text that is served.

use std::fmt::Write as _;

use crate::digits::push_digits;
use crate::field::batch_fields;
use crate::{BatchId, Field, FieldError, Hundredths, Position, UtcInstant, printable};

/// The longest JSON text of a batch. It bounds the memory of a page.
pub const BATCH_BYTES_MAX: usize = 64 * 1024;

/// Most batches have about 700 bytes, so that one allocation is enough.
const USUAL_BYTES: usize = 768;

macro_rules! field_type {
    (nullable $kind:ident) => { Option<field_type!(required $kind)> };
    (required Id) => { BatchId };
    (required Instant) => { UtcInstant };
    (required Count) => { u64 };
    (required Decimal) => { Hundredths };
    (required Flag) => { bool };
    (required $text:ident) => { String };
}

macro_rules! field_value {
    (nullable $kind:ident $value:expr) => {
        $value.as_ref().map_or(FieldValue::Null, |value| field_value!(required $kind value))
    };
    (required Id $value:expr) => { FieldValue::Text($value.as_str()) };
    (required Instant $value:expr) => { FieldValue::Instant(*$value) };
    (required Count $value:expr) => { FieldValue::Count(*$value) };
    (required Decimal $value:expr) => { FieldValue::Decimal(*$value) };
    (required Flag $value:expr) => { FieldValue::Flag(*$value) };
    (required $text:ident $value:expr) => { FieldValue::Text($value) };
}

macro_rules! define_batch {
    ($($variant:ident $name:ident $presence:ident $kind:ident
        ($unit:literal, $example:literal, $description:literal);)*) => {
        /// One tray scan session.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Batch {
            $(#[doc = $description] pub $name: field_type!($presence $kind),)*
        }

        impl Batch {
            /// The value of every field, in wire order.
            pub fn values(&self) -> [FieldValue<'_>; Field::ALL.len()] {
                [$(field_value!($presence $kind &self.$name)),*]
            }
        }
    };
}
batch_fields!(define_batch);

impl Batch {
    /// The key of the batch in the order of all batches.
    pub fn position(&self) -> Position {
        Position { created: self.batch_creation_date, id: self.batch_id.clone() }
    }

    /// The batch as JSON, fields in wire order. A field without a value is null, never left out.
    pub fn to_json(&self) -> String {
        let mut json = String::with_capacity(USUAL_BYTES);
        self.push_json(&mut json, &Field::ALL);
        json
    }

    /// Appends these fields as a JSON object, in this order.
    pub fn push_json(&self, json: &mut String, fields: &[Field]) {
        let values = self.values();
        json.push('{');
        for (index, field) in fields.iter().enumerate() {
            json.push_str(if index == 0 { "" } else { "," });
            json.push_str(field.json_key());
            values[*field as usize].push_json(json);
        }
        json.push('}');
    }

    /// The JSON text of a batch to be stored, unless it is too long to be served.
    pub fn to_bounded_json(&self) -> Result<String, FieldError> {
        let json = self.to_json();
        if json.len() <= BATCH_BYTES_MAX {
            return Ok(json);
        }
        let id = printable::clip(self.batch_id.as_str());
        let found = format!("{} bytes in batch \"{id}\"", json.len());
        Err(FieldError::new("", found, format!("at most {BATCH_BYTES_MAX} bytes of JSON")))
    }
}

/// The value of one field of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the types of the fields")]
pub enum FieldValue<'a> {
    Null,
    Text(&'a str),
    Instant(UtcInstant),
    Count(u64),
    Decimal(Hundredths),
    Flag(bool),
}

impl FieldValue<'_> {
    fn push_json(self, json: &mut String) {
        match self {
            FieldValue::Null => json.push_str("null"),
            FieldValue::Text(text) => push_json_string(json, text),
            FieldValue::Instant(instant) => {
                json.push('"');
                instant.push_to(json);
                json.push('"');
            }
            FieldValue::Count(count) => push_digits(json, count, 1),
            FieldValue::Decimal(decimal) => {
                json.push('"');
                decimal.push_to(json);
                json.push('"');
            }
            FieldValue::Flag(flag) => json.push_str(if flag { "true" } else { "false" }),
        }
    }
}

/// Escapes only what RFC 8259 requires: quotes, backslashes and control characters.
fn push_json_string(json: &mut String, text: &str) {
    let is_plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    json.push('"');
    // Most texts need no escapes. Without an early exit the compiler vectorises the loop.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::{COUNT_MAX, example_json};
    use proptest::prelude::*;

    /// API section 2: every field in its type. The stored text is the text that is served.
    #[test]
    fn a_batch_renders_all_fields_and_reads_back_as_itself() {
        let plain = example_json();
        let escaped = plain.replace("Roma wk 5", r#"\"Roma\" \\ Fußball\n\u0001"#);
        for text in [plain, escaped] {
            assert_eq!(Batch::from_json(&text).unwrap().to_json(), text);
        }
    }

    /// API section 2: nullable fields are present with null.
    #[test]
    fn a_field_without_a_value_is_null_and_never_left_out() {
        let text = r#"{"batch_id":"b","batch_name":"n","batch_creation_date":"2026-01-31T09:00:00+01:00","number_of_images":0,"warnings":true}"#;
        let batch = Batch::from_json(text).unwrap();
        let json = batch.to_json();
        for (field, value) in Field::ALL.into_iter().zip(batch.values()) {
            assert_eq!(json.contains(&format!("\"{field}\":null")), field.is_nullable(), "{field} in {json}");
            assert_eq!(value == FieldValue::Null, field.is_nullable(), "{field}");
        }
        assert!(json.contains("2026-01-31T08:00:00Z"));
    }

    prop_compose! {
        fn any_batch()(
            id in "[^\\p{Cc}]{1,32}", name in ".{1,40}", comment in proptest::option::of("(?s).{0,80}"),
            micros in -62_135_596_800_000_000i64..253_402_300_800_000_000, images in 0..=COUNT_MAX,
            rate in proptest::option::of(-99_999_999_999_999i64..=99_999_999_999_999), warnings: bool,
        ) -> Batch {
            Batch {
                batch_id: BatchId::new(id).unwrap(),
                batch_name: name,
                comment,
                batch_creation_date: UtcInstant::from_micros(micros).unwrap(),
                number_of_images: images,
                avg_germination_rate: rate.and_then(Hundredths::from_hundredths),
                warnings,
                ..Batch::from_json(&example_json()).unwrap()
            }
        }
    }

    proptest! {
        #[test]
        fn json_rendering_round_trips(batch in any_batch()) {
            let text = batch.to_json();
            let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(parsed["comment"].as_str(), batch.comment.as_deref());
            prop_assert_eq!(Batch::from_json(&text).unwrap(), batch);
        }

        #[test]
        fn no_text_causes_a_panic(text in r#"[{}\[\]",:a-z0-9\\]{0,60}"#) {
            let _ = Batch::from_json(&text);
        }
    }
}
