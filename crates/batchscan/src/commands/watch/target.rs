//! Imports files into the database, or through the operator API of a service.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use batchscan_client::Error;
use batchscan_formats::Format;
use batchscan_formats::read::{ERRORS_SHOWN_MAX, LocatedError, Location, ReadError};
use batchscan_model::FieldError;
use batchscan_server::clock::Clock;
use batchscan_store::{AdminError, ImportError, ImportOptions, ImportSource, Store, hash_file, import_file};
use futures_util::{Stream, stream};
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::redirect::Policy;
use reqwest::{Body, Certificate, Client, RequestBuilder, Response, StatusCode, Url};
use rustix::fs::OFlags;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::rustls::crypto::ring::default_provider;

use super::Failure;
use super::folder::{FileVersion, FoundFile, hex};
use crate::args::Watch;
use crate::commands::context::open;

const TOKEN_VARIABLE: &str = "BATCHSCAN_OPERATOR_TOKEN";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an import may make no progress: the service responds when the file is imported. Lost connections are
/// detected earlier, by TCP.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(600);
/// Bytes of a file that are sent at once.
const PART_BYTES: usize = 64 * 1024;
/// Twenty errors have a few KiB.
const RESPONSE_BYTES_MAX: usize = 256 * 1024;
/// How much of a service's own text is shown.
const DETAIL_CHARS_MAX: usize = 300;

/// A file to import.
pub(super) struct ClaimedFile {
    pub(super) hash: [u8; 32],
    file: File,
    name: String,
    format: Format,
    size: u64,
}

impl ClaimedFile {
    /// Opens and hashes a file. Fails if it is not the version that was found.
    pub(super) async fn open(path: &Path, found: &FoundFile) -> Result<Self, Failure> {
        if FileVersion::read(path)? != Some(found.version) {
            return Err(Failure::Changed);
        }
        // A pipe would block, and a link would import another file.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let mut file = File::options().read(true).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || FileVersion::new(&metadata)? != found.version {
            return Err(Failure::Changed);
        }
        let hashing = tokio::task::spawn_blocking(move || hash_file(&mut file).map(|hash| (file, hash)));
        let (file, hash) = hashing.await.map_err(std::io::Error::other)??;
        let format = Format::for_reading(path).ok_or(Failure::Changed)?;
        // As the operator API requires.
        let name = found.name.replace(char::is_control, "_");
        Ok(Self { hash, file, name, format, size: found.version.size })
    }

    /// The same content is imported once, whatever its name.
    fn key(&self) -> String {
        format!("sha256:{}", hex(&self.hash))
    }
}

/// The result of an import.
pub(super) enum Outcome {
    Imported(Counts),
    /// The same content was imported before.
    Repeated,
    /// Errors in the file.
    Invalid(ReadError),
    /// The target never accepts this file; why.
    Refused(String),
}

/// Batches by their change, and warnings.
#[derive(Deserialize)]
pub(super) struct Counts {
    pub(super) new: u64,
    pub(super) corrected: u64,
    pub(super) unchanged: u64,
    pub(super) warnings: u64,
    /// Not known from a service.
    #[serde(skip)]
    pub(super) first_warning: Option<String>,
}

/// Where files are imported into.
pub(super) struct Target {
    /// The database or the service, without secrets.
    pub(super) address: String,
    org: String,
    destination: Destination,
}

enum Destination {
    Database(Store),
    Service(Service),
}

impl Target {
    /// Opens the database. A service is not contacted: it may be down now.
    pub(super) async fn open(command: &Watch) -> anyhow::Result<Self> {
        let (address, destination) = match &command.url {
            Some(url) => (url.clone(), Destination::Service(Service::new(url, command)?)),
            None => {
                let store = open(&command.database).await?;
                store.org(&command.org).await?;
                (command.database.database.to_string(), Destination::Database(store))
            }
        };
        Ok(Self { address, org: command.org.clone(), destination })
    }

    /// Whether the service accepts the token and knows the organisation. Wrong settings are reported before there are files.
    pub(super) async fn check(&self) -> Result<(), String> {
        match &self.destination {
            // Checked when it was opened.
            Destination::Database(_) => Ok(()),
            Destination::Service(service) => service.check().await,
        }
    }

    pub(super) async fn import(&self, file: ClaimedFile) -> Result<Outcome, Failure> {
        match &self.destination {
            Destination::Database(store) => import_into_database(store, &self.org, file).await,
            Destination::Service(service) => service.send(file).await,
        }
    }
}

