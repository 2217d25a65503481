//! The sessions of the dashboard (decision 051), and what an attacker tries with their cookies.

use futures_util::future::join_all;

use super::*;

const SIGNED_OUT: &str = "The session has ended: sign in again";

/// A request to `/session` with a cookie.
async fn send(app: &TestApp, method: &str, path: &str, cookie: &str) -> Reply {
    Reply::to(app.request(method, path).header("cookie", cookie)).await
}

async fn renew(app: &TestApp, cookie: &str) -> Reply {
    send(app, "POST", "/session/token", cookie).await
}

/// The name and value of the cookie that a response sets.
#[track_caller]
fn cookie_of(reply: &Reply) -> String {
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

async fn sign_in(app: &TestApp, client: &Client) -> Reply {
    app.post_form("/session", client.form()).await
}

/// A cookie that is kept for 90 days.
async fn signed_in() -> (TestApp, Client, String) {
    let (app, client, _) = TestApp::filled(1_000, &many(3)).await;
    let kept = app.post_form("/session", format!("{}&keep=true", client.form())).await;
    (app, client, cookie_of(&kept))
}

/// Uses a cookie on the next day, when it is replaced.
async fn renew_next_day(app: &TestApp, cookie: &str) -> Reply {
    app.advance_secs(24 * 3_600);
    renew(app, cookie).await
}

/// The session goes on, with the same cookie.
#[track_caller]
fn is_active(reply: &Reply) {
    assert_eq!((reply.status, reply.header("set-cookie")), (200, None), "{}", reply.text());
}

#[tokio::test]
async fn a_cookie_is_exchanged_for_tokens_and_replaced_once_a_day() {
    let (app, client, mut cookie) = signed_in().await;
    for _ in 0..5 {
        app.advance_secs(3_600);
        is_active(&renew(&app, &cookie).await);
        let renewed = renew_next_day(&app, &cookie).await;
        let body = renewed.json();
        assert_eq!(body["client_id"], client.id.as_str());
        assert_eq!(app.v2_ids("", body["access_token"].as_str().unwrap()).await.len(), 3);
        let next = cookie_of(&renewed);
        assert_ne!(next, cookie);
        cookie = next;
    }
}

/// The secret is for `/session` only, not for scripts, and not for other sites.
#[tokio::test]
async fn a_cookie_is_protected_and_ends_with_the_browser_unless_it_is_kept() {
    let (app, client, _) = signed_in().await;
    let cookie = sign_in(&app, &client).await.header("set-cookie").unwrap();
    assert!(cookie.ends_with("; Path=/session; HttpOnly; SameSite=Strict"), "{cookie}");
    let kept = app.post_form("/session", format!("{}&keep=true", client.form())).await;
    let cookie = kept.header("set-cookie").unwrap();
    assert!(cookie.ends_with("; Path=/session; HttpOnly; SameSite=Strict; Max-Age=7776000"), "{cookie}");
    assert_eq!(kept.header("cache-control").unwrap(), "no-store");
}

#[tokio::test]
async fn without_a_cookie_nobody_is_signed_in() {
    let (app, ..) = signed_in().await;
    assert_eq!(app.send("POST", "/session/token").await.status, 204);
    app.post_form("/session", "grant_type=client_credentials&client_id=x&client_secret=y")
        .await
        .is_invalid_client();
}

#[tokio::test]
async fn a_cookie_replayed_after_sign_out_gets_nothing() {
    let (app, _, cookie) = signed_in().await;
    let ended = send(&app, "DELETE", "/session", &cookie).await;
    assert_eq!((ended.status, ended.header("set-cookie").unwrap().contains("Max-Age=0")), (204, true));
    let replayed = renew(&app, &cookie).await;
    replayed.is_detail(401, SIGNED_OUT);
    assert!(replayed.header("set-cookie").unwrap().contains("Max-Age=0"));
}

#[tokio::test]
async fn a_cookie_reused_after_it_was_replaced_ends_the_session() {
    let (app, _, stolen) = signed_in().await;
    let second = cookie_of(&renew_next_day(&app, &stolen).await);
    let third = cookie_of(&renew_next_day(&app, &second).await);
    renew(&app, &stolen).await.is_detail(401, SIGNED_OUT);
    renew(&app, &third).await.is_detail(401, SIGNED_OUT);
}

/// The browser repeats a request whose response was lost.
#[tokio::test]
async fn a_lost_response_does_not_end_the_session() {
    let (app, _, cookie) = signed_in().await;
    let _lost = renew_next_day(&app, &cookie).await;
    is_active(&renew(&app, &cookie).await);
    app.advance_secs(60);
    let next = cookie_of(&renew(&app, &cookie).await);
    is_active(&renew(&app, &next).await);
}

/// Tabs, or a load balancer that repeats a request.
#[tokio::test]
async fn concurrent_uses_of_a_cookie_do_not_end_the_session() {
    let (app, _, cookie) = signed_in().await;
    app.advance_secs(24 * 3_600);
    let replies = join_all((0..8).map(|_| renew(&app, &cookie))).await;
    assert!(replies.iter().all(|reply| reply.status == 200));
    let mut renewed = replies.iter().filter(|reply| reply.header("set-cookie").is_some());
    let new = cookie_of(renewed.next().unwrap());
    assert!(renewed.next().is_none(), "whichever response arrives last, the browser has this one");
    is_active(&renew(&app, &new).await);
}

#[tokio::test]
async fn a_cookie_sent_from_another_origin_gets_nothing() {
    let (app, client, cookie) = signed_in().await;
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "none"),
    ] {
        for (method, path) in [("POST", "/session/token"), ("DELETE", "/session"), ("POST", "/session")] {
            let request = app.request(method, path).header("cookie", &cookie).header(name, value);
            let request =
                request.header("content-type", "application/x-www-form-urlencoded").body(client.form());
            let reply = Reply::to(request).await;
            let detail = "This request did not come from the dashboard's own address. Operators: set --public-url to \
                          the address in the browser, or let the proxy pass Host";
            reply.is_detail(403, detail);
            assert_eq!(reply.header("set-cookie"), None);
            assert_eq!(reply.header("access-control-allow-origin"), None);
        }
    }
    let own = app.request("POST", "/session/token").header("cookie", &cookie);
    let own =
        own.header("origin", format!("http://{}", app.address())).header("sec-fetch-site", "same-origin");
    is_active(&Reply::to(own).await);
}

