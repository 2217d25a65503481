//! Tokens by HTTP Basic (decision 004).

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde_json::json;

use crate::http::app::{Client, TestApp};
use crate::http::reply::{Reply, fault, missing, wrong_credentials};

const GRANT: &str = "grant_type=client_credentials";
const DIFFERS: &str = "Value error, differs from the Authorization header: send one of the two";

async fn app_and_client() -> (TestApp, Client) {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    (app, client)
}

async fn post(app: &TestApp, authorization: &str, form: &str) -> Reply {
    let request = app.request("POST", "/v2/auth").header("authorization", authorization);
    Reply::to(request.header("content-type", "application/x-www-form-urlencoded").body(form.to_owned())).await
}

fn basic(id: &str, secret: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")))
}

/// Every byte as `%XX`: what a client that encodes without need sends.
fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Decision 004.
#[tokio::test]
async fn basic_stands_in_for_the_form_fields() {
    let (app, client) = app_and_client().await;
    let reply = post(&app, &basic(&client.id, &client.secret), GRANT).await;
    assert_eq!((reply.status, &reply.json()["token_type"]), (200, &json!("bearer")));
}

/// Decision 004.
#[tokio::test]
async fn basic_is_taken_raw_and_percent_encoded() {
    let (app, client) = app_and_client().await;
    for header in [
        basic(&client.id, &client.secret),
        basic(&percent(&client.id), &percent(&client.secret)),
        basic(&client.id.replace('_', "%5F"), &client.secret.replace('-', "%2d").replace('_', "%5f")),
    ] {
        assert_eq!(post(&app, &header, GRANT).await.status, 200, "{header}");
    }
}

/// RFC 9110 §11.1: the name of a scheme is read in any case. Padding is not insisted on.
#[tokio::test]
async fn basic_is_read_in_any_case_and_without_padding() {
    let (app, client) = app_and_client().await;
    let pair = STANDARD_NO_PAD.encode(format!("{}:{}", client.id, client.secret));
    for scheme in ["basic", "BASIC"] {
        assert_eq!(post(&app, &format!("{scheme} {pair}"), GRANT).await.status, 200, "{scheme}");
    }
}

/// Decision 004.
#[tokio::test]
async fn the_same_credentials_in_both_places_are_fine() {
    let (app, client) = app_and_client().await;
    let header = basic(&client.id, &client.secret);
    for form in [client.form(), format!("client_id={}&{GRANT}", client.id)] {
        assert_eq!(post(&app, &header, &form).await.status, 200, "{form}");
    }
}

/// Decisions 004, 005, 014.
#[tokio::test]
async fn different_credentials_in_both_places_are_refused() {
    let (app, client) = app_and_client().await;
    let header = basic(&client.id, &client.secret);
    let differs = |field| fault("value_error", "body", field, DIFFERS);
    let told = |field| format!("{field}: {DIFFERS}");
    let one = post(&app, &header, &client.form().replace("client_secret=", "client_secret=x")).await;
    let body = json!({
        "detail": [differs("client_secret")],
        "error": "invalid_request", "error_description": told("client_secret"),
    });
    one.is_error(422, &body);
    let both = post(&app, &header, &format!("client_id=a&client_secret=b&{GRANT}")).await;
    let body = json!({
        "detail": [differs("client_id"), differs("client_secret")],
        "error": "invalid_request",
        "error_description": format!("{}; {}", told("client_id"), told("client_secret")),
    });
    both.is_error(422, &body);
}

/// Decisions 004, 014.
#[tokio::test]
async fn basic_does_not_stand_in_for_the_grant_type() {
    let (app, client) = app_and_client().await;
    let reply = post(&app, &basic(&client.id, &client.secret), "").await;
    let body = json!({
        "detail": [missing("grant_type")],
        "error": "invalid_request", "error_description": "grant_type: Field required",
    });
    reply.is_error(422, &body);
}

/// Decision 005; RFC 6749 §5.2: a client that came by Basic is told that scheme.
#[tokio::test]
async fn wrong_credentials_by_basic_are_answered_with_that_scheme() {
    let (app, client) = app_and_client().await;
    let nobody = ["Basic !!!".to_owned(), "Basic bm9jb2xvbg==".to_owned(), basic("", ""), basic(" ", " ")];
    for header in nobody.into_iter().chain([basic(&client.id, "wrong"), basic("bs_nobody", &client.secret)]) {
        let reply = post(&app, &header, GRANT).await;
        reply.is_error(401, &wrong_credentials());
        let challenge = reply.header("www-authenticate");
        assert_eq!(challenge.as_deref(), Some("Basic realm=\"batchscan\", charset=\"UTF-8\""), "{header}");
    }
}

/// Decision 004: only Basic carries credentials.
#[tokio::test]
async fn another_scheme_on_the_auth_endpoint_is_not_looked_at() {
    let (app, client) = app_and_client().await;
    assert_eq!(post(&app, "Bearer x", &client.form()).await.status, 200);
}
