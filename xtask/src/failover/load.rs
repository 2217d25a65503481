//! The clients: what integrators do, through the balancer, each with connections of its own. Every answer is judged
//! and counted; a client whose request failed asks again, as the interface says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::judge::Walk;
use super::known::{Known, Window};
use super::tally::{Outcome, Tally};
use crate::cluster::http::{Answer, Ask, Client, Credential, Lost, token_in};

/// Clients that do a bit of everything.
pub(crate) const MIXED_CLIENTS: usize = 4;
/// Clients that read the whole organisation by v1, slowly: a stream is under way at any time.
pub(crate) const SLOW_CLIENTS: usize = 2;
/// The rest of a slow reader after 16 KiB: some seconds for a whole list.
const SLOW_REST: Duration = Duration::from_millis(6);
/// Between two requests: the load is steady, and leaves room for the servers on a small machine.
const PAUSE: Duration = Duration::from_millis(8);
/// A client that got no answer waits before it asks again; shorter than the interface suggests, to see more.
const AFTER_FAILURE: Duration = Duration::from_millis(200);
/// After so many failures in a row a client gives up on what it wanted; each of them was counted.
const TRIES_MAX: usize = 50;
/// Batches in a small window.
const WINDOW_BATCHES: usize = 30;
/// Small windows, each with its conditional requests, for every walk over everything.
const WINDOWS_A_WALK: usize = 8;
/// Far above what a walk needs: a cursor that runs in circles shall not run for ever.
const PAGES_MAX: usize = 10_000;

/// What all clients share.
pub(crate) struct Load<'a> {
    pub(crate) url: String,
    pub(crate) credential: Credential,
    pub(crate) known: &'a Known,
    pub(crate) tally: &'a Tally,
    pub(crate) is_over: &'a AtomicBool,
}

/// One client at work.
pub(crate) struct Visitor<'a> {
    load: &'a Load<'a>,
    client: Client,
    token: String,
    /// Names windows; every client has others.
    turn: usize,
    /// A window that this client comes back to, with what it has of it.
    remembered: Option<(Window, String, Instant)>,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    data: Vec<&'a RawValue>,
    next_token: Option<String>,
}

impl<'a> Visitor<'a> {
    pub(crate) fn new(load: &'a Load<'a>, number: usize) -> Self {
        let client = Client::new(&load.url);
        Self { load, client, token: String::new(), turn: number * 1_009, remembered: None }
    }

    /// A bit of everything, until the load is over.
    pub(crate) fn mix(&mut self) {
        while !self.is_over() {
            self.fetch_token();
            self.walk(None);
            for _ in 0..WINDOWS_A_WALK {
                self.turn += 37;
                let window = self.load.known.window(self.turn, WINDOW_BATCHES);
                self.walk(Some(&window));
                self.list(Some(&window), None);
                self.come_back();
            }
            self.list(None, None);
        }
    }

    /// Whole lists by v1, read slowly, until the load is over.
    pub(crate) fn stream(&mut self) {
        while !self.is_over() {
            self.fetch_token();
            self.list(None, Some(SLOW_REST));
        }
    }

    /// Asks until a credential has got its token; whether it has.
    pub(crate) fn fetch_token_for(&mut self, credential: &Credential) -> bool {
        for _ in 0..TRIES_MAX {
            let begun = Instant::now();
            let answer = self.client.ask_for_token(credential);
            let token = answer.as_ref().ok().and_then(|answer| token_in(&answer.body));
            let outcome = outcome_of(answer, |answer| {
                token.as_ref().map(drop).ok_or_else(|| String::from_utf8_lossy(&answer.body).into_owned())
            });
            self.load.tally.note("a token", begun.elapsed(), &outcome);
            if let (Outcome::Right, Some(token)) = (outcome, token) {
                self.token = token;
                return true;
            }
            std::thread::sleep(AFTER_FAILURE);
        }
        false
    }

    fn fetch_token(&mut self) {
        let credential = self.load.credential.clone();
        self.fetch_token_for(&credential);
    }

