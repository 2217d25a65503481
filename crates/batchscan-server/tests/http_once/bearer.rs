//! Bearer tokens on the batch endpoints (decisions 007, 009).

use crate::http::*;

async fn get(app: &TestApp, path: &str, authorization: &str) -> Reply {
    Reply::to(app.request("GET", path).header("authorization", authorization)).await
}

/// Decision 009; contract section 5.
#[tokio::test]
async fn a_token_is_read_from_the_header_only() {
    let (app, _, token) = TestApp::signed_in().await;
    for path in PATHS {
        for reply in [
            app.send("GET", &format!("{path}?access_token={token}")).await,
            get(&app, path, "Basic YTpi").await,
        ] {
            reply.is_detail(401, "Not authenticated: send the header Authorization: Bearer ACCESS_TOKEN");
            reply.has_headers(&[("www-authenticate", "Bearer")]);
        }
    }
}

/// RFC 9110 §11.1.
#[tokio::test]
async fn the_scheme_is_case_insensitive() {
    let (app, _, token) = TestApp::signed_in().await;
    for scheme in ["Bearer", "bearer", "BEARER"] {
        assert_eq!(get(&app, "/v1/batches", &format!("{scheme} {token}")).await.status, 200, "{scheme}");
    }
}

/// Decision 009.
#[tokio::test]
async fn a_malformed_or_forged_token_is_invalid() {
    let (app, _, token) = TestApp::signed_in().await;
    let other = app.org("Other").await;
    let other = app.token(&other).await;
    let (own, other): (Vec<&str>, Vec<&str>) = (token.split('.').collect(), other.split('.').collect());
    let mut invalid = vec![
        "x.y.z".to_owned(),
        "x".repeat(5_000),
        token[..token.len() - 1].to_owned(),
        format!("{token}A"),
        [own[0], other[1], own[2]].join("."),
    ];
    invalid.extend(["x", "a.b", "..", "é", "a b", "eyJhbGciOiJIUzI1NiJ9.e30."].map(str::to_owned));
    for (turn, token) in invalid.iter().enumerate() {
        app.get(PATHS[turn % 2], token).await.is_invalid_token();
    }
}

/// Decision 009: another deployment signs with other keys.
#[tokio::test]
async fn a_token_of_another_deployment_is_invalid() {
    let (here, _, _) = TestApp::signed_in().await;
    let (_there, _, token) = TestApp::signed_in().await;
    here.get("/v1/batches", &token).await.is_invalid_token();
}
