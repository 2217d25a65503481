//! Reads a batch from JSON in the form in which [`Batch::to_json`](crate::Batch::to_json) writes it: fields in wire
//! order, no whitespace, no escapes. Nearly all batches have it, and parsing is most of the work of an import.
//!
//! Any other JSON is left to serde_json. Where this reader succeeds, serde_json reads the same.

use std::borrow::Cow;

use crate::{Field, RawBatch, Value};

/// No count has more digits.
const DIGITS_MAX: usize = 16;

/// Reads the object that a text begins with into an empty `RawBatch` and returns its length. `None` if it has another
/// form; `raw` is then partly filled.
pub(crate) fn read<'a>(text: &'a str, raw: &mut RawBatch<'a>) -> Option<usize> {
    let mut reader = Reader { text, at: 0 };
    let mut opening = b'{';
    for field in Field::ALL {
        if reader.skip_key(opening, field) {
            raw.set(field, reader.value()?);
            opening = b',';
        }
    }
    // A field out of order or an unknown one is found here instead of the end. At 0 there was no field at all.
    (reader.at > 0 && reader.skip("}")).then_some(reader.at)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn bytes(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn skip(&mut self, expected: &str) -> bool {
        let is_next = self.bytes().starts_with(expected.as_bytes());
        self.at += if is_next { expected.len() } else { 0 };
        is_next
    }

    /// Skips `{"batch_id":` or `,"batch_name":`.
    fn skip_key(&mut self, opening: u8, field: Field) -> bool {
        let key = field.json_key();
        let is_next = matches!(self.bytes(), [first, rest @ ..] if *first == opening && rest.starts_with(key.as_bytes()));
        self.at += if is_next { 1 + key.len() } else { 0 };
        is_next
    }

    fn value(&mut self) -> Option<Value<'a>> {
        match self.bytes().first()? {
            b'"' => self.string(),
            b'0'..=b'9' => self.count(),
            b'n' => self.skip("null").then_some(Value::Null),
            b't' => self.skip("true").then_some(Value::Bool(true)),
            b'f' => self.skip("false").then_some(Value::Bool(false)),
            _ => None,
        }
    }

    fn string(&mut self) -> Option<Value<'a>> {
        let inside = &self.rest()[1..];
        let length = memchr::memchr(b'"', inside.as_bytes())?;
        let text = &inside[..length];
        // Without an early exit the compiler vectorises the loop.
        let is_plain = |byte: u8| (byte >= 0x20) & (byte != b'\\');
        if !text.bytes().fold(true, |all, byte| all & is_plain(byte)) {
            return None;
        }
        self.at += length + 2;
        Some(Value::Text(Cow::Borrowed(text)))
    }

    /// A whole number. JSON allows no leading zero.
    fn count(&mut self) -> Option<Value<'a>> {
        let rest = self.rest();
        let length = rest.bytes().take(DIGITS_MAX + 1).take_while(u8::is_ascii_digit).count();
        let ends = matches!(rest.as_bytes().get(length), Some(b',' | b'}'));
        if !ends || length > DIGITS_MAX || (length > 1 && rest.starts_with('0')) {
            return None;
        }
        self.at += length;
        Some(Value::Number(Cow::Borrowed(&rest[..length])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn serde_json_reads_the_same(
            text in r#"\{("(batch_id|batch_name|comment|warnings|number_of_images|x)":("[a-zü\\"\n]{0,4}"|null|true|0?[0-9]{1,18}|-1|1\.5|\[\]|nul),?){0,5}\}?.{0,2}"#,
        ) {
            let mut raw = RawBatch::default();
            if let Some(end) = read(&text, &mut raw) {
                prop_assert_eq!(Some(raw), RawBatch::from_unusual_json(&text[..end]).ok(), "{}", text);
            }
        }
    }

    #[test]
    fn the_form_that_is_written_is_read() {
        let object =
            r#"{"batch_id":"b","batch_name":"Tomate Fußball","number_of_images":12,"warnings":false}"#;
        let (text, mut raw) = (format!("{object}, more"), RawBatch::default());
        assert_eq!(read(&text, &mut raw), Some(object.len()));
        assert_eq!(raw, RawBatch::from_unusual_json(object).unwrap());
    }

    #[test]
    fn other_forms_are_left_to_serde_json() {
        for text in [
            r#"{"batch_id":"a\"b"}"#,
            r#"{"batch_name":"n","batch_id":"b"}"#,
            r#"{ "batch_id":"b"}"#,
            r#"{"batch_id":"b","tray":1}"#,
            r#"{"number_of_images":01}"#,
            r#"{"number_of_images":1.0}"#,
            "{\"batch_id\":\"a\nb\"}",
            r#"{"batch_id":"b""#,
            "}",
            "{}",
            r#"{"warnings":tru"#,
            "",
        ] {
            assert_eq!(read(text, &mut RawBatch::default()), None, "{text}");
        }
    }
}
