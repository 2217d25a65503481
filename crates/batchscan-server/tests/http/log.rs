//! The log of the services under test.

use std::io::Write;
use std::sync::{Mutex, Once};

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Starts to collect the log.
pub(crate) fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let log = tracing_subscriber::fmt().json().with_max_level(tracing::Level::INFO).with_writer(|| Sink);
        tracing::subscriber::set_global_default(log.finish()).unwrap();
    });
}

/// The lines that contain this text.
pub(crate) fn lines_with(text: &str) -> Vec<String> {
    let lines = LINES.lock().unwrap();
    String::from_utf8_lossy(&lines).lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
}

struct Sink;

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LINES.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
