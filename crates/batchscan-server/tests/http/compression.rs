//! Compression by `Accept-Encoding` (decision 032).

use std::io::Read;

use batchscan_model::Batch;

use crate::http::app::TestApp;
use crate::http::reply::Reply;
use crate::http::sample::{batch, many, named};

const PATHS: [&str; 2] = ["/v1/batches", "/v2/batches"];

async fn nursery() -> (TestApp, String) {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(50)).await;
    let token = app.token(&client).await;
    (app, token)
}

async fn accepting(app: &TestApp, path: &str, token: &str, encodings: &str) -> Reply {
    app.get_with(path, token, "accept-encoding", encodings).await
}

fn decoded(reply: &Reply) -> Vec<u8> {
    match reply.header("content-encoding").as_deref() {
        None => reply.body.clone(),
        Some("gzip") => {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(&reply.body[..]).read_to_end(&mut plain).unwrap();
            plain
        }
        Some("zstd") => zstd::decode_all(&reply.body[..]).unwrap(),
        Some(other) => panic!("an encoding nobody asked for: {other}"),
    }
}

/// Which encoding an `Accept-Encoding` is answered with, by both versions.
async fn assert_encoded(cases: &[(&str, Option<&str>)]) {
    let (app, token) = nursery().await;
    for path in PATHS {
        let plain = app.get(path, &token).await;
        assert_eq!(plain.header("content-encoding"), None);
        for (accepted, encoding) in cases {
            let reply = accepting(&app, path, &token, accepted).await;
            assert_eq!(reply.header("content-encoding").as_deref(), *encoding, "{accepted}");
            assert!(decoded(&reply) == plain.body, "{accepted}");
            assert_eq!(reply.header("vary").as_deref(), Some("Authorization, Accept-Encoding"));
        }
    }
}

/// Decision 032.
#[tokio::test]
async fn gzip_and_zstd_are_spoken() {
    assert_encoded(&[
        ("gzip", Some("gzip")),
        ("zstd", Some("zstd")),
        ("x-gzip", Some("gzip")),
        ("GZip", Some("gzip")),
    ])
    .await;
}

/// Decision 032: what browsers and libraries send.
#[tokio::test]
async fn of_several_the_better_is_chosen() {
    assert_encoded(&[("gzip, deflate, br, zstd", Some("zstd")), ("gzip, deflate, br", Some("gzip"))]).await;
}

/// Decision 032; RFC 9110 §12.5.3.
#[tokio::test]
async fn quality_values_are_obeyed() {
    assert_encoded(&[
        ("gzip;q=1.0, zstd;q=0.5", Some("gzip")),
        ("zstd;q=0.2,gzip;q=0.3", Some("gzip")),
        ("gzip;q=0", None),
        ("gzip; q=0", None),
        ("gzip;Q=0", None),
        ("gzip;q=0.000, zstd;q=0", None),
        ("gzip;q=0, zstd", Some("zstd")),
    ])
    .await;
}

/// Decision 032: what we do not speak is sent plain.
#[tokio::test]
async fn other_encodings_are_answered_plainly() {
    assert_encoded(&[
        ("identity", None),
        ("br", None),
        ("deflate, br;q=1.0, *;q=0.1", None),
        ("", None),
        (",;q", None),
    ])
    .await;
}

/// Decisions 032, 049: whatever is kept compressed, every window is the same text in every encoding.
#[tokio::test]
async fn a_window_is_the_same_text_wherever_packs_begin() {
    let app = TestApp::paged(150).await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(420)).await;
    app.import("Nursery", &[named("late", "2026-01-01T00:30:00Z", "Late")]).await;
    app.import("Nursery", &[named("older than all", "2025-01-01T00:00:00Z", "Older")]).await;
    let token = app.token(&client).await;
    let windows = ["end_date=2025-06-01T00:00:00Z", "", "start_date=2026-01-01T00:00:30Z"];
    for (path, window) in PATHS.iter().flat_map(|path| windows.iter().map(move |window| (path, window))) {
        let asked = format!("{path}?{window}");
        let plain = app.get(&asked, &token).await;
        for encoding in ["gzip", "zstd", "gzip", "gzip"] {
            let reply = accepting(&app, &asked, &token, encoding).await;
            // Cursors are sealed with another nonce each time.
            let text =
                |body: &[u8]| String::from_utf8_lossy(body).split("\"next_token\"").next().map(str::to_owned);
            assert_eq!(text(&decoded(&reply)), text(&plain.body), "{asked} {encoding}");
            let is_small = plain.body.len() < 1_024;
            assert_eq!(reply.header("content-encoding").is_none(), is_small, "{asked} {encoding}");
        }
    }
}

/// Decision 032: a small body saves nothing.
#[tokio::test]
async fn a_body_below_one_kib_goes_plain() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    for path in PATHS {
        for (bytes, encoding) in [(1_023, None), (1_025, Some("gzip"))] {
            app.import("Nursery", &[that_makes(path, bytes)]).await;
            let reply = accepting(&app, path, &token, "gzip").await;
            assert_eq!(reply.header("content-encoding").as_deref(), encoding, "{path} {bytes}");
            assert_eq!(decoded(&reply).len(), bytes);
        }
    }
}

/// A batch with which the body of `path` has so many bytes.
fn that_makes(path: &str, bytes: usize) -> Batch {
    let around = if path == "/v1/batches" { "[]".len() } else { r#"{"data":[],"next_token":null}"#.len() };
    let with =
        |comment: usize| Batch { comment: Some("x".repeat(comment)), ..batch("b", "2026-01-01T00:00:00Z") };
    with(bytes - around - with(0).to_json().len())
}

/// Decision 032: a page of 1000 batches shrinks about sixfold or better.
#[tokio::test]
async fn a_page_of_a_thousand_shrinks_sixfold() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(1_000)).await;
    let token = app.token(&client).await;
    let plain = app.get("/v2/batches", &token).await.body.len();
    for encoding in ["gzip", "zstd"] {
        let packed = accepting(&app, "/v2/batches", &token, encoding).await;
        assert!(packed.body.len() * 6 < plain, "{encoding}: {} of {plain}", packed.body.len());
        let length = packed.header("content-length").unwrap();
        assert_eq!(length, packed.body.len().to_string());
    }
}

/// Decision 032: a library that decodes by itself sees nothing of it.
#[tokio::test]
async fn a_client_that_decodes_by_itself_reads_the_same() {
    let (app, token) = nursery().await;
    let http = crate::http::app::plain_client().gzip(true).zstd(true).build().unwrap();
    for path in PATHS {
        let request = http.get(format!("{}{path}", app.url)).bearer_auth(&token);
        assert_eq!(Reply::to(request).await.body, app.get(path, &token).await.body);
    }
}

/// Decision 027: errors stay readable to everybody.
#[tokio::test]
async fn errors_are_never_compressed() {
    let (app, token) = nursery().await;
    let reply = accepting(&app, "/v1/batches?start_date=x", &token, "gzip").await;
    assert_eq!((reply.status, reply.header("content-encoding")), (422, None));
}
