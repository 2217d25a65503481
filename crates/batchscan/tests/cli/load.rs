//! Clients that stall block no one else, and memory stays within the limit of the operating guide ("Sizing"). The delay of
//! others is printed.

use std::any::Any;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::Client;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Runtime;

use crate::http::{get, get_head, token};
use crate::scans;
use crate::service::Service;
use crate::site::{Credential, Site};

const STALLED_READERS: usize = 2_000;
const SLOW_WRITERS: usize = 1_000;
/// HTTP/2 connections and requests on each.
const HTTP2: (usize, usize) = (14, 64);
const REQUESTS: usize = 400;
/// By then, the service has filled the buffers of clients that do not read.
const SETTLED: Duration = Duration::from_secs(3);
const NOISY: &str = "Noisy Valley";

/// Does something with a token, and returns what must not be dropped.
type Attack = fn(&Service, &str) -> Box<dyn Any>;

#[test]
fn stalled_clients_block_no_one_and_use_a_limited_amount_of_memory() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let site = Site::alone();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_000, "x")));
    site.run(&["org", "add", NOISY]).succeeds();
    let many = site.write("many.ndjson", scans::ndjson(0..20_000, "x"));
    site.run(&["import", "--org", NOISY, &many]).succeeds();
    let noisy = site.run(&["credential", "issue", "--org", NOISY, "--json"]).succeeds();
    let noisy = Credential::from_json(&noisy);
    let normal = site.credential();
    let attacks: [(&str, Attack, usize); 3] = [
        ("2,000 stalled readers", stalled_readers, STALLED_READERS),
        ("1,000 slow writers", slow_writers, SLOW_WRITERS),
        ("896 HTTP/2 requests without a window", closed_windows, HTTP2.0),
    ];
    let quiet_service = site.serve(&[]);
    for (name, attack, connections) in attacks {
        let service = site.serve(&[]);
        let (normal, noisy) = (token(&service, &normal), token(&service, &noisy));
        let held = attack(&service, &noisy);
        std::thread::sleep(SETTLED);
        let (busy, quiet) = (p99(&service, &normal), p99(&quiet_service, &normal));
        println!("{name}: p99 {busy:?}, quiet {quiet:?}");
        let (peak_mib, requests) = (service.peak_kib() / 1_024, HTTP2.0 * HTTP2.1);
        println!("{name}: peak {peak_mib} MiB");
        assert!(peak_mib < 20 + (connections * 48 + requests * 64) as u64 / 1_024 + 512, "{name}");
        drop(held);
    }
}

/// The 99th percentile of a normal client's requests, which all succeed. Each is for another page, so that none is cached.
fn p99(service: &Service, token: &str) -> Duration {
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..REQUESTS {
        let started = Instant::now();
        assert_eq!(get(service, &page(), token).status, 200);
        times.push(started.elapsed());
    }
    times.sort();
    times[REQUESTS * 99 / 100]
}

/// A page that was not requested before.
fn page() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let secs = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("/v2/batches?start_date=2025-12-31T{:02}:{:02}:{:02}Z", secs / 3_600, secs / 60 % 60, secs % 60)
}

fn connections(service: &Service, count: usize, bytes: &str) -> Vec<TcpStream> {
    let connect = |_| {
        let mut stream = TcpStream::connect(service.address()).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        stream
    };
    (0..count).map(connect).collect()
}

fn stalled_readers(service: &Service, token: &str) -> Box<dyn Any> {
    let request = format!("{}\r\nHost: x\r\n\r\n", get_head("/v1/batches", token));
    let mut readers = connections(service, STALLED_READERS, &request);
    for reader in &mut readers {
        reader.read_exact(&mut [0; 12]).unwrap();
    }
    Box::new(readers)
}

fn slow_writers(service: &Service, _: &str) -> Box<dyn Any> {
    let form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 99";
    let request = format!("POST /v2/auth HTTP/1.1\r\nHost: x\r\n{form}\r\n\r\ngrant_type=");
    Box::new(connections(service, SLOW_WRITERS, &request))
}

fn closed_windows(service: &Service, token: &str) -> Box<dyn Any> {
    // Fails if another test has installed it.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let runtime = Runtime::new().unwrap();
    let mut responses = Vec::new();
    for _ in 0..HTTP2.0 {
        let http = Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .http2_prior_knowledge()
            .http2_initial_stream_window_size(1);
        let http = http.build().unwrap();
        for _ in 0..HTTP2.1 {
            let url = format!("{}{}", service.url, page());
            let request = http.get(&url).bearer_auth(token).send();
            // Some get a 503: this client may not use all of the memory.
            responses.push(runtime.block_on(request).unwrap());
        }
    }
    Box::new((responses, runtime))
}
