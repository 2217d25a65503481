//! Makes foreign text fit to print: no secret, no token, no control character, no endless body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;

/// Characters of an answer that a finding shows; enough for an error body, little enough for a screen.
const SHOWN_CHARS: usize = 400;

/// Bytes of a body that are searched before it is clipped. Far more than what is shown, so that even a body made of
/// nothing but secrets is clipped well inside the part that was searched.
const SEARCHED_BYTES: usize = 1 << 20;

/// A secret shorter than this may stand in an answer by chance, so that finding it proves no echo.
const MIN_TELLING_BYTES: usize = 8;

/// What stands in a token's place.
pub(crate) const TOKEN: &str = "[token]";

/// What must never be printed, and what is printed in its place.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    hidden: Vec<(String, &'static str)>,
}

impl Redactor {
    /// Hides a client's secret in every form a request gives it.
    pub(crate) fn hide_credentials(&mut self, id: &str, secret: &str) {
        self.hide(STANDARD.encode(format!("{id}:{secret}")), "[credentials]");
        self.hide(url::form_urlencoded::byte_serialize(secret.as_bytes()).collect(), "[secret]");
        self.hide(secret.to_owned(), "[secret]");
    }

    /// Hides `text`. Empty text is let go: it stands everywhere.
    pub(crate) fn hide(&mut self, text: String, shown: &'static str) {
        if text.is_empty() || self.hidden.iter().any(|(known, _)| *known == text) {
            return;
        }
        self.hidden.push((text, shown));
        // Longest first: a short secret inside a longer one must not leave the rest of it standing.
        self.hidden.sort_by_key(|(known, _)| std::cmp::Reverse(known.len()));
    }

    /// `bytes` as one printable line without secrets, clipped.
    pub(crate) fn show(&self, bytes: &[u8]) -> String {
        let searched = &bytes[..bytes.len().min(SEARCHED_BYTES)];
        let mut text = String::from_utf8_lossy(searched).into_owned();
        for (hidden, shown) in &self.hidden {
            text = text.replace(hidden.as_str(), shown);
        }
        clip(&printable(&text))
    }

    /// Which of the hidden things stands in `bytes`, by the words it is shown with.
    pub(crate) fn found_in(&self, bytes: &[u8], tokens_too: bool) -> Option<&'static str> {
        let sought = |(hidden, shown): &&(String, &'static str)| {
            hidden.len() >= MIN_TELLING_BYTES && (tokens_too || *shown != TOKEN)
        };
        let mut sought = self.hidden.iter().filter(sought);
        sought.find(|(hidden, _)| memmem::find(bytes, hidden.as_bytes()).is_some()).map(|(_, shown)| *shown)
    }

    /// Hides what a body calls an `access_token`, even where that body is no JSON.
    pub(crate) fn hide_tokens_in(&mut self, body: &[u8]) {
        let text = String::from_utf8_lossy(&body[..body.len().min(SEARCHED_BYTES)]).into_owned();
        for after in text.split("access_token").skip(1) {
            let value = after.trim_start_matches(['"', '\'', ' ', ':', '=']);
            let end = value.find(['"', '\'', ',', '}', '&', ' ', '\n']).unwrap_or(value.len());
            self.hide(value[..end].to_owned(), TOKEN);
        }
    }
}

/// Escapes what could steer a terminal: control characters, and the marks that turn the direction of text.
fn printable(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        let steers = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || steers || c == '\u{feff}' {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

fn clip(line: &str) -> String {
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}… ({} characters in all)", &line[..at], line.chars().count()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        let mut redactor = Redactor::default();
        redactor.hide_credentials("nursery", "s3cret/of+ours");
        redactor.hide("token-of-the-run".into(), "[token]");
        redactor
    }

    #[test]
    fn no_form_of_the_secret_is_shown() {
        let basic = STANDARD.encode("nursery:s3cret/of+ours");
        let text = format!("s3cret/of+ours s3cret%2Fof%2Bours {basic} token-of-the-run");
        assert_eq!(redactor().show(text.as_bytes()), "[secret] [secret] [credentials] [token]");
    }

    #[test]
    fn a_terminal_is_not_steered() {
        let shown = Redactor::default().show("a\x1b[2Jb\u{202e}c\nd\u{9b}".as_bytes());
        assert_eq!(shown, "a\\u{1b}[2Jb\\u{202e}c\\nd\\u{9b}");
    }

    #[test]
    fn a_long_body_is_clipped() {
        let shown = Redactor::default().show(&[b'x'; 100_000]);
        assert!(shown.len() < SHOWN_CHARS + 64, "{shown}");
    }

    #[test]
    fn an_empty_secret_hides_nothing() {
        let mut redactor = Redactor::default();
        redactor.hide(String::new(), "[secret]");
        assert_eq!(redactor.show(b"plain"), "plain");
    }

    #[test]
    fn a_token_is_hidden_even_in_broken_json() {
        let mut redactor = Redactor::default();
        let body = br#"{"access_token": "tokentoken1", "x": {"access_token":"tokentoken2"#;
        redactor.hide_tokens_in(body);
        assert_eq!(redactor.show(body), r#"{"access_token": "[token]", "x": {"access_token":"[token]"#);
        assert_eq!(redactor.found_in(body, true), Some(TOKEN));
        assert_eq!(redactor.found_in(body, false), None);
    }

    #[test]
    fn a_short_secret_proves_no_echo() {
        let mut redactor = Redactor::default();
        redactor.hide("a".into(), "[secret]");
        assert_eq!(redactor.found_in(b"a banana", true), None);
        assert_eq!(redactor.show(b"banana"), "b[secret]n[secret]n[secret]");
    }
}
