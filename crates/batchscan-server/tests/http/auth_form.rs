//! Tokens by form: what is asked for, what comes back, and what a 422 says.

use serde_json::{Value, json};

use crate::http::app::{Client, TestApp};
use crate::http::reply::{Reply, fault, missing, repeated};

const NOT_CLIENT_CREDENTIALS: &str = "Input should be 'client_credentials'";

async fn app_and_client() -> (TestApp, Client) {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    (app, client)
}

/// The body of a 422 of the token endpoint (decisions 005, 014).
#[track_caller]
fn is_invalid_form(reply: &Reply, error: &str, faults: &[Value]) {
    let told: Vec<String> = faults
        .iter()
        .map(|fault| format!("{}: {}", fault["loc"][1].as_str().unwrap(), fault["msg"].as_str().unwrap()))
        .collect();
    reply.is_error(422, &json!({ "detail": faults, "error": error, "error_description": told.join("; ") }));
    assert_eq!(reply.header("pragma").as_deref(), Some("no-cache"));
}

fn all_missing() -> [Value; 3] {
    [missing("client_id"), missing("client_secret"), missing("grant_type")]
}

/// Interface sections 4 and 5; decisions 001, 008.
#[tokio::test]
async fn a_right_form_gets_a_bearer_token_of_one_hour_and_nothing_else() {
    let (app, client) = app_and_client().await;
    let reply = app.post_form("/v1/auth", client.form()).await;
    let body = reply.json();
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type").as_deref(), Some("application/json"));
    let token = body["access_token"].as_str().unwrap();
    assert_eq!(body, json!({ "access_token": token, "token_type": "bearer", "expires_in": 3600 }));
    assert_eq!(app.get("/v1/batches", token).await.status, 200);
}

/// Decision 001.
#[tokio::test]
async fn no_scope_is_granted_whatever_is_asked() {
    let (app, client) = app_and_client().await;
    let body = app.post_form("/v2/auth", format!("{}&scope=read", client.form())).await.json();
    assert!(body["access_token"].is_string() && body.get("scope").is_none());
}

/// Decision 002.
#[tokio::test]
async fn a_token_response_is_not_cached() {
    let (app, client) = app_and_client().await;
    let reply = app.post_form("/v2/auth", client.form()).await;
    assert_eq!(reply.header("cache-control").as_deref(), Some("no-store"));
    assert_eq!(reply.header("pragma").as_deref(), Some("no-cache"));
}

/// Decision 003.
#[tokio::test]
async fn the_auth_of_both_versions_is_one_and_its_token_serves_on_both() {
    let (app, client) = app_and_client().await;
    let [one, two] =
        [app.post_form("/v1/auth", client.form()).await, app.post_form("/v2/auth", client.form()).await];
    assert_eq!(one.json(), two.json());
    let token = one.json()["access_token"].as_str().unwrap().to_owned();
    for path in ["/v1/batches", "/v2/batches"] {
        assert_eq!(app.get(path, &token).await.status, 200, "{path}");
    }
    for form in ["", "grant_type=x", "client_id=a&client_secret=b&grant_type=client_credentials"] {
        let [one, two] = [app.post_form("/v1/auth", form).await, app.post_form("/v2/auth", form).await];
        assert_eq!((one.status, one.json()), (two.status, two.json()), "{form}");
    }
}

/// Decision 008.
#[tokio::test]
async fn an_operator_sets_how_long_tokens_live() {
    let config = batchscan_server::config::Config { token_ttl_secs: 90, ..Default::default() };
    let app = TestApp::with(config).await;
    let client = app.org("Nursery").await;
    assert_eq!(app.post_form("/v1/auth", client.form()).await.json()["expires_in"], 90);
}

/// Interface section 4; decisions 005, 014.
#[tokio::test]
async fn each_missing_field_is_named() {
    let (app, client) = app_and_client().await;
    for field in ["client_id", "client_secret", "grant_type"] {
        let form = client.form();
        let rest: Vec<&str> = form.split('&').filter(|pair| !pair.starts_with(field)).collect();
        let reply = app.post_form("/v1/auth", rest.join("&")).await;
        is_invalid_form(&reply, "invalid_request", &[missing(field)]);
    }
}

/// Decision 014.
#[tokio::test]
async fn an_empty_value_is_a_missing_one() {
    let (app, _) = app_and_client().await;
    let reply = app.post_form("/v2/auth", "client_id=&client_secret=&grant_type=").await;
    is_invalid_form(&reply, "invalid_request", &all_missing());
}

