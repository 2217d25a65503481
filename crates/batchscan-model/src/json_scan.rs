//! Finds where JSON values begin and end, without parsing them.

use memchr::memchr2;

/// The whitespace of JSON.
pub const JSON_WHITESPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// Whether a byte is whitespace in JSON.
pub fn is_json_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Finds the end of a JSON value. Remembers how far it got, so that the bytes may arrive in pieces.
#[derive(Clone, Debug, Default)]
pub struct ValueScanner {
    at: usize,
    depth: usize,
    in_string: bool,
}

impl ValueScanner {
    /// The length of the value that `bytes` begin with, or `None` if its end is not among them: then call again with
    /// the same bytes and more. Brackets are counted, not matched; a value that begins with a closing bracket, a comma
    /// or whitespace has length 0.
    pub fn find_end(&mut self, bytes: &[u8]) -> Option<usize> {
        loop {
            if self.in_string {
                self.skip_string(bytes)?;
                if self.depth == 0 {
                    return Some(self.at);
                }
            }
            match *bytes.get(self.at)? {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 1 => self.depth -= 1,
                b'}' | b']' => return Some(self.at + self.depth),
                byte if self.depth == 0 && (byte == b',' || is_json_whitespace(byte)) => {
                    return Some(self.at);
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Moves past the closing quote; `None` if it is not among these bytes.
    fn skip_string(&mut self, bytes: &[u8]) -> Option<()> {
        while let Some(skipped) = memchr2(b'"', b'\\', bytes.get(self.at..)?) {
            self.at += skipped;
            if bytes[self.at] == b'"' {
                self.at += 1;
                self.in_string = false;
                return Some(());
            }
            // Skip the escaped byte too. It may not have arrived yet: `at` is then past the end.
            self.at += 2;
        }
        self.at = self.at.max(bytes.len());
        None
    }
}

/// Appends valid JSON without the whitespace between its parts.
pub fn push_compact(out: &mut String, json: &str) {
    let mut rest = json;
    while let Some(next) = rest.find(|c| c == '"' || JSON_WHITESPACE.contains(&c)) {
        out.push_str(&rest[..next]);
        rest = &rest[next..];
        if rest.starts_with('"') {
            let end = ValueScanner::default().find_end(rest.as_bytes()).unwrap_or(rest.len());
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        } else {
            rest = rest.trim_start_matches(JSON_WHITESPACE);
        }
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_at_its_last_byte_however_the_bytes_arrive() {
        for (text, length) in [
            (r#"{"a":"}]\"\\","b":[{"c":1}]} , {}"#, Some(28)),
            ("[[1],[2]],", Some(9)),
            (r#""x\\" "#, Some(5)),
            ("null,1", Some(4)),
            ("12]", Some(2)),
            ("]", Some(0)),
            (",", Some(0)),
            ("12", None),
            ("{\"a\":\"}", None),
            ("\"\\", None),
            ("", None),
        ] {
            let mut scanner = ValueScanner::default();
            let pieces = (0..=text.len()).find_map(|end| scanner.find_end(&text.as_bytes()[..end]));
            assert_eq!(pieces, length, "{text}");
            assert_eq!(ValueScanner::default().find_end(text.as_bytes()), length, "{text}");
        }
    }

    #[test]
    fn compact_json_keeps_the_whitespace_inside_strings() {
        for (json, compact) in [
            (
                "{\r\n\t\"a b\" : \"x \\\" y\\\\\" ,\n  \"c\": [ 1,\n null ],\n \"d\":\"\\n { } \\\\\\\" ,\"\n}",
                r#"{"a b":"x \" y\\","c":[1,null],"d":"\n { } \\\" ,"}"#,
            ),
            ("\n{ }", "{}"),
            ("12", "12"),
        ] {
            let mut out = String::new();
            push_compact(&mut out, json);
            assert_eq!(out, compact);
        }
    }
}
