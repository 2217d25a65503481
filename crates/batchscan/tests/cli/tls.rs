//! `serve --tls-cert --tls-key`, as a stranger's client meets it.

use std::time::{Duration, Instant};

use crate::program::{Outcome, clean};
use crate::site::Site;

#[test]
fn https_is_served_and_a_renewed_certificate_is_taken_over_without_a_restart() {
    let site = Site::new();
    let put = || {
        let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        site.write("key.pem", certified.signing_key.serialize_pem());
        site.write("cert.pem", certified.cert.pem())
    };
    let cert = put();
    let service = site.serve(&["--tls-cert", &cert, "--tls-key", &site.name("key.pem")]);
    assert!(service.url.starts_with("https://127.0.0.1:"), "{}", service.url);
    let port = service.address().rsplit(':').next().unwrap();
    let alive = || {
        let mut curl = clean("curl");
        curl.args(["-sS", "--cacert", &cert, &format!("https://localhost:{port}/healthz")]);
        Outcome::of(curl.args(["--resolve", &format!("localhost:{port}:127.0.0.1")]))
    };
    assert_eq!(alive().done(), "{\"status\":\"alive\"}");
    put();
    let renewed = Instant::now();
    while alive().code != Some(0) {
        assert!(renewed.elapsed() < Duration::from_secs(10), "{}", service.log());
        std::thread::sleep(Duration::from_millis(200));
    }
}
