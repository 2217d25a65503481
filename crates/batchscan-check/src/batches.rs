//! Tokens and batches as the rules need them: fetched once, walked to the end or to the limit, and kept.

use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::answer::Answer;
use crate::ask::{Ask, Version};
use crate::probe::Probe;
use crate::redact::TOKEN;
use crate::verdict::{Checked, Verdict};

/// A token is renewed after this long, or after half its life: no rule shall trip over a token that died meanwhile.
const TOKEN_AGE: Duration = Duration::from_secs(240);

/// Batches of the first page that a small window spans, well below the 1000 up to which both versions must agree.
const SMALL_WINDOW: usize = 200;

/// A token in use.
#[derive(Debug)]
pub(crate) struct Token {
    text: String,
    renew: Instant,
}

/// A question about batches: the two dates, either of which may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Window {
    pub(crate) start: Option<String>,
    pub(crate) end: Option<String>,
}

/// The batches of a window, page by page; v1 has one page.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) pages: Vec<Page>,
    pub(crate) end: End,
}

/// One page, with the exchange that brought it.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) sent: String,
    pub(crate) came: String,
    pub(crate) batches: Vec<Value>,
    pub(crate) next: Option<String>,
}

/// How a walk ended.
#[derive(Debug)]
pub(crate) enum End {
    /// With a last page.
    Null,
    /// By this run's limit on pages or batches.
    Cut,
    /// With a cursor that had come before: such a walk never ends. Holds the page that brought it again.
    Circle(usize),
    /// With something that is no page.
    Broken(Verdict),
}

impl Window {
    pub(crate) fn between(start: &str, end: &str) -> Self {
        Self { start: Some(start.to_owned()), end: Some(end.to_owned()) }
    }

    pub(crate) fn spanning(start: Timestamp, end: Timestamp) -> Self {
        Self::between(&start.to_string(), &end.to_string())
    }

    pub(crate) fn query(&self) -> Vec<(&str, &str)> {
        let start = self.start.as_deref().map(|date| ("start_date", date));
        let end = self.end.as_deref().map(|date| ("end_date", date));
        start.into_iter().chain(end).collect()
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = |date: &Option<String>| date.clone().unwrap_or_else(|| "…".to_owned());
        write!(f, "{} to {}", date(&self.start), date(&self.end))
    }
}

impl Listing {
    pub(crate) fn batches(&self) -> impl Iterator<Item = &Value> {
        self.pages.iter().flat_map(|page| &page.batches)
    }

    pub(crate) fn ids(&self) -> Vec<&str> {
        self.batches().filter_map(id_of).collect()
    }

    pub(crate) fn is_whole(&self) -> bool {
        matches!(self.end, End::Null)
    }

    /// The verdict that these batches, taken together, break a rule.
    pub(crate) fn fail(&self, came: impl fmt::Display, expected: impl fmt::Display) -> Verdict {
        let sent = self.pages.first().map_or_else(String::new, |page| page.sent.clone());
        let more = if self.pages.len() > 1 { " and its following pages" } else { "" };
        let sent = format!("{sent}{more}");
        Verdict::Fail { sent, came: came.to_string(), expected: expected.to_string() }
    }

    /// Nothing, or the doubt that keeps a rule about the whole of a window from being judged.
    pub(crate) fn must_be_whole(&self) -> Checked {
        match &self.end {
            End::Null => Ok(()),
            End::Cut => {
                Err(Verdict::CannotTell(format!("the walk was cut after {} pages", self.pages.len())))
            }
            End::Circle(_) => Err(Verdict::CannotTell("the walk goes round in circles".to_owned())),
            End::Broken(verdict) => Err(verdict.as_doubt()),
        }
    }
}

impl Page {
    pub(crate) fn fail(&self, expected: impl fmt::Display) -> Verdict {
        Verdict::Fail { sent: self.sent.clone(), came: self.came.clone(), expected: expected.to_string() }
    }
}

impl Probe {
    /// The three fields of a right auth request.
    pub(crate) fn ask_token(&self, version: Version) -> Ask {
        let fields = [("client_id", self.client_id.as_str()), ("client_secret", &self.client_secret), GRANT];
        Ask::form(version.auth(), &fields)
    }

