//! What an auth request must contain, and how invalid ones are rejected.

use reqwest::Method;
use serde_json::{Value, json};

use super::rule::{ENDPOINTS, ERRORS, Rule, both, decision};
use crate::listing::access_token;
use crate::probe::{GRANT, Probe};
use crate::request::{Request, Version};
use crate::response::Response;
use crate::verdict::{CheckResult, undecided};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    Rule(ENDPOINTS, "auth-v1-gives-a-token", "POST /v1/auth returns 200 and a JSON object with a string access_token.", |p| returns_token(p, Version::V1)),
    Rule(ENDPOINTS, "auth-v2-gives-a-token", "POST /v2/auth returns 200 and a JSON object with a string access_token.", |p| returns_token(p, Version::V2)),
    Rule(ERRORS, "auth-wrong-secret-is-401", "A wrong client_secret is a 401 with a string detail.", |p| with(p, &[("client_secret", Some(WRONG))], Response::require_unauthorized)),
    Rule(ERRORS, "auth-wrong-id-is-401", "A wrong client_id is a 401 with a string detail.", |p| with(p, &[("client_id", Some(WRONG))], Response::require_unauthorized)),
    Rule(ERRORS, "auth-missing-client-id-is-422", "An auth request without client_id is a 422 that locates it in the body.", |p| missing(p, "client_id")),
    Rule(ERRORS, "auth-missing-client-secret-is-422", "An auth request without client_secret is a 422 that locates it in the body.", |p| missing(p, "client_secret")),
    Rule(ERRORS, "auth-missing-grant-type-is-422", "An auth request without grant_type is a 422 that locates it in the body.", |p| missing(p, "grant_type")),
    Rule(ERRORS, "auth-other-grant-type-is-422", "A grant_type other than client_credentials is a 422 that locates it in the body.", |p| with(p, &[OTHER_GRANT], |r| r.require_error_at("body", "grant_type"))),
    Rule(ENDPOINTS, "auth-json-body-is-refused", "An auth request with a JSON body instead of a form gets no token.", |p| json_body(p, Response::require_client_error)),
    Rule(decision(4), "auth-basic", "Credentials may be sent with HTTP Basic, with only grant_type in the form.", basic),
    Rule(decision(4), "auth-basic-percent-encoded", "Basic credentials may be percent-encoded.", basic_encoded),
    Rule(decision(4), "auth-basic-and-form-differ-is-422", "Basic and form credentials that differ are a 422.", basic_and_form),
    Rule(decision(5), "auth-401-says-invalid-client", "The 401 has error invalid_client and an error_description in addition to detail.", |p| with(p, &[("client_secret", Some(WRONG))], |r| has_error(r, "invalid_client"))),
    Rule(decision(5), "auth-422-says-unsupported-grant-type", "The 422 for another grant_type has error unsupported_grant_type in addition to detail.", |p| with(p, &[OTHER_GRANT], |r| has_error(r, "unsupported_grant_type"))),
    Rule(decision(5), "auth-422-says-invalid-request", "The 422 for a missing field has error invalid_request in addition to detail.", |p| with(p, &[("client_id", Some(""))], |r| has_error(r, "invalid_request"))),
    Rule(decision(6), "auth-ids-cannot-be-probed", "An unknown client and a wrong secret get the same 401 body.", same_401),
    Rule(decision(7), "auth-shape-before-credentials", "A wrong secret with a wrong grant_type is a 422: fields are validated before credentials.", |p| with(p, &[("client_secret", Some(WRONG)), OTHER_GRANT], |r| r.require_status(422))),
    Rule(decision(14), "auth-missing-words", "A missing field is of type missing with the msg Field required.", |p| with(p, &[("client_id", None)], |r| { r.require_errors("body", &["client_id"], "missing")?; r.require_msg("Field required", true) })),
    Rule(decision(14), "auth-grant-words", "Another grant_type is of type literal_error with the msg Input should be 'client_credentials'.", |p| with(p, &[OTHER_GRANT], |r| { r.require_errors("body", &["grant_type"], "literal_error")?; r.require_msg("Input should be 'client_credentials'", true) })),
    Rule(decision(14), "auth-empty-value-is-missing", "An empty form value is missing.", |p| with(p, &[("client_secret", Some(""))], |r| r.require_errors("body", &["client_secret"], "missing"))),
    Rule(decision(15), "auth-json-body-misses-all", "A body that is not a form is a 422 with all three fields missing, in the order of the API.", |p| json_body(p, |r| r.require_errors("body", &FIELDS, "missing"))),
    Rule(decision(15), "auth-no-body-misses-all", "An empty body is a 422 with all three fields missing, in the order of the API.", no_body),
    Rule(decision(16), "auth-repeated-field-is-422", "A repeated form field is a 422 of type value_error on that field.", repeated_field),
];

