//! Whom to trust: the roots of this system, and those the caller adds.

use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::Error;

/// The TLS side of a client. `wants_system_roots` is false where no TLS will be spoken: reading them takes a while.
pub(crate) fn config(added_pem: &[Vec<u8>], wants_system_roots: bool) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    if wants_system_roots {
        // A root that cannot be read is one that is not trusted; the handshake tells if it was needed.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for pem in added_pem {
        add(&mut roots, pem)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Error::Settings(format!("TLS cannot be set up: {error}")))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn add(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), Error> {
    let wrong = |why: String| Error::Settings(format!("the added root certificate cannot be read: {why}"));
    let mut added = 0;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
        added += 1;
    }
    if added == 0 { Err(wrong("no certificate in PEM form".into())) } else { Ok(()) }
}
