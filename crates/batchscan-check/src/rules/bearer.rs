//! Batches are returned only to clients with a valid token.

use super::rule::{ENDPOINTS, Rule, alter, both, decision};
use crate::probe::Probe;
use crate::request::{Request, Version};
use crate::response::Response;
use crate::verdict::{CheckResult, undecided};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    Rule(ENDPOINTS, "batches-v1-need-a-token", "GET /v1/batches without a token is rejected.", |p| p.fetch(&Request::batches(Version::V1))?.require_client_error()),
    Rule(ENDPOINTS, "batches-v2-need-a-token", "GET /v2/batches without a token is rejected.", |p| p.fetch(&Request::batches(Version::V2))?.require_client_error()),
    Rule(ENDPOINTS, "batches-refuse-an-invented-token", "A token that was never issued is rejected by both versions.", |p| both(p, |p, version| p.fetch(&Request::batches(version).bearer(FORGED))?.require_client_error())),
    Rule(ENDPOINTS, "batches-refuse-credentials-in-place-of-a-token", "Client credentials instead of a token are rejected.", credentials),
    Rule(decision(9), "bearer-missing-is-401", "No token is a 401 with a string detail and WWW-Authenticate: Bearer, without an error.", no_token),
    Rule(decision(9), "bearer-forged-is-401", "A forged token is a 401 with a string detail and WWW-Authenticate: Bearer error=\"invalid_token\".", |p| both(p, |p, version| require_invalid_token(&*p.fetch(&Request::batches(version).bearer(FORGED))?))),
    Rule(decision(9), "bearer-altered-is-401", "A token with one character changed is rejected like a forged one.", altered),
    Rule(decision(9), "bearer-malformed-is-401", "An Authorization header without a bearer token is a 401 with a string detail.", malformed),
    Rule(decision(7), "bearer-before-query", "An invalid date without a token is a 401: the token is checked first.", |p| both(p, |p, version| p.fetch(&Request::batches(version).query(&[("start_date", "yesterday")]))?.require_status(401))),
];

/// A token that was never issued.
const FORGED: &str = "conformance-run-invented-this-token";

fn credentials(probe: &mut Probe) -> CheckResult {
    both(probe, |probe, version| {
        let request = Request::batches(version).basic(&probe.client_id, &probe.client_secret);
        probe.fetch(&request)?.require_client_error()
    })
}

fn no_token(probe: &mut Probe) -> CheckResult {
    both(probe, |probe, version| {
        let response = probe.fetch(&Request::batches(version))?;
        let has_error = bearer_challenge(&response)?.contains("error=");
        response.require_header("WWW-Authenticate", !has_error, "no error, since no token was sent")
    })
}

fn altered(probe: &mut Probe) -> CheckResult {
    both(probe, |probe, version| {
        let token =
            alter(&probe.token(version)?).ok_or_else(|| undecided("the token is too short to alter"))?;
        probe.redactor.hide(token.clone(), "[altered token]");
        require_invalid_token(&*probe.fetch(&Request::batches(version).bearer(&token))?)
    })
}

fn malformed(probe: &mut Probe) -> CheckResult {
    for value in ["Bearer", "Token abc", "Bearer a b c"] {
        both(probe, |probe, version| {
            bearer_challenge(&*probe.fetch(&Request::batches(version).header("Authorization", value))?)
                .map(drop)
        })?;
    }
    Ok(())
}

fn require_invalid_token(response: &Response) -> CheckResult {
    let passes = bearer_challenge(response)?.contains("error=\"invalid_token\"");
    response.require_header(
        "WWW-Authenticate",
        passes,
        "WWW-Authenticate: Bearer with error=\"invalid_token\"",
    )
}

/// The `WWW-Authenticate` header of a valid 401.
fn bearer_challenge(response: &Response) -> CheckResult<String> {
    response.require_unauthorized()?;
    let value = response.header("WWW-Authenticate").unwrap_or_default();
    let scheme = value.split([' ', ',']).next().unwrap_or_default();
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    response.require_header("WWW-Authenticate", is_bearer, "WWW-Authenticate: Bearer")?;
    Ok(value)
}