    /// A token of this version's auth endpoint; without one, a doubt.
    pub(crate) fn token(&mut self, version: Version) -> Checked<String> {
        match self.tokens.get(&version) {
            Some(Ok(token)) if Instant::now() < token.renew => return Ok(token.text.clone()),
            // Asked once and for all: the rules on auth say what is wrong, the others need not ask again.
            Some(Err(doubt)) => return Err(doubt.clone()),
            _ => {}
        }
        let token = self.fetch_token(version);
        let text = token.as_ref().map(|token| token.text.clone()).map_err(Verdict::clone);
        self.tokens.insert(version, token);
        text
    }

    fn fetch_token(&mut self, version: Version) -> Checked<Token> {
        let answer = self.send(&self.ask_token(version)).map_err(|verdict| verdict.as_doubt())?;
        let text = access_token(&answer)
            .map_err(|_| Verdict::CannotTell(format!("{} gave no token: {}", version.auth(), answer.came)))?;
        let life = answer.json().ok().and_then(|body| body.get("expires_in")?.as_u64());
        let age = life.map_or(TOKEN_AGE, |secs| TOKEN_AGE.min(Duration::from_secs(secs) / 2));
        self.redactor.hide(text.clone(), TOKEN);
        Ok(Token { text, renew: Instant::now() + age })
    }

    /// `GET …/batches` with a token and this query.
    pub(crate) fn get_batches(&mut self, version: Version, query: &[(&str, &str)]) -> Checked<Rc<Answer>> {
        let token = self.token(version)?;
        self.ask(&Ask::get(version.batches()).query(query).bearer(&token))
    }

    /// All batches of a window. What fails on the way is a doubt: the rules on shape judge it.
    pub(crate) fn list(&mut self, version: Version, window: &Window) -> Checked<Rc<Listing>> {
        let key = (version, window.clone());
        if let Some(known) = self.listings.get(&key) {
            return known.clone();
        }
        let listing = match version {
            Version::V1 => self.fetch_array(window),
            Version::V2 => self.walk(window),
        };
        let listing = listing.map(Rc::new).map_err(|verdict| verdict.as_doubt());
        self.listings.insert(key, listing.clone());
        listing
    }

    fn fetch_array(&mut self, window: &Window) -> Checked<Listing> {
        let answer = self.get_batches(Version::V1, &window.query())?;
        let batches = read_array(&answer)?.clone();
        let page = Page { sent: answer.sent.clone(), came: answer.came.clone(), batches, next: None };
        Ok(Listing { pages: vec![page], end: End::Null })
    }

    fn walk(&mut self, window: &Window) -> Checked<Listing> {
        let mut pages = vec![self.fetch_page(window, None)?];
        let end = loop {
            let Some(cursor) = pages.last().and_then(|page| page.next.clone()) else { break End::Null };
            let earlier = &pages[..pages.len() - 1];
            if earlier.iter().any(|page| page.next.as_deref() == Some(&cursor)) {
                break End::Circle(pages.len());
            }
            let batches: usize = pages.iter().map(|page| page.batches.len()).sum();
            if pages.len() >= self.limits.pages || batches >= self.limits.batches {
                break End::Cut;
            }
            match self.fetch_page(window, Some(&cursor)) {
                Ok(page) => pages.push(page),
                Err(verdict) => break End::Broken(verdict),
            }
        };
        Ok(Listing { pages, end })
    }

    /// One page, fetched anew. The dates go along with the cursor: clients that repeat them and clients that do not both exist,
    /// and the interface does not say that they may be left out.
    pub(crate) fn fetch_page(&mut self, window: &Window, cursor: Option<&str>) -> Checked<Page> {
        let mut query = window.query();
        query.extend(cursor.map(|cursor| ("next_token", cursor)));
        let token = self.token(Version::V2)?;
        let answer = self.send(&Ask::get(Version::V2.batches()).query(&query).bearer(&token))?;
        read_page(&answer)
    }

    /// Everything the organisation has, as far as the walk may go.
    pub(crate) fn everything(&mut self) -> Checked<Rc<Listing>> {
        self.list(Version::V2, &Window::default())
    }

    /// Batches to look at, at least one.
    pub(crate) fn sample(&mut self) -> Checked<Rc<Listing>> {
        let listing = self.everything()?;
        if listing.batches().next().is_none() {
            return Err(Verdict::CannotTell("the organisation has no batches".to_owned()));
        }
        Ok(listing)
    }

