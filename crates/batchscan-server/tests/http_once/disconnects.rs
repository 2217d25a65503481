//! Clients that disconnect before they have a response: their requests end, and are logged with status 499.

use std::time::Duration;

use batchscan_server::config::Config;
use batchscan_server::serve::ServeOptions;
use batchscan_server::tls::Tls;
use reqwest::ClientBuilder;

use super::tls::{Files, base_url, trusting};
use crate::http::log::lines_with;
use crate::http::*;

/// The status of a request in the log.
fn logged_status(id: &str) -> Option<u64> {
    let line = lines_with(&format!("\"id\":\"{id}\"")).pop()?;
    serde_json::from_str::<serde_json::Value>(&line).unwrap()["fields"]["status"].as_u64()
}

/// Waits until one of the requests is logged.
async fn status_of(ids: &[String]) -> u64 {
    let status = || ids.iter().find_map(|id| logged_status(id));
    until(async || status().is_some()).await;
    status().unwrap()
}

/// The path of a request that waits: there are no changes.
async fn waiting_path(app: &TestApp, token: &str, secs: u64) -> String {
    let since = app.get("/v2/changes", token).await.json()["since"].as_str().unwrap().to_owned();
    format!("/v2/changes?since={since}&wait={secs}")
}

async fn send_waiting(app: &TestApp, token: &str, id: &str, secs: u64) -> Raw {
    let path = waiting_path(app, token, secs).await;
    Raw::sending(app, get_head(&path, token, &format!("x-request-id: {id}\r\n"))).await
}

/// A client that is gone looks like one that closes its side and still reads: both get a few seconds.
#[tokio::test]
async fn a_closed_connection_ends_a_wait() {
    let (app, client, token) = TestApp::signed_in().await;
    for is_reading in [false, true] {
        let id = format!("{}-{is_reading}", client.id);
        let mut raw = Some(send_waiting(&app, &token, &id, 40).await);
        match &mut raw {
            Some(raw) if is_reading => raw.half_close().await,
            raw => drop(raw.take()),
        }
        assert_eq!(status_of(&[id]).await, 499, "{is_reading}");
        if let Some(mut raw) = raw {
            assert!(raw.read_rest().await.is_empty());
        }
    }
    // Only that of this request.
    until(async || metric(&app, "batchscan_open_connections").await <= 1).await;
}

#[tokio::test]
async fn a_reset_connection_ends_a_wait_at_once() {
    let (app, client, token) = TestApp::signed_in().await;
    send_waiting(&app, &token, &client.id, 40).await.reset();
    assert_eq!(status_of(&[client.id]).await, 499);
}

/// With HTTP/2, only the stream is reset. With TLS, the end of the connection is a message.
#[tokio::test]
async fn a_cancelled_request_ends_a_wait_with_http_2_and_tls() {
    let files = Files::new();
    let certificate = files.renew();
    let tls = Some(Tls::load(files.tls_files()).unwrap());
    let app = TestApp::serve(ServeOptions { tls, ..TestApp::options() }).await;
    let client = app.org("Nursery").await;
    let clients: [fn(ClientBuilder) -> ClientBuilder; 2] = [|http| http, ClientBuilder::http1_only];
    for (number, version) in clients.into_iter().enumerate() {
        let http = version(trusting(&certificate)).build().unwrap();
        let base = base_url(&app);
        let form = http.post(format!("{base}/v2/auth")).header("content-type", app::FORM).body(client.form());
        let granted = Reply::to(form).await.json();
        let token = granted["access_token"].as_str().unwrap();
        let first = Reply::to(http.get(format!("{base}/v2/changes")).bearer_auth(token)).await.json();
        let url = format!("{base}/v2/changes?since={}&wait=40", first["since"].as_str().unwrap());
        // Again, if one is cancelled before it is sent.
        let (mut ids, mut status) = (Vec::new(), None);
        while status.is_none() {
            ids.push(format!("{}-{number}-{}", client.id, ids.len()));
            let request = http.get(&url).bearer_auth(token).header("x-request-id", ids.last().unwrap());
            let _ = tokio::time::timeout(Duration::from_secs(1), request.send()).await;
            status = tokio::time::timeout(Duration::from_secs(15), status_of(&ids)).await.ok();
        }
        assert_eq!(status, Some(499), "{number}");
    }
}

/// What a client sends during a wait is its next request.
#[tokio::test]
async fn a_pipelined_request_does_not_end_a_wait() {
    let (app, client, token) = TestApp::signed_in().await;
    let mut raw = send_waiting(&app, &token, &client.id, 2).await;
    raw.send("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(raw.response().await.json()["data"], serde_json::json!([]));
    assert_eq!(raw.response().await.json()["status"], "alive");
}

/// Open files in a folder. Those of exports have no name.
fn open_files(folder: &std::path::Path) -> usize {
    let files = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    files.filter(|file| std::fs::read_link(file.path()).is_ok_and(|path| path.starts_with(folder))).count()
}

#[tokio::test]
async fn a_cancelled_export_stops_and_frees_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let app = TestApp::with(Config { temp_dir: folder.path().to_owned(), ..Config::default() }).await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many_bulky(300)).await;
    let token = app.token(&client).await;
    for path in ["/v2/export.xlsx", "/v2/export.parquet"] {
        // An export can be complete before the connection is reset: then again.
        let mut statuses = Vec::new();
        while statuses.last() != Some(&499) {
            assert!(statuses.len() < 10, "{path}: {statuses:?}");
            let id = format!("{}-{}-{}", client.id, &path[11..], statuses.len());
            let raw = Raw::sending(&app, get_head(path, &token, &format!("x-request-id: {id}\r\n"))).await;
            while open_files(folder.path()) == 0 && logged_status(&id).is_none() {
                tokio::task::yield_now().await;
            }
            raw.reset();
            until(async || open_files(folder.path()) == 0 && logged_status(&id).is_some()).await;
            statuses.extend(logged_status(&id));
        }
        assert_eq!(app.get(path, &token).await.status, 200);
    }
}
