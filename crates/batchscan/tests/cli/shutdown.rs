//! How a service ends: answers under way are finished, readers that stall are cut, nobody waits for nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::scans;
use crate::service::Service;
use crate::site::Site;
use crate::wire::{Body, get_head, send, token};

/// More than the buffers between two processes ever hold, so that a reader who pauses is waited for.
const BATCHES: u64 = 40_000;
/// What "at once" means on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(2);

fn filled() -> Site {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..BATCHES, "x")));
    site
}

/// A pull of everything of which the first bytes are read.
fn pull(service: &Service, site: &Site) -> (Body, Vec<u8>) {
    let mut body = send(service, &get_head("/v1/batches", &token(service, &site.credential())), "");
    let mut begun = vec![0; 100_000];
    body.read_exact(&mut begun).unwrap();
    (body, begun)
}

/// Waits until nobody is accepted any more.
fn wait_until_closed(service: &Service) {
    let asked = Instant::now();
    while TcpStream::connect(service.address()).is_ok() {
        assert!(asked.elapsed() < AT_ONCE, "it still accepts connections");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_long_pull_that_is_under_way_is_finished_whole() {
    let site = filled();
    for signal in [Signal::TERM, Signal::INT] {
        let mut service = site.serve(&[]);
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
        assert!(all == scans::array(0..BATCHES, "x").as_bytes(), "the pull is not whole");
        assert!(service.ends_well() < AT_ONCE, "nothing is left to wait for");
    }
}

#[test]
fn with_nothing_to_do_a_service_ends_at_once() {
    let site = Site::new();
    for signal in [Signal::TERM, Signal::INT] {
        let mut service = site.serve(&[]);
        // A connection on which nobody spoke yet, and one that is kept alive after its answer.
        let silent = TcpStream::connect(service.address()).unwrap();
        let mut kept = TcpStream::connect(service.address()).unwrap();
        kept.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        kept.read_exact(&mut [0; 12]).unwrap();
        service.signal(signal);
        let took = service.ends_well();
        assert!(took < AT_ONCE, "{took:?}");
        drop((silent, kept));
    }
}

/// An import holds the database's one write lock; that credentials were used can wait for another day.
#[test]
fn another_process_that_writes_does_not_hold_up_the_end() {
    let site = Site::new();
    let mut service = site.serve(&[]);
    token(&service, &site.credential());
    let writer = site.sql();
    writer.execute_batch("BEGIN IMMEDIATE; UPDATE organisation SET version = version + 1").unwrap();
    let took = service.stop();
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn a_service_may_be_stopped_in_the_moment_it_listens() {
    let site = Site::new();
    for _ in 0..10 {
        assert!(site.serve(&[]).stop() < AT_ONCE);
    }
}

/// Decision 026: what is cut can be seen to be cut.
#[test]
fn a_reader_who_stalls_is_cut_when_the_time_to_drain_is_over() {
    let site = filled();
    let mut service = site.serve(&["--drain", "1s"]);
    let (mut body, _) = pull(&service, &site);
    let took = service.stop();
    assert!((Duration::from_millis(900)..Duration::from_secs(4)).contains(&took), "{took:?}");
    let cut = body.rest().unwrap_err().kind();
    assert!(matches!(cut, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset), "{cut:?}");
    assert!(service.log().contains("some answers did not finish in time and were cut"), "{}", service.log());
}

#[test]
fn a_second_signal_ends_the_process_without_waiting() {
    let site = filled();
    let mut service = site.serve(&[]);
    let (_body, _) = pull(&service, &site);
    service.signal(Signal::TERM);
    wait_until_closed(&service);
    std::thread::sleep(Duration::from_millis(400));
    service.signal(Signal::TERM);
    assert_eq!(service.ends(), Some(1), "it did not finish what it had begun");
}

#[test]
fn what_was_written_is_there_after_an_end_without_warning() {
    let site = Site::new();
    let credential = site.credential();
    let service = site.serve(&[]);
    let token_of_killed = token(&service, &credential);
    site.import(&site.write("a.ndjson", scans::ndjson(0..2_000, "x")));
    // Dropping sends SIGKILL.
    drop(service);
    let service = site.serve(&[]);
    let answer = crate::wire::get(&service, "/v1/batches", &token_of_killed);
    assert_eq!(answer.text(), scans::array(0..2_000, "x"));
    assert!(site.run(&["doctor"]).done().ends_with("all is well\n"));
}
