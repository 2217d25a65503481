//! Token requests with a form: successes, 401, 413 and 422.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::http::app::FORM;
use crate::http::*;

const UNSUPPORTED: &str = "Input should be 'client_credentials'";

/// The body of a 422 (decisions 005, 014).
#[track_caller]
fn is_invalid_form(reply: &Reply, error: &str, errors: &[Value]) {
    let descriptions: Vec<String> = errors
        .iter()
        .map(|error| format!("{}: {}", error["loc"][1].as_str().unwrap(), error["msg"].as_str().unwrap()))
        .collect();
    is_invalid_with(reply, error, errors, &descriptions.join("; "));
}

#[track_caller]
fn is_invalid_with(reply: &Reply, error: &str, errors: &[Value], description: &str) {
    let body = json!({ "detail": errors, "error": error, "error_description": description });
    reply.is_error(422, &body);
    reply.has_headers(&[("pragma", "no-cache")]);
}

fn all_missing() -> [Value; 3] {
    [missing("client_id"), missing("client_secret"), missing("grant_type")]
}

/// Contract section 4; decisions 005, 014, 016: one entry per field, in the contract's order.
#[tokio::test]
async fn invalid_forms_are_422_with_one_entry_per_field() {
    let (app, client, _) = TestApp::signed_in().await;
    let form = client.form();
    let grant = invalid("literal_error", "body", "grant_type", UNSUPPORTED);
    let reply = app.post_form("/v1/auth", "grant_type=password&client_secret=a&client_secret=b").await;
    let errors = [missing("client_id"), repeated("body", "client_secret"), grant.clone()];
    is_invalid_form(&reply, "invalid_request", &errors);
    for name in ["password", "CLIENT_CREDENTIALS", "client_credentials%20", "authorization_code"] {
        let form = form.replace("client_credentials", name);
        let reply = app.post_form("/v1/auth", form).await;
        is_invalid_form(&reply, "unsupported_grant_type", std::slice::from_ref(&grant));
    }
}

/// Decision 015; contract section 4: credentials are read from the form body only.
#[tokio::test]
async fn a_body_that_is_not_a_form_is_three_missing_fields() {
    let (app, client, _) = TestApp::signed_in().await;
    let post = |path: &str| app.request("POST", path);
    let multipart = "multipart/form-data; boundary=x";
    for request in [
        post("/v2/auth").body(client.form()),
        post("/v2/auth").header("content-type", multipart).body(client.form()),
        post("/v2/auth").header("content-type", "application/json").body("1".repeat(4_000_000)),
    ] {
        let description = "client_id: Field required; client_secret: Field required; grant_type: Field required; \
                           send a form (application/x-www-form-urlencoded)";
        is_invalid_with(&Reply::to(request).await, "invalid_request", &all_missing(), description);
    }
    let in_query = post(&format!("/v1/auth?{}", client.form())).header("content-type", FORM);
    is_invalid_form(&Reply::to(in_query).await, "invalid_request", &all_missing());
}

/// Contract section 4: media types are case-insensitive and may have parameters.
#[tokio::test]
async fn the_content_type_may_have_a_charset_or_capitals() {
    let (app, client, _) = TestApp::signed_in().await;
    for kind in ["application/x-www-form-urlencoded; charset=UTF-8", "Application/X-WWW-Form-URLencoded"] {
        let request = app.request("POST", "/v1/auth").header("content-type", kind).body(client.form());
        assert_eq!(Reply::to(request).await.status, 200, "{kind}");
    }
}

/// Contract sections 4, 5 and 7; decisions 005, 006.
#[tokio::test]
async fn an_unknown_client_a_wrong_secret_and_a_revoked_credential_get_the_same_response() {
    let (app, client, _) = TestApp::signed_in().await;
    let other = app.org("Other").await;
    let revoked = app.credential("Nursery", None).await;
    app.revoke(&revoked).await;
    let lasting_headers = |reply: &Reply| -> BTreeMap<String, String> {
        let headers = reply.headers.iter();
        let named = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
        named.filter(|(name, _)| name != "x-request-id" && name != "date").collect()
    };
    let mut seen = Vec::new();
    for wrong in [
        Client { secret: "wrong".into(), ..client.clone() },
        Client { id: "bs_unknown".into(), ..client.clone() },
        Client { id: "not an id %26 never one".into(), ..client.clone() },
        Client { secret: client.secret.to_lowercase(), ..client.clone() },
        Client { secret: other.secret, ..client },
        revoked,
    ] {
        let reply = app.post_form("/v1/auth", wrong.form()).await;
        reply.is_invalid_client();
        assert_eq!(reply.header("www-authenticate"), None);
        seen.push((lasting_headers(&reply), reply.body));
    }
    assert!(seen.iter().all(|response| *response == seen[0]), "{seen:?}");
}

/// Decision 027.
#[tokio::test]
async fn a_form_above_16_kib_is_a_413() {
    let (app, client, _) = TestApp::signed_in().await;
    let form = format!("{}&pad=", client.form());
    let padded = |bytes: usize| format!("{form}{}", "x".repeat(bytes - form.len()));
    assert_eq!(app.post_form("/v1/auth", padded(16 * 1024)).await.status, 200);
    for bytes in [16 * 1024 + 1, 100_000, 4_000_000] {
        app.post_form("/v1/auth", padded(bytes)).await.is_detail(413, "The request body is too large");
    }
    let chunks = (0..64).map(|_| Ok::<_, std::io::Error>("x".repeat(1_000)));
    let chunked = reqwest::Body::wrap_stream(futures_util::stream::iter(chunks));
    let request = app.request("POST", "/v2/auth").header("content-type", FORM).body(chunked);
    Reply::to(request).await.is_detail(413, "The request body is too large");
}