/// Interface section 4; decisions 005, 014.
#[tokio::test]
async fn another_grant_type_is_unsupported() {
    let (app, client) = app_and_client().await;
    for grant in ["password", "CLIENT_CREDENTIALS", "client_credentials%20", "authorization_code"] {
        let form = client.form().replace("client_credentials", grant);
        let reply = app.post_form("/v1/auth", form).await;
        let fault = fault("literal_error", "body", "grant_type", NOT_CLIENT_CREDENTIALS);
        is_invalid_form(&reply, "unsupported_grant_type", &[fault]);
    }
}

/// Decision 014: one entry for each field at fault, in the order the interface lists the fields.
#[tokio::test]
async fn all_faults_of_a_form_are_told_at_once_and_in_order() {
    let (app, _) = app_and_client().await;
    let reply = app.post_form("/v1/auth", "grant_type=password&client_secret=a&client_secret=b").await;
    let grant = fault("literal_error", "body", "grant_type", NOT_CLIENT_CREDENTIALS);
    let faults = [missing("client_id"), repeated("body", "client_secret"), grant];
    is_invalid_form(&reply, "invalid_request", &faults);
}

/// Decision 015.
#[tokio::test]
async fn a_json_body_is_three_missing_fields() {
    let (app, client) = app_and_client().await;
    let json =
        json!({ "client_id": client.id, "client_secret": client.secret, "grant_type": "client_credentials" });
    let reply = Reply::to(app.request("POST", "/v1/auth").json(&json)).await;
    is_invalid_form(&reply, "invalid_request", &all_missing());
}

/// Decision 015.
#[tokio::test]
async fn no_body_is_three_missing_fields() {
    let (app, _) = app_and_client().await;
    let bare = Reply::to(app.request("POST", "/v1/auth")).await;
    is_invalid_form(&bare, "invalid_request", &all_missing());
    let empty = app.post_form("/v1/auth", "").await;
    is_invalid_form(&empty, "invalid_request", &all_missing());
}

/// Decision 015.
#[tokio::test]
async fn a_form_that_is_not_said_to_be_one_is_three_missing_fields() {
    let (app, client) = app_and_client().await;
    let reply = Reply::to(app.request("POST", "/v2/auth").body(client.form())).await;
    is_invalid_form(&reply, "invalid_request", &all_missing());
    let kind = "multipart/form-data; boundary=x";
    let other =
        Reply::to(app.request("POST", "/v2/auth").header("content-type", kind).body(client.form())).await;
    is_invalid_form(&other, "invalid_request", &all_missing());
}

/// Interface section 4: form-encoded. The name of a media type is read in any case, its parameters are not needed.
#[tokio::test]
async fn a_charset_or_capitals_in_the_content_type_do_no_harm() {
    let (app, client) = app_and_client().await;
    for kind in ["application/x-www-form-urlencoded; charset=UTF-8", "Application/X-WWW-Form-URLencoded"] {
        let request = app.request("POST", "/v1/auth").header("content-type", kind).body(client.form());
        assert_eq!(Reply::to(request).await.status, 200, "{kind}");
    }
}

/// Decision 016.
#[tokio::test]
async fn a_repeated_form_field_is_refused_even_with_the_same_value() {
    let (app, client) = app_and_client().await;
    for pair in client.form().split('&') {
        let field = pair.split('=').next().unwrap();
        let reply = app.post_form("/v1/auth", format!("{}&{pair}", client.form())).await;
        is_invalid_form(&reply, "invalid_request", &[repeated("body", field)]);
    }
}

/// Decision 014: never `input`, which would echo secrets.
#[tokio::test]
async fn a_422_never_echoes_what_was_sent() {
    let (app, client) = app_and_client().await;
    let form = format!("client_id={}&client_secret={}&grant_type=hunter2", client.id, client.secret);
    let reply = app.post_form("/v1/auth", form).await;
    assert_eq!(reply.status, 422);
    for sent in [client.id.as_str(), client.secret.as_str(), "hunter2", "input"] {
        assert!(!reply.text().contains(&format!("\"{sent}")), "{}", reply.text());
    }
}

/// Interface section 4: the credentials go into the body. In a query they would end up in logs.
#[tokio::test]
async fn credentials_in_the_query_are_not_looked_at() {
    let (app, client) = app_and_client().await;
    let reply = app.post_form(&format!("/v1/auth?{}", client.form()), "").await;
    is_invalid_form(&reply, "invalid_request", &all_missing());
}
