//! The marks of seen batches (decision 051).

use serde_json::{Value, json};

use super::*;

const PATH: &str = "/session/seen";

async fn post(app: &TestApp, token: &str, body: impl Into<String>) -> Reply {
    let request = app.request("POST", PATH).bearer_auth(token).header("content-type", "application/json");
    Reply::to(request.body(body.into())).await
}

/// Changes marks. The response is what everybody reads from then on.
async fn mark(app: &TestApp, token: &str, body: &Value) -> Value {
    let changed = post(app, token, body.to_string()).await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    changed.has_headers(&[("content-type", "application/json"), ("cache-control", "no-store")]);
    let read = app.get(PATH, token).await;
    assert_eq!((read.status, read.json()), (200, changed.json()));
    read.has_headers(&[("content-type", "application/json"), ("cache-control", "no-store")]);
    assert_eq!(read.header("etag"), None);
    read.json()
}

fn seen(marks: &[(&str, &str)]) -> Value {
    let mark = |(subject, at): &(&str, &str)| json!({ "subject": subject, "is_seen": true, "at": at, "by": "", "note": "" });
    json!({ "marks": marks.iter().map(mark).collect::<Value>() })
}

/// The body that changes marks.
fn body(is_seen: bool, subjects: &[&str]) -> Value {
    let mark = |subject: &&str| ((*subject).to_owned(), json!({ "is_seen": is_seen }));
    json!({ "marks": subjects.iter().map(mark).collect::<Value>() })
}

#[tokio::test]
async fn all_credentials_of_an_organisation_share_its_marks() {
    let (app, _, token) = TestApp::filled(1_000, &many(3)).await;
    let colleague = app.token(&app.credential("Nursery", None).await).await;
    let other = app.token(&app.org("Other").await).await;
    let etag = app.get("/v2/batches", &token).await.header("etag").unwrap();
    assert_eq!(app.get(PATH, &token).await.json(), seen(&[]));
    let first = ("batch-17", "2026-02-01T00:00:00Z");
    assert_eq!(mark(&app, &token, &body(true, &["batch-17"])).await, seen(&[first]));
    app.advance_secs(60);
    let second = ("crop \"Möhre\"", "2026-02-01T00:01:00Z");
    let both = body(true, &["crop \"Möhre\"", "batch-17"]);
    assert_eq!(mark(&app, &colleague, &both).await, seen(&[first, second]));
    assert_eq!(mark(&app, &other, &body(false, &["batch-17"])).await, seen(&[]));
    assert_eq!(mark(&app, &token, &body(true, &[])).await, seen(&[first, second]));
    assert_eq!(mark(&app, &token, &body(false, &["batch-17", "x"])).await, seen(&[second]));
    let node = app.node(batchscan_server::config::Config::default()).await;
    assert_eq!(node.get(PATH, &colleague).await.json(), seen(&[second]));
    assert_eq!(app.get_with("/v2/batches", &token, "if-none-match", &etag).await.status, 304);
}

#[tokio::test]
async fn a_note_is_one_trimmed_line() {
    let (app, _, token) = TestApp::signed_in().await;
    for (sent, stored) in [
        (" resown\nin House 3 \u{202e}", json!("resown in House 3")),
        ("é".repeat(200).as_str(), json!("é".repeat(200))),
        (" \u{0}", Value::Null),
    ] {
        let marks = mark(&app, &token, &json!({ "marks": { "a": { "note": sent } } })).await;
        assert_eq!(marks["marks"][0]["note"], stored, "{sent:?}");
    }
}

#[tokio::test]
async fn without_a_valid_token_nothing_is_read_or_marked() {
    let (app, client, token) = TestApp::signed_in().await;
    let credential = app.credential("Nursery", None).await;
    for method in ["GET", "POST"] {
        let reply = app.send(method, PATH).await;
        reply.is_detail(401, "Not authenticated: send the header Authorization: Bearer ACCESS_TOKEN");
    }
    app.get(PATH, "x.y.z").await.is_invalid_token();
    let signed_in = app.post_form("/session", client.form()).await;
    let cookie = signed_in.header("set-cookie").unwrap();
    let with_cookie = app.request("GET", PATH).header("cookie", cookie.split(';').next().unwrap());
    assert_eq!(Reply::to(with_cookie).await.status, 401);
    app.revoke(&client).await;
    app.get(PATH, &token).await.is_invalid_token();
    for body in [r#"{"marks":{"a":{"is_seen":true}}}"#, "not JSON"] {
        post(&app, &token, body).await.is_invalid_token();
    }
    assert_eq!(app.get(PATH, &app.token(&credential).await).await.json(), seen(&[]));
}

#[tokio::test]
async fn an_invalid_body_is_a_400_and_changes_nothing() {
    let (app, _, token) = TestApp::signed_in().await;
    let many = |count| (0..count).map(|number| format!("b{number}")).collect::<Vec<_>>();
    let marks = |count| {
        let subjects = many(count);
        body(true, &subjects.iter().map(String::as_str).collect::<Vec<_>>()).to_string()
    };
    let too_many = "more than 500 subjects";
    let length = "a subject must have 1 to 1000 bytes, without NUL";
    for (body, problem) in [
        ("{".to_owned(), "EOF while parsing an object at line 1 column 1"),
        (json!([["a"], []]).to_string(), "found an array"),
        (json!("a").to_string(), "invalid type: string \"a\", expected an object at line 1 column 3"),
        ("{}".to_owned(), "missing field `marks` at line 1 column 2"),
        (
            json!({ "marks": {}, "more": 1 }).to_string(),
            "unknown field `more`, expected `marks` at line 1 column 18",
        ),
        (json!({ "marks": ["a"] }).to_string(), "invalid type: sequence, expected a map at line 1 column 9"),
        (
            json!({ "marks": { "a": true } }).to_string(),
            "invalid type: boolean `true`, expected an object at line 1 column 18",
        ),
        (
            json!({ "marks": { "a": { "note": 17 } } }).to_string(),
            "invalid type: integer `17`, expected a string at line 1 column 24",
        ),
        (body(true, &["a", ""]).to_string(), length),
        (body(false, &["a", &"x".repeat(1_001)]).to_string(), length),
        (body(true, &["a\0b"]).to_string(), length),
        (marks(501), too_many),
        (
            json!({ "marks": { "a": { "note": "é".repeat(201) } } }).to_string(),
            "a note must have at most 200 characters",
        ),
    ] {
        let detail = format!("The body is not the expected JSON object: {problem}");
        post(&app, &token, body).await.is_detail(400, &detail);
    }
    let large = json!({ "marks": { "a": { "note": "x".repeat(66_000) } } }).to_string();
    post(&app, &token, large).await.is_detail(413, "The request body is too large");
    assert_eq!(app.get(PATH, &token).await.json(), seen(&[]));
    let most = post(&app, &token, marks(500)).await;
    assert_eq!((most.status, most.json()["marks"].as_array().unwrap().len()), (200, 500));
}

#[tokio::test]
async fn a_page_of_another_origin_cannot_mark() {
    let (app, _, token) = TestApp::signed_in().await;
    let detail = "This request did not come from the dashboard's own address. Operators: set --public-url to the \
                  address in the browser, or let the proxy pass Host";
    for (name, value) in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")] {
        let request = app.request("POST", PATH).bearer_auth(&token).header(name, value);
        Reply::to(request.body(r#"{"marks":{"a":{"is_seen":true}}}"#)).await.is_detail(403, detail);
    }
    assert_eq!(app.get(PATH, &token).await.json(), seen(&[]));
}
