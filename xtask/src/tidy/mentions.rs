//! The paths that Rust code mentions: `use` groups spread out, `super` resolved, no comments and literals.
//!
//! A reader of tokens and no parser: it need not tell a type from a variable, and takes code that does not
//! compile.

/// A path in code.
#[derive(Debug, PartialEq)]
pub(crate) struct Mention {
    pub(crate) line: usize,
    /// For instance `axum::http::StatusCode`, or `crate::http::error` where `super::http::error` stood.
    pub(crate) path: String,
}

impl Mention {
    /// Whether `part` occurs in the path as whole segments.
    pub(crate) fn contains(&self, part: &str) -> bool {
        format!("::{}::", self.path).contains(&format!("::{part}::"))
    }
}

/// Every path in a file of the given module, whose parts are named from the crate's root.
///
/// Inside an inline `mod`, `super` is taken for the file's own: such a path resolves one level too high.
pub(crate) fn mentions(text: &str, module: &[&str]) -> Vec<Mention> {
    let code = code_only(text);
    let mut reader = Reader { tokens: tokens(&code), position: 0, module, found: Vec::new() };
    while reader.position < reader.tokens.len() {
        match reader.word(0) {
            Some(_) => reader.path(&[]),
            None => reader.position += 1,
        }
    }
    reader.found
}

struct Reader<'a> {
    tokens: Vec<(usize, Token<'a>)>,
    position: usize,
    module: &'a [&'a str],
    found: Vec<Mention>,
}

impl<'a> Reader<'a> {
    /// Reads one path, or a group of them: both begin with a word.
    fn path(&mut self, prefix: &[&'a str]) {
        let mut segments = prefix.to_vec();
        let line = self.tokens[self.position].0;
        while let Some(word) = self.word(0) {
            segments.push(word);
            self.position += 1;
            if self.token(0) != Some(Token::PathSeparator) {
                break;
            }
            if self.token(1) == Some(Token::Open) {
                self.position += 2;
                return self.group(&segments);
            }
            if self.word(1).is_none() {
                break;
            }
            self.position += 1;
        }
        self.found.push(Mention { line, path: resolve(&segments, self.module) });
    }

    /// Reads the rest of `prefix::{…}`.
    fn group(&mut self, prefix: &[&'a str]) {
        while let Some(token) = self.token(0) {
            match token {
                Token::Word(_) => self.path(prefix),
                Token::Close => return self.position += 1,
                _ => self.position += 1,
            }
        }
    }

    fn token(&self, ahead: usize) -> Option<Token<'a>> {
        self.tokens.get(self.position + ahead).map(|(_, token)| *token)
    }

    fn word(&self, ahead: usize) -> Option<&'a str> {
        match self.token(ahead) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }
}

/// Turns a path that begins with `self` or `super` into one that begins with `crate`.
fn resolve(segments: &[&str], module: &[&str]) -> String {
    if !matches!(segments.first(), Some(&("self" | "super"))) {
        return segments.join("::");
    }
    let climbs = segments.iter().take_while(|segment| matches!(**segment, "self" | "super"));
    let ups = climbs.clone().filter(|segment| **segment == "super").count();
    let kept = &module[..module.len().saturating_sub(ups)];
    [&["crate"], kept, &segments[climbs.count()..]].concat().join("::")
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    PathSeparator,
    Open,
    Close,
    Other,
}

