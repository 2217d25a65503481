//! The token response: its fields and headers, and which endpoints accept the token.

use std::rc::Rc;

use serde_json::Value;

use super::rule::{AUTHENTICATION, Rule, both, decision};
use crate::listing::{LONG_AGO, access_token};
use crate::probe::Probe;
use crate::request::{Request, Version};
use crate::response::Response;
use crate::verdict::{CheckResult, undecided};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    Rule(AUTHENTICATION, "token-fits-a-header", "An access_token is not empty and is valid in an Authorization header.", |p| each(p, fits_header)),
    Rule(AUTHENTICATION, "token-v1-opens-v1", "/v1/batches accepts a token from /v1/auth.", |p| accepted(p, Version::V1, Version::V1)),
    Rule(AUTHENTICATION, "token-v2-opens-v2", "/v2/batches accepts a token from /v2/auth.", |p| accepted(p, Version::V2, Version::V2)),
    Rule(decision(1), "token-type-is-bearer", "The token response has token_type bearer.", |p| each(p, |r, body| r.require(body.get("token_type").and_then(Value::as_str) == Some("bearer"), "token_type \"bearer\""))),
    Rule(decision(1), "token-expires-in-whole-seconds", "The token response has expires_in as a whole number of seconds above zero.", |p| each(p, |r, body| r.require(body.get("expires_in").and_then(Value::as_u64) > Some(0), "expires_in as a whole number above zero"))),
    Rule(decision(1), "token-has-no-scope", "The token response has no scope, since none was requested.", |p| each(p, |r, body| r.require(body.get("scope").is_none(), "no field scope"))),
    Rule(decision(2), "token-is-not-cached", "The token response has Cache-Control: no-store and Pragma: no-cache.", |p| each(p, |r, _| { r.require_listed("Cache-Control", &["no-store"])?; r.require_listed("Pragma", &["no-cache"]) })),
    Rule(decision(3), "token-responses-are-alike", "The token responses of both versions have the same fields.", same_fields),
    Rule(decision(3), "token-v1-opens-v2", "/v2/batches accepts a token from /v1/auth.", |p| accepted(p, Version::V1, Version::V2)),
    Rule(decision(3), "token-v2-opens-v1", "/v1/batches accepts a token from /v2/auth.", |p| accepted(p, Version::V2, Version::V1)),
];

fn fits_header(response: &Response, _: &Value) -> CheckResult {
    let token = access_token(response)?;
    let fits = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    response.require(fits, "a token of visible ASCII characters, at least one")
}

fn accepted(probe: &mut Probe, from: Version, to: Version) -> CheckResult {
    let token = probe.token(from)?;
    let query = [("start_date", LONG_AGO), ("end_date", LONG_AGO)];
    probe.fetch(&Request::batches(to).query(&query).bearer(&token))?.require_status(200)
}

fn same_fields(probe: &mut Probe) -> CheckResult {
    let fields = |response: &Response| -> Vec<String> {
        let object = response.json().ok().and_then(Value::as_object);
        object.map(|object| object.keys().cloned().collect()).unwrap_or_default()
    };
    let first = token_response(probe, Version::V1)?;
    let second = token_response(probe, Version::V2)?;
    let expected = fields(&first);
    second.require(fields(&second) == expected, format!("the fields of /v1/auth: {}", expected.join(", ")))
}

fn each(probe: &mut Probe, check: fn(&Response, &Value) -> CheckResult) -> CheckResult {
    both(probe, |probe, version| {
        let response = token_response(probe, version)?;
        check(&response, response.json()?)
    })
}

/// A response with a token. Without one a rule is undecided.
fn token_response(probe: &mut Probe, version: Version) -> CheckResult<Rc<Response>> {
    probe.token(version)?;
    let response = probe.fetch(&probe.auth_request(version))?;
    access_token(&response)
        .map_err(|_| undecided(format!("{} returned a token once, then none", version.auth_path())))?;
    Ok(response)
}
