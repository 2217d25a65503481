//! Trusted root certificates: the system's, and those that the caller adds.

use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::Error;

/// The TLS configuration. Loading the system's roots takes a while, so it is left out where TLS is not used.
pub(crate) fn config(added_pem: &[Vec<u8>], with_system_roots: bool) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    if with_system_roots {
        // Unreadable roots are not trusted; the handshake fails if one was needed.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for pem in added_pem {
        add_roots(&mut roots, pem)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Error::Config(format!("cannot set up TLS: {error}")))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn add_roots(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), Error> {
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| Error::RootCertificate(error.to_string()))?;
        roots.add(certificate).map_err(|error| Error::RootCertificate(error.to_string()))?;
        count += 1;
    }
    if count == 0 { Err(Error::RootCertificate("no certificate in PEM format".into())) } else { Ok(()) }
}
