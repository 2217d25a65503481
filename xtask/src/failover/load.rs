//! The clients: what integrators do, through the balancer. Every response is verified and counted; a failed request is
//! repeated.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use super::expected::{DateRange, Expected, Verifier};
use super::tally::{Failed, Tally};
use crate::cluster::http::{Client, Credential, Failure, Response, token_in};

/// How long a slow reader pauses after every 16 KiB: a whole list takes it some seconds.
const SLOW_PAUSE: Duration = Duration::from_millis(6);
/// Between two requests: a steady load that leaves CPU time for the servers.
const PAUSE: Duration = Duration::from_millis(8);
/// Before a repeated request; shorter than clients should wait, to see more.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// After this many failures in a row a client gives up; each of them was counted.
const ATTEMPTS_MAX: usize = 50;
/// Batches in a small date range.
const RANGE_BATCHES: usize = 30;
/// Small date ranges for every read of everything.
const RANGES_PER_ROUND: usize = 8;
/// Far above what is needed, in case a cursor loops.
const PAGES_MAX: usize = 10_000;

/// What all clients share.
pub(crate) struct Load<'a> {
    pub(crate) port: u16,
    pub(crate) credential: Credential,
    pub(crate) expected: &'a Expected,
    pub(crate) tally: &'a Tally,
    pub(crate) is_over: &'a AtomicBool,
}

/// One client.
pub(crate) struct LoadClient<'a> {
    load: &'a Load<'a>,
    client: Client,
    token: String,
    /// Chooses date ranges; differs between clients.
    seed: usize,
    /// A date range that is requested again and again, its etag, and when that was received.
    remembered: Option<(DateRange, String, Instant)>,
}

impl<'a> LoadClient<'a> {
    pub(crate) fn new(load: &'a Load<'a>, number: usize) -> Self {
        let client = Client::new(load.port);
        Self { load, client, token: String::new(), seed: number * 1_009, remembered: None }
    }

    /// A bit of everything until the load is over.
    pub(crate) fn run_mixed(&mut self) {
        while !self.is_over() {
            self.fetch_token(&self.load.credential);
            self.read_v2(None);
            for _ in 0..RANGES_PER_ROUND {
                self.seed += 37;
                let range = self.load.expected.range(self.seed, RANGE_BATCHES);
                self.read_v2(Some(&range));
                self.read_v1(Some(&range));
                self.read_conditionally();
            }
            self.read_v1(None);
        }
    }

    /// Whole lists of v1, read slowly, until the load is over: a stream is nearly always in progress.
    pub(crate) fn run_slow(&mut self) {
        while !self.is_over() {
            self.fetch_token(&self.load.credential);
            self.client.pause = SLOW_PAUSE;
            self.read_v1(None);
            self.client.pause = Duration::ZERO;
        }
    }

    /// Requests a token until there is one.
    pub(crate) fn fetch_token(&mut self, credential: &Credential) {
        let token = self.repeat(
            "/v2/auth",
            |client, _| client.request_token(credential),
            |response| {
                token_in(&response.body).ok_or_else(|| String::from_utf8_lossy(&response.body).into_owned())
            },
        );
        self.token = token.unwrap_or_default();
    }

    /// Page after page to the end.
    fn read_v2(&mut self, range: Option<&DateRange>) {
        let mut verifier = self.load.expected.verifier(range);
        let mut path = path("/v2/batches", range);
        for _ in 0..PAGES_MAX {
            if self.is_over() {
                return;
            }
            match self.get(&path, "", |response| verify_page(&mut verifier, &response.body)) {
                None => return,
                Some(Some(cursor)) => path = format!("/v2/batches?next_token={cursor}"),
                // The last page was counted as right. A list that lacks something counts as wrong in addition.
                Some(None) => return verifier.end().unwrap_or_else(|error| self.count_wrong(&path, error)),
            }
        }
        self.count_wrong(&path, "pagination does not end".to_owned());
    }

    /// Everything in one response.
    fn read_v1(&mut self, range: Option<&DateRange>) {
        let (expected, sent) = (self.load.expected, Instant::now());
        self.get(&path("/v1/batches", range), "", |response| verify_list(expected, range, sent, response));
    }

    /// Two requests with `If-None-Match`: with an etag from some time ago, then with the newest.
    fn read_conditionally(&mut self) {
        let expected = self.load.expected;
        let first_time = || (expected.range(self.seed, RANGE_BATCHES), String::new(), Instant::now());
        let (range, mut etag, mut since) = self.remembered.take().unwrap_or_else(first_time);
        let path = path("/v1/batches", Some(&range));
        for _ in 0..2 {
            let newer = self.get(&path, &etag, |response| {
                if response.status == 304 {
                    return verify_unchanged(expected, response, &etag, since).map(|()| None);
                }
                verify_list(expected, Some(&range), Instant::now(), response)?;
                response.etag.clone().map(Some).ok_or_else(|| "no etag".to_owned())
            });
            if let Some(Some(newer)) = newer {
                (etag, since) = (newer, Instant::now());
            }
        }
        self.remembered = Some((range, etag, since));
    }

    fn get<T>(
        &mut self,
        path: &str,
        etag: &str,
        verify: impl FnMut(&Response) -> Result<T, String>,
    ) -> Option<T> {
        self.repeat(path, |client, token| client.get(path, token, etag), verify)
    }