const FIELDS: [&str; 3] = ["client_id", "client_secret", "grant_type"];

/// A form field and its new value, or `None` to leave it out.
type Change<'a> = (&'a str, Option<&'a str>);

const OTHER_GRANT: Change<'_> = ("grant_type", Some("password"));

/// A secret and an id that no client has.
const WRONG: &str = "conformance-run-wrong-credential";

fn returns_token(probe: &mut Probe, version: Version) -> CheckResult {
    access_token(&*probe.fetch(&probe.auth_request(version))?).map(drop)
}

fn missing(probe: &mut Probe, field: &str) -> CheckResult {
    with(probe, &[(field, None)], |response| response.require_error_at("body", field))
}

fn json_body(probe: &mut Probe, check: fn(&Response) -> CheckResult) -> CheckResult {
    let body = json!({
        "client_id": probe.client_id, "client_secret": probe.client_secret, "grant_type": GRANT.1,
    });
    both(probe, |probe, version| {
        let request = Request::new(Method::POST, version.auth_path());
        check(&*probe.fetch(&request.body("application/json", body.to_string()))?)
    })
}

fn basic(probe: &mut Probe) -> CheckResult {
    both(probe, |probe, version| {
        let form = Request::form(version.auth_path(), &[GRANT]);
        let request = form.basic(&probe.client_id, &probe.client_secret);
        access_token(&*probe.fetch(&request)?).map(drop)
    })
}

fn basic_encoded(probe: &mut Probe) -> CheckResult {
    // Every byte, so that a server that does not decode cannot pass by chance.
    let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let (id, secret) = (encode(&probe.client_id), encode(&probe.client_secret));
    probe.redactor.hide_credentials(&id, &secret);
    let request = Request::form(Version::V2.auth_path(), &[GRANT]).basic(&id, &secret);
    access_token(&*probe.fetch(&request)?).map(drop)
}

fn basic_and_form(probe: &mut Probe) -> CheckResult {
    let request = probe.auth_request(Version::V2).basic(&probe.client_id, WRONG);
    probe.fetch(&request)?.validation_errors().map(drop)
}

fn has_error(response: &Response, error: &str) -> CheckResult {
    response.require_client_error()?;
    let body = response.json()?;
    let has_description = body.get("error_description").is_some_and(Value::is_string);
    let passes = body.get("error").and_then(Value::as_str) == Some(error) && has_description;
    response.require(passes, format!("error {error:?} and a string error_description"))
}

fn same_401(probe: &mut Probe) -> CheckResult {
    let unknown = probe.fetch(&form_with(probe, Version::V2, &[("client_id", Some(WRONG))]))?;
    let wrong = probe.fetch(&form_with(probe, Version::V2, &[("client_secret", Some(WRONG))]))?;
    if unknown.status != 401 || wrong.status != 401 {
        return Err(undecided("wrong credentials are not a 401"));
    }
    wrong.require(wrong.body == unknown.body, format!("the same as for an unknown client: {}", unknown.shown))
}

fn no_body(probe: &mut Probe) -> CheckResult {
    both(probe, |probe, version| {
        let response = probe.fetch(&Request::empty_post(version.auth_path()))?;
        response.require_errors("body", &FIELDS, "missing")
    })
}

fn repeated_field(probe: &mut Probe) -> CheckResult {
    both(probe, |probe, version| {
        let mut request = probe.auth_request(version);
        request.body.extend_from_slice(b"&grant_type=client_credentials");
        probe.fetch(&request)?.require_errors("body", &["grant_type"], "value_error")
    })
}

/// Checks the response of both versions to a form with changes.
fn with(probe: &mut Probe, changes: &[Change<'_>], check: impl Fn(&Response) -> CheckResult) -> CheckResult {
    both(probe, |probe, version| check(&*probe.fetch(&form_with(probe, version, changes))?))
}

/// The valid form with changes.
fn form_with(probe: &Probe, version: Version, changes: &[Change<'_>]) -> Request {
    let fields = [("client_id", probe.client_id.as_str()), ("client_secret", &probe.client_secret), GRANT];
    let changed = fields.into_iter().filter_map(|(name, value)| {
        let change = changes.iter().find(|(changed, _)| *changed == name);
        Some((name, change.map_or(Some(value), |(_, new)| *new)?))
    });
    Request::form(version.auth_path(), &changed.collect::<Vec<_>>())
}
