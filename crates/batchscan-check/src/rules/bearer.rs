//! Who may read batches: the holder of a token, and nobody else.

use super::{ENDPOINTS, Rule, decided, rule};
use crate::answer::Answer;
use crate::ask::{Ask, Version};
use crate::probe::Probe;
use crate::verdict::{Checked, Verdict};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    rule(ENDPOINTS, "batches-v1-need-a-token", "GET /v1/batches without a token is refused.", |p| needs(p, Version::V1)),
    rule(ENDPOINTS, "batches-v2-need-a-token", "GET /v2/batches without a token is refused.", |p| needs(p, Version::V2)),
    rule(ENDPOINTS, "batches-refuse-an-invented-token", "A token that was never issued is refused on both versions.", invented),
    rule(ENDPOINTS, "batches-refuse-credentials-in-place-of-a-token", "Client credentials do not open batches: they buy a token first.", credentials),
    rule(decided(9), "bearer-missing-is-401", "No token is a 401 with a string detail and WWW-Authenticate: Bearer, without an error.", missing),
    rule(decided(9), "bearer-forged-is-401", "A forged token is a 401 with a string detail and WWW-Authenticate: Bearer error=\"invalid_token\".", forged),
    rule(decided(9), "bearer-altered-is-401", "A token with one character changed is refused like a forged one.", altered),
    rule(decided(9), "bearer-malformed-is-401", "An Authorization header that holds no bearer token is a 401 with a string detail.", malformed),
    rule(decided(7), "bearer-before-query", "A bad date without a token is a 401: who is not known learns nothing.", token_first),
];

/// A token that nobody was ever issued.
const FORGED: &str = "conformance-run-invented-this-token";

fn needs(probe: &mut Probe, version: Version) -> Checked {
    probe.ask(&Ask::get(version.batches()))?.must_refuse()
}

fn invented(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        probe.ask(&Ask::get(version.batches()).bearer(FORGED))?.must_refuse()?;
    }
    Ok(())
}

fn credentials(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let ask = Ask::get(version.batches()).basic(&probe.client_id, &probe.client_secret);
        probe.ask(&ask)?.must_refuse()?;
    }
    Ok(())
}

fn missing(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let answer = probe.ask(&Ask::get(version.batches()))?;
        answer.must_be_unauthorized()?;
        let challenge = challenge(&answer)?;
        if challenge.contains("error=") {
            return Err(answer.fail_header("WWW-Authenticate", "no error where no token was sent"));
        }
    }
    Ok(())
}

fn forged(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let answer = probe.ask(&Ask::get(version.batches()).bearer(FORGED))?;
        must_call_invalid(&answer)?;
    }
    Ok(())
}

fn altered(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let token = alter(&probe.token(version)?)
            .ok_or_else(|| Verdict::CannotTell("the token is too short to be altered".to_owned()))?;
        probe.redactor.hide(token.clone(), "[altered token]");
        let answer = probe.ask(&Ask::get(version.batches()).bearer(&token))?;
        must_call_invalid(&answer)?;
    }
    Ok(())
}

fn malformed(probe: &mut Probe) -> Checked {
    for value in ["Bearer", "Token abc", "Bearer a b c"] {
        for version in Version::BOTH {
            let ask = Ask::get(version.batches()).header("Authorization", value);
            let answer = probe.ask(&ask)?;
            answer.must_be_unauthorized()?;
            challenge(&answer)?;
        }
    }
    Ok(())
}

fn token_first(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let ask = Ask::get(version.batches()).query(&[("start_date", "yesterday")]);
        probe.ask(&ask)?.must_be(401)?;
    }
    Ok(())
}

fn must_call_invalid(answer: &Answer) -> Checked {
    answer.must_be_unauthorized()?;
    if challenge(answer)?.contains("error=\"invalid_token\"") {
        return Ok(());
    }
    Err(answer.fail_header("WWW-Authenticate", "WWW-Authenticate: Bearer with error=\"invalid_token\""))
}

fn challenge(answer: &Answer) -> Checked<String> {
    let value = answer.header("WWW-Authenticate").unwrap_or_default();
    let scheme = value.split([' ', ',']).next().unwrap_or_default();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Ok(value);
    }
    Err(answer.fail_header("WWW-Authenticate", "WWW-Authenticate: Bearer"))
}

/// The token with one character in its middle changed. Not at its end: there a base64 character may carry bits that
/// nobody reads.
fn alter(token: &str) -> Option<String> {
    let middle = token.len() / 2;
    let old = token.get(middle..=middle)?;
    let new = if old == "A" { "B" } else { "A" };
    Some(format!("{}{new}{}", &token[..middle], &token[middle + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_altered_token_differs_in_one_character() {
        assert_eq!(alter("abcde").as_deref(), Some("abAde"));
        assert_eq!(alter("abAde").as_deref(), Some("abBde"));
        assert_eq!(alter(""), None);
    }
}
