//! Exports (decision 053): the batches of v1 as a file, complete or aborted.

use std::collections::BTreeSet;
use std::io::{Seek, Write};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;

use batchscan_formats::Format;
use batchscan_formats::read::{ReadOptions, read};
use batchscan_formats::write::{Columns, CsvStyle, TextWriter};
use batchscan_model::Batch;
use batchscan_server::config::Config;

use super::log::lines_with;
use super::*;

const EXPORTS: [(&str, Format, &str); 4] = [
    ("/v2/export.csv", Format::Csv, "text/csv; charset=utf-8; header=present"),
    ("/v2/export.ndjson", Format::Ndjson, "application/x-ndjson"),
    ("/v2/export.parquet", Format::Parquet, "application/vnd.apache.parquet"),
    ("/v2/export.xlsx", Format::Xlsx, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
];
const SPOOLED: [&str; 2] = ["/v2/export.parquet", "/v2/export.xlsx"];

/// The JSON texts of the batches in a file.
fn batches_of(format: Format, bytes: &[u8]) -> Vec<String> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    let mut texts = Vec::new();
    let mut accept = |_: Batch, text: String| {
        texts.push(text);
        ControlFlow::Continue(())
    };
    read(format, file, &ReadOptions::default(), &AtomicU64::new(0), &mut accept).unwrap();
    texts
}

/// The file that `pull` writes.
fn pulled(format: Format, batches: &[Batch]) -> String {
    let (writer, mut text) = (TextWriter::new(format, CsvStyle::Plain, Columns::All), String::new());
    writer.push_header(&mut text);
    for batch in batches {
        writer.push_batch(&mut text, batch, &batch.to_json());
    }
    text
}

/// A client whose responses stall after 64 KiB until it reads them.
fn stalling_client() -> reqwest::Client {
    let http2 = plain_client().http2_prior_knowledge().http2_initial_connection_window_size(16 * 1024 * 1024);
    http2.http2_initial_stream_window_size(65_535).build().unwrap()
}

async fn stalled(app: &TestApp, http: &reqwest::Client, path: &str, token: &str) -> reqwest::Response {
    let response = http.get(format!("{}{path}", app.url)).bearer_auth(token).send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response
}

/// In one chunk, in several, and without any batches.
#[tokio::test]
async fn every_format_contains_the_batches_of_v1_in_their_order() {
    let mut batches = many(3_000);
    batches.push(Batch::from_json(FULL).unwrap());
    let (app, _, token) = TestApp::filled(1_000, &batches).await;
    for (query, name, count) in [
        ("", "batches", 3_001),
        (
            "?start_date=2026-01-01T00:49:59Z&end_date=2026-03-31T23:59:59Z",
            "batches-2026-01-01-to-2026-03-31",
            2,
        ),
        ("?start_date=2026-02-01T00:00:00Z", "batches-from-2026-02-01", 0),
    ] {
        let v1 = app.get(&format!("/v1/batches{query}"), &token).await;
        let expected = &batches[batches.len() - count..];
        for (path, format, media_type) in EXPORTS {
            let reply = app.get(&format!("{path}{query}"), &token).await;
            assert_eq!(reply.status, 200, "{path}");
            let texts = batches_of(format, &reply.body);
            assert!(format!("[{}]", texts.join(",")) == v1.text() && texts.len() == count, "{path} {query}");
            match format {
                Format::Csv | Format::Ndjson => assert!(reply.text() == pulled(format, expected)),
                _ => reply.has_headers(&[("content-length", &reply.body.len().to_string())]),
            }
            let disposition = format!("attachment; filename=\"{name}.{}\"", format.name());
            reply.has_headers(&[("content-type", media_type), ("content-disposition", &disposition)]);
        }
    }
}

/// Decisions 030, 031.
#[tokio::test]
async fn head_and_304_have_the_headers_and_no_body() {
    let (app, token) = TestApp::nursery().await;
    let mut etags = BTreeSet::new();
    for path in PATHS {
        etags.insert(app.get(path, &token).await.header("etag").unwrap());
    }
    for (path, ..) in EXPORTS {
        let get = app.get(path, &token).await;
        let head = Reply::to(app.request("HEAD", path).bearer_auth(&token)).await;
        assert_eq!((head.status, head.body.len(), head.header("content-length")), (200, 0, None), "{path}");
        for name in ["content-type", "content-disposition", "etag", "cache-control", "vary"] {
            assert!(head.header(name).is_some() && head.header(name) == get.header(name), "{path} {name}");
        }
        let etag = get.header("etag").unwrap();
        for method in ["GET", "HEAD"] {
            let request = app.request(method, path).bearer_auth(&token).header("if-none-match", &etag);
            let reply = Reply::to(request).await;
            assert_eq!((reply.status, reply.body.len()), (304, 0), "{method} {path}");
            reply.has_headers(&[("etag", &etag), ("cache-control", "private, no-cache")]);
        }
        assert!(etags.insert(etag), "{path}");
    }
    app.import("Nursery", &[at("new", app.now())]).await;
    for etag in &etags {
        assert_eq!(app.get_with("/v2/export.csv", &token, "if-none-match", etag).await.status, 200);
    }
    // HEAD and 304 read no batches.
    app.drop_batch_table();
    for (path, ..) in EXPORTS {
        let head = Reply::to(app.request("HEAD", path).bearer_auth(&token)).await;
        assert_eq!((head.status, app.get(path, &token).await.status >= 500), (200, true), "{path}");
    }
}

