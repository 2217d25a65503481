//! TLS to the database, configured by `sslmode` and `sslrootcert`.

use std::sync::Arc;

use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{self, CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::url::TlsOptions;

/// A connector for the given options. The error describes a problem with the root certificates.
pub(super) fn connector(options: &TlsOptions) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = if options.verify {
        builder.with_root_certificates(roots(options)?).with_no_client_auth()
    } else {
        // As in every PostgreSQL client, `require` and `prefer` encrypt but do not verify the server.
        let verifier = Arc::new(NoVerification(provider));
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
    };
    Ok(MakeRustlsConnect::new(config))
}

fn roots(options: &TlsOptions) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match &options.roots {
        Some(file) => {
            let certs = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let certs = certs.map_err(|error| format!("sslrootcert {}: {error}", file.display()))?;
            for cert in certs {
                roots.add(cert).map_err(|error| format!("sslrootcert {}: {error}", file.display()))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err("no root certificates to verify the server: set a file with sslrootcert".into());
    }
    Ok(roots)
}

/// A method that calls the function of the same name.
macro_rules! verify_signature {
    ($name:ident) => {
        fn $name(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            crypto::$name(message, cert, signature, &self.0.signature_verification_algorithms)
        }
    };
}

/// Accepts any certificate. The signatures of the handshake are still checked: the server has the key.
#[derive(Debug)]
struct NoVerification(Arc<CryptoProvider>);

impl ServerCertVerifier for NoVerification {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    verify_signature!(verify_tls12_signature);
    verify_signature!(verify_tls13_signature);

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
