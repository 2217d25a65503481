//! Servers that are not ours: one that says the same to everybody, and keeps what it was told.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A client that has not asked by then will not.
const QUESTION_LIMIT: Duration = Duration::from_secs(5);

/// A server that answers every connection with the same bytes. It ends with the test's process.
pub(crate) struct Stranger {
    address: SocketAddr,
    told: Arc<Mutex<Vec<u8>>>,
}

impl Stranger {
    /// One that says this, and hangs up.
    pub(crate) fn saying(answer: &'static str) -> Self {
        Self::answering(move |_| answer.to_owned())
    }

    /// One that repeats what it was told, as a service that is proud of its error messages.
    pub(crate) fn repeating(status: &'static str) -> Self {
        Self::answering(move |question| {
            let detail = serde_json::json!({ "detail": question }).to_string();
            format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{detail}",
                detail.len()
            )
        })
    }

    fn answering(answer: impl Fn(&str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = told.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let _ = stream.set_read_timeout(Some(QUESTION_LIMIT));
                let mut question = [0; 16 * 1_024];
                // It reads a question before it answers, as far as it comes at once.
                let length = stream.read(&mut question).unwrap_or(0);
                heard.lock().unwrap().extend_from_slice(&question[..length]);
                let question = String::from_utf8_lossy(&question[..length]);
                let _ = stream.write_all(answer(&question).as_bytes());
            }
        });
        Self { address, told }
    }

    /// A page of HTML, with this status.
    pub(crate) fn with_html(status: &'static str) -> Self {
        let page = "<html><title>Welcome</title></html>";
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}", page.len());
        Self::saying(format!("{head}\r\nConnection: close\r\n\r\n{page}").leak())
    }

    /// Its host and port.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Its address for clients of HTTP.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All that it was told so far.
    pub(crate) fn told(&self) -> Vec<u8> {
        self.told.lock().unwrap().clone()
    }
}