    /// Repeats a request until its response is right or wrong, and counts every attempt.
    fn repeat<T>(
        &mut self,
        path: &str,
        send: impl Fn(&mut Client, &str) -> Result<Response, Failure>,
        mut verify: impl FnMut(&Response) -> Result<T, String>,
    ) -> Option<T> {
        for _ in 0..ATTEMPTS_MAX {
            let start = Instant::now();
            let result = check(path, send(&mut self.client, &self.token), &mut verify);
            // The duration of a slow read is the reader's choice.
            let duration = if self.client.pause.is_zero() { start.elapsed() } else { Duration::ZERO };
            self.load.tally.count(path, duration, result.as_ref().map(drop));
            sleep(PAUSE);
            match result {
                Ok(value) => return Some(value),
                Err(Failed::Wrong(_)) => return None,
                Err(_) if self.is_over() => return None,
                Err(_) => sleep(RETRY_PAUSE),
            }
        }
        None
    }

    fn count_wrong(&self, path: &str, error: String) {
        self.load.tally.count(path, Duration::ZERO, Err(&Failed::Wrong(error)));
    }

    fn is_over(&self) -> bool {
        self.load.is_over.load(Ordering::Relaxed)
    }
}

/// Classifies a response. Only a list of the whole organisation is a long stream.
fn check<T>(
    path: &str,
    response: Result<Response, Failure>,
    verify: impl FnOnce(&Response) -> Result<T, String>,
) -> Result<T, Failed> {
    match response {
        Ok(response) if [200, 304].contains(&response.status) => verify(&response).map_err(Failed::Wrong),
        Ok(response) => Err(Failed::Status(response.status)),
        Err(Failure { request_id: Some(id), .. }) if path == "/v1/batches" => Err(Failed::BrokenStream(id)),
        Err(Failure { reason, .. }) => Err(Failed::Broken(reason)),
    }
}

/// Returns the cursor of the next page.
fn verify_page(verifier: &mut Verifier<'_>, body: &[u8]) -> Result<Option<String>, String> {
    let page: std::collections::BTreeMap<&str, &RawValue> =
        serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let field = |name| page.get(name).map(|value| value.get()).ok_or_else(|| format!("no {name}"));
    verifier.array(field("data")?.as_bytes())?;
    serde_json::from_str(field("next_token")?).map_err(|error| error.to_string())
}

/// A slow stream may have passed the position of a batch that was imported after the request was sent.
fn verify_list(
    expected: &Expected,
    range: Option<&DateRange>,
    sent: Instant,
    response: &Response,
) -> Result<(), String> {
    let mut verifier = expected.verifier_at(range, sent);
    verifier.array(&response.body)?;
    verifier.end()
}

fn verify_unchanged(
    expected: &Expected,
    response: &Response,
    sent: &str,
    since: Instant,
) -> Result<(), String> {
    if sent.is_empty() || response.etag.as_deref() != Some(sent) {
        return Err(format!("304 with etag {:?}, sent {sent:?}", response.etag));
    }
    if expected.has_changed_since(since) {
        return Err("304 although batches were added".to_owned());
    }
    Ok(())
}

/// Dates contain no character that a query would escape.
fn path(resource: &str, range: Option<&DateRange>) -> String {
    let query = range.map(|(start, end)| format!("?start_date={start}Z&end_date={end}Z"));
    resource.to_owned() + &query.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: &str = r#"{"batch_id":"a","batch_creation_date":"2026-01Z"}"#;

    fn expected() -> Expected {
        Expected::new(format!("[{BATCH}]").as_bytes()).unwrap()
    }

    #[test]
    fn a_page_is_verified_and_yields_its_cursor() {
        let expected = expected();
        let verify = |body: String| verify_page(&mut expected.verifier(None), body.as_bytes());
        assert_eq!(verify(format!(r#"{{"data":[{BATCH}],"next_token":null}}"#)), Ok(None));
        assert_eq!(verify(format!(r#"{{"data":[{BATCH}],"next_token":"c"}}"#)), Ok(Some("c".to_owned())));
        assert!(verify(format!(r#"{{"data":[{BATCH},{BATCH}],"next_token":null}}"#)).is_err());
        assert!(verify(format!(r#"{{"data":[{BATCH}]}}"#)).is_err());
    }

    #[test]
    fn a_304_must_be_about_the_sent_etag() {
        let response = Response { status: 304, etag: Some("x".to_owned()), ..Response::default() };
        let verify = |sent| verify_unchanged(&expected(), &response, sent, Instant::now());
        assert_eq!((verify("x"), verify("y").is_err(), verify("").is_err()), (Ok(()), true, true));
    }

    #[test]
    fn a_stream_that_broke_differs_from_a_response_that_never_started() {
        let failure =
            |id: Option<&str>| Err(Failure { request_id: id.map(str::to_owned), reason: "x".into() });
        let (list, broken) = ("/v1/batches", Err(Failed::Broken("x".into())));
        assert_eq!(check(list, failure(Some("a-1")), |_| Ok(())), Err(Failed::BrokenStream("a-1".into())));
        assert_eq!(check("/v2/batches", failure(Some("a-1")), |_| Ok(())), broken);
        assert_eq!(check(list, failure(None), |_| Ok(())), broken);
    }
}
