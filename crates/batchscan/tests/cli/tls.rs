//! `serve --tls-cert --tls-key` with curl, and `serve --self-signed`.

use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, KeyPair};
use snapbox::file;

use crate::program::{Outcome, clean, wait_until};
use crate::site::Site;

#[test]
fn a_certificate_that_expires_soon_is_logged_at_start_and_when_it_is_reloaded() {
    const DAY: Duration = Duration::from_secs(24 * 3_600);
    let site = Site::new();
    let write_certificate = |expires: SystemTime| {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = expires.into();
        let key = KeyPair::generate().unwrap();
        site.write("cert.pem", params.self_signed(&key).unwrap().pem());
        site.write("key.pem", key.serialize_pem());
    };
    let now = SystemTime::now();
    write_certificate(now - DAY);
    let service = site.serve(&["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    for (expires, warnings, text) in
        [(None, 1, "has expired"), (Some(15), 1, "reloaded"), (Some(13), 2, "expires soon")]
    {
        if let Some(days) = expires {
            write_certificate(now + days * DAY);
        }
        wait_until(text, || service.log().contains(text));
        assert_eq!(service.log().matches(" not_after=").count(), warnings, "{}", service.log());
    }
    let yesterday = jiff::Timestamp::try_from(now - DAY).unwrap().strftime("not_after=%Y-%m-%dT").to_string();
    assert!(service.log().contains(&yesterday), "{}", service.log());
}

#[test]
fn a_self_signed_certificate_is_written_for_clients() {
    let site = Site::new();
    let file = site.name("try.pem");
    let credential = site.credential();
    // Twice: a restart replaces the certificate.
    for _ in 0..2 {
        let service = site.serve(&["--self-signed", &file]);
        let url = &service.url;
        assert!(url.starts_with("https://127.0.0.1:"), "{url}");
        let hint = format!("for testing only: clients trust it with --ca-cert {file}");
        wait_until("the hint is logged", || service.log().contains(&hint));
        let log = service.log();
        let mut openssl = clean("openssl");
        openssl.args(["x509", "-noout", "-fingerprint", "-sha256", "-in", &file]);
        let shown = Outcome::run(&mut openssl).succeeds();
        assert!(log.contains(shown.split('=').nth(1).unwrap().trim()), "{log}{shown}");
        let localhost = url.replace("127.0.0.1", "localhost");
        for url in [url, &localhost] {
            let mut pull = site.command(&["pull", "-o", "-", "--format", "ndjson", "--url", url]);
            pull.args(["--client-id", &credential.id, "--ca-cert", &file]);
            let outcome = Outcome::run(pull.env("BATCHSCAN_CLIENT_SECRET", &credential.secret));
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
        }
    }
    let key = site.write("key.pem", "a key");
    site.transcript(
        &["serve --self-signed key.pem", "serve --self-signed a.pem --tls-cert b.pem --tls-key c.pem"],
        file!["snapshots/a_self_signed_certificate_replaces_no_other_file.txt"],
    );
    assert_eq!(std::fs::read_to_string(key).unwrap(), "a key");
}
