//! Reads a batch's JSON text in the form in which it is printed: our names in our order, nothing between them, texts
//! without escapes. Most texts are of that form, and reading them is most of the work of a pull and of an import.
//!
//! Whatever else is legal JSON is left to serde_json; what this reader takes, that one would read the same.

use std::borrow::Cow;

use crate::{Field, Record, Value};

/// No count has more digits; a longer number is read with more care elsewhere.
const DIGITS_MAX: usize = 16;

/// Reads the object that a text begins with into an empty record, and tells where it ends. If it has another form, it
/// tells nothing and leaves the record half filled.
pub(crate) fn read<'a>(text: &'a str, record: &mut Record<'a>) -> Option<usize> {
    let mut reader = Reader { text, at: 0 };
    let mut opening = b'{';
    for field in Field::ALL {
        if reader.takes_member(opening, field) {
            record.put(field, reader.value()?);
            opening = b',';
        }
    }
    // A name out of order, or one that is not ours, stands where the end should be. Without a member nothing was opened.
    (reader.at > 0 && reader.takes("}")).then_some(reader.at)
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

    fn takes(&mut self, expected: &str) -> bool {
        let is_there = self.bytes().starts_with(expected.as_bytes());
        self.at += if is_there { expected.len() } else { 0 };
        is_there
    }

    /// Takes `{"batch_id":` or `,"batch_name":`.
    fn takes_member(&mut self, opening: u8, field: Field) -> bool {
        let member = field.member();
        let is_there = matches!(self.bytes(), [first, rest @ ..] if *first == opening && rest.starts_with(member.as_bytes()));
        self.at += if is_there { 1 + member.len() } else { 0 };
        is_there
    }

    fn value(&mut self) -> Option<Value<'a>> {
        match self.bytes().first()? {
            b'"' => self.string(),
            b'0'..=b'9' => self.count(),
            b'n' => self.takes("null").then_some(Value::Null),
            b't' => self.takes("true").then_some(Value::Bool(true)),
            b'f' => self.takes("false").then_some(Value::Bool(false)),
            _ => None,
        }
    }

    fn string(&mut self) -> Option<Value<'a>> {
        let inside = &self.rest()[1..];
        let length = memchr::memchr(b'"', inside.as_bytes())?;
        let text = &inside[..length];
        // Without an early exit the compiler looks at many bytes at once.
        let is_plain = |byte: u8| (byte >= 0x20) & (byte != b'\\');
        if !text.bytes().fold(true, |all, byte| all & is_plain(byte)) {
            return None;
        }
        self.at += length + 2;
        Some(Value::Text(Cow::Borrowed(text)))
    }

    /// A whole number; JSON has none with a zero in front.
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

    /// By serde_json alone.
    fn slowly(text: &str) -> Option<Record<'_>> {
        Record::from_any_json(text).ok()
    }

    proptest! {
        #[test]
        fn what_it_takes_serde_json_reads_the_same(
            text in r#"\{("(batch_id|batch_name|comment|warnings|number_of_images|x)":("[a-zü\\"\n]{0,4}"|null|true|0?[0-9]{1,18}|-1|1\.5|\[\]|nul),?){0,5}\}?.{0,2}"#,
        ) {
            let mut record = Record::default();
            if let Some(end) = read(&text, &mut record) {
                prop_assert_eq!(Some(record), slowly(&text[..end]), "{}", text);
            }
        }
    }

    #[test]
    fn the_form_that_is_printed_is_taken_whole() {
        let text =
            r#"{"batch_id":"b","batch_name":"Tomate Fußball","number_of_images":12,"warnings":false}, more"#;
        let mut record = Record::default();
        let end = read(text, &mut record).unwrap();
        assert_eq!((Some(record), &text[end..]), (slowly(&text[..end]), ", more"));
    }

    #[test]
    fn what_needs_care_is_left_to_others() {
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
            assert_eq!(read(text, &mut Record::default()), None, "{text}");
        }
    }
}
