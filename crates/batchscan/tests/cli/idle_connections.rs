//! Idle connections do not block others.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::http::{get, token};
use crate::scans;
use crate::site::Site;

const IDLE_CONNECTIONS: usize = 500;
const LIMIT: Duration = Duration::from_secs(1);

#[test]
fn five_hundred_idle_connections_do_not_block_others() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_000, "x")));
    let service = site.serve(&[]);
    let credential = site.credential();
    let beginnings = [
        "",
        "GET /v1/batches HT",
        "POST /v2/auth HTTP/1.1\r\nContent-Length: 99\r\n\r\ngrant_type=",
        "PRI * HTTP/2",
    ];
    let idle: Vec<TcpStream> = (0..IDLE_CONNECTIONS)
        .map(|number| {
            let mut stream = TcpStream::connect(service.address()).unwrap();
            stream.write_all(beginnings[number % beginnings.len()].as_bytes()).unwrap();
            stream
        })
        .collect();
    for _ in 0..5 {
        let started = Instant::now();
        let token = token(&service, &credential);
        assert_eq!(get(&service, "/v2/batches", &token).json()["data"].as_array().unwrap().len(), 1_000);
        assert!(started.elapsed() < LIMIT, "a client waited {:?}", started.elapsed());
    }
    drop(idle);
}