    /// v2: page after page, to the end.
    fn walk(&mut self, window: Option<&Window>) {
        let mut walk = Walk::begin(self.load.known, window);
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            if self.is_over() {
                return;
            }
            let path = path("/v2/batches", window, cursor.as_deref());
            let judged = self.ask(&Ask { path: &path, token: &self.token, ..Ask::default() }, |answer| {
                let page: Page<'_> = parse(&answer.body)?;
                page.data.iter().try_for_each(|batch| walk.meet(batch.get()))?;
                Ok(page.next_token)
            });
            match judged {
                Some(Some(next)) => cursor = Some(next),
                // The last page: what is missing now was left out of one of them.
                Some(None) => return self.end_walk(walk),
                None => return,
            }
        }
        self.load.tally.note("a walk", Duration::ZERO, &Outcome::Wrong("it does not end".to_owned()));
    }

    /// The last page was counted as right; a walk that lacks something is one wrong answer more.
    fn end_walk(&self, walk: Walk<'_>) {
        if let Err(wrong) = walk.end() {
            self.load.tally.note("a walk", Duration::ZERO, &Outcome::Wrong(wrong));
        }
    }

    /// v1: everything in one answer.
    fn list(&self, window: Option<&Window>, rest: Option<Duration>) {
        let path = path("/v1/batches", window, None);
        let ask = Ask { path: &path, token: &self.token, rest, ..Ask::default() };
        self.ask(&ask, |answer| judge_list(self.load.known, window, &answer.body));
    }

    /// Conditional requests: with what this client had from its last visit, then with what it has now.
    fn come_back(&mut self) {
        let (window, mut etag, mut since) = self.remembered.take().unwrap_or_else(|| {
            (self.load.known.window(self.turn, WINDOW_BATCHES), String::new(), Instant::now())
        });
        let path = path("/v1/batches", Some(&window), None);
        for _ in 0..2 {
            let known_etag = (!etag.is_empty()).then_some(etag.as_str());
            let ask = Ask { path: &path, token: &self.token, known_etag, ..Ask::default() };
            let newer = self.ask(&ask, |answer| {
                if answer.status == 304 {
                    judge_unchanged(self.load.known, answer, known_etag, since)?;
                    return Ok(None);
                }
                judge_list(self.load.known, Some(&window), &answer.body)?;
                answer.etag.clone().map(Some).ok_or_else(|| "no etag".to_owned())
            });
            if let Some(Some(newer)) = newer {
                (etag, since) = (newer, Instant::now());
            }
        }
        self.remembered = Some((window, etag, since));
    }

    /// Sends a request until it is answered and judged, and counts every attempt.
    fn ask<T>(&self, ask: &Ask<'_>, mut judge: impl FnMut(&Answer) -> Result<T, String>) -> Option<T> {
        let is_long = ask.path == "/v1/batches";
        for _ in 0..TRIES_MAX {
            let begun = Instant::now();
            let mut judged = None;
            let outcome =
                outcome_of(self.client.get(ask), |answer| judge(answer).map(|good| judged = Some(good)));
            let outcome = match outcome {
                Outcome::BrokenStream(id) if !is_long => Outcome::Broken(format!("after it had begun, {id}")),
                outcome => outcome,
            };
            // How long a slow reader takes is its own choice.
            let took = if ask.rest.is_some() { Duration::ZERO } else { begun.elapsed() };
            self.load.tally.note(ask.path, took, &outcome);
            std::thread::sleep(PAUSE);
            match outcome {
                Outcome::Right => return judged,
                Outcome::Wrong(_) => return None,
                _ if self.is_over() => return None,
                _ => std::thread::sleep(AFTER_FAILURE),
            }
        }
        None
    }

    fn is_over(&self) -> bool {
        self.load.is_over.load(Ordering::Relaxed)
    }
}

fn outcome_of(answer: Result<Answer, Lost>, judge: impl FnOnce(&Answer) -> Result<(), String>) -> Outcome {
    match answer {
        Ok(answer) => match answer.status {
            200 | 304 => judge(&answer).map_or_else(Outcome::Wrong, |()| Outcome::Right),
            503 => Outcome::Unavailable,
            status => Outcome::Status(status),
        },
        Err(Lost { begun_by: Some(id), .. }) => Outcome::BrokenStream(id),
        Err(Lost { begun_by: None, why }) => Outcome::Broken(why),
    }
}

