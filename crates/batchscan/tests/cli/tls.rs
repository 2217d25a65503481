//! `serve --tls-cert --tls-key` with curl, and `serve --self-signed`.

use std::time::{Duration, Instant};

use snapbox::file;

use crate::credentials::within;
use crate::program::{Outcome, clean};
use crate::service::LOGGED_WITHIN;
use crate::site::Site;

#[test]
fn a_changed_certificate_is_reloaded() {
    let site = Site::new();
    let write_certificate = || {
        let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        site.write("key.pem", certified.signing_key.serialize_pem());
        site.write("cert.pem", certified.cert.pem())
    };
    let cert = write_certificate();
    let service = site.serve(&["--tls-cert", &cert, "--tls-key", &site.name("key.pem")]);
    assert!(service.url.starts_with("https://127.0.0.1:"), "{}", service.url);
    let port = service.address().rsplit(':').next().unwrap();
    let alive = || {
        let mut curl = clean("curl");
        curl.args(["-sS", "--cacert", &cert, &format!("https://localhost:{port}/healthz")]);
        Outcome::run(curl.args(["--resolve", &format!("localhost:{port}:127.0.0.1")]))
    };
    assert_eq!(alive().succeeds(), "{\"status\":\"alive\"}");
    write_certificate();
    let renewed = Instant::now();
    while alive().code != Some(0) {
        assert!(renewed.elapsed() < Duration::from_secs(10), "{}", service.log());
        std::thread::sleep(Duration::from_millis(200));
    }
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
        let hint = format!("for trying only: clients trust it with --ca-cert {file}");
        within(LOGGED_WITHIN, "the hint is logged", || service.log().contains(&hint));
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
