//! The token response: what it holds beside the token, and where the token serves.

use std::rc::Rc;

use serde_json::Value;

use super::{AUTHENTICATION, Rule, decided, rule};
use crate::answer::Answer;
use crate::ask::{Ask, Version};
use crate::batches::access_token;
use crate::probe::Probe;
use crate::verdict::{Checked, Verdict};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    rule(AUTHENTICATION, "token-fits-a-header", "An access_token is not empty and can stand in an Authorization header.", fits_header),
    rule(AUTHENTICATION, "token-v1-opens-v1", "A token of /v1/auth opens /v1/batches.", |p| opens(p, Version::V1, Version::V1)),
    rule(AUTHENTICATION, "token-v2-opens-v2", "A token of /v2/auth opens /v2/batches.", |p| opens(p, Version::V2, Version::V2)),
    rule(decided(1), "token-type-is-bearer", "The token response carries token_type bearer.", token_type),
    rule(decided(1), "token-expires-in-whole-seconds", "The token response carries expires_in as a whole number of seconds above zero.", expires_in),
    rule(decided(1), "token-has-no-scope", "The token response carries no scope that nobody asked for.", no_scope),
    rule(decided(2), "token-is-not-cached", "The token response has Cache-Control: no-store and Pragma: no-cache.", not_cached),
    rule(decided(3), "token-responses-are-alike", "The token responses of both versions have the same fields.", alike),
    rule(decided(3), "token-v1-opens-v2", "A token of /v1/auth opens /v2/batches.", |p| opens(p, Version::V1, Version::V2)),
    rule(decided(3), "token-v2-opens-v1", "A token of /v2/auth opens /v1/batches.", |p| opens(p, Version::V2, Version::V1)),
];

/// A moment before any batch: questions about it have small answers.
const LONG_AGO: [(&str, &str); 2] =
    [("start_date", "1970-01-01T00:00:00Z"), ("end_date", "1970-01-01T00:00:00Z")];

fn fits_header(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let answer = token_response(probe, version)?;
        let token = access_token(&answer)?;
        let fits = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        answer.must(fits, "a token of visible ASCII characters, at least one")?;
    }
    Ok(())
}

fn opens(probe: &mut Probe, from: Version, to: Version) -> Checked {
    let token = probe.token(from)?;
    probe.ask(&Ask::get(to.batches()).query(&LONG_AGO).bearer(&token))?.must_be(200)
}

fn token_type(probe: &mut Probe) -> Checked {
    each(probe, |answer, body| {
        answer.must(body.get("token_type").and_then(Value::as_str) == Some("bearer"), "token_type \"bearer\"")
    })
}

fn expires_in(probe: &mut Probe) -> Checked {
    each(probe, |answer, body| {
        let secs = body.get("expires_in").and_then(Value::as_u64);
        answer.must(secs.is_some_and(|secs| secs > 0), "expires_in as a whole number above zero")
    })
}

fn no_scope(probe: &mut Probe) -> Checked {
    each(probe, |answer, body| answer.must(body.get("scope").is_none(), "no field scope"))
}

fn not_cached(probe: &mut Probe) -> Checked {
    each(probe, |answer, _| {
        if !answer.header_lists("Cache-Control", "no-store") {
            return Err(answer.fail_header("Cache-Control", "Cache-Control: no-store"));
        }
        if !answer.header_lists("Pragma", "no-cache") {
            return Err(answer.fail_header("Pragma", "Pragma: no-cache"));
        }
        Ok(())
    })
}

fn alike(probe: &mut Probe) -> Checked {
    let fields = |answer: &Answer| -> Vec<String> {
        let object = answer.json().ok().and_then(Value::as_object);
        object.map(|object| object.keys().cloned().collect()).unwrap_or_default()
    };
    let first = token_response(probe, Version::V1)?;
    let second = token_response(probe, Version::V2)?;
    let expected = fields(&first);
    second.must(fields(&second) == expected, format!("the fields of /v1/auth: {}", expected.join(", ")))
}

fn each(probe: &mut Probe, judge: impl Fn(&Answer, &Value) -> Checked) -> Checked {
    for version in Version::BOTH {
        let answer = token_response(probe, version)?;
        judge(&answer, answer.json()?)?;
    }
    Ok(())
}

/// An answer that holds a token; without one there is nothing to look at.
fn token_response(probe: &mut Probe, version: Version) -> Checked<Rc<Answer>> {
    probe.token(version)?;
    let answer = probe.ask(&probe.ask_token(version))?;
    match access_token(&answer) {
        Ok(_) => Ok(answer),
        Err(_) => Err(Verdict::CannotTell(format!("{} gave a token once and then none", version.auth()))),
    }
}
