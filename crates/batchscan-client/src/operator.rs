//! The operator API: imports files into an organisation. Retries nothing: that is the caller's schedule.

use std::fs::File;
use std::time::Duration;

use futures_util::{Stream, stream};
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::{Body, RequestBuilder, StatusCode};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::timeout;
use url::Url;

use crate::Error;
use crate::error::clip;
use crate::response::{SMALL_BYTES_MAX, parse_detail, read_body};

const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an import may make no progress: the service responds when the file is imported. Lost connections are
/// detected earlier, by TCP.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(600);
/// Bytes of a file that are sent at once.
const PART_BYTES: usize = 64 * 1024;

/// A client of the operator API of one service. A token is given with each request, since operators replace it.
#[derive(Clone, Debug)]
pub struct OperatorClient {
    http: reqwest::Client,
    base: Url,
}

/// A file to import.
#[derive(Debug)]
pub struct ImportFile {
    /// For the service's list of imports.
    pub name: String,
    /// Its format.
    pub media_type: &'static str,
    /// In bytes.
    pub size: u64,
    /// A content is imported once with the same key.
    pub idempotency_key: String,
    /// How to read it, instead of the stored mapping of the organisation: a TOML document.
    pub mapping: Option<String>,
    /// The content.
    pub content: File,
}

/// What a watched folder does.
#[derive(Debug, Serialize)]
pub struct WatcherReport {
    /// The name of its computer.
    pub host: String,
    /// The folder.
    pub folder: String,
    /// `running`, `waiting` or `stopped`.
    pub state: &'static str,
    /// Numbers of files, and why they wait.
    pub detail: String,
}

/// The result of an import.
#[derive(Debug)]
pub enum ImportOutcome {
    /// The file was imported.
    Imported(ImportedCounts),
    /// It was imported before, with the same key.
    Replayed,
    /// The service found errors in the file.
    Invalid(Vec<FileError>),
    /// The service, or a proxy, does not accept this file, but accepts others.
    Refused(Error),
}

/// Batches by their change, and warnings.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "each is what its name says")]
pub struct ImportedCounts {
    pub new: u64,
    pub corrected: u64,
    pub unchanged: u64,
    pub warnings: u64,
    /// The first warnings.
    #[serde(default)]
    pub messages: Vec<String>,
}

/// An error in a file.
#[derive(Debug, Deserialize)]
pub struct FileError {
    /// The line or row; `None` for an error of the whole file.
    pub line: Option<u64>,
    /// The field.
    pub field: Option<String>,
    /// What the file contains.
    pub found: String,
    /// What is valid.
    pub expected: Option<String>,
}

impl OperatorClient {
    /// A client for the operator's address of a service, which also trusts these certificates in PEM format. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the address is not valid, [`Error::RootCertificate`] if a certificate is not.
    pub fn new(url: &str, root_certificates_pem: Option<Vec<u8>>) -> Result<Self, Error> {
        let base = crate::http::parse_address(url)?;
        let roots: Vec<_> = root_certificates_pem.into_iter().collect();
        let http = crate::http::client(&base, &roots, |http| {
            // The service may close an idle connection at the moment of a request.
            http.pool_max_idle_per_host(0)
        })?;
        Ok(Self { http, base })
    }

    /// Whether the service accepts the token for imports into this organisation. Imports nothing.
    pub async fn check(&self, organisation: &str, token: &str) -> Result<(), Error> {
        let request = self.http.post(self.url(organisation, "imports")).query(&[("dry_run", "true")]);
        let request = request.header(CONTENT_TYPE, "application/json").body("[]").timeout(CHECK_TIMEOUT);
        self.send(request, token).await?.counts().map(drop)
    }

    /// Reports what a watched folder does.
    pub async fn report_watcher(
        &self,
        organisation: &str,
        token: &str,
        report: &WatcherReport,
    ) -> Result<(), Error> {
        let body = serde_json::to_vec(report).unwrap_or_default();
        let request = self.http.put(self.url(organisation, "watchers")).timeout(CHECK_TIMEOUT);
        let response = self.send(request.header(CONTENT_TYPE, "application/json").body(body), token).await?;
        if response.status.is_success() { Ok(()) } else { Err(response.rejected()) }
    }

    /// Lets the service record a file of a type that it does not import, without sending it.
    pub async fn report_other_type(&self, organisation: &str, token: &str, file: &str) -> Result<(), Error> {
        let request = self.http.post(self.url(organisation, "imports")).query(&[("file", file)]);
        let request = request.header(CONTENT_TYPE, "application/octet-stream").timeout(CHECK_TIMEOUT);
        match self.send(request, token).await? {
            response if response.status == StatusCode::UNSUPPORTED_MEDIA_TYPE => Ok(()),
            response => Err(response.rejected()),
        }
    }

