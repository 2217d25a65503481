//! Free ports on loopback. While this process lives, a port is handed out once, across all processes.

use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};

/// Below Linux's range of outgoing connections (32768 and up), which could take the port of a killed server.
const RANGE: Range<u16> = 12_000..32_000;

/// A UDP socket on the same port reserves it: other processes see it taken, TCP servers do not, and it is closed when this
/// process dies.
static RESERVED: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());

/// A port of 127.0.0.1 that nothing listens on.
pub fn free() -> Result<u16> {
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    let (first, count) = (random_offset(), RANGE.end - RANGE.start);
    for step in 0..count {
        let port = RANGE.start + (first + step) % count;
        let Ok(socket) = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)) else { continue };
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            reserved.push(socket);
            return Ok(port);
        }
    }
    bail!("no free port between {} and {}", RANGE.start, RANGE.end)
}

/// Whether something listens on a port of 127.0.0.1.
pub fn is_listening(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Test processes that start together should not all search from the same port.
fn random_offset() -> u16 {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.subsec_nanos());
    let mixed = nanos.wrapping_add(std::process::id().wrapping_mul(7919));
    u16::try_from(mixed % u32::from(RANGE.end - RANGE.start)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_handed_out_once() {
        let ports: std::collections::BTreeSet<u16> = (0..100).map(|_| free().unwrap()).collect();
        assert_eq!(ports.len(), 100);
        assert!(ports.iter().all(|port| !is_listening(*port)));
    }
}
