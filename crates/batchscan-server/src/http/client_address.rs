//! The address of the client: that of the connection, or the one that a trusted proxy forwards.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::Request;

use crate::config::Network;
use crate::in_flight::ResponseInFlight;

const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// The address of a request's client. `None` in tests without a connection.
pub(super) fn client_address(request: &Request, trusted: &[Network]) -> Option<IpAddr> {
    let peer = request.extensions().get::<Arc<ResponseInFlight>>()?.client_address();
    let is_trusted = |address: &IpAddr| trusted.iter().any(|network| network.contains(*address));
    if !is_trusted(&peer) {
        return Some(peer);
    }
    let values = request.headers().get_all(X_FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok());
    let addresses: Vec<&str> = values.flat_map(|value| value.split(',')).collect();
    // Each proxy appends the address that it sees. Those before the last trusted proxy can be invented.
    let mut client = peer;
    for address in addresses.into_iter().rev() {
        let Ok(address) = address.trim().parse() else { break };
        client = address;
        if !is_trusted(&address) {
            break;
        }
    }
    Some(client)
}
