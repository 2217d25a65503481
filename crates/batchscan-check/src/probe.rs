//! Sends requests for the rules: counted, limited, retried where the service requests it, redacted. Caches responses
//! and tokens.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use batchscan_client::Error;

use crate::http::{HttpClient, RawResponse, SendError};
use crate::limits::Limits;
use crate::listing::{DateRange, Listing, access_token};
use crate::redact::{Redactor, TOKEN};
use crate::request::{Request, Version};
use crate::response::Response;
use crate::response_checks::ResponseChecks;
use crate::target::{Target, Unreachable, parse_base_url};
use crate::verdict::{CheckResult, Verdict, undecided};

/// Responses up to this size are cached for other rules; larger ones are requested again, to limit memory.
const MAX_CACHED_BYTES: usize = 1 << 20;

/// A token is renewed after this time, or after half its lifetime, so that no rule uses an expired one.
const TOKEN_AGE: Duration = Duration::from_secs(240);

/// The field that every auth request carries.
pub(crate) const GRANT: (&str, &str) = ("grant_type", "client_credentials");

/// The service under test, the client to test it as, and what is known about them so far.
pub(crate) struct Probe {
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
    pub(crate) redactor: Redactor,
    pub(crate) response_checks: ResponseChecks,
    pub(crate) limits: Limits,
    pub(crate) requests: u64,
    pub(crate) listings: HashMap<(Version, DateRange), CheckResult<Rc<Listing>>>,
    tokens: HashMap<Version, CheckResult<Token>>,
    responses: HashMap<Request, Rc<Response>>,
    http: HttpClient,
    started: Instant,
    paused: Duration,
    unanswered: u32,
}

struct Token {
    text: String,
    renew_at: Instant,
}

impl Probe {
    pub(crate) fn new(target: &Target, limits: &Limits) -> Result<Self, Unreachable> {
        let base_url = parse_base_url(&target.base_url)?;
        let http = HttpClient::new(&base_url, target.ca_cert.as_deref(), limits)
            .map_err(|error| Unreachable::NoClient(error.to_string()))?;
        let mut redactor = Redactor::default();
        redactor.hide_credentials(&target.client_id, target.client_secret.expose());
        Ok(Self {
            client_id: target.client_id.clone(),
            client_secret: target.client_secret.expose().to_owned(),
            redactor,
            response_checks: ResponseChecks::default(),
            limits: limits.clone(),
            requests: 0,
            listings: HashMap::new(),
            tokens: HashMap::new(),
            responses: HashMap::new(),
            http,
            started: Instant::now(),
            paused: Duration::ZERO,
            unanswered: 0,
        })
    }

    /// The first requests of a run: is there a service, and does it accept the credentials?
    pub(crate) fn check_access(&mut self) -> Result<(), Unreachable> {
        let url = self.http.base_url.clone();
        let batches = self.exchange(&Request::batches(Version::V2)).map_err(|error| {
            match (self.show(error.to_string()), error) {
                (text, SendError::NoResponse(Error::Untrusted { .. })) => Unreachable::Untrusted(text),
                (text, SendError::NoResponse(_)) => Unreachable::NoResponse(text),
                (text, _) => Unreachable::NoResponse(format!("cannot reach {url}: {text}")),
            }
        })?;
        let auth =
            Version::BOTH.map(|version| self.exchange(&self.auth_request(version)).map(|it| it.status));
        match (batches.status, auth) {
            (404, [Ok(404), Ok(404)]) => Err(Unreachable::NoService(url)),
            (_, [Ok(401), Ok(401)]) => Err(Unreachable::BadCredentials(url)),
            _ => Ok(()),
        }
    }

    /// The response to a request, from the cache if it was sent before.
    pub(crate) fn fetch(&mut self, request: &Request) -> CheckResult<Rc<Response>> {
        if let Some(response) = self.responses.get(request) {
            return Ok(Rc::clone(response));
        }
        let response = Rc::new(self.send(request)?);
        if response.body.len() <= MAX_CACHED_BYTES {
            self.responses.insert(request.clone(), Rc::clone(&response));
        }
        Ok(response)
    }

    /// `GET …/batches` with a token and this query.
    pub(crate) fn fetch_batches(
        &mut self,
        version: Version,
        query: &[(&str, &str)],
    ) -> CheckResult<Rc<Response>> {
        let token = self.token(version)?;
        self.fetch(&Request::batches(version).query(query).bearer(&token))
    }

    pub(crate) fn clear_cache(&mut self) {
        self.responses.clear();
        self.listings.clear();
    }

    pub(crate) fn auth_request(&self, version: Version) -> Request {
        let fields = [("client_id", self.client_id.as_str()), ("client_secret", &self.client_secret), GRANT];
        Request::form(version.auth_path(), &fields)
    }

