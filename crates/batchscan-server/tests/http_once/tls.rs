//! HTTPS and the reloading of certificates.

use std::path::PathBuf;
use std::time::Duration;

use batchscan_server::config::TlsFiles;
use batchscan_server::serve::ServeOptions;
use batchscan_server::tls::Tls;
use reqwest::{Certificate, Version};
use tempfile::TempDir;

use crate::http::app::{FORM, skip_time};
use crate::http::log::lines_with;
use crate::http::*;

/// The service checks its files this often.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// A certificate for `localhost`.
pub(super) struct Files(TempDir);

impl Files {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Writes a new certificate and key. Returns the certificate, for clients.
    pub(super) fn renew(&self) -> Certificate {
        let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(self.path("key.pem"), generated.signing_key.serialize_pem()).unwrap();
        std::fs::write(self.path("cert.pem"), generated.cert.pem()).unwrap();
        Certificate::from_pem(generated.cert.pem().as_bytes()).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn tls_files(&self) -> TlsFiles {
        TlsFiles { cert: self.path("cert.pem"), key: self.path("key.pem") }
    }
}

async fn https() -> (TestApp, Files, Certificate) {
    let files = Files::new();
    let certificate = files.renew();
    let tls = Some(Tls::load(files.tls_files()).unwrap());
    (TestApp::serve(ServeOptions { tls, ..TestApp::options() }).await, files, certificate)
}

pub(super) fn trusting(certificate: &Certificate) -> reqwest::ClientBuilder {
    plain_client().tls_certs_only([certificate.clone()])
}

pub(super) fn base_url(app: &TestApp) -> String {
    format!("https://localhost:{}", app.address().rsplit(':').next().unwrap())
}

/// The protocol version, if the certificate is trusted.
async fn version(app: &TestApp, client: reqwest::ClientBuilder) -> Option<Version> {
    let request = client.build().unwrap().get(format!("{}/healthz", base_url(app)));
    request.send().await.ok().map(|response| response.version())
}

/// Operating guide, "Start"; contract sections 4 and 5.
#[tokio::test]
async fn https_serves_the_api_with_http_2_and_http_1() {
    let (app, _files, certificate) = https().await;
    assert!(app.url.starts_with("https://"));
    assert_eq!(version(&app, trusting(&certificate)).await, Some(Version::HTTP_2));
    assert_eq!(version(&app, trusting(&certificate).http1_only()).await, Some(Version::HTTP_11));
    let (client, http, base) =
        (app.org("Nursery").await, trusting(&certificate).build().unwrap(), base_url(&app));
    let request = http.post(format!("{base}/v1/auth")).header("content-type", FORM).body(client.form());
    let granted = Reply::to(request).await.json();
    let token = granted["access_token"].as_str().unwrap();
    let page = Reply::to(http.get(format!("{base}/v2/batches")).bearer_auth(token)).await;
    assert_eq!(page.text(), r#"{"data":[],"next_token":null}"#);
}

/// Operating guide, "Start".
#[tokio::test]
async fn a_renewed_certificate_is_served_without_a_restart() {
    let (app, files, old) = https().await;
    let new = files.renew();
    skip_time(CHECK_INTERVAL).await;
    until(async || version(&app, trusting(&new)).await.is_some()).await;
    assert_eq!(version(&app, trusting(&old)).await, None);
}

/// Operating guide, "Start".
#[tokio::test]
async fn invalid_files_do_not_replace_the_certificate() {
    let (app, files, certificate) = https().await;
    std::fs::write(files.path("cert.pem"), "-----BEGIN nonsense").unwrap();
    skip_time(CHECK_INTERVAL).await;
    let path = files.path("cert.pem").display().to_string();
    until(async || !lines_with(&path).is_empty()).await;
    assert!(lines_with(&path)[0].contains("still using the old one"));
    assert_eq!(version(&app, trusting(&certificate)).await, Some(Version::HTTP_2));
}

/// Operating guide, "Start".
#[tokio::test]
async fn plain_http_to_a_tls_address_fails_alone() {
    let (app, _files, certificate) = https().await;
    let mut raw = Raw::sending(&app, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(!raw.read_rest().await.starts_with(b"HTTP/1.1 200"));
    assert!(version(&app, trusting(&certificate)).await.is_some());
}
