//! The order of checks (decision 007): nobody unauthenticated learns anything.

use serde_json::json;

use crate::http::app::TestApp;
use crate::http::reply::{Reply, invalid_token, no_datetime};

const BAD_DATE: &str = "start_date=x";

/// Decision 007.
#[tokio::test]
async fn the_path_and_method_come_first() {
    let app = TestApp::start().await;
    let bare = |method, path| Reply::to(app.request(method, path));
    bare("GET", "/v3/batches?start_date=x").await.is_error(404, &json!({ "detail": "Not Found" }));
    bare("DELETE", "/v1/batches?start_date=x")
        .await
        .is_error(405, &json!({ "detail": "Method Not Allowed" }));
    bare("PUT", "/v1/auth").await.is_error(405, &json!({ "detail": "Method Not Allowed" }));
}

/// Decision 007.
#[tokio::test]
async fn a_bad_token_comes_before_a_bad_query() {
    let app = TestApp::start().await;
    for version in ["v1", "v2"] {
        let reply = app.get(&format!("/{version}/batches?{BAD_DATE}"), "x.y.z").await;
        reply.is_error(401, &invalid_token());
    }
    assert_eq!(app.get("/v2/batches?next_token=x&page=2", "x.y.z").await.status, 401);
    assert_eq!(Reply::to(app.request("GET", "/v1/batches?start_date=x")).await.status, 401);
}

/// Decisions 007, 010.
#[tokio::test]
async fn a_revoked_credential_comes_before_a_bad_query() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    app.get("/v1/batches?start_date=x", &token).await.is_invalid_query(&[no_datetime("start_date")]);
    app.revoke(&client).await;
    for path in ["/v1/batches?start_date=x", "/v2/batches?start_date=x", "/v2/batches?next_token=x"] {
        app.get(path, &token).await.is_error(401, &invalid_token());
    }
}

/// Decision 007.
#[tokio::test]
async fn a_bad_form_comes_before_wrong_credentials() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let wrong = client.form().replace("client_secret=", "client_secret=wrong");
    assert_eq!(app.post_form("/v1/auth", wrong.clone()).await.status, 401);
    assert_eq!(app.post_form("/v1/auth", wrong.replace("client_credentials", "password")).await.status, 422);
    assert_eq!(app.post_form("/v1/auth", format!("{wrong}&grant_type=x")).await.status, 422);
    app.revoke(&client).await;
    assert_eq!(app.post_form("/v1/auth", format!("{}&client_id=x", client.form())).await.status, 422);
}
