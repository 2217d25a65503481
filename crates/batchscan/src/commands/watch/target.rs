//! Imports files into the database, or through the operator API of a service.

use std::convert::Infallible;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use batchscan_client::{
    Error, FileError, ImportFile, ImportOutcome, ImportedCounts, OperatorClient, WatcherReport,
};
use batchscan_formats::read::{ERRORS_SHOWN_MAX, LocatedError, Location, Mapping, ReadError, ReadOptions};
use batchscan_formats::{Format, unsupported_hint};
use batchscan_model::FieldError;
use batchscan_server::clock::Clock;
use batchscan_store::{
    Actor, AdminError, FOLDER_BYTES_MAX, HOST_BYTES_MAX, ImportError, ImportOptions, ImportResult,
    ImportSource, Store, Watcher, WatcherState, hash_file, import_file, platform,
};
use tokio::time::timeout;

use super::folder::{FileVersion, FoundFile, hex};
use super::{Failure, REPORT_INTERVAL};
use crate::args::Watch;
use crate::commands::context::open;
use crate::commands::import_preview::read_mapping;
use crate::connection;
use crate::platform::{open_complete, shell_quoted};

const TOKEN_VARIABLE: &str = "BATCHSCAN_OPERATOR_TOKEN";
/// Of what a watcher reports.
const DETAIL_BYTES_MAX: usize = 1_000;
const REPORT_TIMEOUT: Duration = Duration::from_secs(3);

/// A file to import.
pub(super) struct ClaimedFile {
    pub(super) hash: [u8; 32],
    file: File,
    name: String,
    format: Option<Format>,
    size: u64,
}