#[tokio::test]
async fn a_cookie_sent_to_the_api_gets_nothing() {
    let (app, _, cookie) = signed_in().await;
    let secret = cookie.split_once('=').unwrap().1;
    for path in PATHS {
        assert_eq!(send(&app, "GET", path, &cookie).await.status, 401);
        app.get(path, secret).await.is_invalid_token();
    }
    let (id, secret) = secret.split_once('.').unwrap();
    let form = format!("grant_type=client_credentials&client_id={id}&client_secret={secret}");
    app.post_form("/v2/auth", form).await.is_invalid_client();
}

#[tokio::test]
async fn a_session_ends_with_its_credential() {
    let (app, client, cookie) = signed_in().await;
    app.revoke(&client).await;
    renew(&app, &cookie).await.is_detail(401, SIGNED_OUT);
    let expiring = app.credential("Nursery", Some(app.now().plus_secs(600))).await;
    let reply = sign_in(&app, &expiring).await;
    assert_eq!(reply.json()["expires_in"], 600);
    app.advance_secs(601);
    renew(&app, &cookie_of(&reply)).await.is_detail(401, SIGNED_OUT);
}

/// Otherwise the session of a thief would outlive the secret that was stolen.
#[tokio::test]
async fn a_session_ends_with_a_secret_that_was_replaced() {
    let (app, old, before) = signed_in().await;
    let new = app.rotate(&old, app.now().plus_secs(600)).await;
    let after = cookie_of(&app.post_form("/session", format!("{}&keep=true", old.form())).await);
    let own = cookie_of(&sign_in(&app, &new).await);
    app.advance_secs(600);
    for cookie in [before, after] {
        renew(&app, &cookie).await.is_detail(401, SIGNED_OUT);
    }
    is_active(&renew(&app, &own).await);
}

#[tokio::test]
async fn a_session_has_a_limited_lifetime() {
    let (app, client, kept) = signed_in().await;
    let cookie = cookie_of(&sign_in(&app, &client).await);
    app.advance_secs(24 * 3_600);
    renew(&app, &cookie).await.is_detail(401, SIGNED_OUT);
    let kept = cookie_of(&renew(&app, &kept).await);
    app.advance_secs(89 * 24 * 3_600);
    renew(&app, &kept).await.is_detail(401, SIGNED_OUT);
}

#[tokio::test]
async fn a_forged_cookie_gets_nothing_and_ends_nothing() {
    let (app, client, cookie) = signed_in().await;
    let other = cookie_of(&sign_in(&app, &client).await);
    let (id, secret) = cookie.split_once('.').unwrap();
    let other_secret = other.split_once('.').unwrap().1;
    for forged in
        ["batchscan_session=", "batchscan_session=x", "batchscan_session=x.y", "batchscan_session=..", id]
    {
        renew(&app, forged).await.is_detail(401, SIGNED_OUT);
    }
    let unknown = format!("batchscan_session={}.{secret}", "A".repeat(16));
    renew(&app, &unknown).await.is_detail(401, SIGNED_OUT);
    is_active(&renew(&app, &cookie).await);
    // Whoever knows the id of a session can end it, which is no gain: the id is as long as a key.
    renew(&app, &format!("{id}.{other_secret}")).await.is_detail(401, SIGNED_OUT);
    is_active(&renew(&app, &other).await);
}

/// PostgreSQL accepts no NUL: such a text must not reach it.
#[tokio::test]
async fn a_link_that_cannot_be_one_of_ours_is_rejected_without_the_store() {
    let (app, ..) = signed_in().await;
    let long = "A".repeat(65);
    for link in ["%00.x", "a%00b.x", "%FF.x", "a b.x", ".x", "..", "%E2%80%AE.x", &format!("{long}.x")] {
        let used = app.post_form("/session", format!("link={link}")).await;
        used.is_detail(401, "This sign-in link was already used or has expired: ask for a new one");
    }
}

/// A host of the same domain can set a cookie for this one.
#[tokio::test]
async fn of_two_cookies_neither_is_trusted() {
    let (app, client, own) = signed_in().await;
    let other = cookie_of(&sign_in(&app, &client).await);
    renew(&app, &format!("{own}; {other}")).await.is_detail(401, SIGNED_OUT);
    send(&app, "DELETE", "/session", &format!("{other}; {own}")).await.is_detail(401, SIGNED_OUT);
    for cookie in [own, other] {
        is_active(&renew(&app, &format!("a=b; {cookie}; c=d")).await);
    }
}
