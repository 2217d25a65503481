//! Wrong addresses and odd services: one clear line each, quickly, and without a secret in it.

use std::time::Duration;

use batchscan_client::{ClientBuilder, Error};

use crate::script::{Answer, SECRET, Script, TOKEN, client_of};
use crate::{ALL, ids};

/// What is told at the first contact, and whether trying again may help. The patience is that of every client.
async fn told(client: ClientBuilder) -> (String, bool) {
    let client = client.build().unwrap();
    let walk = tokio::time::timeout(Duration::from_secs(2), ids(client.batches(ALL)));
    let error = walk.await.unwrap().unwrap_err();
    let (told, debug) = (error.to_string(), format!("{error:?}"));
    assert_eq!(told.lines().count(), 1, "{told}");
    for hidden in [SECRET, TOKEN] {
        assert!(!told.contains(hidden) && !debug.contains(hidden), "{debug}");
    }
    (told, error.can_retry())
}

fn not_batchscan(url: &str, why: &str) -> (String, bool) {
    (format!("{url} does not answer like a batch scan service: {why}; check the address"), false)
}

#[tokio::test]
async fn a_port_where_nobody_listens() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for scheme in ["http", "https"] {
        let expected = (
            format!(
                "cannot reach {address}: connection refused; check the address, and that the service runs"
            ),
            true,
        );
        assert_eq!(told(client_of(&format!("{scheme}://{address}"))).await, expected);
    }
}

#[tokio::test]
async fn a_host_that_does_not_exist() {
    let (told, can_retry) = told(client_of("https://nothing.invalid")).await;
    // Where no resolver is at hand, nobody can say whether there is such a host.
    let possible = ["no such host", "its name cannot be looked up now"];
    assert!(
        possible
            .map(|why| format!(
                "cannot reach nothing.invalid: {why}; check the address, and that the service runs"
            ))
            .contains(&told),
        "{told}"
    );
    assert!(can_retry);
}

#[tokio::test]
async fn a_server_that_speaks_no_http() {
    let banner = "SSH-2.0-OpenSSH_9.6\r\n";
    let expected = "it does not speak HTTP, perhaps its address begins with https://";
    let script = Script::of([Answer::bare(banner)]).await;
    assert_eq!(told(script.client()).await, not_batchscan(&format!("{}/v2/auth", script.url()), expected));
    assert_eq!(script.heard().len(), 1);
}

/// Whether its words or the request come first is up to the network.
#[tokio::test]
async fn a_server_that_speaks_before_it_is_asked() {
    let script = Script::greeting("220 mail.example.org ESMTP\r\n").await;
    let no_http = "it does not speak HTTP, perhaps its address begins with https://";
    let possible = [
        not_batchscan(&format!("{}/v2/auth", script.url()), no_http),
        (format!("the connection to {} broke: it spoke before it was asked", script.address), true),
        (format!("the connection to {} broke: it was reset", script.address), true),
    ];
    let told = told(script.client()).await;
    assert!(possible.contains(&told), "{told:?}");
}

#[tokio::test]
async fn a_server_that_hangs_up() {
    let script = Script::of([Answer::nothing(), Answer::token(1)]).await;
    let why = "it was closed before the answer was whole";
    let expected = (format!("the connection to {} broke: {why}", script.address), true);
    assert_eq!(told(script.client()).await, expected);
    assert_eq!(script.heard().len(), 1);
}