impl ClaimedFile {
    /// Opens and hashes a file. Fails if it is not the version that was found.
    pub(super) async fn open(path: &Path, found: &FoundFile) -> Result<Self, Failure> {
        if FileVersion::read(path)? != Some(found.version) {
            return Err(Failure::Changed);
        }
        let mut file = open_complete(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || FileVersion::new(&metadata)? != found.version {
            return Err(Failure::Changed);
        }
        let hashing = tokio::task::spawn_blocking(move || hash_file(&mut file).map(|hash| (file, hash)));
        let (file, hash) = hashing.await.map_err(std::io::Error::other)??;
        let format = Format::for_reading(path);
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
    Imported(ImportedCounts),
    /// The same content was imported before.
    Repeated,
    /// Errors in the file.
    Invalid(ReadError),
    /// The target never accepts this file; why.
    Refused(String),
}

/// Where files are imported into.
pub(super) struct Target {
    /// The database or the service, without secrets.
    pub(super) address: String,
    org: String,
    mapping: Option<PathBuf>,
    destination: Destination,
}

enum Destination {
    Database(Store),
    Service(Service),
}

impl Target {
    /// Opens the database. A service is not contacted: it may be down now.
    pub(super) async fn open(command: &Watch) -> anyhow::Result<Self> {
        command.mapping.as_deref().map(read_mapping).transpose()?;
        let (address, destination) = match &command.url {
            Some(url) => (url.clone(), Destination::Service(Service::new(url, command)?)),
            None => {
                let store = open(&command.database).await?;
                store.org(&command.org).await?;
                let user = Actor::of_process();
                let store = store.with_actor(Actor { name: format!("{} (watch)", user.name), ..user });
                (command.database.database.to_string(), Destination::Database(store))
            }
        };
        let (org, mapping) = (command.org.clone(), command.mapping.clone());
        Ok(Self { address, org, mapping, destination })
    }

    /// Whether the service accepts the token and knows the organisation. Wrong settings are reported before there are files.
    pub(super) async fn check(&self) -> Result<(), String> {
        match &self.destination {
            // Checked when it was opened.
            Destination::Database(..) => Ok(()),
            Destination::Service(service) => service.check().await,
        }
    }

    /// Where the mapping of the files is, for people.
    pub(super) fn mapping_name(&self) -> String {
        match &self.mapping {
            Some(file) => format!("the mapping {}", file.display()),
            None => format!("the mapping (`batchscan org mapping {}`)", shell_quoted(&self.org)),
        }
    }

    /// Reports what the watcher does. Only `batchscan status` would miss a report.
    pub(super) async fn report(
        &self,
        folder: &Path,
        state: WatcherState,
        detail: &str,
    ) -> Result<(), String> {
        let host = clean(&platform::host_name(), HOST_BYTES_MAX);
        let folder = clean(&folder.to_string_lossy(), FOLDER_BYTES_MAX);
        let detail = clean(detail, DETAIL_BYTES_MAX);
        let report = async {
            match &self.destination {
                Destination::Database(store) => {
                    let watcher = Watcher { host, folder, state, detail, seen_at: Clock::system().now() };
                    store.record_watcher(&self.org, watcher).await.map_err(|error| error.to_string())
                }
                Destination::Service(service) => {
                    service.report(WatcherReport { host, folder, state: state.name(), detail }).await
                }
            }
        };
        timeout(REPORT_TIMEOUT, report).await.unwrap_or_else(|_| Err("timed out".into()))
    }

    /// Reports while a file is imported, so that a long import is no sign of a dead watcher. SQLite has one writer: there,
    /// reports are lost until the import ends.
    pub(super) async fn report_import(&self, folder: &Path, file: &str) -> Infallible {
        let detail = format!("importing {file:?}");
        loop {
            tokio::time::sleep(REPORT_INTERVAL).await;
            let _ = self.report(folder, WatcherState::Running, &detail).await;
        }
    }

    /// Records a file of a type that is never imported.
    async fn refuse(&self, file: ClaimedFile) -> Result<Outcome, Failure> {
        let hint = unsupported_hint(Path::new(&file.name)).unwrap_or("has an unknown type");
        let reason = format!("it {hint}");
        match &self.destination {
            Destination::Database(store) => {
                let source =
                    ImportSource { file: Some(file.name), hash: Some(file.hash), ..ImportSource::default() };
                let recorded = store
                    .record_rejected(&self.org, source, vec![reason.clone()], Clock::system().now())
                    .await;
                recorded.map_err(|error| Failure::Temporary(error.to_string()))?;
            }
            Destination::Service(service) => service.report_other_type(&file.name).await?,
        }
        Ok(Outcome::Refused(reason))
    }

    pub(super) async fn import(&self, file: ClaimedFile) -> Result<Outcome, Failure> {
        let Some(format) = file.format else { return self.refuse(file).await };
        // Read again, so that a corrected mapping is used without a restart.
        let mapping = self.mapping.as_deref().map(read_mapping).transpose();
        let (text, mapping) = mapping.map_err(|error| Failure::Temporary(one_line(&error)))?.unzip();
        match &self.destination {
            Destination::Database(store) => {
                import_into_database(store, &self.org, format, file, mapping).await
            }
            Destination::Service(service) => service.send(format, file, text).await,
        }
    }
}

async fn import_into_database(
    store: &Store,
    org: &str,
    format: Format,
    file: ClaimedFile,
    mapping: Option<Mapping>,
) -> Result<Outcome, Failure> {
    let read = store.read_options(org, mapping, ReadOptions::default()).await;
    let read = read.map_err(|error| Failure::Temporary(error.to_string()))?;
    let key = Some(file.key());
    let source =
        ImportSource { file: Some(file.name), key, hash: Some(file.hash), ..ImportSource::default() };
    let options = ImportOptions { source, read, ..ImportOptions::new(Clock::system().now()) };
    let imported = import_file(store, org, (format, file.file), options, Arc::default()).await;
    match imported {
        Ok(imported) if imported.is_replay => Ok(Outcome::Repeated),
        Ok(imported) => {
            let ImportResult { counts, warnings, messages, .. } = imported;
            let (new, corrected, unchanged) = (counts.new, counts.corrected, counts.unchanged);
            Ok(Outcome::Imported(ImportedCounts { new, corrected, unchanged, warnings, messages }))
        }
        // A failing disk or share is not an error of the file.
        Err(ImportError::File(ReadError::Io(error))) => Err(Failure::Temporary(error.to_string())),
        Err(ImportError::File(error)) => Ok(Outcome::Invalid(error)),
        Err(ImportError::Store(error @ AdminError::KeyReused)) => Ok(Outcome::Refused(error.to_string())),
        Err(ImportError::Store(error)) => Err(Failure::Temporary(error.to_string())),
    }
}

/// A text as the service accepts it.
fn clean(text: &str, bytes_max: usize) -> String {
    let text = text.replace(char::is_control, " ");
    text[..text.floor_char_boundary(bytes_max)].to_owned()
}

/// The status file has one line.
fn one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").replace('\n', " ")
}

/// The operator API of a service.
struct Service {
    client: OperatorClient,
    org: String,
    token_file: Option<PathBuf>,
}

impl Service {
    fn new(url: &str, command: &Watch) -> anyhow::Result<Self> {
        let roots = connection::read_ca_cert(command.ca_cert.as_deref())?;
        let client = OperatorClient::new(url, roots)
            .map_err(|error| connection::name_certificate(error, command.ca_cert.as_deref()))?;
        let (org, token_file) = (command.org.clone(), command.token_file.clone());
        let service = Self { client, org, token_file };
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
        let token = token.trim_start_matches('\u{feff}').trim();
        if token.is_empty() {
            bail!("no token given: use --token-file, or set {TOKEN_VARIABLE}");
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            bail!("the token is not valid: the file must contain only the token, not its id");
        }
        Ok(token.to_owned())
    }