async fn import_into_database(store: &Store, org: &str, file: ClaimedFile) -> Result<Outcome, Failure> {
    let key = Some(file.key());
    let source = ImportSource { file: Some(file.name), key, hash: Some(file.hash), org: None };
    let options = ImportOptions { source, ..ImportOptions::new(Clock::system().now()) };
    let imported = import_file(store, org, (file.format, file.file), options, Arc::default()).await;
    match imported {
        Ok(imported) if imported.is_replay => Ok(Outcome::Repeated),
        Ok(imported) => {
            let counts = imported.counts;
            let (new, corrected, unchanged) = (counts.new, counts.corrected, counts.unchanged);
            let warnings = imported.warnings.count;
            let first_warning = imported.warnings.first.first().map(ToString::to_string);
            Ok(Outcome::Imported(Counts { new, corrected, unchanged, warnings, first_warning }))
        }
        // A failing disk or share is not an error of the file.
        Err(ImportError::File(ReadError::Io(error))) => Err(Failure::Temporary(error.to_string())),
        Err(ImportError::File(error)) => Ok(Outcome::Invalid(error)),
        Err(ImportError::Store(error @ AdminError::KeyReused)) => Ok(Outcome::Refused(error.to_string())),
        Err(ImportError::Store(error)) => Err(Failure::Temporary(error.to_string())),
    }
}

/// The operator API of a service.
struct Service {
    http: Client,
    imports: Url,
    token_file: Option<PathBuf>,
}

impl Service {
    fn new(url: &str, command: &Watch) -> anyhow::Result<Self> {
        let mut imports = Url::parse(url).context("invalid address of the service")?;
        // The address is logged.
        if !imports.username().is_empty() || imports.password().is_some() {
            bail!("the address of the service must not contain a user name or a password");
        }
        let is_loopback = matches!(imports.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        let organisation = ["operator", "v1", "organisations", &command.org, "imports"];
        if let Ok(mut path) = imports.path_segments_mut() {
            path.pop_if_empty().extend(organisation);
        }
        let _ = default_provider().install_default();
        let mut http = Client::builder()
            // The token only goes to the address it was given for.
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            // The service may close an idle connection at the moment of a request.
            .pool_max_idle_per_host(0)
            .user_agent(concat!("batchscan/", env!("CARGO_PKG_VERSION")));
        if is_loopback {
            // A proxy would connect to its own loopback.
            http = http.no_proxy();
        }
        if let Some(file) = &command.ca_cert {
            let added = || Ok(Certificate::from_pem_bundle(&std::fs::read(file)?)?);
            let added: anyhow::Result<_> = added();
            http = http.tls_certs_merge(added.with_context(|| format!("cannot read {}", file.display()))?);
        }
        let http = http.build().context("cannot set up HTTP")?;
        let service = Self { http, imports, token_file: command.token_file.clone() };
        service.token()?;
        Ok(service)
    }

    /// Reads the token, so that a new one in the file is used without a restart. No error contains any part of it.
    fn token(&self) -> anyhow::Result<String> {
        let token = match &self.token_file {
            Some(file) => std::fs::read_to_string(file)
                .with_context(|| format!("cannot read the token from {}", file.display()))?,
            None => std::env::var(TOKEN_VARIABLE).unwrap_or_default(),
        };
        let token = token.trim();
        if token.is_empty() {
            bail!("no token given: use --token-file, or set {TOKEN_VARIABLE}");
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            bail!("the token is not valid: the file must contain only the token, not its id");
        }
        Ok(token.to_owned())
    }

    /// Imports nothing, as a dry run.
    async fn check(&self) -> Result<(), String> {
        let request = self.http.post(self.imports.clone()).query(&[("dry_run", "true")]);
        let request =
            request.header(CONTENT_TYPE, Format::Json.media_type()).body("[]").timeout(CHECK_TIMEOUT);
        let response = self.respond(request).await?;
        response.counts().map(|_| ())
    }

    async fn send(&self, file: ClaimedFile) -> Result<Outcome, Failure> {
        let (progress, progressed) = watch::channel(());
        let request = self
            .http
            .post(self.imports.clone())
            .query(&[("file", &file.name)])
            .header("Idempotency-Key", file.key())
            .header(CONTENT_TYPE, file.format.media_type())
            .header(CONTENT_LENGTH, file.size)
            .body(Body::wrap_stream(read_noting_progress(file.file, progress)));
        let response = tokio::select! {
            response = self.respond(request) => response,
            () = stop_of(progressed) => Err(format!("no progress for {} s", RESPONSE_TIMEOUT.as_secs())),
        };
        let response = response.map_err(Failure::Temporary)?;
        match response.status.as_u16() {
            200 if response.is_replay && response.counts().is_ok() => Ok(Outcome::Repeated),
            // Some are from a proxy, for example 413. All others can be fixed without touching the file.
            400 | 413 | 414 | 415 | 422 => {
                if let Some(error) = errors_in_file(&response, file.format) {
                    return Ok(Outcome::Invalid(error));
                }
                // With a wrong address, every file would be refused.
                self.check().await.map_err(Failure::Temporary)?;
                Ok(Outcome::Refused(response.text()))
            }
            _ => response.counts().map(Outcome::Imported).map_err(Failure::Temporary),
        }
    }

    async fn respond(&self, request: RequestBuilder) -> Result<ServiceResponse, String> {
        let token = self.token().map_err(|error| format!("{error:#}"))?;
        let failed = |error: reqwest::Error| reason(Error::from_http(&error, &self.imports));
        let response = request.bearer_auth(&token).send().await.map_err(failed)?;
        let status = response.status();
        let is_replay = response.headers().get("idempotent-replayed").is_some_and(|value| value == "true");
        let body = read_body(response).await.map_err(failed)?;
        // Some servers repeat the request.
        let body = String::from_utf8_lossy(&body).replace(&token, "[redacted]");
        Ok(ServiceResponse { status, is_replay, body })
    }
}

struct ServiceResponse {
    status: StatusCode,
    is_replay: bool,
    body: String,
}

impl ServiceResponse {
    fn counts(&self) -> Result<Counts, String> {
        if self.status != StatusCode::OK {
            return Err(self.text());
        }
        serde_json::from_str(&self.body).map_err(|_| "it is not an operator API; check the address".into())
    }