#[tokio::test]
async fn a_web_page_instead_of_a_token() {
    let html = "<!doctype html><html><body>Welcome</body></html>";
    let script = Script::of([Answer::new(200, html).with("Content-Type", "text/html")]).await;
    let auth = format!("{}/v2/auth", script.url());
    assert_eq!(told(script.client()).await, not_batchscan(&auth, "its answer holds no access_token"));
    for body in ["", "[]", "{}", r#"{"token":"x"}"#, r#"{"access_token":7}"#] {
        let script = Script::of([Answer::new(200, body)]).await;
        let auth = format!("{}/v2/auth", script.url());
        assert_eq!(
            told(script.client()).await,
            not_batchscan(&auth, "its answer holds no access_token"),
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_web_page_instead_of_batches() {
    let html = "<!doctype html><html><body>Welcome</body></html>";
    let script = Script::signed_in([Answer::new(200, html)]).await;
    let why = "not a page of batches: expected value at line 1 column 1";
    assert_eq!(told(script.client()).await, not_batchscan(&format!("{}/v2/batches", script.url()), why));
    let script = Script::signed_in([Answer::new(200, html)]).await;
    let client = script.client().version(batchscan_client::Version::V1);
    let why = "no array of batches: found '<'";
    assert_eq!(told(client).await, not_batchscan(&format!("{}/v1/batches", script.url()), why));
}

#[tokio::test]
async fn a_server_that_knows_no_such_path() {
    let script = Script::of([Answer::new(404, "<html>Not Found</html>")]).await;
    let auth = format!("{}/v2/auth", script.url());
    assert_eq!(told(script.client()).await, not_batchscan(&auth, "it answered 404 Not Found"));
    for (status, why) in [(405, "it answered 405 Method Not Allowed"), (204, "it answered 204 No Content")] {
        let script = Script::of([Answer::new(status, "")]).await;
        let auth = format!("{}/v2/auth", script.url());
        assert_eq!(told(script.client()).await, not_batchscan(&auth, why));
    }
}

#[tokio::test]
async fn json_that_is_no_page() {
    for (body, why) in [
        (r#"{"data":[]}"#, "missing field `next_token` at line 1 column 11"),
        (r#"{"next_token":null}"#, "missing field `data` at line 1 column 19"),
        (r#"{"data":{},"next_token":null}"#, "data is not an array"),
        (r#"{"data":[],"next_token":7}"#, "invalid type: integer `7`, expected a string at line 1 column 25"),
        ("null", "invalid type: null, expected struct Envelope at line 1 column 4"),
    ] {
        let script = Script::signed_in([Answer::new(200, body)]).await;
        let (url, why) = (format!("{}/v2/batches", script.url()), format!("not a page of batches: {why}"));
        assert_eq!(told(script.client()).await, not_batchscan(&url, &why));
        assert_eq!(script.counts(), (1, 1), "{body}");
    }
}

/// Decision 043.
#[tokio::test]
async fn a_redirect_is_told_and_neither_credentials_nor_token_go_there() {
    let elsewhere = Script::signed_in([Answer::page(0..1, None)]).await;
    for status in [301, 302, 303, 307, 308] {
        let there = format!("{}/v2/auth", elsewhere.url());
        let moved = || Answer::new(status, "").with("Location", &there);
        let script = Script::of([moved()]).await;
        let expected =
            format!("{}/v2/auth redirects to {there}; use that address if you trust it", script.url());
        assert_eq!(told(script.client()).await, (expected, false));
        let script = Script::signed_in([moved()]).await;
        let expected =
            format!("{}/v2/batches redirects to {there}; use that address if you trust it", script.url());
        assert_eq!(told(script.client()).await, (expected, false));
    }
    assert!(elsewhere.heard().is_empty());
}

#[tokio::test]
async fn a_service_that_talks_too_much_does_not_fill_the_log_or_steer_the_terminal() {
    let script =
        Script::signed_in([Answer::error(400, &format!("\x1b[31m\n{}", "no! ".repeat(10_000)))]).await;
    let (told, _) = told(script.client()).await;
    assert!(told.len() < 500 && !told.contains(char::is_control), "{told}");
    let script =
        Script::signed_in([Answer::new(200, format!(r#"{{"data":"{}"}}"#, "x".repeat(100_000)))]).await;
    let (told, _) = crate::messages::told(script.client()).await;
    assert!(told.len() < 500, "{told}");
}

#[tokio::test]
async fn the_order_of_errors_is_no_matter_to_a_caller_who_asks_can_retry() {
    let broken = || Error::Broken { host: "a".into(), why: "b".into() };
    assert!(broken().can_retry());
    assert!(Error::GaveUp { after: Duration::ZERO, tries: 1, last: Box::new(broken()) }.can_retry());
    assert!(!Error::Settings("a".into()).can_retry());
    assert!(!Error::NotABatch { why: "a".into() }.can_retry());
    assert!(!Error::Circle { why: "a".into() }.can_retry());
    let once = Error::GaveUp { after: Duration::from_millis(2_600), tries: 1, last: Box::new(broken()) };
    assert_eq!(once.to_string(), "the connection to a broke: b; gave up after 3 s and one try");
}
