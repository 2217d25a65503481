//! Shutdown: responses in progress are finished, stalled readers are cut off.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::NamedTempFile;

use crate::http::{Body, get_head, request, send, token};
use crate::program::wait_until;
use crate::scans;
use crate::service::Service;
use crate::site::Site;

/// More than the socket buffers can hold.
const BATCHES: u64 = 40_000;
/// Responses in progress may take longer than a test that hangs: who does not need it must not wait for it.
const LONG_DRAIN: &[&str] = &["--drain", "1h"];

fn filled() -> Site {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..BATCHES, "x")));
    site
}

/// A response of which the first bytes are read.
fn pull(service: &Service, site: &Site) -> (Body, Vec<u8>) {
    let mut body = send(service, &get_head("/v1/batches", &token(service, &site.credential())), "");
    let mut begun = vec![0; 100_000];
    body.read_exact(&mut begun).unwrap();
    (body, begun)
}

/// Waits until connections are refused.
fn wait_until_closed(service: &Service) {
    wait_until("connections are refused", || TcpStream::connect(service.address()).is_err());
}

#[test]
fn a_response_in_progress_is_finished() {
    let site = filled();
    for signal in [Signal::TERM, Signal::INT] {
        let mut service = site.serve(LONG_DRAIN);
        let (mut body, mut all) = pull(&service, &site);
        service.signal(signal);
        wait_until_closed(&service);
        let mut piece = vec![0; 4_000_000];
        loop {
            match body.read(&mut piece).unwrap() {
                0 => break,
                bytes => all.extend_from_slice(&piece[..bytes]),
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(all == scans::array(0..BATCHES, "x").as_bytes(), "the response is incomplete");
        service.wait_for_success();
    }
}

#[test]
fn an_idle_service_stops_at_once() {
    let site = Site::new();
    for signal in [Signal::TERM, Signal::INT] {
        let mut service = site.serve(LONG_DRAIN);
        // A connection without a request, and a kept-alive one.
        let silent = TcpStream::connect(service.address()).unwrap();
        let mut kept = TcpStream::connect(service.address()).unwrap();
        kept.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        kept.read_exact(&mut [0; 12]).unwrap();
        service.signal(signal);
        service.wait_for_success();
        drop((silent, kept));
    }
}

/// A log that is not read, such as a pipe to a process that was stopped.
#[test]
fn a_full_log_delays_neither_requests_nor_the_shutdown() {
    let site = Site::new();
    let (unread, pipe) = std::io::pipe().unwrap();
    let mut command = site.command(&["serve", "--listen", "127.0.0.1:0", "--public-metrics"]);
    command.args(LONG_DRAIN);
    let mut service = Service::start_with_log(command.stderr(pipe), NamedTempFile::new().unwrap());
    // A line has more than 64 bytes, and a pipe 64 KiB; 4,096 lines wait.
    let mut requests = TcpStream::connect(service.address()).unwrap();
    let mut responses = requests.try_clone().unwrap();
    let reader = std::thread::spawn(move || std::io::copy(&mut responses, &mut std::io::sink()));
    requests.write_all("GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n".repeat(6_000).as_bytes()).unwrap();
    requests.shutdown(std::net::Shutdown::Write).unwrap();
    reader.join().unwrap().unwrap();
    let metrics = request(&service, "GET /metrics HTTP/1.1", "").ok();
    let metrics = String::from_utf8(metrics).unwrap();
    let dropped = metrics.lines().find_map(|line| line.strip_prefix("batchscan_log_lines_dropped_total "));
    assert!(dropped.unwrap().parse::<u64>().unwrap() > 100, "{dropped:?}");
    service.stop();
    drop(unread);
}

/// The last use of credentials is not written then.
#[test]
fn a_locked_database_does_not_prevent_the_shutdown() {
    let site = Site::new();
    let mut service = site.serve(LONG_DRAIN);
    token(&service, &site.credential());
    let writer = site.sql();
    writer.execute_batch("BEGIN IMMEDIATE; UPDATE organisation SET version = version + 1").unwrap();
    println!("stopped after {:?}", service.stop());
}

#[test]
fn a_service_can_be_stopped_as_soon_as_it_listens() {
    let site = Site::new();
    for _ in 0..4 {
        site.serve(LONG_DRAIN).stop();
    }
}

/// Decision 026: the client can detect the truncation.
#[test]
fn a_stalled_reader_is_cut_off_after_the_drain_time() {
    let site = filled();
    let mut service = site.serve(&["--drain", "1s"]);
    let (mut body, _) = pull(&service, &site);
    let took = service.stop();
    assert!(took >= Duration::from_millis(900), "{took:?}");
    let cut = body.rest().unwrap_err().kind();
    assert!(matches!(cut, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset), "{cut:?}");
}

/// Decision 026. HTTP/1.0 has no chunks: only a reset tells a part from the whole.
#[test]
fn an_unfinished_http_1_0_response_ends_with_a_reset() {
    let site = filled();
    let credential = site.credential();
    for (flags, signal) in [(&["--drain", "1s"][..], Signal::TERM), (&[], Signal::KILL)] {
        for target in ["/v1/batches", "/v2/export.csv"] {
            let mut service = site.serve(flags);
            let head = get_head(target, &token(&service, &credential)).replace("HTTP/1.1", "HTTP/1.0");
            let mut stream = TcpStream::connect(service.address()).unwrap();
            stream.write_all(format!("{head}\r\n\r\n").as_bytes()).unwrap();
            stream.read_exact(&mut [0; 100_000]).unwrap();
            service.signal(signal);
            service.wait();
            let end = std::io::copy(&mut stream, &mut std::io::sink()).unwrap_err();
            assert_eq!(end.kind(), ErrorKind::ConnectionReset, "{target} {signal:?}");
        }
    }
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let site = filled();
    let mut service = site.serve(LONG_DRAIN);
    let (_body, _) = pull(&service, &site);
    service.signal(Signal::TERM);
    wait_until_closed(&service);
    // One that follows too soon counts as a duplicate of the first.
    assert_eq!(service.signal_until_it_ends(Signal::TERM), Some(1), "responses were not finished");
}