    /// A token from this version's auth endpoint. Without one, a rule is undecided.
    pub(crate) fn token(&mut self, version: Version) -> CheckResult<String> {
        match self.tokens.get(&version) {
            Some(Ok(token)) if Instant::now() < token.renew_at => return Ok(token.text.clone()),
            // Requested only once: the rules on auth report what is wrong.
            Some(Err(verdict)) => return Err(verdict.clone()),
            _ => {}
        }
        let token = self.request_token(version);
        let text = token.as_ref().map(|token| token.text.clone()).map_err(Verdict::clone);
        self.tokens.insert(version, token);
        text
    }

    fn request_token(&mut self, version: Version) -> CheckResult<Token> {
        let response = self.send(&self.auth_request(version)).map_err(Verdict::into_undecided)?;
        let text = access_token(&response).map_err(|_| {
            undecided(format!("{} returned no token: {}", version.auth_path(), response.shown))
        })?;
        let lifetime = response.json().ok().and_then(|body| body.get("expires_in")?.as_u64());
        let age = lifetime.map_or(TOKEN_AGE, |secs| TOKEN_AGE.min(Duration::from_secs(secs) / 2));
        self.redactor.hide(text.clone(), TOKEN);
        Ok(Token { text, renew_at: Instant::now() + age })
    }

    /// Sends a request, and retries it after a 429 or a 503.
    pub(crate) fn send(&mut self, request: &Request) -> CheckResult<Response> {
        let mut attempts = 0;
        loop {
            let response = self.send_once(request)?;
            if !matches!(response.status, 429 | 503) {
                return Ok(response);
            }
            attempts += 1;
            if attempts > self.limits.retries || !self.pause(&response) {
                return Err(undecided(format!("{} kept returning {}", response.request, response.status)));
            }
        }
    }

    fn send_once(&mut self, request: &Request) -> CheckResult<Response> {
        self.check_limits()?;
        // The service may have closed an idle connection meanwhile, so one failure is allowed.
        let result = match self.exchange(request) {
            Err(SendError::NoResponse(_)) => self.exchange(request),
            result => result,
        };
        let error = match result {
            Ok(response) => {
                self.unanswered = 0;
                self.response_checks.check(&response);
                return Ok(response);
            }
            Err(error) => error,
        };
        let (line, shown) = (self.show(request.to_line()), self.show(error.to_string()));
        match error {
            SendError::TimedOut(_) | SendError::NoResponse(_) => self.unanswered += 1,
            SendError::BadBody(_) => self.unanswered = 0,
            // A limit of this run, not an error of the service.
            SendError::TooLarge(_) => return Err(undecided(format!("{line} returned {shown}"))),
        }
        Err(Verdict::fail(line, shown, "a complete response"))
    }

    fn check_limits(&self) -> CheckResult {
        let limits = &self.limits;
        let reason = if self.requests >= limits.requests {
            format!("the run's limit of {} requests was reached", limits.requests)
        } else if self.unanswered >= limits.unanswered {
            format!("the service did not respond to {} requests in a row", limits.unanswered)
        } else if self.started.elapsed() >= limits.run_time {
            format!("the run's limit of {} s was reached", limits.run_time.as_secs())
        } else {
            return Ok(());
        };
        Err(undecided(reason))
    }

    /// Waits as long as the response requests. False if that would exceed the run's limit on pauses.
    fn pause(&mut self, response: &Response) -> bool {
        let pause = response.retry_after().map_or(self.limits.retry_pause, Duration::from_secs);
        if self.paused.saturating_add(pause) > self.limits.total_pause {
            return false;
        }
        self.paused += pause;
        std::thread::sleep(pause);
        true
    }

    fn exchange(&mut self, request: &Request) -> Result<Response, SendError> {
        self.requests += 1;
        let RawResponse { status, headers, body } = self.http.send(request, &self.limits)?;
        // Before this response's own token is hidden: a new token is not a leak.
        let in_body = self.redactor.find_hidden(&body, !request.is_auth());
        let leaked = headers.values().fold(in_body, |leaked, value| {
            leaked.or_else(|| self.redactor.find_hidden(value.as_bytes(), true))
        });
        self.redactor.hide_tokens_in(&body);
        Ok(Response {
            request: self.show(request.to_line()),
            shown: format!("{status} {}", self.show(&body)).trim_end().to_owned(),
            status,
            headers: headers.iter().map(|(name, value)| (name.to_string(), self.show(value))).collect(),
            body,
            leaked,
            ..Response::default()
        })
    }

    /// Foreign text made safe to print.
    pub(crate) fn show(&self, text: impl AsRef<[u8]>) -> String {
        self.redactor.show(text.as_ref())
    }
}