    /// A window of whole seconds that holds some batches, but not many.
    pub(crate) fn small_window(&mut self) -> Checked<Window> {
        let sample = self.sample()?;
        let first = sample.pages.first().map_or(&[][..], |page| &page.batches);
        let mut instants: Vec<Timestamp> = first.iter().filter_map(instant_of).collect();
        instants.sort_unstable();
        span(&instants[..instants.len().min(SMALL_WINDOW)])
    }

    /// A window that fills more than one page: the whole, or what the first two pages span.
    pub(crate) fn wide_window(&mut self) -> Checked<Window> {
        let sample = self.sample()?;
        if sample.pages.len() < 2 {
            return Err(Verdict::CannotTell("all batches fit on one page".to_owned()));
        }
        let mut instants: Vec<Timestamp> =
            sample.pages[..2].iter().flat_map(|page| &page.batches).filter_map(instant_of).collect();
        instants.sort_unstable();
        span(&instants)
    }
}

/// The field every right auth request carries.
pub(crate) const GRANT: (&str, &str) = ("grant_type", "client_credentials");

/// The token of a right auth answer.
pub(crate) fn access_token(answer: &Answer) -> Checked<String> {
    answer.must_be(200)?;
    match answer.json()?.get("access_token").and_then(Value::as_str) {
        Some(token) => Ok(token.to_owned()),
        None => Err(answer.fail("a JSON object with a string field access_token")),
    }
}

/// The batches of a right v1 answer.
pub(crate) fn read_array(answer: &Answer) -> Checked<&Vec<Value>> {
    answer.must_be(200)?;
    answer.json()?.as_array().ok_or_else(|| answer.fail("one flat JSON array"))
}

/// The page of a right v2 answer.
pub(crate) fn read_page(answer: &Answer) -> Checked<Page> {
    answer.must_be(200)?;
    let body = answer.json()?;
    let data = body.get("data").and_then(Value::as_array);
    let next = match body.get("next_token") {
        Some(Value::Null) => Some(None),
        Some(Value::String(cursor)) => Some(Some(cursor.clone())),
        _ => None,
    };
    let (Some(batches), Some(next)) = (data, next) else {
        return Err(answer.fail("an object with data (array) and next_token (string or null)"));
    };
    Ok(Page { sent: answer.sent.clone(), came: answer.came.clone(), batches: batches.clone(), next })
}

pub(crate) fn id_of(batch: &Value) -> Option<&str> {
    batch.get("batch_id")?.as_str()
}

pub(crate) fn instant_of(batch: &Value) -> Option<Timestamp> {
    batch.get("batch_creation_date")?.as_str()?.parse().ok()
}

/// `instant` moved by whole seconds; the ends of time stay where they are.
pub(crate) fn moved(instant: Timestamp, secs: i64) -> Timestamp {
    instant.checked_add(SignedDuration::from_secs(secs)).unwrap_or(instant)
}

/// `instant` without its fraction of a second.
pub(crate) fn whole_second(instant: Timestamp) -> Timestamp {
    Timestamp::from_second(instant.as_second()).unwrap_or(instant)
}

/// The whole seconds around sorted instants.
fn span(instants: &[Timestamp]) -> Checked<Window> {
    match (instants.first(), instants.last()) {
        (Some(first), Some(last)) => {
            let end = if whole_second(*last) == *last { *last } else { moved(whole_second(*last), 1) };
            Ok(Window::spanning(whole_second(*first), end))
        }
        _ => Err(Verdict::CannotTell("no batch has a readable batch_creation_date".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_made_of_whole_seconds_that_hold_the_instants() {
        let instants: Vec<Timestamp> =
            ["2024-05-01T00:00:00.25Z", "2024-05-01T00:00:09.5Z"].map(|text| text.parse().unwrap()).into();
        assert_eq!(span(&instants), Ok(Window::between("2024-05-01T00:00:00Z", "2024-05-01T00:00:10Z")));
        assert!(span(&[]).is_err());
    }

    #[test]
    fn a_page_without_next_token_is_no_page() {
        let answer = |body: &str| Answer::new("GET".into(), "200".into(), 200, Vec::new(), body.into());
        assert!(read_page(&answer(r#"{"data":[]}"#)).is_err());
        assert!(read_page(&answer(r#"{"data":[],"next_token":7}"#)).is_err());
        assert!(read_page(&answer(r#"{"data":[],"next_token":null}"#)).is_ok());
    }
}