/// Judges a whole answer of v1.
pub(crate) fn judge_list(known: &Known, window: Option<&Window>, body: &[u8]) -> Result<(), String> {
    judge_array(Walk::begin(known, window), body)
}

/// Judges an array as a walk of its own.
pub(crate) fn judge_array(mut walk: Walk<'_>, body: &[u8]) -> Result<(), String> {
    let batches: Vec<&RawValue> = parse(body)?;
    batches.iter().try_for_each(|batch| walk.meet(batch.get()))?;
    walk.end()
}

fn judge_unchanged(known: &Known, answer: &Answer, sent: Option<&str>, since: Instant) -> Result<(), String> {
    match sent {
        None => Err("304 for a request without If-None-Match".to_owned()),
        Some(sent) if answer.etag.as_deref() != Some(sent) => Err(format!("304 with {:?}", answer.etag)),
        Some(_) if !answer.body.is_empty() => Err("304 with a body".to_owned()),
        Some(_) if known.changed_since(since) => Err("304 although batches were added".to_owned()),
        Some(_) => Ok(()),
    }
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| format!("{} bytes that are not JSON: {error}", body.len()))
}

fn path(resource: &str, window: Option<&Window>, cursor: Option<&str>) -> String {
    // Neither dates nor cursors hold a character that a query would encode.
    let dates = window.map(|(start, end)| format!("start_date={start}Z&end_date={end}Z"));
    let cursor = cursor.map(|cursor| format!("next_token={cursor}"));
    let query: Vec<String> = dates.into_iter().chain(cursor).collect();
    if query.is_empty() { resource.to_owned() } else { format!("{resource}?{}", query.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::super::known::tests::{known, text};
    use super::*;

    fn answer(status: u16, etag: &str) -> Answer {
        Answer { status, etag: Some(etag.to_owned()), body: Vec::new() }
    }

    #[test]
    fn a_path_has_only_what_is_asked() {
        let window = ("2026-01".to_owned(), "2026-02".to_owned());
        assert_eq!(path("/v1/batches", None, None), "/v1/batches");
        assert_eq!(
            path("/v2/batches", Some(&window), Some("c")),
            "/v2/batches?start_date=2026-01Z&end_date=2026-02Z&next_token=c"
        );
    }

    #[test]
    fn a_304_must_be_about_what_was_sent() {
        let known = known(&[("a", "2026-01")]);
        let judge = |answer, sent| judge_unchanged(&known, &answer, sent, Instant::now());
        assert_eq!(judge(answer(304, "x"), Some("x")), Ok(()));
        assert!(judge(answer(304, "y"), Some("x")).is_err());
        assert!(judge(answer(304, "x"), None).is_err());
    }

    #[test]
    fn a_short_list_is_wrong_whether_it_is_json_or_not() {
        let known = known(&[("a", "2026-01"), ("b", "2026-02")]);
        let (a, b) = (text("a", "2026-01"), text("b", "2026-02"));
        assert_eq!(judge_list(&known, None, format!("[{a},{b}]").as_bytes()), Ok(()));
        assert!(judge_list(&known, None, format!("[{a}]").as_bytes()).is_err());
        assert!(judge_list(&known, None, format!("[{a},").as_bytes()).is_err());
    }

    #[test]
    fn an_answer_that_broke_is_told_from_one_that_never_began() {
        let lost =
            |begun_by: Option<&str>| Err(Lost { begun_by: begun_by.map(str::to_owned), why: "x".into() });
        assert_eq!(outcome_of(lost(Some("a-1")), |_| Ok(())), Outcome::BrokenStream("a-1".into()));
        assert_eq!(outcome_of(lost(None), |_| Ok(())), Outcome::Broken("x".into()));
        assert_eq!(outcome_of(Ok(answer(503, "")), |_| Ok(())), Outcome::Unavailable);
        assert_eq!(outcome_of(Ok(answer(500, "")), |_| Ok(())), Outcome::Status(500));
    }
}
