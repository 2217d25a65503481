//! Sends requests and brings answers back: counted, bounded, retried when the service asks for patience, redacted.
//! Judges nothing but what makes an answer no answer.

use std::collections::HashMap;
use std::io::Read;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ureq::http::{Request, Response};
use ureq::{Agent, Body};

use crate::answer::Answer;
use crate::ask::{Ask, Version};
use crate::batches::{Listing, Token, Window};
use crate::limits::Limits;
use crate::observed::Observed;
use crate::redact::Redactor;
use crate::verdict::{Checked, Verdict};
use crate::{Target, Unreachable};

/// Answers up to this size are kept for other rules; larger ones are fetched anew, so that the run stays small.
const KEPT_BYTES: usize = 1 << 20;

/// What the rules ask through: one service, one client, and what was learnt of them so far.
pub(crate) struct Probe {
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
    pub(crate) redactor: Redactor,
    pub(crate) observed: Observed,
    pub(crate) limits: Limits,
    pub(crate) requests: u64,
    pub(crate) tokens: HashMap<Version, Checked<Token>>,
    pub(crate) listings: HashMap<(Version, Window), Checked<Rc<Listing>>>,
    answers: HashMap<Ask, Rc<Answer>>,
    agent: Agent,
    base: String,
    started: Instant,
    paused: Duration,
    silent: u32,
}

impl Probe {
    pub(crate) fn new(target: &Target, limits: &Limits) -> Result<Self, Unreachable> {
        let base = crate::base_url(&target.base_url)?;
        let mut redactor = Redactor::default();
        redactor.hide_credentials(&target.client_id, target.client_secret.expose());
        Ok(Self {
            client_id: target.client_id.clone(),
            client_secret: target.client_secret.expose().to_owned(),
            redactor,
            observed: Observed::default(),
            requests: 0,
            tokens: HashMap::new(),
            listings: HashMap::new(),
            answers: HashMap::new(),
            agent: agent(limits, &base),
            base: base.as_str().trim_end_matches('/').to_owned(),
            limits: limits.clone(),
            started: Instant::now(),
            paused: Duration::ZERO,
            silent: 0,
        })
    }

    /// The first requests of a run: is there a service, and does it know these credentials? Whatever else it answers
    /// is for the rules to judge.
    pub(crate) fn knock(&mut self) -> Result<(), Unreachable> {
        let url = self.base.clone();
        let batches = self.exchange(&Ask::get(Version::V2.batches()));
        let batches =
            batches.map_err(|lost| Unreachable::NoAnswer { url: url.clone(), why: lost.to_string() })?;
        let auth =
            Version::BOTH.map(|version| self.exchange(&self.ask_token(version)).map(|answer| answer.status));
        match (batches.status, auth) {
            (404, [Ok(404), Ok(404)]) => Err(Unreachable::NoService { url }),
            (_, [Ok(401), Ok(401)]) => Err(Unreachable::Refused { url }),
            _ => Ok(()),
        }
    }

    /// The answer to a request, sent once however many rules look at it.
    pub(crate) fn ask(&mut self, ask: &Ask) -> Checked<Rc<Answer>> {
        if let Some(answer) = self.answers.get(ask) {
            return Ok(Rc::clone(answer));
        }
        let answer = Rc::new(self.send(ask)?);
        if answer.body.len() <= KEPT_BYTES {
            self.answers.insert(ask.clone(), Rc::clone(&answer));
        }
        Ok(answer)
    }

    /// Lets go of all batches seen, so that they are fetched anew.
    pub(crate) fn forget(&mut self) {
        self.answers.clear();
        self.listings.clear();
    }

    /// Sends a request and waits for its answer, more than once if the service is out of breath.
    pub(crate) fn send(&mut self, ask: &Ask) -> Checked<Answer> {
        let mut tries = 0;
        loop {
            let answer = self.send_once(ask)?;
            if !matches!(answer.status, 429 | 503) {
                return Ok(answer);
            }
            tries += 1;
            if tries > self.limits.retries || !self.pause(&answer) {
                return Err(Verdict::CannotTell(format!("{} kept answering {}", answer.sent, answer.status)));
            }
        }
    }

    fn send_once(&mut self, ask: &Ask) -> Checked<Answer> {
        self.may_send()?;
        // A kept connection may have been closed by the other side meanwhile: that is nobody's fault, once.
        let outcome = match self.exchange(ask) {
            Err(Lost::Dropped(_)) => self.exchange(ask),
            outcome => outcome,
        };
        match outcome {
            Ok(answer) => {
                self.silent = 0;
                self.observed.note(&answer);
                Ok(answer)
            }
            Err(lost) => Err(self.give_up(ask, &lost)),
        }
    }

    fn give_up(&mut self, ask: &Ask, lost: &Lost) -> Verdict {
        let sent = self.shown(ask);
        match lost {
            Lost::TimedOut(_) | Lost::Dropped(_) => self.silent += 1,
            Lost::Broken(_) => self.silent = 0,
            // Our limit, not the service's fault.
            Lost::TooLarge(_) => return Verdict::CannotTell(format!("{sent} answered {lost}")),
        }
        Verdict::Fail { sent, came: lost.to_string(), expected: "a whole answer".to_owned() }
    }

    fn may_send(&self) -> Checked {
        let limits = &self.limits;
        let why = if self.requests >= limits.requests {
            format!("the run's limit of {} requests was reached", limits.requests)
        } else if self.silent >= limits.silent {
            format!("{} requests in a row had stayed without an answer", limits.silent)
        } else if self.started.elapsed() >= limits.run {
            format!("the run's limit of {} s was reached", limits.run.as_secs())
        } else {
            return Ok(());
        };
        Err(Verdict::CannotTell(why))
    }

