//! TLS with rustls. A renewed certificate is loaded without a restart.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::config::TlsFiles;

/// How often the files are checked for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// A loaded certificate with its key.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    /// Modification times of the files when they were first loaded.
    loaded: ModificationTimes,
    config: RwLock<Arc<ServerConfig>>,
}

/// Of the certificate and the key.
type ModificationTimes = [Option<SystemTime>; 2];

/// Why a certificate or key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {path}: {cause}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        cause: String,
    },
    /// A file has the wrong content.
    #[error("{path} contains no {what} in PEM format: it must start with -----BEGIN …-----")]
    NotPem {
        /// The file.
        path: PathBuf,
        /// `certificate` or `private key`.
        what: &'static str,
    },
    /// The certificate and the key do not match or are not supported.
    #[error("cannot use the certificate {cert} with the key {key}: {cause}")]
    Unusable {
        /// The file of the certificate.
        cert: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// The error of rustls.
        cause: String,
    },
}

impl Tls {
    /// Loads the files.
    pub fn load(files: TlsFiles) -> Result<Arc<Self>, TlsError> {
        // Taken before reading, so that a change in between is noticed.
        let loaded = modification_times(&files);
        let config = RwLock::new(read(&files)?);
        Ok(Arc::new(Self { files, loaded, config }))
    }

    /// Reloads the files whenever they change, forever. Invalid files are ignored with a warning.
    pub async fn reload_on_change(self: Arc<Self>) {
        let mut loaded = self.loaded;
        let mut last_error = String::new();
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let modified = modification_times(&self.files);
            if modified == loaded {
                continue;
            }
            match read(&self.files) {
                Ok(config) => {
                    loaded = modified;
                    *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
                    tracing::info!(cert = %self.files.cert.display(), "reloaded the certificate");
                }
                // Tried again until the files are valid, logged once.
                Err(error) if error.to_string() != last_error => {
                    tracing::warn!(%error, "cannot reload the certificate; still using the old one");
                    last_error = error.to_string();
                }
                Err(_) => {}
            }
        }
    }

    pub(crate) async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner).clone();
        TlsAcceptor::from(config).accept(stream).await
    }
}

fn modification_times(files: &TlsFiles) -> ModificationTimes {
    let modified = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    [modified(&files.cert), modified(&files.key)]
}

fn read(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = CertificateDer::pem_file_iter(&files.cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| pem_error(&files.cert, "certificate", &error))?;
    if chain.is_empty() {
        return Err(TlsError::NotPem { path: files.cert.clone(), what: "certificate" });
    }
    let key = PrivateKeyDer::from_pem_file(&files.key);
    let key = key.map_err(|error| pem_error(&files.key, "private key", &error))?;
    let unusable = |error: rustls::Error| TlsError::Unusable {
        cert: files.cert.clone(),
        key: files.key.clone(),
        cause: error.to_string(),
    };
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(unusable)?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).map_err(unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn pem_error(path: &Path, what: &'static str, error: &pem::Error) -> TlsError {
    match error {
        pem::Error::Io(error) => TlsError::Unreadable { path: path.to_owned(), cause: error.to_string() },
        _ => TlsError::NotPem { path: path.to_owned(), what },
    }
}
