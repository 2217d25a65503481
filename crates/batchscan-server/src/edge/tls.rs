//! TLS with rustls. The files are watched: a renewed certificate is served without a restart.

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

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A certificate and its key, ready to use.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    /// When the files were changed last, as of the first reading.
    loaded: Modified,
    config: RwLock<Arc<ServerConfig>>,
}

/// When the certificate and the key were changed last.
type Modified = [Option<SystemTime>; 2];

/// Why a certificate or key cannot be used. Each says which file.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {path}: {cause}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// A file does not hold what it should.
    #[error("{path} holds no {what} in PEM form: it should begin with -----BEGIN …-----")]
    NotPem {
        /// The file.
        path: PathBuf,
        /// A certificate, or a private key.
        what: &'static str,
    },
    /// The two do not belong together, or are of no use.
    #[error("the certificate {cert} and the key {key} cannot be used: {cause}")]
    Unusable {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What rustls said.
        cause: String,
    },
}

impl Tls {
    /// Reads the files.
    pub fn load(files: TlsFiles) -> Result<Arc<Self>, TlsError> {
        // Looked at before the reading: a change that comes in between is seen as one.
        let loaded = modified(&files);
        let config = RwLock::new(read(&files)?);
        Ok(Arc::new(Self { files, loaded, config }))
    }

    /// Looks at the files for ever, and takes them over when they changed. Broken ones are left, with a warning.
    pub async fn watch(self: Arc<Self>) {
        let mut seen = self.loaded;
        let mut told = String::new();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = modified(&self.files);
            if now == seen {
                continue;
            }
            match read(&self.files) {
                Ok(config) => {
                    seen = now;
                    *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
                    tracing::info!(cert = %self.files.cert.display(), "took over the changed certificate");
                }
                // Looked at again and again, since what was unreadable may become readable; told once.
                Err(error) if error.to_string() != told => {
                    tracing::warn!(%error, "the changed certificate is not usable; the one before stays");
                    told = error.to_string();
                }
                Err(_) => {}
            }
        }
    }

    pub(super) async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner).clone();
        TlsAcceptor::from(config).accept(stream).await
    }
}

fn modified(files: &TlsFiles) -> Modified {
    let of = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    [of(&files.cert), of(&files.key)]
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
