//! The log on standard error.

use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::LogFormat;

/// Logs a panic as one line, without a backtrace on the terminal.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "internal error: please report it with this line");
    }));
}

/// Logs to standard error. `BATCHSCAN_LOG` is the level: error, warn, info, debug or trace.
///
/// Only our own crates log below `warn`: libraries could log what a client sent.
pub(crate) fn start(format: LogFormat) {
    let level = std::env::var("BATCHSCAN_LOG").ok().and_then(|level| level.parse().ok());
    let level = level.unwrap_or(LevelFilter::INFO);
    let targets = Targets::new()
        .with_default(LevelFilter::WARN)
        // A prefix: it covers all crates of this workspace.
        .with_target("batchscan", level)
        .with_target("request", level)
        // The pool logs broken connections without the host; the store logs them with it.
        .with_target("deadpool", LevelFilter::OFF);
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colours);
    let log = tracing_subscriber::registry().with(targets);
    match format {
        LogFormat::Text => log.with(lines).init(),
        LogFormat::Json => log.with(lines.json().flatten_event(true)).init(),
    }
}
