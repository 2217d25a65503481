//! Token requests with HTTP Basic (decision 004).

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde_json::json;

use crate::http::app::FORM;
use crate::http::*;

const GRANT: &str = "grant_type=client_credentials";
const DIFFERS: &str = "Value error, differs from the Authorization header: send one of the two";

async fn post(app: &TestApp, authorization: &str, form: &str) -> Reply {
    let request = app.request("POST", "/v2/auth").header("authorization", authorization);
    Reply::to(request.header("content-type", FORM).body(form.to_owned())).await
}

fn basic(id: &str, secret: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")))
}

/// Decision 004; RFC 9110 §11.1: the scheme is case-insensitive. Padding is optional.
#[tokio::test]
async fn basic_is_accepted_partly_encoded_in_any_case_and_without_padding() {
    let (app, client, _) = TestApp::signed_in().await;
    let (id, secret) = (client.id.as_str(), client.secret.as_str());
    let unpadded = STANDARD_NO_PAD.encode(format!("{id}:{secret}"));
    for header in [
        basic(&id.replace('_', "%5F"), &secret.replace('-', "%2d").replace('_', "%5f")),
        format!("basic {unpadded}"),
        format!("BASIC {unpadded}"),
    ] {
        let reply = post(&app, &header, GRANT).await;
        assert_eq!((reply.status, &reply.json()["token_type"]), (200, &json!("bearer")), "{header}");
    }
}

/// Decision 004: the form may repeat the credentials. Other schemes are ignored.
#[tokio::test]
async fn the_same_credentials_in_header_and_form_are_accepted() {
    let (app, client, _) = TestApp::signed_in().await;
    let header = basic(&client.id, &client.secret);
    for form in [client.form(), format!("client_id={}&{GRANT}", client.id)] {
        assert_eq!(post(&app, &header, &form).await.status, 200, "{form}");
    }
    assert_eq!(post(&app, "Bearer x", &client.form()).await.status, 200);
}

/// Decisions 004, 005, 014.
#[tokio::test]
async fn different_credentials_in_header_and_form_are_rejected() {
    let (app, client, _) = TestApp::signed_in().await;
    let header = basic(&client.id, &client.secret);
    let differs = |field| invalid("value_error", "body", field, DIFFERS);
    let both = post(&app, &header, &format!("client_id=a&client_secret=b&{GRANT}")).await;
    both.is_error(
        422,
        &json!({
            "detail": [differs("client_id"), differs("client_secret")],
            "error": "invalid_request",
            "error_description": format!("client_id: {DIFFERS}; client_secret: {DIFFERS}"),
        }),
    );
}

/// Decision 005; RFC 6749 §5.2: the challenge names the scheme that was used.
#[tokio::test]
async fn wrong_credentials_with_basic_get_a_basic_challenge() {
    let (app, client, _) = TestApp::signed_in().await;
    for header in [
        "Basic !!!".to_owned(),
        "Basic bm9jb2xvbg==".to_owned(),
        basic("", ""),
        basic(" ", " "),
        basic(&client.id, "wrong"),
        basic("bs_unknown", &client.secret),
    ] {
        let reply = post(&app, &header, GRANT).await;
        reply.is_invalid_client();
        reply.has_headers(&[("www-authenticate", "Basic realm=\"batchscan\", charset=\"UTF-8\"")]);
    }
}
