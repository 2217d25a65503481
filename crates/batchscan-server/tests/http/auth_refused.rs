//! Credentials that are wrong, and forms that are too much.

use std::collections::BTreeMap;

use serde_json::json;

use crate::http::app::{Client, TestApp};
use crate::http::reply::{Reply, wrong_credentials};

/// All headers but those that differ between any two answers.
fn lasting_headers(reply: &Reply) -> BTreeMap<String, String> {
    let named =
        reply.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    named.filter(|(name, _)| name != "x-request-id" && name != "date").collect()
}

async fn assert_refused(app: &TestApp, client: &Client) {
    let reply = app.post_form("/v1/auth", client.form()).await;
    reply.is_error(401, &wrong_credentials());
}

/// Interface sections 4 and 7; decisions 005, 006.
#[tokio::test]
async fn an_unknown_client_and_a_wrong_secret_cannot_be_told_apart() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let dead = app.credential("Nursery", None).await;
    app.revoke(&dead).await;
    let wrong = [
        Client { secret: "wrong".into(), ..client.clone() },
        Client { id: "bs_nobody".into(), ..client.clone() },
        Client { id: "not an id %26 never one".into(), ..client.clone() },
        Client { secret: client.secret.to_lowercase(), ..client.clone() },
        dead,
    ];
    let mut seen = Vec::new();
    for wrong in &wrong {
        let reply = app.post_form("/v1/auth", wrong.form()).await;
        reply.is_error(401, &wrong_credentials());
        assert_eq!(reply.header("www-authenticate"), None);
        seen.push((lasting_headers(&reply), reply.body));
    }
    assert!(seen.iter().all(|answer| *answer == seen[0]), "{seen:?}");
}

/// Interface section 7: `detail` of a 401 is a string.
#[tokio::test]
async fn the_detail_of_a_401_is_a_string() {
    let app = TestApp::start().await;
    let reply = app.post_form("/v2/auth", "client_id=a&client_secret=b&grant_type=client_credentials").await;
    assert!(reply.status == 401 && reply.json()["detail"].is_string());
}

/// Interface section 5: the credentials of one organisation do not open with the secret of another.
#[tokio::test]
async fn ids_and_secrets_belong_together() {
    let app = TestApp::start().await;
    let (one, two) = (app.org("One").await, app.org("Two").await);
    assert_refused(&app, &Client { secret: two.secret.clone(), ..one.clone() }).await;
    assert_refused(&app, &Client { secret: one.secret, ..two }).await;
}

/// Decision 027.
#[tokio::test]
async fn a_form_of_more_than_16_kib_is_too_large() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let padded = |bytes: usize| {
        let form = format!("{}&pad=", client.form());
        format!("{form}{}", "x".repeat(bytes - form.len()))
    };
    assert_eq!(app.post_form("/v1/auth", padded(16 * 1024)).await.status, 200);
    for bytes in [16 * 1024 + 1, 100_000, 4_000_000] {
        let reply = app.post_form("/v1/auth", padded(bytes)).await;
        reply.is_error(413, &json!({ "detail": "The request body is too large" }));
    }
}

/// Decision 027: also where the length is not announced.
#[tokio::test]
async fn a_chunked_form_of_more_than_16_kib_is_too_large() {
    let app = TestApp::start().await;
    let chunks = (0..64).map(|_| Ok::<_, std::io::Error>("x".repeat(1_000)));
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(chunks));
    let request = app.request("POST", "/v2/auth").header("content-type", "application/x-www-form-urlencoded");
    let reply = Reply::to(request.body(body)).await;
    reply.is_error(413, &json!({ "detail": "The request body is too large" }));
}

/// Decision 015: what is no form is not read, however long it is.
#[tokio::test]
async fn a_long_body_that_is_no_form_is_answered_too() {
    let app = TestApp::start().await;
    let request = app.request("POST", "/v2/auth").header("content-type", "application/json");
    let reply = Reply::to(request.body("1".repeat(4_000_000))).await;
    assert_eq!((reply.status, reply.json()["detail"].as_array().unwrap().len()), (422, 3));
}
