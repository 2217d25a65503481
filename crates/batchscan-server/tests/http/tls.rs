//! HTTPS: the same service behind a certificate, which may change under it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use batchscan_server::config::TlsFiles;
use batchscan_server::serve::{ServeOptions, Server};
use reqwest::{Certificate, Version};
use tempfile::TempDir;

use crate::http::app::{TestApp, plain_client};
use crate::http::journal;
use crate::http::wire::Wire;

/// The files of a certificate for `localhost`.
struct Files {
    folder: TempDir,
}

impl Files {
    /// Writes a new certificate and key, and returns the certificate for clients to trust.
    fn renew(&self) -> Certificate {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(self.key(), made.signing_key.serialize_pem()).unwrap();
        std::fs::write(self.cert(), made.cert.pem()).unwrap();
        Certificate::from_pem(made.cert.pem().as_bytes()).unwrap()
    }

    fn cert(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }

    fn options(&self) -> ServeOptions {
        let tls = Some(TlsFiles { cert: self.cert(), key: self.key() });
        ServeOptions { tls, ..TestApp::options() }
    }
}

async fn https() -> (TestApp, Files, Certificate) {
    let files = Files { folder: tempfile::tempdir().unwrap() };
    let certificate = files.renew();
    (TestApp::serve(files.options()).await, files, certificate)
}

fn trusting(certificate: &Certificate) -> reqwest::ClientBuilder {
    plain_client().tls_certs_only([certificate.clone()])
}

/// The version spoken, if the certificate is trusted.
async fn speaks(app: &TestApp, client: reqwest::ClientBuilder) -> Option<Version> {
    let port = app.address().rsplit(':').next().unwrap();
    let request = client.build().unwrap().get(format!("https://localhost:{port}/healthz"));
    request.send().await.ok().map(|response| response.version())
}

/// Operating guide, "Start".
#[tokio::test]
async fn https_is_served_with_http_2_by_alpn_and_http_1_for_those_who_want_it() {
    let (app, _files, certificate) = https().await;
    assert!(app.url.starts_with("https://"));
    assert_eq!(speaks(&app, trusting(&certificate)).await, Some(Version::HTTP_2));
    assert_eq!(speaks(&app, trusting(&certificate).http1_only()).await, Some(Version::HTTP_11));
}

/// Interface sections 4 and 5, over HTTPS.
#[tokio::test]
async fn the_interface_is_the_same_behind_tls() {
    let (app, _files, certificate) = https().await;
    let client = app.org("Nursery").await;
    let http = trusting(&certificate).build().unwrap();
    let base = format!("https://localhost:{}", app.address().rsplit(':').next().unwrap());
    let kind = "application/x-www-form-urlencoded";
    let request = http.post(format!("{base}/v1/auth")).header("content-type", kind).body(client.form());
    let granted = crate::http::reply::Reply::to(request).await.json();
    let token = granted["access_token"].as_str().unwrap();
    let page = crate::http::reply::Reply::to(http.get(format!("{base}/v2/batches")).bearer_auth(token)).await;
    assert_eq!(page.text(), r#"{"data":[],"next_token":null}"#);
}

/// Operating guide, "Start": changed files are taken over within seconds.
#[tokio::test]
async fn a_renewed_certificate_is_served_without_a_restart() {
    let (app, files, old) = https().await;
    let new = files.renew();
    let renewed = Instant::now();
    while speaks(&app, trusting(&new)).await.is_none() {
        assert!(renewed.elapsed() < Duration::from_secs(10), "it was not taken over");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(speaks(&app, trusting(&old)).await, None);
}

/// Operating guide, "Start": broken ones are not.
#[tokio::test]
async fn broken_files_leave_the_certificate_before_them() {
    let (app, files, certificate) = https().await;
    std::fs::write(files.cert(), "-----BEGIN nonsense").unwrap();
    let place = files.cert().display().to_string();
    let broken = Instant::now();
    while journal::lines_with(&place).is_empty() {
        assert!(broken.elapsed() < Duration::from_secs(10), "nobody looked");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(journal::lines_with(&place)[0].contains("the one before stays"));
    assert_eq!(speaks(&app, trusting(&certificate)).await, Some(Version::HTTP_2));
}

/// Operating guide, "Start".
#[tokio::test]
async fn plain_http_at_a_tls_address_harms_only_itself() {
    let (app, _files, certificate) = https().await;
    let mut wire = Wire::open(&app).await;
    wire.send("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(!wire.rest().await.starts_with(b"HTTP/1.1 200"));
    assert!(speaks(&app, trusting(&certificate)).await.is_some());
}

/// Operating guide, "Start".
#[tokio::test]
async fn a_service_with_files_that_are_no_certificate_does_not_start() {
    let files = Files { folder: tempfile::tempdir().unwrap() };
    let app = TestApp::start().await;
    let bind = async || {
        Server::bind(app.store.clone(), files.options(), batchscan_server::clock::Clock::system()).await
    };
    let told = bind().await.unwrap_err().to_string();
    assert!(told.contains("cert.pem") && told.contains("cannot read"), "{told}");
    std::fs::write(files.cert(), "nonsense").unwrap();
    let told = bind().await.unwrap_err().to_string();
    assert!(told.contains("cert.pem") && told.contains("certificate in PEM form"), "{told}");
}
