//! HTTP tests that no store can influence. They run once, on SQLite.

mod auth_basic;
mod auth_form;
mod bearer;
mod compression;
mod cors;
mod dashboard;
mod disconnects;
mod docs;
mod export;
mod limits;
mod methods;
mod openapi;
mod operator;
mod operator_api;
mod protocol;
mod rate_limit;
mod timing;
mod tls;

use crate::http::{Reply, TestApp};

/// Gets a file that is the same for every client, plain and compressed, and revalidates it (decisions 031, 032).
async fn fetch_file(app: &TestApp, path: &str, content_type: &str, caching: &str) -> [Reply; 2] {
    let get = async |name: &str, value: &str| Reply::to(app.request("GET", path).header(name, value)).await;
    let plain = app.send("GET", path).await;
    let gzip = get("accept-encoding", "gzip, deflate, br, zstd").await;
    let brotli = get("accept-encoding", "br").await;
    assert_eq!(plain.header("content-encoding"), None, "{path}");
    assert_eq!(gzip.header("content-encoding").as_deref(), Some("gzip"), "{path}");
    assert!(gzip.decoded() == plain.body && brotli.body == plain.body, "{path}");
    let etag = plain.header("etag").unwrap();
    for reply in [&plain, &gzip, &brotli] {
        assert_eq!(reply.status, 200, "{path}");
        reply.has_headers(&[("content-type", content_type), ("cache-control", caching), ("etag", &etag)]);
        assert!(reply.header("vary").unwrap().ends_with("Accept-Encoding"), "{path}");
    }
    let again = get("if-none-match", &etag).await;
    assert_eq!((again.status, again.body.len(), again.header("content-type")), (304, 0, None), "{path}");
    [plain, gzip]
}
