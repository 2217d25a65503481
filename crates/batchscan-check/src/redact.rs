//! Makes foreign text safe to print: no secret, no token, no control character, limited length.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;

/// Characters of a response that a report shows: enough for an error body, few enough for a screen.
const SHOWN_CHARS: usize = 400;

/// Bytes of a body that are searched for secrets. Far more than are shown, so that replacing secrets by shorter
/// placeholders never brings unsearched bytes into the shown part.
const SEARCHED_BYTES: usize = 1 << 20;

/// A shorter secret may occur in a response by chance, so finding it does not prove a leak.
const MIN_LEAK_BYTES: usize = 8;

/// The placeholder of a token.
pub(crate) const TOKEN: &str = "[token]";

/// Texts that must never be printed, each with its placeholder.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    hidden: Vec<(String, &'static str)>,
}

impl Redactor {
    /// Hides a client's secret in every form in which requests carry it.
    pub(crate) fn hide_credentials(&mut self, id: &str, secret: &str) {
        self.hide(STANDARD.encode(format!("{id}:{secret}")), "[credentials]");
        self.hide(url::form_urlencoded::byte_serialize(secret.as_bytes()).collect(), "[secret]");
        self.hide(secret.to_owned(), "[secret]");
    }

    /// Hides `text`, unless it is empty.
    pub(crate) fn hide(&mut self, text: String, placeholder: &'static str) {
        if text.is_empty() || self.hidden.iter().any(|(known, _)| *known == text) {
            return;
        }
        self.hidden.push((text, placeholder));
        // Longest first: replacing a short secret inside a longer one would leave the rest of the longer one.
        self.hidden.sort_by_key(|(known, _)| std::cmp::Reverse(known.len()));
    }

    /// `bytes` as one printable line without secrets, truncated.
    pub(crate) fn show(&self, bytes: &[u8]) -> String {
        let searched = &bytes[..bytes.len().min(SEARCHED_BYTES)];
        let mut text = String::from_utf8_lossy(searched).into_owned();
        for (hidden, placeholder) in &self.hidden {
            text = text.replace(hidden.as_str(), placeholder);
        }
        truncate(&escape(&text))
    }

    /// The placeholder of a hidden text that occurs in `bytes`.
    pub(crate) fn find_hidden(&self, bytes: &[u8], include_tokens: bool) -> Option<&'static str> {
        let mut candidates = self.hidden.iter().filter(|(hidden, placeholder)| {
            hidden.len() >= MIN_LEAK_BYTES && (include_tokens || *placeholder != TOKEN)
        });
        candidates
            .find(|(hidden, _)| memmem::find(bytes, hidden.as_bytes()).is_some())
            .map(|(_, shown)| *shown)
    }

    /// Hides every `access_token` in a body, even if the body is not valid JSON.
    pub(crate) fn hide_tokens_in(&mut self, body: &[u8]) {
        let text = String::from_utf8_lossy(&body[..body.len().min(SEARCHED_BYTES)]).into_owned();
        for after in text.split("access_token").skip(1) {
            let value = after.trim_start_matches(['"', '\'', ' ', ':', '=']);
            let end = value.find(['"', '\'', ',', '}', '&', ' ', '\n']).unwrap_or(value.len());
            self.hide(value[..end].to_owned(), TOKEN);
        }
    }
}

/// Escapes control characters and marks that change the direction of text: they could manipulate a terminal.
fn escape(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        let invisible =
            matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || invisible || c == '\u{feff}' {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

fn truncate(line: &str) -> String {
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}… ({} characters in total)", &line[..at], line.chars().count()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        let mut redactor = Redactor::default();
        redactor.hide_credentials("nursery", "s3cret/of+ours");
        redactor.hide("token-of-the-run".into(), TOKEN);
        redactor
    }

    #[test]
    fn every_form_of_the_secret_is_hidden() {
        let basic = STANDARD.encode("nursery:s3cret/of+ours");
        let text = format!("s3cret/of+ours s3cret%2Fof%2Bours {basic} token-of-the-run");
        assert_eq!(redactor().show(text.as_bytes()), "[secret] [secret] [credentials] [token]");
    }

    #[test]
    fn control_and_direction_characters_are_escaped() {
        let shown = Redactor::default().show("a\x1b[2Jb\u{202e}c\nd\u{9b}".as_bytes());
        assert_eq!(shown, "a\\u{1b}[2Jb\\u{202e}c\\nd\\u{9b}");
    }

    #[test]
    fn a_long_body_is_truncated_and_an_empty_secret_is_ignored() {
        let mut redactor = Redactor::default();
        redactor.hide(String::new(), "[secret]");
        assert_eq!(redactor.show(b"plain"), "plain");
        let shown = redactor.show(&[b'x'; 100_000]);
        assert!(shown.len() < SHOWN_CHARS + 64, "{shown}");
    }

    #[test]
    fn a_token_is_hidden_even_in_invalid_json() {
        let mut redactor = Redactor::default();
        let body = br#"{"access_token": "tokentoken1", "x": {"access_token":"tokentoken2"#;
        redactor.hide_tokens_in(body);
        assert_eq!(redactor.show(body), r#"{"access_token": "[token]", "x": {"access_token":"[token]"#);
        assert_eq!(redactor.find_hidden(body, true), Some(TOKEN));
        assert_eq!(redactor.find_hidden(body, false), None);
    }

    #[test]
    fn a_short_secret_does_not_prove_a_leak() {
        let mut redactor = Redactor::default();
        redactor.hide("a".into(), "[secret]");
        assert_eq!(redactor.find_hidden(b"a banana", true), None);
        assert_eq!(redactor.show(b"banana"), "b[secret]n[secret]n[secret]");
    }
}
