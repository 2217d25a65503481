//! What an auth request must carry, and how a wrong one is refused.

use serde_json::{Value, json};

use super::{ENDPOINTS, ERRORS, Rule, decided, rule};
use crate::answer::Answer;
use crate::ask::{Ask, Version};
use crate::batches::{GRANT, access_token};
use crate::probe::Probe;
use crate::verdict::{Checked, Verdict};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    rule(ENDPOINTS, "auth-v1-gives-a-token", "POST /v1/auth answers 200 and a JSON object with a string access_token.", |p| gives_token(p, Version::V1)),
    rule(ENDPOINTS, "auth-v2-gives-a-token", "POST /v2/auth answers 200 and a JSON object with a string access_token.", |p| gives_token(p, Version::V2)),
    rule(ERRORS, "auth-wrong-secret-is-401", "A wrong client_secret is a 401 with a string detail.", wrong_secret),
    rule(ERRORS, "auth-wrong-id-is-401", "A wrong client_id is a 401 with a string detail.", wrong_id),
    rule(ERRORS, "auth-missing-client-id-is-422", "An auth request without client_id is a 422 that locates it in the body.", |p| missing(p, "client_id")),
    rule(ERRORS, "auth-missing-client-secret-is-422", "An auth request without client_secret is a 422 that locates it in the body.", |p| missing(p, "client_secret")),
    rule(ERRORS, "auth-missing-grant-type-is-422", "An auth request without grant_type is a 422 that locates it in the body.", |p| missing(p, "grant_type")),
    rule(ERRORS, "auth-other-grant-type-is-422", "A grant_type other than client_credentials is a 422 that locates it in the body.", other_grant),
    rule(ENDPOINTS, "auth-json-body-is-refused", "An auth request with a JSON body in place of a form gets no token.", json_body),
    rule(decided(4), "auth-basic", "Credentials are taken from HTTP Basic too, with only grant_type in the form.", basic),
    rule(decided(4), "auth-basic-percent-encoded", "Basic credentials may be percent-encoded.", basic_encoded),
    rule(decided(4), "auth-basic-and-form-differ-is-422", "Basic and form credentials that differ are a 422.", basic_and_form),
    rule(decided(5), "auth-401-says-invalid-client", "The 401 carries error invalid_client and an error_description beside detail.", |p| says(p, &[("client_secret", WRONG)], "invalid_client")),
    rule(decided(5), "auth-422-says-unsupported-grant-type", "Another grant_type carries error unsupported_grant_type beside detail.", |p| says(p, &[("grant_type", "password")], "unsupported_grant_type")),
    rule(decided(5), "auth-422-says-invalid-request", "A missing field carries error invalid_request beside detail.", |p| says(p, &[("client_id", "")], "invalid_request")),
    rule(decided(6), "auth-ids-cannot-be-probed", "An unknown client and a wrong secret get one and the same 401 body.", same_401),
    rule(decided(7), "auth-shape-before-credentials", "A wrong secret with a wrong grant_type is a 422: the shape is looked at first.", shape_first),
    rule(decided(14), "auth-missing-words", "A missing field is of type missing with the msg Field required.", missing_words),
    rule(decided(14), "auth-grant-words", "Another grant_type is of type literal_error with the msg Input should be 'client_credentials'.", grant_words),
    rule(decided(14), "auth-empty-value-is-missing", "An empty form value is missing.", empty_value),
    rule(decided(15), "auth-json-body-misses-all", "A body that is no form is a 422 with the three fields missing, in the interface's order.", json_misses_all),
    rule(decided(15), "auth-no-body-misses-all", "No body is a 422 with the three fields missing, in the interface's order.", nothing_misses_all),
    rule(decided(16), "auth-repeated-field-is-422", "A form field sent twice is a 422 of type value_error on that field.", repeated),
];

const FIELDS: [&str; 3] = ["client_id", "client_secret", "grant_type"];

/// A secret and an id that nobody was ever issued.
const WRONG: &str = "conformance-run-nobody-has-this";

fn gives_token(probe: &mut Probe, version: Version) -> Checked {
    let answer = probe.ask(&probe.ask_token(version))?;
    access_token(&answer).map(|_| ())
}

fn wrong_secret(probe: &mut Probe) -> Checked {
    both(probe, &[("client_secret", WRONG)], Answer::must_be_unauthorized)
}

fn wrong_id(probe: &mut Probe) -> Checked {
    both(probe, &[("client_id", WRONG)], Answer::must_be_unauthorized)
}

fn other_grant(probe: &mut Probe) -> Checked {
    both(probe, &[("grant_type", "password")], |answer| answer.must_blame("body", "grant_type"))
}

fn missing(probe: &mut Probe, field: &str) -> Checked {
    for version in Version::BOTH {
        let answer = probe.ask(&without(probe, version, field))?;
        answer.must_blame("body", field)?;
    }
    Ok(())
}

fn json_body(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        probe.ask(&as_json(probe, version))?.must_refuse()?;
    }
    Ok(())
}

