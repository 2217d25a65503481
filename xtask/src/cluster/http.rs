//! A client of the interface on loopback: raw statuses and bodies, connections kept. Judges nothing.

use std::io::Read;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use ureq::http::{HeaderMap, Request};
use ureq::{Agent, Body};

/// Above all that a service or a balancer takes to say that it cannot answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// A whole stream, read slowly.
const EXCHANGE_LIMIT: Duration = Duration::from_secs(60);
/// Far above the whole organisation.
const BODY_LIMIT_BYTES: u64 = 256 << 20;
/// What is read between two pauses of a slow reader.
const SIP_BYTES: usize = 16 << 10;

/// A client id and its secret.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Credential {
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) etag: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// Why there is no whole answer.
#[derive(Debug)]
pub(crate) struct Lost {
    /// If the answer had begun: the id of the request, which begins with a name of the process that answered.
    pub(crate) begun_by: Option<String>,
    pub(crate) why: String,
}

/// What is asked.
#[derive(Debug, Default)]
pub(crate) struct Ask<'a> {
    pub(crate) path: &'a str,
    pub(crate) token: &'a str,
    pub(crate) known_etag: Option<&'a str>,
    /// How long a slow reader rests after every sip.
    pub(crate) rest: Option<Duration>,
}

/// A client with connections of its own.
#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
    base: String,
}

impl Client {
    pub(crate) fn new(base: &str) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_recv_response(Some(ANSWER_LIMIT))
            .timeout_global(Some(EXCHANGE_LIMIT));
        Self { agent: config.build().new_agent(), base: base.to_owned() }
    }

    /// Sends a GET and reads its answer to the end.
    pub(crate) fn get(&self, ask: &Ask<'_>) -> Result<Answer, Lost> {
        let mut request = Request::get(format!("{}{}", self.base, ask.path));
        if !ask.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", ask.token));
        }
        if let Some(etag) = ask.known_etag {
            request = request.header("if-none-match", etag);
        }
        let request = request.body(()).map_err(|error| Lost::before_it_began(&error.into()))?;
        let response = self.agent.run(request).map_err(|error| Lost::before_it_began(&error))?;
        read(response.into_parts(), ask.rest)
    }

    /// Asks for a token, without looking at the answer.
    pub(crate) fn ask_for_token(&self, credential: &Credential) -> Result<Answer, Lost> {
        let Credential { client_id, client_secret } = credential;
        // Neither holds a character that a form would encode.
        let form =
            format!("grant_type=client_credentials&client_id={client_id}&client_secret={client_secret}");
        let request = Request::post(format!("{}/v2/auth", self.base))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form)
            .map_err(|error| Lost::before_it_began(&error.into()))?;
        let response = self.agent.run(request).map_err(|error| Lost::before_it_began(&error))?;
        read(response.into_parts(), None)
    }

    /// A token, or a failure.
    pub(crate) fn token(&self, credential: &Credential) -> Result<String> {
        let answer =
            self.ask_for_token(credential).map_err(|lost| anyhow::anyhow!("no token: {}", lost.why))?;
        if answer.status != 200 {
            bail!("no token: {} {}", answer.status, String::from_utf8_lossy(&answer.body));
        }
        token_in(&answer.body).context("a token answer without access_token")
    }

    /// The text at a path that needs no token, if its status is 200.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let answer = self.get(&Ask { path, ..Ask::default() }).ok().filter(|answer| answer.status == 200)?;
        String::from_utf8(answer.body).ok()
    }

    /// The name by which a process marks the ids of its requests.
    pub(crate) fn process_mark(&self) -> Option<String> {
        let response = self.agent.get(format!("{}/healthz", self.base)).call().ok()?;
        header(response.headers(), "x-request-id").map(|id| mark(&id).to_owned())
    }
}

impl Lost {
    fn before_it_began(error: &ureq::Error) -> Self {
        Self { begun_by: None, why: error.to_string() }
    }
}

/// The part of a request id that tells the process.
pub(crate) fn mark(request_id: &str) -> &str {
    request_id.split('-').next().unwrap_or_default()
}

/// The token in the body of an answer.
pub(crate) fn token_in(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Token {
        access_token: String,
    }
    serde_json::from_slice::<Token>(body).ok().map(|token| token.access_token)
}

fn read((parts, body): (ureq::http::response::Parts, Body), rest: Option<Duration>) -> Result<Answer, Lost> {
    let mut reader = body.into_with_config().limit(BODY_LIMIT_BYTES).reader();
    let mut bytes = Vec::new();
    let broke = |error: std::io::Error| Lost {
        begun_by: header(&parts.headers, "x-request-id"),
        why: format!("{}, then the body broke off: {error}", parts.status.as_u16()),
    };
    match rest {
        None => drop(reader.read_to_end(&mut bytes).map_err(broke)?),
        Some(rest) => loop {
            let sip = reader.by_ref().take(SIP_BYTES as u64).read_to_end(&mut bytes).map_err(broke)?;
            if sip == 0 {
                break;
            }
            std::thread::sleep(rest);
        },
    }
    Ok(Answer { status: parts.status.as_u16(), etag: header(&parts.headers, "etag"), body: bytes })
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_tells_its_process() {
        assert_eq!(mark("2dcf2a7a-15"), "2dcf2a7a");
        assert_eq!(mark(""), "");
    }

    #[test]
    fn a_token_is_read_from_its_answer() {
        assert_eq!(token_in(br#"{"access_token":"abc","expires_in":3600}"#).as_deref(), Some("abc"));
        assert_eq!(token_in(br#"{"detail":"no"}"#), None);
    }
}
