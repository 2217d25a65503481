//! Which certificates the SDK trusts, and how it reports the others.

use batchscan_client::{Client, ClientBuilder};
use batchscan_server::config::{Config, TlsFiles};
use batchscan_testbed::ScriptedServer;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use tempfile::TempDir;

use crate::error_messages::first_error;
use crate::mock_server::client_of;
use crate::{Service, ids, numbered};

/// A service with a certificate of a private authority.
struct TlsService {
    service: Service,
    authority_pem: String,
    _files: TempDir,
}

impl TlsService {
    /// Starts a service with a certificate for this host name, after `change`.
    async fn start(name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut root = CertificateParams::new(Vec::new()).unwrap();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = CertifiedIssuer::self_signed(root, KeyPair::generate().unwrap()).unwrap();
        let mut leaf = CertificateParams::new([name.to_owned()]).unwrap();
        change(&mut leaf);
        let key = KeyPair::generate().unwrap();
        let leaf = leaf.signed_by(&key, &root).unwrap();
        let files = tempfile::tempdir().unwrap();
        let tls = TlsFiles { cert: files.path().join("cert.pem"), key: files.path().join("key.pem") };
        std::fs::write(&tls.cert, leaf.pem()).unwrap();
        std::fs::write(&tls.key, key.serialize_pem()).unwrap();
        let service = Service::configured(Config { page_rows: 2, ..Config::default() }, Some(tls)).await;
        service.import(0..5).await;
        Self { service, authority_pem: root.pem(), _files: files }
    }

    fn host(&self) -> String {
        format!("localhost:{}", self.service.url().rsplit(':').next().unwrap())
    }

    /// A client that trusts only the system's authorities.
    fn client(&self) -> ClientBuilder {
        let Service { client_id, client_secret, .. } = &self.service;
        Client::builder(format!("https://{}", self.host())).credentials(client_id, client_secret)
    }
}

#[tokio::test]
async fn an_added_authority_is_trusted() {
    let service = TlsService::start("localhost", |_| ()).await;
    let (own, other) =
        (service.authority_pem.clone(), TlsService::start("localhost", |_| ()).await.authority_pem);
    for client in [
        service.client().root_certificates_pem(own.clone()),
        service.client().root_certificates_pem(format!("{other}\n{own}")),
        service.client().root_certificates_pem(other).root_certificates_pem(own),
    ] {
        assert_eq!(ids(client).await.unwrap(), numbered(0..5));
    }
    let expected = format!(
        "cannot trust {}: its certificate is not from a known authority; if you trust that authority, add its \
         certificate (--ca-cert FILE)",
        service.host()
    );
    assert_eq!(first_error(service.client()).await, (expected, false));
}

#[tokio::test]
async fn an_invalid_certificate_is_not_trusted() {
    let expired = |leaf: &mut CertificateParams| leaf.not_after = date_time_ymd(2020, 1, 1);
    let early = |leaf: &mut CertificateParams| leaf.not_before = date_time_ymd(3000, 1, 1);
    let authority = |leaf: &mut CertificateParams| leaf.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    for (service, reason) in [
        (
            TlsService::start("scans.example.org", |_| ()).await,
            "its certificate is for another host name; use the name in the certificate, or make one for this host",
        ),
        (
            TlsService::start("localhost", expired).await,
            "its certificate has expired; renew it, or check the clock of this machine",
        ),
        (
            TlsService::start("localhost", early).await,
            "its certificate is not valid yet; check the clock of this machine",
        ),
        (
            TlsService::start("localhost", authority).await,
            "its certificate is a CA certificate, which a server cannot use; make a server certificate, and trust the \
             CA with --ca-cert FILE",
        ),
    ] {
        let client = service.client().root_certificates_pem(service.authority_pem.clone());
        let expected = format!("cannot trust {}: {reason}", service.host());
        assert_eq!(first_error(client).await, (expected, false));
    }
}

#[tokio::test]
async fn the_wrong_scheme_is_reported() {
    let service = TlsService::start("localhost", |_| ()).await;
    let url = format!("http://{}", service.host());
    let expected = format!(
        "{url}/v2/auth does not respond like a batch scan service: it does not speak HTTP (try https://); check the \
         address"
    );
    assert_eq!(first_error(client_of(&url)).await, (expected, false));
    let service = Service::with_batches(1).await;
    let host = service.url().strip_prefix("http://").unwrap();
    let expected = format!("cannot trust {host}: it does not speak TLS (try http://)");
    assert_eq!(first_error(client_of(&format!("https://{host}"))).await, (expected, false));
}

#[tokio::test]
async fn a_connection_closed_during_the_handshake_is_reported() {
    let server = ScriptedServer::greeting("");
    let expected = format!(
        "cannot reach {}: it closed the connection; check the address, and that the service is running",
        server.address
    );
    assert_eq!(first_error(client_of(&format!("https://{}", server.address))).await, (expected, true));
}