fn basic(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let ask = Ask::form(version.auth(), &[GRANT]).basic(&probe.client_id, &probe.client_secret);
        let answer = probe.ask(&ask)?;
        access_token(&answer)?;
    }
    Ok(())
}

fn basic_encoded(probe: &mut Probe) -> Checked {
    // Every byte, so that a server which does not decode cannot pass by luck.
    let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let (id, secret) = (encode(&probe.client_id), encode(&probe.client_secret));
    probe.redactor.hide_credentials(&id, &secret);
    let answer = probe.ask(&Ask::form(Version::V2.auth(), &[GRANT]).basic(&id, &secret))?;
    access_token(&answer).map(|_| ())
}

fn basic_and_form(probe: &mut Probe) -> Checked {
    let ask = probe.ask_token(Version::V2).basic(&probe.client_id, WRONG);
    probe.ask(&ask)?.entries().map(|_| ())
}

fn says(probe: &mut Probe, changes: &[(&str, &str)], word: &str) -> Checked {
    both(probe, changes, |answer| {
        answer.must_refuse()?;
        let body = answer.json()?;
        let described = body.get("error_description").is_some_and(Value::is_string);
        let expected = format!("error {word:?} and a string error_description beside detail");
        answer.must(body.get("error").and_then(Value::as_str) == Some(word) && described, expected)
    })
}

fn same_401(probe: &mut Probe) -> Checked {
    let unknown = probe.ask(&changed(probe, Version::V2, &[("client_id", WRONG)]))?;
    let wrong = probe.ask(&changed(probe, Version::V2, &[("client_secret", WRONG)]))?;
    if unknown.status != 401 || wrong.status != 401 {
        return Err(Verdict::CannotTell("wrong credentials are not answered with 401".to_owned()));
    }
    wrong.must(wrong.body == unknown.body, format!("the same as for an unknown client: {}", unknown.came))
}

fn shape_first(probe: &mut Probe) -> Checked {
    both(probe, &[("client_secret", WRONG), ("grant_type", "password")], |answer| answer.must_be(422))
}

fn missing_words(probe: &mut Probe) -> Checked {
    let answer = probe.ask(&without(probe, Version::V2, "client_id"))?;
    answer.must_list("body", &["client_id"], "missing")?;
    says_msg(&answer, "Field required")
}

fn grant_words(probe: &mut Probe) -> Checked {
    both(probe, &[("grant_type", "password")], |answer| {
        answer.must_list("body", &["grant_type"], "literal_error")?;
        says_msg(answer, "Input should be 'client_credentials'")
    })
}

fn empty_value(probe: &mut Probe) -> Checked {
    both(probe, &[("client_secret", "")], |answer| answer.must_list("body", &["client_secret"], "missing"))
}

fn json_misses_all(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        probe.ask(&as_json(probe, version))?.must_list("body", &FIELDS, "missing")?;
    }
    Ok(())
}

fn nothing_misses_all(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let mut ask = Ask::new("POST", version.auth());
        ask.body = Some(Vec::new());
        probe.ask(&ask)?.must_list("body", &FIELDS, "missing")?;
    }
    Ok(())
}

fn repeated(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let mut ask = probe.ask_token(version);
        if let Some(body) = &mut ask.body {
            body.extend_from_slice(b"&grant_type=client_credentials");
        }
        probe.ask(&ask)?.must_list("body", &["grant_type"], "value_error")?;
    }
    Ok(())
}

/// Sends the changed request to both versions and judges both answers.
fn both(probe: &mut Probe, changes: &[(&str, &str)], judge: impl Fn(&Answer) -> Checked) -> Checked {
    for version in Version::BOTH {
        let answer = probe.ask(&changed(probe, version, changes))?;
        judge(&answer)?;
    }
    Ok(())
}

/// The right request with some of its fields changed.
fn changed(probe: &Probe, version: Version, changes: &[(&str, &str)]) -> Ask {
    let mut fields =
        [("client_id", probe.client_id.as_str()), ("client_secret", &probe.client_secret), GRANT];
    for (name, value) in &mut fields {
        if let Some((_, other)) = changes.iter().find(|(changed, _)| changed == name) {
            *value = other;
        }
    }
    Ask::form(version.auth(), &fields)
}

fn without(probe: &Probe, version: Version, field: &str) -> Ask {
    let fields = [("client_id", probe.client_id.as_str()), ("client_secret", &probe.client_secret), GRANT];
    let kept: Vec<(&str, &str)> = fields.into_iter().filter(|(name, _)| *name != field).collect();
    Ask::form(version.auth(), &kept)
}

fn as_json(probe: &Probe, version: Version) -> Ask {
    let body = json!({
        "client_id": probe.client_id, "client_secret": probe.client_secret, "grant_type": GRANT.1,
    });
    Ask::new("POST", version.auth()).body("application/json", body.to_string().into_bytes())
}

fn says_msg(answer: &Answer, msg: &str) -> Checked {
    let said = answer.entries()?.iter().all(|entry| entry.msg == msg);
    answer.must(said, format!("the msg {msg:?}"))
}
