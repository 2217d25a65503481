//! Expiry and revocation of tokens, credentials and secrets (decisions 008, 010).

use batchscan_model::UtcInstant;
use batchscan_server::auth::KEY_ACTIVATION_DELAY_SECS;
use batchscan_server::config::Config;
use batchscan_store::KeyRotation;

use super::*;

fn just_before(instant: UtcInstant) -> UtcInstant {
    UtcInstant::from_micros(instant.micros() - 1).unwrap()
}

/// Decision 008: no leeway.
#[tokio::test]
async fn a_token_expires_after_exactly_one_hour() {
    let (app, client, token) = TestApp::signed_in().await;
    let expiry = app.now().plus_secs(3_600);
    app.set_now(just_before(expiry));
    assert_eq!(app.get("/v1/batches", &token).await.status, 200);
    app.set_now(expiry);
    for path in PATHS {
        let reply = app.get(path, &token).await;
        reply.is_detail(401, "The access token has expired: get a new one");
        reply.has_headers(&[("www-authenticate", "Bearer error=\"invalid_token\"")]);
    }
    let new = app.token(&client).await;
    assert_eq!(app.get("/v2/batches", &new).await.status, 200);
}

/// Decisions 007, 010: effective with the next request, on every node, whatever is cached.
#[tokio::test]
async fn a_revoked_credential_gets_no_token_and_its_tokens_are_invalid() {
    let (app, client, token) = TestApp::filled(2, &many(3)).await;
    let second = app.credential("Nursery", None).await;
    let second = app.token(&second).await;
    let other = app.node(Config { page_rows: 2, ..Default::default() }).await;
    let etag = other.get("/v2/batches", &token).await.header("etag").unwrap();
    for _ in 0..3 {
        assert_eq!(app.get("/v2/batches", &token).await.status, 200);
    }
    app.get("/v1/batches?start_date=x", &token).await.is_invalid_query(&[not_a_datetime("start_date")]);
    app.revoke(&client).await;
    for node in [&app, &other] {
        node.post_form("/v1/auth", client.form()).await.is_invalid_client();
        for path in ["/v1/batches", "/v2/batches", "/v1/batches?start_date=x", "/v2/batches?next_token=x"] {
            node.get(path, &token).await.is_invalid_token();
            for held in [etag.as_str(), "*"] {
                node.get_with(path, &token, "if-none-match", held).await.is_invalid_token();
            }
        }
    }
    assert_eq!(app.get("/v1/batches", &second).await.status, 200, "other credentials stay valid");
}

/// Decisions 008, 010.
#[tokio::test]
async fn an_expired_credential_gets_no_token_and_its_tokens_are_invalid() {
    let (app, _, _) = TestApp::signed_in().await;
    let expiry = instant("2026-02-01T00:30:00Z");
    let client = app.credential("Nursery", Some(expiry)).await;
    let token = app.token(&client).await;
    app.set_now(just_before(expiry));
    assert_eq!(app.get("/v1/batches", &token).await.status, 200);
    assert_eq!(app.post_form("/v1/auth", client.form()).await.status, 200);
    app.set_now(expiry);
    app.post_form("/v1/auth", client.form()).await.is_invalid_client();
    assert_eq!(app.get("/v1/batches", &token).await.status, 401);
    for (secs, expires_in) in [(100, 100), (100_000, 3_600)] {
        let client = app.credential("Nursery", Some(app.now().plus_secs(secs))).await;
        assert_eq!(app.post_form("/v1/auth", client.form()).await.json()["expires_in"], expires_in);
    }
}

/// Contract section 5: an operator can replace a secret without an interruption.
#[tokio::test]
async fn after_a_rotation_both_secrets_work_until_the_old_one_retires() {
    let (app, old, token) = TestApp::signed_in().await;
    let retire_at = app.now().plus_secs(600);
    let new = app.rotate(&old, retire_at).await;
    app.set_now(just_before(retire_at));
    for client in [&old, &new] {
        assert_eq!(app.post_form("/v2/auth", client.form()).await.status, 200);
    }
    app.set_now(retire_at);
    app.post_form("/v2/auth", old.form()).await.is_invalid_client();
    assert_eq!(app.post_form("/v2/auth", new.form()).await.status, 200);
    assert_eq!(app.get("/v1/batches", &token).await.status, 200, "issued tokens stay valid");
}

/// Decisions 010, 022.
#[tokio::test]
async fn what_a_removed_organisation_had_is_invalid_for_a_new_one_of_that_name() {
    let (app, client, token) = TestApp::filled(2, &many(3)).await;
    let cursor = app.get("/v2/batches", &token).await.next_token().unwrap();
    app.store.remove_org("Nursery", app.now()).await.unwrap();
    let new = app.org("Nursery").await;
    app.import("Nursery", &many(3)).await;
    app.get("/v2/batches", &token).await.is_invalid_token();
    app.post_form("/v1/auth", client.form()).await.is_invalid_client();
    let next = format!("/v2/batches?next_token={cursor}");
    app.get(&next, &app.token(&new).await).await.is_invalid_query(&[bad_cursor()]);
}

/// Decision 042: a token of a key that this process has not read yet.
#[tokio::test]
async fn an_unknown_key_is_read_from_the_store() {
    let (app, client, _) = TestApp::signed_in().await;
    let now = app.now();
    app.store.rotate_keys(KeyRotation { now, remove_before: UtcInstant::EPOCH }).await.unwrap();
    app.advance_secs(KEY_ACTIVATION_DELAY_SECS);
    let other = app.node(Config::default()).await;
    let token = other.token(&client).await;
    assert_eq!(app.get("/v2/batches", &token).await.status, 200);
    let forged = format!("{}x.{}", token.split('.').next().unwrap(), token.split_once('.').unwrap().1);
    app.get("/v2/batches", &forged).await.is_invalid_token();
}