    /// Imports a file. An error is not about the file.
    pub async fn import(
        &self,
        organisation: &str,
        token: &str,
        file: ImportFile,
    ) -> Result<ImportOutcome, Error> {
        let (progress, progressed) = watch::channel(());
        let url = self.url(organisation, "imports");
        let request = self
            .http
            .post(url.clone())
            .query(&[("file", &file.name)])
            .query(&file.mapping.map(|mapping| [("mapping", mapping)]))
            .header("Idempotency-Key", file.idempotency_key)
            .header(CONTENT_TYPE, file.media_type)
            .header(CONTENT_LENGTH, file.size)
            .body(Body::wrap_stream(read_noting_progress(file.content, progress)));
        let response = tokio::select! {
            response = self.send(request, token) => response?,
            () = stop_of(progressed) => {
                let reason = format!("no progress for {} s", RESPONSE_TIMEOUT.as_secs());
                return Err(Error::connection_lost(&url, reason));
            }
        };
        match response.status.as_u16() {
            200 if response.is_replay => response.counts().map(|_| ImportOutcome::Replayed),
            // Some are from a proxy, for example 413. All others can be fixed without touching the file.
            400 | 413 | 414 | 415 | 422 => {
                if let Some(errors) = response.errors_in_file() {
                    return Ok(ImportOutcome::Invalid(errors));
                }
                // With a wrong address, every file would be refused.
                self.check(organisation, token).await?;
                Ok(ImportOutcome::Refused(response.rejected()))
            }
            _ => response.counts().map(ImportOutcome::Imported),
        }
    }

    async fn send(&self, request: RequestBuilder, token: &str) -> Result<ImportResponse, Error> {
        let sent = request.bearer_auth(token).send().await;
        let response = sent.map_err(|error| Error::from_http(&error, &self.base))?;
        let (status, url) = (response.status(), response.url().clone());
        let is_replay = response.headers().get("idempotent-replayed").is_some_and(|value| value == "true");
        let body = read_body(response, SMALL_BYTES_MAX).await?;
        // Some servers repeat the request.
        let body = String::from_utf8_lossy(&body).replace(token, "[redacted]");
        Ok(ImportResponse { url, status, is_replay, body })
    }

    fn url(&self, organisation: &str, what: &str) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["operator", "v1", "organisations", organisation, what]);
        }
        url
    }
}

struct ImportResponse {
    url: Url,
    status: StatusCode,
    is_replay: bool,
    body: String,
}

impl ImportResponse {
    fn counts(&self) -> Result<ImportedCounts, Error> {
        if self.status != StatusCode::OK {
            return Err(self.rejected());
        }
        let no_counts = |_| Error::unexpected_response(&self.url, "it is not an operator API");
        serde_json::from_str(&self.body).map_err(no_counts)
    }

    fn rejected(&self) -> Error {
        let detail = parse_detail(self.body.as_bytes()).map(|detail| clip(&detail));
        Error::Rejected { status: self.status, detail }
    }

    /// `None` if the file was refused for another reason.
    fn errors_in_file(&self) -> Option<Vec<FileError>> {
        #[derive(Deserialize)]
        struct Body {
            detail: Vec<FileError>,
        }
        let Body { detail } = serde_json::from_str(&self.body).ok()?;
        (!detail.is_empty()).then_some(detail)
    }
}

/// The parts of a file. Each is a sign of progress.
fn read_noting_progress(
    file: File,
    progress: watch::Sender<()>,
) -> impl Stream<Item = std::io::Result<Vec<u8>>> + Send + 'static {
    stream::try_unfold((tokio::fs::File::from_std(file), progress), async |(mut file, progress)| {
        let mut part = Vec::with_capacity(PART_BYTES);
        file.read_buf(&mut part).await?;
        progress.send_replace(());
        Ok((!part.is_empty()).then_some((part, (file, progress))))
    })
}

/// Waits until there was no progress for a while, or until the response is overdue.
async fn stop_of(mut progress: watch::Receiver<()>) {
    while let Ok(changed) = timeout(RESPONSE_TIMEOUT, progress.changed()).await {
        if changed.is_err() {
            // Everything was sent.
            return tokio::time::sleep(RESPONSE_TIMEOUT).await;
        }
    }
}