    /// Waits as long as the answer asks for, unless the run has waited enough.
    fn pause(&mut self, answer: &Answer) -> bool {
        let asked = answer.header("retry-after").and_then(|value| value.trim().parse().ok());
        let pause = asked.map_or(self.limits.pause, Duration::from_secs);
        if self.paused.saturating_add(pause) > self.limits.pauses {
            return false;
        }
        self.paused += pause;
        std::thread::sleep(pause);
        true
    }

    /// One request on the wire.
    fn exchange(&mut self, ask: &Ask) -> Result<Answer, Lost> {
        self.requests += 1;
        let mut request = Request::builder().method(ask.method).uri(format!("{}{}", self.base, ask.path));
        for (name, value) in &ask.headers {
            request = request.header(*name, value);
        }
        let response = match &ask.body {
            Some(body) => request.body(body.as_slice()).map(|request| self.agent.run(request)),
            None => request.body(()).map(|request| self.agent.run(request)),
        };
        let response = response.map_err(|error| self.lost(&error.into()))?;
        let response = response.map_err(|error| self.lost(&error))?;
        self.read(ask, response)
    }

    fn lost(&self, error: &ureq::Error) -> Lost {
        match error {
            ureq::Error::Timeout(_) => {
                Lost::TimedOut(format!("no answer within {:.1} s", self.limits.answer.as_secs_f32()))
            }
            error => {
                Lost::Dropped(format!("no answer: {}", self.redactor.show(error.to_string().as_bytes())))
            }
        }
    }

    fn read(&mut self, ask: &Ask, response: Response<Body>) -> Result<Answer, Lost> {
        let (parts, body) = response.into_parts();
        let status = parts.status.as_u16();
        let coding = parts.headers.get("content-encoding").map(|value| value.as_bytes().to_ascii_lowercase());
        let body = read_body(body, coding.as_deref(), self.limits.body_bytes)
            .map_err(|lost| lost.after(status, &self.redactor))?;
        // Before the answer's own token is hidden: that one is news, not an echo.
        let mut echo = self.redactor.found_in(&body, !ask.obtains_token());
        for value in parts.headers.values() {
            echo = echo.or_else(|| self.redactor.found_in(value.as_bytes(), true));
        }
        self.redactor.hide_tokens_in(&body);
        let show = |value: &[u8]| self.redactor.show(value);
        let headers =
            parts.headers.iter().map(|(name, value)| (name.to_string(), show(value.as_bytes()))).collect();
        let came = format!("{status} {}", show(&body)).trim_end().to_owned();
        Ok(Answer::new(self.shown(ask), came, status, headers, body).with_echo(echo))
    }

    fn shown(&self, ask: &Ask) -> String {
        self.redactor.show(ask.written().as_bytes())
    }
}

/// Why there is no whole answer, in a few words.
#[derive(Debug, thiserror::Error)]
enum Lost {
    /// The service took too long.
    #[error("{0}")]
    TimedOut(String),
    /// The connection failed before an answer began.
    #[error("{0}")]
    Dropped(String),
    /// The body broke off or could not be decoded.
    #[error("{0}")]
    Broken(String),
    /// The body went on beyond the limit of the run.
    #[error("{0}")]
    TooLarge(String),
}

impl Lost {
    /// The same, told with the status that had come.
    fn after(self, status: u16, redactor: &Redactor) -> Self {
        let told = |why: String| format!("{status}, then {}", redactor.show(why.as_bytes()));
        match self {
            Self::TimedOut(why) => Self::TimedOut(told(why)),
            Self::Dropped(why) => Self::Dropped(told(why)),
            Self::Broken(why) => Self::Broken(told(why)),
            Self::TooLarge(why) => Self::TooLarge(told(why)),
        }
    }
}

fn agent(limits: &Limits, base: &url::Url) -> Agent {
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .allow_non_standard_methods(true)
        .accept_encoding("")
        .user_agent(concat!("batchscan-check/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(limits.connect))
        .timeout_recv_response(Some(limits.answer))
        .timeout_global(Some(limits.exchange));
    // A proxy cannot reach the loopback of this machine.
    let loopback = match base.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    if loopback {
        config = config.proxy(None);
    }
    config.build().new_agent()
}

/// Reads a body to its end, decoding it, within the limit on decoded bytes.
fn read_body(body: Body, coding: Option<&[u8]>, limit: u64) -> Result<Vec<u8>, Lost> {
    let raw = body.into_with_config().limit(limit.saturating_add(1)).reader();
    let broke = |error: std::io::Error| match ureq::Error::from(error) {
        ureq::Error::Timeout(_) => Lost::TimedOut("a body that took too long".to_owned()),
        error => Lost::Broken(format!("the body broke off: {error}")),
    };
    let decoded: Box<dyn Read> = match coding {
        Some(b"gzip") => Box::new(flate2::read::MultiGzDecoder::new(raw)),
        Some(b"zstd") => Box::new(zstd::stream::read::Decoder::new(raw).map_err(broke)?),
        _ => Box::new(raw),
    };
    let mut bytes = Vec::new();
    decoded.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(broke)?;
    if bytes.len() as u64 > limit {
        return Err(Lost::TooLarge(format!("a body of more than {limit} bytes, the limit of this run")));
    }
    Ok(bytes)
}