/// The tokens, each with its line.
fn tokens(code: &str) -> Vec<(usize, Token<'_>)> {
    let mut tokens = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while !rest.is_empty() {
            let (token, length) = first_token(rest);
            tokens.push((index + 1, token));
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

fn first_token(rest: &str) -> (Token<'_>, usize) {
    let word = leading_word(rest);
    if !word.is_empty() {
        return (Token::Word(word), word.len());
    }
    if rest.starts_with("::") {
        return (Token::PathSeparator, 2);
    }
    let first = rest.chars().next().unwrap_or(' ');
    let token = match first {
        '{' => Token::Open,
        '}' => Token::Close,
        _ => Token::Other,
    };
    (token, first.len_utf8())
}

fn leading_word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    &text[..end.unwrap_or(text.len())]
}

/// The text with blanks for comments and literals; lines stay where they are.
fn code_only(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(length) = comment_length(rest).or_else(|| literal_length(rest)) {
            let (skipped, after) = rest.split_at(length);
            code.extend(skipped.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = after;
        } else {
            // A word is taken whole: the `r` in `for"` begins no raw string.
            let length = leading_word(rest).len().max(first.len_utf8());
            code.push_str(&rest[..length]);
            rest = &rest[length..];
        }
    }
    code
}

fn comment_length(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    rest.starts_with("/*").then(|| {
        let (mut depth, mut length) = (0_usize, 0);
        while length < rest.len() {
            let at = &rest.as_bytes()[length..];
            match at {
                [b'/', b'*', ..] => (depth, length) = (depth + 1, length + 2),
                [b'*', b'/', ..] => (depth, length) = (depth - 1, length + 2),
                _ => length += 1,
            }
            if depth == 0 {
                return length;
            }
        }
        rest.len()
    })
}

/// The length of a text, a raw text or a character; a lifetime is none of them.
fn literal_length(rest: &str) -> Option<usize> {
    match rest.chars().next()? {
        '"' => Some(quoted_length(rest, '"')),
        '\'' => {
            let mut after = rest[1..].chars();
            let is_escape = after.next() == Some('\\');
            (is_escape || after.next() == Some('\'')).then(|| quoted_length(rest, '\''))
        }
        'r' | 'b' | 'c' => raw_length(rest),
        _ => None,
    }
}

fn quoted_length(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (index, c) in rest.char_indices().skip(1) {
        if c == quote && !is_escaped {
            return index + quote.len_utf8();
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    rest.len()
}

/// The length of `r"…"`, `r#"…"#` and the like, or nothing for a word that begins with the same letter.
fn raw_length(rest: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| leading_word(rest) == *prefix)?;
    let from_hashes = &rest[prefix.len()..];
    let hashes = from_hashes.len() - from_hashes.trim_start_matches('#').len();
    let body = from_hashes[hashes..].strip_prefix('"')?;
    let closing = format!("\"{}", "#".repeat(hashes));
    let end = body.find(&closing).map_or(body.len(), |index| index + closing.len());
    Some(rest.len() - body.len() + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        mentions(text, &["store", "sqlite"]).into_iter().map(|mention| mention.path).collect()
    }

    #[test]
    fn groups_are_spread_out() {
        assert_eq!(
            paths("use a::{b, c::{self, d}, e::*};"),
            ["use", "a::b", "a::c::self", "a::c::d", "a::e"]
        );
    }

    #[test]
    fn relative_paths_are_resolved() {
        assert_eq!(paths("super::a"), ["crate::store::a"]);
        assert_eq!(paths("super::super::{a, b::c}"), ["crate::a", "crate::b::c"]);
        assert_eq!(paths("self::a self"), ["crate::store::sqlite::a", "crate::store::sqlite"]);
    }

    #[test]
    fn comments_and_literals_are_left_out_and_lines_kept() {
        let text = "// a\n/* b /* c */\n d */ e \"f \\\" g\nh\" r#\"i\" j\"# b'k' '\\'' 'l' m";
        let found = mentions(text, &[]);
        let seen: Vec<(usize, &str)> =
            found.iter().map(|mention| (mention.line, mention.path.as_str())).collect();
        assert_eq!(seen, [(3, "e"), (4, "b"), (4, "m")]);
    }

    #[test]
    fn lifetimes_and_raw_names_hide_nothing() {
        assert_eq!(paths("fn f<'a>(x: &'a axum::X) {}"), ["fn", "f", "a", "x", "a", "axum::X"]);
        assert_eq!(paths("r#type::b for\"x\" é::ü"), ["r", "type::b", "for", "é::ü"]);
    }

    #[test]
    fn a_part_is_whole_segments() {
        let mention = Mention { line: 1, path: "crate::http::error".into() };
        assert!(mention.contains("crate::http") && mention.contains("http"));
        assert!(!mention.contains("crate::ht") && !mention.contains("err"));
    }

    #[test]
    fn what_never_ends_is_read_to_the_end() {
        for text in ["/* a", "\"a", "r#\"a\"", "use a::{b", "'", "'\\", "::", "a::"] {
            let _ = mentions(text, &[]);
        }
    }
}