    async fn check(&self) -> Result<(), String> {
        let token = self.token().map_err(|error| format!("{error:#}"))?;
        self.client.check(&self.org, &token).await.map_err(reason)
    }

    async fn report_other_type(&self, file: &str) -> Result<(), Failure> {
        let token = self.token().map_err(|error| Failure::Temporary(format!("{error:#}")))?;
        let reported = self.client.report_other_type(&self.org, &token, file).await;
        reported.map_err(|error| Failure::Temporary(reason(error)))
    }

    async fn report(&self, report: WatcherReport) -> Result<(), String> {
        let token = self.token().map_err(|error| format!("{error:#}"))?;
        self.client.report_watcher(&self.org, &token, &report).await.map_err(reason)
    }

    async fn send(
        &self,
        format: Format,
        file: ClaimedFile,
        mapping: Option<String>,
    ) -> Result<Outcome, Failure> {
        let token = self.token().map_err(|error| Failure::Temporary(format!("{error:#}")))?;
        let idempotency_key = file.key();
        let ClaimedFile { name, size, file: content, .. } = file;
        let media_type = format.media_type();
        let file = ImportFile { name, media_type, size, idempotency_key, mapping, content };
        let sent = self.client.import(&self.org, &token, file).await;
        Ok(match sent.map_err(|error| Failure::Temporary(reason(error)))? {
            ImportOutcome::Imported(counts) => Outcome::Imported(counts),
            ImportOutcome::Replayed => Outcome::Repeated,
            ImportOutcome::Invalid(errors) => Outcome::Invalid(read_error(errors, format)),
            ImportOutcome::Refused(error) => Outcome::Refused(reason(error)),
        })
    }
}

/// Why there is no import. The host is shown next to it.
fn reason(error: Error) -> String {
    match error {
        Error::Unreachable { reason, .. }
        | Error::Untrusted { reason, .. }
        | Error::ConnectionLost { reason, .. } => reason,
        Error::Rejected { status, detail } => {
            let detail = detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
            let advice = match status.as_u16() {
                401 | 403 | 404 => "; check the token, the organisation and the address",
                _ => "",
            };
            format!("it responded with {status}{detail}{advice}")
        }
        other => other.to_string(),
    }
}

/// The errors of a rejected file, as the import reports them.
fn read_error(errors: Vec<FileError>, format: Format) -> ReadError {
    let located = |FileError { line, field, found, expected }: FileError| {
        let location = match line {
            None => Location::File,
            Some(line) if format.is_text() => Location::Line(line),
            Some(row) => Location::Row(row),
        };
        let (field, expected) = (field.unwrap_or_default(), expected.unwrap_or_default());
        LocatedError { location, error: FieldError { field, found, expected } }
    };
    let more = errors.len() >= ERRORS_SHOWN_MAX;
    let errors = errors.into_iter().map(located).collect();
    ReadError::Invalid { errors, more, only_implausible: false }
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
