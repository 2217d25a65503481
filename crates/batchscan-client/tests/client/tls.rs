//! Whom the SDK trusts, and what it says of those it does not.

use batchscan_client::{Client, ClientBuilder};
use batchscan_server::config::{Config, TlsFiles};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

use crate::script::{Script, client_of};
use crate::{ALL, Service, ids, numbered, to};

/// A service behind a certificate, and the PEM of the authority that it is from.
struct Site {
    service: Service,
    authority: String,
    _files: TempDir,
}

impl Site {
    /// A certificate of a private authority for this name, after the changes that `alter` makes.
    async fn named(name: &str, alter: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut root = CertificateParams::new(Vec::new()).unwrap();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = CertifiedIssuer::self_signed(root, KeyPair::generate().unwrap()).unwrap();
        let mut leaf = CertificateParams::new([name.to_owned()]).unwrap();
        alter(&mut leaf);
        let key = KeyPair::generate().unwrap();
        let leaf = leaf.signed_by(&key, &root).unwrap();
        let files = tempfile::tempdir().unwrap();
        let tls = TlsFiles { cert: files.path().join("cert.pem"), key: files.path().join("key.pem") };
        std::fs::write(&tls.cert, leaf.pem()).unwrap();
        std::fs::write(&tls.key, key.serialize_pem()).unwrap();
        let service = Service::configured(Config { page_rows: 2, ..Config::default() }, Some(tls)).await;
        service.import(0..5).await;
        Self { service, authority: root.pem(), _files: files }
    }

    fn host(&self) -> String {
        format!("localhost:{}", self.service.url().rsplit(':').next().unwrap())
    }

    fn client(&self) -> ClientBuilder {
        let Service { client_id, client_secret, .. } = &self.service;
        Client::builder(format!("https://{}", self.host())).credentials(client_id, client_secret)
    }
}

async fn told(client: ClientBuilder) -> (String, bool) {
    let error = ids(client.build().unwrap().batches(ALL)).await.unwrap_err();
    (error.to_string(), error.can_retry())
}

#[tokio::test]
async fn a_private_authority_is_trusted_where_it_is_added() {
    let site = Site::named("localhost", |_| ()).await;
    let client = site.client().root_certificates_pem(site.authority.clone()).build().unwrap();
    assert_eq!(ids(client.batches(ALL)).await.unwrap(), numbered(0..5));
}

#[tokio::test]
async fn an_authority_is_found_among_several() {
    let (site, other) = (Site::named("localhost", |_| ()).await, Site::named("localhost", |_| ()).await);
    let both = format!("{}\n{}", other.authority, site.authority);
    for client in [
        site.client().root_certificates_pem(both),
        site.client().root_certificates_pem(other.authority).root_certificates_pem(site.authority.clone()),
    ] {
        assert_eq!(ids(client.build().unwrap().batches(ALL)).await.unwrap(), numbered(0..5));
    }
}

#[tokio::test]
async fn an_unknown_authority_is_not_trusted() {
    let site = Site::named("localhost", |_| ()).await;
    let expected = format!("cannot trust {}: the certificate is not from a known authority", site.host());
    assert_eq!(told(site.client()).await, (expected, false));
}

#[tokio::test]
async fn a_certificate_for_another_host_is_not_trusted() {
    let site = Site::named("scans.example.org", |_| ()).await;
    let client = site.client().root_certificates_pem(site.authority.clone());
    let expected = format!("cannot trust {}: the certificate is for another host name", site.host());
    assert_eq!(told(client).await, (expected, false));
}

#[tokio::test]
async fn a_certificate_whose_time_is_over_or_has_not_come_is_not_trusted() {
    let expired = |leaf: &mut CertificateParams| leaf.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let early = |leaf: &mut CertificateParams| leaf.not_before = rcgen::date_time_ymd(3000, 1, 1);
    let site = Site::named("localhost", expired).await;
    let client = site.client().root_certificates_pem(site.authority.clone());
    assert_eq!(told(client).await.0, format!("cannot trust {}: the certificate has expired", site.host()));
    let site = Site::named("localhost", early).await;
    let client = site.client().root_certificates_pem(site.authority.clone());
    assert_eq!(
        told(client).await.0,
        format!("cannot trust {}: the certificate is not valid yet", site.host())
    );
}

#[tokio::test]
async fn http_at_an_https_port() {
    let site = Site::named("localhost", |_| ()).await;
    let url = format!("http://{}", site.host());
    let expected = format!(
        "{url}/v2/auth does not answer like a batch scan service: it does not speak HTTP, perhaps its address begins \
         with https://; check the address"
    );
    assert_eq!(told(client_of(&url)).await, (expected, false));
}

#[tokio::test]
async fn https_at_an_http_port() {
    let service = Service::with_batches(1).await;
    let url = to(&service).build().map(|_| service.url().replace("http://", "https://")).unwrap();
    let why = "it does not speak TLS, perhaps its address begins with http://";
    let host = url.strip_prefix("https://").unwrap();
    assert_eq!(told(client_of(&url)).await, (format!("cannot trust {host}: {why}"), false));
}

#[tokio::test]
async fn https_where_every_caller_is_turned_away() {
    let script = Script::greeting("").await;
    let (told, can_retry) = told(client_of(&format!("https://{}", script.address))).await;
    assert_eq!(
        (told, can_retry),
        (
            format!(
                "cannot reach {}: it hung up; check the address, and that the service runs",
                script.address
            ),
            true
        )
    );
}
