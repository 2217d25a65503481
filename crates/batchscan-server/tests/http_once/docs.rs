//! `/docs`: Swagger UI (decision 047).

use super::fetch_file;
use crate::http::*;

const FILES: [(&str, &str); 4] = [
    ("/docs/initializer.js", "text/javascript; charset=utf-8"),
    ("/docs/swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
    ("/docs/swagger-ui-license.txt", "text/plain; charset=utf-8"),
    ("/docs/swagger-ui.css", "text/css; charset=utf-8"),
];

/// Decision 047.
#[tokio::test]
async fn the_page_finds_its_files_with_and_without_a_trailing_slash() {
    let app = TestApp::start().await;
    for path in ["/docs", "/docs/"] {
        let page = app.send("GET", path).await;
        page.has_headers(&[("content-type", "text/html; charset=utf-8")]);
        assert!(page.text().contains("<title>batchscan API</title>"));
        let base = reqwest::Url::parse(&format!("{}{path}", app.url)).unwrap();
        let is_file = |text: &&str| text.ends_with(".js") || text.ends_with(".css");
        let files: Vec<&str> = page.text().split('"').filter(is_file).collect();
        assert_eq!(files.len(), 3);
        for name in files {
            let file = base.join(name).unwrap();
            assert_eq!(app.send("GET", file.path()).await.status, 200, "{path}: {file}");
        }
    }
}

/// Decision 047: only its own scripts, no other servers, no frames.
#[tokio::test]
async fn the_page_may_only_call_its_own_service() {
    let app = TestApp::start().await;
    for path in ["/docs", "/docs/"] {
        app.send("GET", path).await.has_headers(&[
            (
                "content-security-policy",
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
                 base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            ),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
        ]);
    }
}

/// Decisions 027, 031, 032, 047.
#[tokio::test]
async fn files_are_compressed_and_revalidated() {
    let app = TestApp::start().await;
    for (path, kind) in FILES {
        fetch_file(&app, path, kind, "no-cache").await;
    }
}
