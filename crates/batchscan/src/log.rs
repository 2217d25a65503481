//! The log on standard error. Requests never wait for it: a thread writes the lines, and when standard error is blocked,
//! lines are dropped and counted.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use batchscan_server::metrics::LOG_LINES_DROPPED;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{LogFormat, usage_error};
use crate::terminal::exit_with_usage_error;

/// Lines that may wait for standard error: a second of a busy service, about 1 MiB.
const LINES_MAX: usize = 4_096;
/// How long the end of the process waits for the last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

static LINES: OnceLock<SyncSender<Entry>> = OnceLock::new();

enum Entry {
    Line(Vec<u8>),
    /// Dropped when all lines before it are written.
    Flush(#[expect(dead_code, reason = "only dropped")] SyncSender<()>),
}

/// Logs to standard error. `BATCHSCAN_LOG` is the level: error, warn, info, debug or trace; exits if it is another.
///
/// Only our own crates log below `warn`: libraries could log what a client sent.
pub(crate) fn start(command: &str, format: LogFormat) -> anyhow::Result<()> {
    let level = match std::env::var("BATCHSCAN_LOG") {
        Ok(text) if !text.is_empty() => {
            parse_level(&text).unwrap_or_else(|text| exit_with_usage_error(&usage_error(command, text)))
        }
        _ => LevelFilter::INFO,
    };
    let (sender, entries) = sync_channel(LINES_MAX);
    std::thread::Builder::new().name("log".into()).spawn(move || write_lines(&entries))?;
    let _ = LINES.set(sender);
    let targets = Targets::new()
        .with_default(LevelFilter::WARN)
        // A prefix: it covers all crates of this workspace.
        .with_target("batchscan", level)
        .with_target("request", level)
        // The pool logs broken connections without the host; the store logs them with it.
        .with_target("deadpool", LevelFilter::OFF);
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt::layer().with_writer(|| LogWriter).with_ansi(colours);
    let log = tracing_subscriber::registry().with(targets);
    match format {
        LogFormat::Text => log.with(lines).init(),
        LogFormat::Json => log.with(lines.json().flatten_event(true)).init(),
    }
    Ok(())
}

fn parse_level(text: &str) -> Result<LevelFilter, String> {
    let expected = "expected error, warn, info, debug or trace";
    text.parse().map_err(|_| format!("invalid value '{text}' for BATCHSCAN_LOG: {expected}"))
}

/// Waits until all lines are written, or until it is clear that they will not be.
pub(crate) fn flush() {
    let (done, flushed) = sync_channel(0);
    if let Some(lines) = LINES.get()
        && lines.try_send(Entry::Flush(done)).is_ok()
    {
        let _ = flushed.recv_timeout(FLUSH_TIMEOUT);
    }
}

fn write_lines(entries: &Receiver<Entry>) {
    for entry in entries {
        if let Entry::Line(line) = entry
            && io::stderr().write_all(&line).is_err()
        {
            LOG_LINES_DROPPED.inc();
        }
    }
}

/// From now on, a panic is one line in the log: a service that is running survives it.
pub(crate) fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "internal error: please report it with this line");
    }));
}

/// Passes each line to the thread.
struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let is_queued = LINES.get().is_some_and(|lines| lines.try_send(Entry::Line(line.to_vec())).is_ok());
        if !is_queued {
            LOG_LINES_DROPPED.inc();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
