//! `/docs`: Swagger UI from the executable alone (decision 047).

use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::json;

use crate::http::app::TestApp;
use crate::http::reply::Reply;

const FILES: [(&str, &str); 4] = [
    ("/docs/initializer.js", "text/javascript; charset=utf-8"),
    ("/docs/swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
    ("/docs/swagger-ui-license.txt", "text/plain; charset=utf-8"),
    ("/docs/swagger-ui.css", "text/css; charset=utf-8"),
];

async fn asking(app: &TestApp, path: &str, name: &str, value: &str) -> Reply {
    Reply::to(app.request("GET", path).header(name, value)).await
}

/// Decision 047.
#[tokio::test]
async fn the_page_finds_its_files_with_and_without_a_slash_at_its_end() {
    let app = TestApp::start().await;
    for path in ["/docs", "/docs/"] {
        let page = Reply::to(app.request("GET", path)).await;
        assert_eq!(page.header("content-type").as_deref(), Some("text/html; charset=utf-8"));
        assert!(page.text().contains("<title>batchscan API</title>"));
        let base = reqwest::Url::parse(&format!("{}{path}", app.url)).unwrap();
        let mut found = 0;
        for name in page.text().split('"').filter(|text| text.ends_with(".js") || text.ends_with(".css")) {
            let file = base.join(name).unwrap();
            assert_eq!(Reply::to(app.request("GET", file.path())).await.status, 200, "{path}: {file}");
            found += 1;
        }
        assert_eq!(found, 3);
    }
}

/// Decision 047: no script but its own files, nothing from elsewhere, in nobody's frame.
#[tokio::test]
async fn the_page_may_reach_its_own_service_and_nothing_else() {
    let app = TestApp::start().await;
    for path in ["/docs", "/docs/", FILES[0].0, FILES[3].0] {
        let reply = Reply::to(app.request("GET", path)).await;
        let policy = reply.header("content-security-policy").unwrap();
        assert_eq!(
            policy,
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        assert_eq!(reply.header("x-content-type-options").as_deref(), Some("nosniff"));
        assert_eq!(reply.header("referrer-policy").as_deref(), Some("no-referrer"));
    }
}

/// Decisions 031, 032, 047.
#[tokio::test]
async fn its_files_are_compressed_for_whoever_asks_and_sent_once() {
    let app = TestApp::start().await;
    for (path, kind) in FILES {
        let plain = Reply::to(app.request("GET", path)).await;
        let packed = asking(&app, path, "accept-encoding", "gzip, deflate, br, zstd").await;
        assert_eq!(packed.header("content-encoding").as_deref(), Some("gzip"), "{path}");
        let mut unpacked = Vec::new();
        GzDecoder::new(packed.body.as_slice()).read_to_end(&mut unpacked).unwrap();
        assert_eq!(plain.body, unpacked, "{path}");
        for reply in [&plain, &packed] {
            assert_eq!(reply.header("content-type").as_deref(), Some(kind));
            assert_eq!(reply.header("cache-control").as_deref(), Some("no-cache"));
            assert_eq!(reply.header("vary").as_deref(), Some("Accept-Encoding"));
        }
        let again = asking(&app, path, "if-none-match", &plain.header("etag").unwrap()).await;
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
    }
}

/// Decisions 027, 047.
#[tokio::test]
async fn a_file_that_is_not_carried_is_a_404() {
    let app = TestApp::start().await;
    for path in ["/docs/swagger-ui-bundle.js.map", "/docs/index.html", "/docs/%ff", "/docs/a/b"] {
        Reply::to(app.request("GET", path)).await.is_error(404, &json!({ "detail": "Not Found" }));
    }
}
