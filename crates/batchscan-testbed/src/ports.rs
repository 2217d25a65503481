//! Free ports on loopback. A port given out is given to nobody else, in any process, while this one lives.

use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};

/// Below the range from which Linux takes the ports of outgoing connections (32768 and up): otherwise one of
/// those could sit on the port of a killed server when it comes back.
const RANGE: std::ops::Range<u16> = 12_000..32_000;

/// A UDP socket on the same port is the lease: other users of this module see it taken, the servers do not
/// mind, and it ends with this process however that dies.
static LEASES: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());

/// A port of 127.0.0.1 on which nobody listens.
///
/// # Errors
///
/// When every port of the range is taken.
pub fn free() -> Result<u16> {
    let mut leases = LEASES.lock().unwrap_or_else(PoisonError::into_inner);
    let first = somewhere();
    for step in 0..RANGE.end - RANGE.start {
        let port = RANGE.start + (first + step) % (RANGE.end - RANGE.start);
        let Ok(lease) = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)) else { continue };
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            leases.push(lease);
            return Ok(port);
        }
    }
    bail!("no port between {} and {} is free", RANGE.start, RANGE.end)
}

/// Whether somebody listens on a port of 127.0.0.1.
#[must_use]
pub fn is_listening(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Test processes that start together should not all search from the same port.
fn somewhere() -> u16 {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.subsec_nanos());
    let mixed =
        nanos.wrapping_add(std::process::id().wrapping_mul(7919)) % u32::from(RANGE.end - RANGE.start);
    u16::try_from(mixed).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_out_once() {
        let ports: std::collections::BTreeSet<u16> = (0..100).map(|_| free().unwrap()).collect();
        assert_eq!(ports.len(), 100);
        assert!(ports.iter().all(|port| !is_listening(*port)));
    }
}
