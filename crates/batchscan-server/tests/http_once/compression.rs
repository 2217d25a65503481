//! `Accept-Encoding` (decision 032).

use batchscan_model::Batch;

use crate::http::*;

/// Decision 032; RFC 9110 §12.5.3.
#[tokio::test]
async fn gzip_is_sent_to_clients_that_accept_it() {
    let (app, _, token) = TestApp::filled(1_000, &many(50)).await;
    let accepted = ["gzip", "x-gzip", "GZip", "gzip, deflate, br, zstd", "br;q=1, gzip;q=0.001"];
    let declined = [
        "identity",
        "br",
        "zstd",
        "deflate, br;q=1.0, *;q=0.1",
        "",
        ",;q",
        "gzip;q=0",
        "gzip; q=0",
        "gzip;Q=0.000",
    ];
    for path in PATHS {
        let plain = app.get(path, &token).await;
        assert_eq!(plain.header("content-encoding"), None);
        let cases = accepted.map(|value| (value, Some("gzip"))).into_iter();
        for (value, encoding) in cases.chain(declined.map(|value| (value, None))) {
            let reply = app.get_with(path, &token, "accept-encoding", value).await;
            assert_eq!(reply.header("content-encoding").as_deref(), encoding, "{value}");
            assert!(reply.decoded() == plain.body, "{value}");
            reply.has_headers(&[("vary", "Authorization, Accept-Encoding")]);
        }
        let http = plain_client().gzip(true).build().unwrap();
        let request = http.get(format!("{}{path}", app.url)).bearer_auth(&token);
        assert_eq!(Reply::to(request).await.body, plain.body, "a client that decodes");
    }
}

/// Decision 032: compressing a small body saves nothing. Errors are never compressed (decision 027).
#[tokio::test]
async fn small_bodies_and_errors_are_not_compressed() {
    let (app, _, token) = TestApp::signed_in().await;
    for path in PATHS {
        for (bytes, encoding) in [(1_000, None), (1_100, Some("gzip"))] {
            app.import("Nursery", &[batch_for_body(path, bytes)]).await;
            let reply = app.get_with(path, &token, "accept-encoding", "gzip").await;
            assert_eq!(reply.header("content-encoding").as_deref(), encoding, "{path} {bytes}");
            assert_eq!(reply.decoded().len(), bytes);
        }
        let error = app.get_with(&format!("{path}?start_date=x"), &token, "accept-encoding", "gzip").await;
        assert_eq!((error.status, error.header("content-encoding")), (422, None));
    }
}

/// A batch that makes the body of `path` this long.
fn batch_for_body(path: &str, bytes: usize) -> Batch {
    let around = if path == "/v1/batches" { "[]".len() } else { r#"{"data":[],"next_token":null}"#.len() };
    let with =
        |comment: usize| Batch { comment: Some("x".repeat(comment)), ..batch("b", "2026-01-01T00:00:00Z") };
    with(bytes - around - with(0).to_json().len())
}

/// Decision 032: a page of 1000 batches shrinks about sixfold or better.
#[tokio::test]
async fn a_page_of_a_thousand_batches_shrinks_sixfold() {
    let (app, _, token) = TestApp::filled(1_000, &many(1_000)).await;
    let plain = app.get("/v2/batches", &token).await.body.len();
    let gzip = app.get_with("/v2/batches", &token, "accept-encoding", "gzip").await;
    assert!(gzip.body.len() * 6 < plain, "{} of {plain}", gzip.body.len());
    assert_eq!(gzip.header("content-length").unwrap(), gzip.body.len().to_string());
}
