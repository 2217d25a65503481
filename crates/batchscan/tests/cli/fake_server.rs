//! A server that is not batchscan: sends a fixed response and records requests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use crate::program::HANG_LIMIT;

/// A server that sends the same response to every request.
pub(crate) struct FakeServer {
    address: SocketAddr,
    received: Arc<Mutex<Vec<u8>>>,
}

impl FakeServer {
    /// Sends this and closes the connection.
    pub(crate) fn responding(response: &'static str) -> Self {
        Self::start(move |_| response.to_owned())
    }

    /// Sends the request back in its error message.
    pub(crate) fn echoing(status: &'static str) -> Self {
        Self::start(move |request| {
            let detail = serde_json::json!({ "detail": request }).to_string();
            format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{detail}",
                detail.len()
            )
        })
    }

    /// Sends what the function returns for the request, and closes the connection.
    pub(crate) fn start(response: impl Fn(&str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let log = received.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let _ = stream.set_read_timeout(Some(HANG_LIMIT));
                let mut request = [0; 16 * 1_024];
                let length = stream.read(&mut request).unwrap_or(0);
                log.lock().unwrap().extend_from_slice(&request[..length]);
                let request = String::from_utf8_lossy(&request[..length]);
                let _ = stream.write_all(response(&request).as_bytes());
            }
        });
        Self { address, received }
    }

    /// Sends an HTML page with this status.
    pub(crate) fn with_html(status: &'static str) -> Self {
        let page = "<html><title>Welcome</title></html>";
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}", page.len());
        Self::responding(format!("{head}\r\nConnection: close\r\n\r\n{page}").leak())
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All bytes received so far.
    pub(crate) fn received(&self) -> Vec<u8> {
        self.received.lock().unwrap().clone()
    }
}