    /// The status and the service's explanation, in one line.
    fn text(&self) -> String {
        let status = self.status;
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        let detail = match &body["detail"] {
            Value::Null => String::new(),
            detail => {
                let text = detail.as_str().map_or_else(|| detail.to_string(), str::to_owned);
                let line = text.replace(char::is_control, " ");
                format!(" ({})", line.chars().take(DETAIL_CHARS_MAX).collect::<String>())
            }
        };
        let advice = match status.as_u16() {
            401 | 403 | 404 => "; check the token, the organisation and the address",
            _ => "",
        };
        format!("it responded with {status}{detail}{advice}")
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

/// Why there is no response. The host is shown next to it.
fn reason(error: Error) -> String {
    match error {
        Error::Unreachable { reason, .. }
        | Error::Untrusted { reason, .. }
        | Error::ConnectionLost { reason, .. } => reason,
        other => other.to_string(),
    }
}

/// The body of a response, up to a limit.
async fn read_body(mut response: Response) -> reqwest::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() > RESPONSE_BYTES_MAX {
            break;
        }
    }
    Ok(body)
}

/// An error of a 422.
#[derive(Deserialize)]
struct DetailEntry {
    line: Option<u64>,
    field: Option<String>,
    found: String,
    expected: Option<String>,
}

/// The errors of a rejected file, as the import reports them; `None` if it was refused for another reason.
fn errors_in_file(response: &ServiceResponse, format: Format) -> Option<ReadError> {
    #[derive(Deserialize)]
    struct Detail {
        detail: Vec<DetailEntry>,
    }
    let Detail { detail } = serde_json::from_str(&response.body).ok()?;
    if detail.is_empty() {
        return None;
    }
    let errors: Vec<_> = detail
        .into_iter()
        .map(|DetailEntry { line, field, found, expected }| {
            let location = match line {
                None => Location::File,
                Some(line) if format.is_text() => Location::Line(line),
                Some(row) => Location::Row(row),
            };
            let (field, expected) = (field.unwrap_or_default(), expected.unwrap_or_default());
            LocatedError { location, error: FieldError { field, found, expected } }
        })
        .collect();
    let more = errors.len() >= ERRORS_SHOWN_MAX;
    Some(ReadError::Invalid { errors, more, only_implausible: false })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::super::folder::Folder;
    use super::*;

    /// What a file becomes between the list and the import, and whether it is then imported.
    async fn is_opened(change: impl FnOnce(&Path)) -> bool {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("a.csv");
        fs::write(&path, "complete").unwrap();
        let mut folder = Folder::new(temporary.path(), Duration::ZERO);
        let found = folder.list().unwrap().pop().unwrap();
        change(&path);
        let claimed = folder.claim(&found).unwrap();
        ClaimedFile::open(&claimed, &found).await.is_ok()
    }

    #[tokio::test]
    async fn a_file_that_changed_since_the_list_is_left_for_later() {
        assert!(is_opened(|_| ()).await);
        assert!(!is_opened(|path| fs::write(path, "half").unwrap()).await);
        assert!(
            !is_opened(|path| {
                fs::rename(path, path.with_extension("old")).unwrap();
                std::os::unix::fs::symlink("a.old", path).unwrap();
            })
            .await
        );
        assert!(
            !is_opened(|path| {
                fs::remove_file(path).unwrap();
                let mkfifo = std::process::Command::new("mkfifo").arg(path).status().unwrap();
                assert!(mkfifo.success());
            })
            .await
        );
    }
}
