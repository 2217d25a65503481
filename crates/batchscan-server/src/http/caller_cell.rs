//! Who sends a request. Filled by the extractors, read by the access log.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use batchscan_model::ClientId;
use batchscan_store::{Caller, is_issued_id};

/// Who sends a request: its address, and the caller once it is known. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallerCell(Arc<Parts>);

#[derive(Debug, Default)]
struct Parts {
    caller: OnceLock<Caller>,
    /// The client id that was sent with a wrong secret or an expired token, for the log.
    claimed: OnceLock<ClientId>,
    address: Option<IpAddr>,
}

impl CallerCell {
    pub(crate) fn new(address: Option<IpAddr>) -> Self {
        Self(Arc::new(Parts { address, ..Parts::default() }))
    }

    /// The address of the client. `None` in tests without a connection.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.0.address
    }

    pub(crate) fn get(&self) -> Option<&Caller> {
        self.0.caller.get()
    }

    pub(crate) fn set(&self, caller: &Caller) {
        let _ = self.0.caller.set(caller.clone());
    }

    /// The client, verified or claimed.
    pub(crate) fn client(&self) -> Option<&ClientId> {
        self.get().map(|caller| &caller.client).or(self.0.claimed.get())
    }

    /// Notes the client id of a rejected request. A text that is not one of ours could be a secret in the wrong field.
    pub(crate) fn claim(&self, client: &ClientId) {
        if is_issued_id(client.as_str()) {
            let _ = self.0.claimed.set(client.clone());
        }
    }
}
