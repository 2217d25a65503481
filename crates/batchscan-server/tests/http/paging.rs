//! The pages of v2 together are the array of v1 (decisions 018, 019, 020).

use std::io::Read;

use batchscan_server::config::Config;

use super::*;

async fn follow(app: &TestApp, page: &Reply, token: &str) -> Reply {
    app.get(&format!("/v2/batches?next_token={}", page.next_token().unwrap()), token).await
}

/// Contract sections 8 and 9; decisions 019, 020.
#[tokio::test]
async fn a_page_has_a_thousand_batches_and_v1_has_all() {
    let (app, _, token) = TestApp::filled(Config::default().page_rows, &many(1_000)).await;
    let page = app.get("/v2/batches", &token).await;
    assert_eq!((page.ids().len(), page.next_token()), (1_000, None));
    app.import("Nursery", &many(2_345)).await;
    let mut page = app.get("/v2/batches", &token).await;
    assert_eq!((page.ids().len(), page.next_token().is_some()), (1_000, true));
    let mut objects = Vec::new();
    loop {
        let data =
            page.text().strip_prefix("{\"data\":[").unwrap().rsplit_once("],\"next_token\":").unwrap().0;
        objects.push(data.to_owned());
        if page.next_token().is_none() {
            break;
        }
        page = follow(&app, &page, &token).await;
    }
    let all = app.get("/v1/batches", &token).await;
    assert_eq!((all.ids().len(), all.text()), (2_345, format!("[{}]", objects.join(",")).as_str()));
}

/// Decisions 032, 049: whatever is stored compressed, gzip decodes to the plain body.
#[tokio::test]
async fn a_compressed_range_has_the_same_text_wherever_blocks_begin() {
    let (app, _, token) = TestApp::filled(150, &many(420)).await;
    app.import("Nursery", &[named("late", "2026-01-01T00:30:00Z", "Late")]).await;
    app.import("Nursery", &[named("first", "2025-01-01T00:00:00Z", "First")]).await;
    let ranges = ["end_date=2025-06-01T00:00:00Z", "", "start_date=2026-01-01T00:00:30Z"];
    for (path, range) in PATHS.iter().flat_map(|path| ranges.iter().map(move |range| (path, range))) {
        let path = format!("{path}?{range}");
        let plain = app.get(&path, &token).await;
        let is_small = plain.body.len() < 1_024;
        for _ in 0..3 {
            let gzip = app.get_with(&path, &token, "accept-encoding", "gzip").await;
            assert_eq!(gzip.header("content-encoding").is_none(), is_small, "{path}");
            let mut text = Vec::new();
            match is_small {
                true => text.extend(&gzip.body),
                false => drop(flate2::read::GzDecoder::new(&gzip.body[..]).read_to_end(&mut text).unwrap()),
            }
            assert!(text == plain.body, "{path}");
        }
    }
}
