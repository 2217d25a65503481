//! Text in another encoding than UTF-8, as old spreadsheet programs write it: whether it looks like the one that is assumed.

use batchscan_model::FieldError;
use batchscan_model::printable::clip;
use encoding_rs::{Encoding, ISO_8859_2, MACINTOSH, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252};

use super::mapping::quoted;

/// What a mapping most likely states.
const USUAL: [&Encoding; 5] = [WINDOWS_1252, WINDOWS_1250, WINDOWS_1251, ISO_8859_2, MACINTOSH];
/// Rare letters of Windows-1252. Those of old Macs, of Central and of Eastern Europe have the same bytes.
const RARE_LETTERS: &str = "ƒˆŠŒŽšœžŸãÃõÕðÐþÞýÝÿ";
/// No word of Western Europe has more letters outside ASCII in a row. In Cyrillic, all are.
const IN_A_ROW_MAX: usize = 2;
/// Signs of Windows-1252 that are letters in the encodings of Central Europe.
const SIGNS: &str = "¡£¥¦¬¯±³¶¹¼¾¿";

/// Why a text may have another encoding.
pub(super) enum Doubt {
    /// It has.
    Wrong(FieldError),
    /// It may have: a warning.
    Possible(FieldError),
}

/// The words that are not ASCII.
pub(super) fn words(row: &str) -> impl Iterator<Item = &str> + Clone {
    row.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric()).filter(|word| !word.is_ascii())
}

/// Looks at a row with other letters than ASCII. It was decoded, or is UTF-8.
pub(super) fn check(row: &str, encoding: Option<&'static Encoding>, is_stated: bool) -> Option<Doubt> {
    let mut words = words(row);
    if encoding.is_none_or(|encoding| !encoding.is_single_byte())
        && let Some((word, text)) = words.clone().find_map(|word| Some((word, encoded_once(word)?)))
    {
        let (word, text) = (quoted(&clip(word)), quoted(&clip(&text)));
        let text = format!("{word} is probably {text}, encoded twice: save the original file as UTF-8");
        return Some(Doubt::Possible(problem(text)));
    }
    let encoding = encoding?;
    let invalid = words.clone().find(|word| word.contains(is_invalid));
    if !encoding.is_single_byte() {
        let text = format!("bytes that are not {}; save the sheet as \"CSV UTF-8\"", encoding.name());
        return invalid.map(|_| Doubt::Wrong(problem(text)));
    }
    let readings = |word| readings(word, encoding);
    let wrong = |word| Doubt::Wrong(problem(format!("text of an unknown encoding: {}", readings(word))));
    if invalid.is_some() || is_stated {
        return invalid.map(wrong);
    }
    if let Some(word) = words.clone().find(|word| has_sign_inside(word)) {
        return Some(wrong(word));
    }
    let possible = words.find(|word| {
        let is_rare = word.contains(|c| RARE_LETTERS.contains(c));
        is_rare || begins_or_ends_in_sign(word) || has_many_in_a_row(word)
    })?;
    let text = format!("read as {}, which may be wrong: {}", encoding.name(), readings(possible));
    Some(Doubt::Possible(problem(text)))
}

/// What a word was before its UTF-8 was taken for another encoding and encoded again, such as `ü` for `Ã¼`. Only with letters
/// of Europe or usual signs: `ß…` would be a letter of West Africa.
fn encoded_once(word: &str) -> Option<String> {
    [WINDOWS_1252, WINDOWS_1250].into_iter().find_map(|encoding| {
        let (bytes, _, has_others) = encoding.encode(word);
        let text = String::from_utf8(bytes.into_owned()).ok().filter(|_| !has_others)?;
        text.chars().all(is_usual).then_some(text)
    })
}

/// Whether a character is Latin, or a sign such as a dash, a quotation mark or `€`.
fn is_usual(c: char) -> bool {
    c.is_ascii() || matches!(c, '\u{a0}'..='\u{17f}' | '\u{2000}'..='\u{20ac}')
}

/// An error of a whole row.
fn problem(problem: String) -> FieldError {
    FieldError::problem("", problem)
}

/// Undefined bytes are decoded as these.
fn is_invalid(c: char) -> bool {
    matches!(c, '\u{80}'..='\u{9f}' | char::REPLACEMENT_CHARACTER)
}

fn has_sign_inside(word: &str) -> bool {
    let chars: Vec<char> = word.chars().collect();
    let is_inside =
        |three: &[char]| SIGNS.contains(three[1]) && three[0].is_alphabetic() && three[2].is_alphabetic();
    chars.windows(3).any(is_inside)
}

/// Units such as `cm³` are shorter, and Spanish sentences begin with `¿` or `¡`.
fn begins_or_ends_in_sign(word: &str) -> bool {
    let is_first = |first| SIGNS.contains(first) && !matches!(first, '¿' | '¡');
    let letters = word.strip_prefix(is_first).unwrap_or(word);
    let letters = letters.strip_suffix(|last| SIGNS.contains(last)).unwrap_or(letters);
    letters.len() < word.len() && letters.chars().count() > 2 && letters.chars().all(char::is_alphabetic)
}

fn has_many_in_a_row(word: &str) -> bool {
    word.split(|c: char| c.is_ascii()).any(|row| row.chars().count() > IN_A_ROW_MAX)
}

/// What a word is in other encodings, with the setting for each.
fn readings(word: &str, encoding: &'static Encoding) -> String {
    let bytes = encoding.encode(word).0;
    let reading = |other: &'static Encoding| {
        let (text, _) = other.decode_without_bom_handling(&bytes);
        let name = quoted(&other.name().to_lowercase());
        (!text.contains(is_invalid)).then(|| format!("{name} ({})", quoted(&clip(&text))))
    };
    let readings: Vec<String> = USUAL.into_iter().filter_map(reading).collect();
    let readings = readings.join(" or ");
    format!("add the right one to a mapping: encoding = {readings}; if none is right, save the file as UTF-8")
}
