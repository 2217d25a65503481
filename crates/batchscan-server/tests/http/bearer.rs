//! Bearer tokens on the batch endpoints: which are taken, and how the others are refused (decision 009).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use crate::http::app::TestApp;
use crate::http::reply::{Reply, invalid_token};

const PATHS: [&str; 2] = ["/v1/batches", "/v2/batches"];

async fn ask(app: &TestApp, path: &str, authorization: &str) -> Reply {
    Reply::to(app.request("GET", path).header("authorization", authorization)).await
}

#[track_caller]
fn is_invalid_token(reply: &Reply) {
    reply.is_error(401, &invalid_token());
    assert_eq!(reply.header("www-authenticate").as_deref(), Some("Bearer error=\"invalid_token\""));
}

/// Decision 009.
#[tokio::test]
async fn a_request_without_a_token_is_told_the_scheme_and_no_error() {
    let app = TestApp::start().await;
    let body = json!({ "detail": "Not authenticated: send the header Authorization: Bearer ACCESS_TOKEN" });
    for path in PATHS {
        let bare = Reply::to(app.request("GET", path)).await;
        let others = [ask(&app, path, "Basic YTpi").await, ask(&app, path, "Bearer").await];
        for reply in others.into_iter().chain([bare]) {
            reply.is_error(401, &body);
            assert_eq!(reply.header("www-authenticate").as_deref(), Some("Bearer"), "{path}");
        }
    }
}

/// Decision 009.
#[tokio::test]
async fn a_malformed_token_is_invalid() {
    let app = TestApp::start().await;
    let long = "x".repeat(5_000);
    for path in PATHS {
        for token in ["x", "a.b", "a.b.c", "..", "é", "a b", "eyJhbGciOiJIUzI1NiJ9.e30.", &long] {
            is_invalid_token(&Reply::to(app.request("GET", path).bearer_auth(token)).await);
        }
    }
}

/// Decision 009; RFC 9110 §11.1.
#[tokio::test]
async fn the_scheme_is_read_in_any_case() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    for scheme in ["Bearer", "bearer", "BEARER"] {
        assert_eq!(ask(&app, "/v1/batches", &format!("{scheme} {token}")).await.status, 200, "{scheme}");
    }
}

/// Decision 009.
#[tokio::test]
async fn a_token_altered_in_any_part_is_invalid() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    for place in (0..token.len()).step_by(7).chain([token.len() - 2]) {
        let mut altered = token.clone().into_bytes();
        altered[place] = if altered[place] == b'A' { b'B' } else { b'A' };
        is_invalid_token(&app.get("/v2/batches", std::str::from_utf8(&altered).unwrap()).await);
    }
    is_invalid_token(&app.get("/v2/batches", &token[..token.len() - 1]).await);
    is_invalid_token(&app.get("/v2/batches", &format!("{token}A")).await);
}

/// Decision 009.
#[tokio::test]
async fn a_token_without_a_signature_is_invalid() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    let parts: Vec<&str> = token.split('.').collect();
    for alg in ["none", "None", "NONE", "HS512", "RS256"] {
        let head = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"{alg}","typ":"JWT"}}"#));
        for forged in [format!("{head}.{}.", parts[1]), format!("{head}.{}.{}", parts[1], parts[2])] {
            is_invalid_token(&app.get("/v1/batches", &forged).await);
        }
    }
}

/// Decision 009: what it says about itself opens nothing.
#[tokio::test]
async fn a_token_with_other_claims_is_invalid() {
    let app = TestApp::start().await;
    let (one, two) = (app.org("One").await, app.org("Two").await);
    let (own, foreign) = (app.token(&one).await, app.token(&two).await);
    let own: Vec<&str> = own.split('.').collect();
    let foreign: Vec<&str> = foreign.split('.').collect();
    is_invalid_token(&app.get("/v1/batches", &[own[0], foreign[1], own[2]].join(".")).await);
}

/// Decision 009: a token of another deployment has a good signature of a foreign key.
#[tokio::test]
async fn a_token_of_another_deployment_is_invalid() {
    let (here, there) = (TestApp::start().await, TestApp::start().await);
    let _ = here.org("Nursery").await;
    let client = there.org("Nursery").await;
    is_invalid_token(&here.get("/v1/batches", &there.token(&client).await).await);
}

/// Interface section 5: the token goes into the header, and nowhere else.
#[tokio::test]
async fn a_token_in_the_query_is_not_looked_at() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let path = format!("/v1/batches?access_token={}", app.token(&client).await);
    assert_eq!(Reply::to(app.request("GET", &path)).await.status, 401);
}
