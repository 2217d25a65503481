//! `serve --tls-cert --tls-key`, with curl.

use std::time::{Duration, Instant};

use crate::program::{Outcome, clean};
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