#[tokio::test]
async fn an_organisation_exports_only_its_own_batches() {
    let (app, client, token) = TestApp::filled(2, &many(3)).await;
    let other = app.org("Other").await;
    app.import("Other", &[batch("theirs", "2026-01-01T00:00:00Z")]).await;
    for (path, format, _) in EXPORTS {
        let own = app.get(path, &token).await;
        assert_eq!(batches_of(format, &own.body).len(), 3, "{path}");
        let basic = app.request("GET", path).basic_auth(&other.id, Some(&other.secret));
        let theirs = Reply::to(basic.header("if-none-match", own.header("etag").unwrap())).await;
        let texts = batches_of(format, &theirs.body);
        assert!(texts.len() == 1 && texts[0].contains("\"theirs\""), "{path}: {texts:?}");
    }
    app.revoke(&client).await;
    for (path, ..) in EXPORTS {
        app.get(path, &token).await.is_invalid_token();
        Reply::to(app.request("GET", path).basic_auth(&client.id, Some(&client.secret)))
            .await
            .is_invalid_client();
    }
}

/// Decision 026: a client must not take a part for the whole.
#[tokio::test]
async fn a_revocation_or_an_error_aborts_an_export() {
    let (app, client, token) = TestApp::filled(1_000, &many_bulky(60)).await;
    let http = stalling_client();
    let mut responses = Vec::new();
    for path in ["/v2/export.csv", "/v2/export.ndjson", "/v2/export.parquet"] {
        responses.push(stalled(&app, &http, path, &token).await);
    }
    app.revoke(&client).await;
    for response in responses {
        let url = response.url().clone();
        assert!(response.bytes().await.is_err(), "{url}");
    }
    until(async || lines_with(&client.id).iter().any(|line| line.contains("the credential was revoked")))
        .await;
    let second = app.credential("Nursery", None).await;
    let failing = stalled(&app, &http, "/v2/export.csv", &app.token(&second).await).await;
    app.drop_batch_table();
    assert!(failing.bytes().await.is_err());
}

/// Waits until the temporary files of earlier responses are removed.
async fn export_when_free(app: &TestApp, path: &str, token: &str) -> Reply {
    loop {
        let reply = app.get(path, token).await;
        if reply.status != 503 {
            return reply;
        }
    }
}

#[tokio::test]
async fn temporary_files_are_limited_in_size_and_number() {
    let app = TestApp::with(Config { spool_bytes_max: 5_000_000, ..Config::default() }).await;
    let (client, other) = (app.org("Nursery").await, app.org("Other").await);
    let (token, other) = (app.token(&client).await, app.token(&other).await);
    app.import("Nursery", &many_bulky(60)).await;
    let http = stalling_client();
    let stalled =
        [stalled(&app, &http, SPOOLED[0], &token).await, stalled(&app, &http, SPOOLED[1], &token).await];
    for path in SPOOLED {
        app.get(path, &token).await.is_unavailable();
    }
    assert_eq!(app.get(SPOOLED[0], &other).await.status, 200, "another organisation");
    assert_eq!(app.get("/v2/export.csv", &token).await.status, 200, "no temporary file");
    drop((stalled, http));
    assert_eq!(export_when_free(&app, SPOOLED[0], &token).await.status, 200);
    app.import("Nursery", &many_bulky(100)).await;
    let msg = "Value error, too many batches for this format: choose a shorter period, or CSV or NDJSON";
    for path in SPOOLED {
        let reply = export_when_free(&app, path, &token).await;
        reply.is_invalid_query(&[invalid("value_error", "query", "start_date", msg)]);
    }
    assert_eq!(app.get("/v2/export.csv", &token).await.status, 200);
}

#[tokio::test]
async fn a_temporary_file_that_cannot_be_written_is_a_503_with_the_cause_in_the_log() {
    let app = TestApp::with(Config { temp_dir: "/nonexistent".into(), ..Config::default() }).await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    for path in SPOOLED {
        app.get(path, &token).await.is_unavailable();
    }
    let cause = "cannot write the temporary file of an export: ";
    until(async || {
        lines_with(&client.id).iter().filter(|line| line.contains(cause)).count() == SPOOLED.len()
    })
    .await;
}
