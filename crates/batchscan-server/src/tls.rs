//! TLS with rustls. A renewed certificate is loaded without a restart.
//!
//! For testing HTTPS, a certificate can be generated at start. Its key is never written.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use ring::digest::{SHA256, digest};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{self, InconsistentKeys, ServerConfig};
use tokio_rustls::server::TlsStream;
use x509_cert::der::{DateTime, Decode};

use crate::config::TlsFiles;

/// How often the files are checked for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Clients reject certificates that are valid for much longer.
const SELF_SIGNED_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3_600);
/// For clients whose clock is slow.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(24 * 3_600);

/// A certificate that expires this soon is logged. Most are renewed earlier.
const EXPIRY_WARNING: Duration = Duration::from_secs(14 * 24 * 3_600);

/// A loaded certificate with its key.
#[derive(Debug)]
pub struct Tls {
    /// `None` if the certificate was made at start.
    files: Option<TlsFiles>,
    /// Modification times of the files when they were first loaded.
    loaded: ModificationTimes,
    config: RwLock<Arc<ServerConfig>>,
}

/// A certificate that was made at start, for clients that should trust it.
#[derive(Debug)]
pub struct SelfSigned {
    /// The certificate in PEM format.
    pub pem: String,
    /// The SHA-256 fingerprint, as browsers show it.
    pub fingerprint: String,
}

/// Of the certificate and the key.
type ModificationTimes = [Option<SystemTime>; 2];

/// Why a certificate or key cannot be used. The paths are those of the files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {0}: {1}")]
    Unreadable(PathBuf, String),
    /// A file has no certificate or private key.
    #[error("{0} contains no {1} in PEM format: it must start with -----BEGIN …-----")]
    NotPem(PathBuf, &'static str),
    /// The key needs a password.
    #[error(
        "the private key in {0} is encrypted: decrypt it with `openssl pkey -in {0} -out FILE`, and use that file"
    )]
    Encrypted(PathBuf),
    /// A file has the content of the other one.
    #[error("{path} contains a {found}, not a {what}: the certificate and key files are probably swapped")]
    Swapped {
        /// The file.
        path: PathBuf,
        /// What it contains.
        found: &'static str,
        /// What it should contain.
        what: &'static str,
    },
    /// The certificate has another key.
    #[error("the private key {} does not belong to the certificate {}", .0.key.display(), .0.cert.display())]
    Mismatch(TlsFiles),
    /// The certificate or the key is not supported.
    #[error("cannot use the certificate {cert} with the key {key}: {1}", cert = .0.cert.display(), key = .0.key.display())]
    Unusable(TlsFiles, String),
    /// A certificate cannot be generated.
    #[error("cannot make a certificate: {0}")]
    SelfSigned(String),
}

impl Tls {
    /// Loads the files.
    pub fn load(files: TlsFiles) -> Result<Arc<Self>, TlsError> {
        // Taken before reading, so that a change in between is noticed.
        let loaded = modification_times(&files);
        let config = RwLock::new(read(&files)?);
        Ok(Arc::new(Self { files: Some(files), loaded, config }))
    }

    /// Makes a certificate for these host names and addresses.
    pub fn self_signed(names: Vec<String>) -> Result<(Arc<Self>, SelfSigned), TlsError> {
        let failed = |error: rcgen::Error| TlsError::SelfSigned(error.to_string());
        let mut params = CertificateParams::new(names).map_err(failed)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "batchscan, for testing only");
        let now = SystemTime::now();
        params.not_before = (now - CLOCK_TOLERANCE).into();
        params.not_after = (now + SELF_SIGNED_LIFETIME).into();
        let key = KeyPair::generate().map_err(failed)?;
        let cert = params.self_signed(&key).map_err(failed)?;
        let private_key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        let config = server_config(vec![cert.der().clone()], private_key);
        let config = RwLock::new(config.map_err(|error| TlsError::SelfSigned(error.to_string()))?);
        let made = SelfSigned { pem: cert.pem(), fingerprint: fingerprint(cert.der()) };
        Ok((Arc::new(Self { files: None, loaded: [None; 2], config }), made))
    }

    /// Reloads the files whenever they change, forever. Invalid files are ignored with a warning.
    pub async fn reload_on_change(self: Arc<Self>) {
        let Some(files) = &self.files else { return };
        let mut loaded = self.loaded;
        let mut last_error = String::new();
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let modified = modification_times(files);
            if modified == loaded {
                continue;
            }
            match read(files) {
                Ok(config) => {
                    loaded = modified;
                    *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
                    tracing::info!(cert = %files.cert.display(), "reloaded the certificate");
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
        return Err(wrong_content(&files.cert, "certificate"));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key);
    let key = key.map_err(|error| pem_error(&files.key, "private key", &error))?;
    let not_after = not_after(&chain[0]);
    let config = server_config(chain, key).map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => TlsError::Mismatch(files.clone()),
        error => TlsError::Unusable(files.clone(), error.to_string()),
    })?;
    if let Some(not_after) = not_after {
        warn_if_expiring(&files.cert, not_after);
    }
    Ok(config)
}

fn not_after(cert: &CertificateDer<'_>) -> Option<DateTime> {
    Some(x509_cert::Certificate::from_der(cert).ok()?.tbs_certificate.validity.not_after.to_date_time())
}

fn warn_if_expiring(cert: &Path, not_after: DateTime) {
    let (cert, now) = (cert.display(), SystemTime::now());
    if not_after.to_system_time() < now {
        tracing::warn!(%cert, %not_after, "the certificate has expired: clients reject it");
    } else if not_after.to_system_time() < now + EXPIRY_WARNING {
        tracing::warn!(%cert, %not_after, "the certificate expires soon");
    }
}

fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// `AB:CD:…`.
fn fingerprint(der: &[u8]) -> String {
    let bytes: Vec<String> = digest(&SHA256, der).as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    bytes.join(":")
}

fn pem_error(path: &Path, what: &'static str, error: &pem::Error) -> TlsError {
    match error {
        pem::Error::Io(error) => TlsError::Unreadable(path.to_owned(), error.to_string()),
        _ => wrong_content(path, what),
    }
}

/// Why a file contains no certificate or key that can be used.
fn wrong_content(path: &Path, what: &'static str) -> TlsError {
    let text = std::fs::read(path).unwrap_or_default();
    let (path, text) = (path.to_owned(), String::from_utf8_lossy(&text));
    let is_key = what == "private key";
    if is_key && text.contains("ENCRYPTED") {
        TlsError::Encrypted(path)
    } else if is_key && text.contains("-----BEGIN CERTIFICATE-----") {
        TlsError::Swapped { path, found: "certificate", what }
    } else if !is_key && text.contains("PRIVATE KEY-----") {
        TlsError::Swapped { path, found: "private key", what }
    } else {
        TlsError::NotPem(path, what)
    }
}
