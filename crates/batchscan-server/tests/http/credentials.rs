//! The lives of tokens, credentials and secrets (decisions 008, 010).

use batchscan_model::UtcInstant;

use crate::http::app::{TestApp, instant};
use crate::http::reply::{expired_token, invalid_token, wrong_credentials};

/// Decision 008.
#[tokio::test]
async fn a_token_lives_to_the_second_and_has_no_leeway() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    app.set_now(UtcInstant::from_micros(app.now().plus_secs(3_600).micros() - 1).unwrap());
    assert_eq!(app.get("/v1/batches", &token).await.status, 200);
    app.set_now(UtcInstant::from_micros(app.now().micros() + 1).unwrap());
    for path in ["/v1/batches", "/v2/batches"] {
        let reply = app.get(path, &token).await;
        reply.is_error(401, &expired_token());
        assert_eq!(reply.header("www-authenticate").as_deref(), Some("Bearer error=\"invalid_token\""));
    }
}

/// Decision 008: `expires_in` tells the truth.
#[tokio::test]
async fn a_new_token_is_had_when_the_old_one_has_expired() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let old = app.token(&client).await;
    app.advance_secs(3_600);
    let new = app.token(&client).await;
    assert_eq!(app.get("/v2/batches", &old).await.status, 401);
    assert_eq!(app.get("/v2/batches", &new).await.status, 200);
}

/// Decision 010: here the very next request knows.
#[tokio::test]
async fn a_revoked_credential_gets_no_token_and_its_tokens_die() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    assert_eq!(app.get("/v1/batches", &token).await.status, 200);
    app.revoke(&client).await;
    app.post_form("/v1/auth", client.form()).await.is_error(401, &wrong_credentials());
    for path in ["/v1/batches", "/v2/batches"] {
        app.get(path, &token).await.is_error(401, &invalid_token());
    }
}

/// Decision 010: on every node, and also where the page is in its cache or the client holds its ETag.
#[tokio::test]
async fn a_revocation_is_known_on_every_node_and_past_every_cache() {
    let app = TestApp::start().await;
    let other = app.node(Default::default()).await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    let etag = other.get("/v2/batches", &token).await.header("etag").unwrap();
    app.revoke(&client).await;
    assert_eq!(other.get("/v2/batches", &token).await.status, 401);
    assert_eq!(other.get_with("/v2/batches", &token, "if-none-match", &etag).await.status, 401);
    assert_eq!(other.get_with("/v1/batches", &token, "if-none-match", "*").await.status, 401);
}

/// Decision 010: the other credentials of the organisation go on.
#[tokio::test]
async fn a_revocation_ends_one_credential_alone() {
    let app = TestApp::start().await;
    let one = app.org("Nursery").await;
    let two = app.credential("Nursery", None).await;
    let token = app.token(&two).await;
    app.revoke(&one).await;
    assert_eq!(app.get("/v1/batches", &token).await.status, 200);
}

/// Decision 010.
#[tokio::test]
async fn an_expired_credential_gets_no_token_and_its_tokens_die() {
    let app = TestApp::start().await;
    let _ = app.org("Nursery").await;
    let expiry = instant("2026-02-01T00:30:00Z");
    let client = app.credential("Nursery", Some(expiry)).await;
    let token = app.token(&client).await;
    app.set_now(UtcInstant::from_micros(expiry.micros() - 1).unwrap());
    assert_eq!(app.get("/v1/batches", &token).await.status, 200);
    assert_eq!(app.post_form("/v1/auth", client.form()).await.status, 200);
    app.set_now(expiry);
    app.post_form("/v1/auth", client.form()).await.is_error(401, &wrong_credentials());
    assert_eq!(app.get("/v1/batches", &token).await.status, 401);
}

/// Decisions 008, 010.
#[tokio::test]
async fn a_token_never_outlives_its_credential() {
    let app = TestApp::start().await;
    let _ = app.org("Nursery").await;
    let client = app.credential("Nursery", Some(app.now().plus_secs(100))).await;
    assert_eq!(app.post_form("/v1/auth", client.form()).await.json()["expires_in"], 100);
    let long = app.credential("Nursery", Some(app.now().plus_secs(100_000))).await;
    assert_eq!(app.post_form("/v1/auth", long.form()).await.json()["expires_in"], 3_600);
}

/// Interface section 5: credentials are issued by the operator, who can replace a secret without an outage.
#[tokio::test]
async fn after_a_rotation_both_secrets_work_until_the_old_one_retires() {
    let app = TestApp::start().await;
    let old = app.org("Nursery").await;
    let token = app.token(&old).await;
    let retire_at = app.now().plus_secs(600);
    let new = app.rotate(&old, retire_at).await;
    app.set_now(UtcInstant::from_micros(retire_at.micros() - 1).unwrap());
    for client in [&old, &new] {
        assert_eq!(app.post_form("/v2/auth", client.form()).await.status, 200);
    }
    app.set_now(retire_at);
    app.post_form("/v2/auth", old.form()).await.is_error(401, &wrong_credentials());
    assert_eq!(app.post_form("/v2/auth", new.form()).await.status, 200);
    assert_eq!(app.get("/v1/batches", &token).await.status, 200, "a rotation ends no token");
}

/// Decision 010: an organisation takes its credentials with it.
#[tokio::test]
async fn the_tokens_of_a_removed_organisation_are_dead_for_its_successor_too() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    app.store.remove_org("Nursery").await.unwrap();
    let _ = app.org("Nursery").await;
    app.get("/v2/batches", &token).await.is_error(401, &invalid_token());
}
