//! What the program says: results on standard output, one line of failure on standard error.
#![expect(clippy::print_stderr, reason = "this is the one place that writes to standard error")]

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use batchscan_store::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::termios::tcgetwinsize;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::LogFormat;

/// Prints a result. A reader that went away (`| head`) is no failure.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("cannot write to standard output"))
        }
        _ => Ok(()),
    }
}

/// Says what failed, in one line, with the causes that say something new.
pub(crate) fn failed(error: &anyhow::Error) -> ExitCode {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    eprintln!("error: {text}");
    ExitCode::FAILURE
}

/// A remark beside the result.
pub(crate) fn remark(text: &str) {
    eprintln!("{text}");
}

/// A defect is one line in the log, never a trace on somebody's terminal.
pub(crate) fn silence_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "internal error: please report it with this line");
    }));
}

/// Sends log lines to standard error: `BATCHSCAN_LOG` is how much of it (error, warn, info, debug, trace).
///
/// Only this program's own lines are detailed; those of its libraries could show what a client sent.
pub(crate) fn start_log(format: LogFormat) {
    let level =
        std::env::var("BATCHSCAN_LOG").ok().and_then(|level| level.parse().ok()).unwrap_or(LevelFilter::INFO);
    let ours = Targets::new().with_default(LevelFilter::WARN).with_target("batchscan", level);
    // The pool's remarks on broken connections name no host; the store says it better.
    let ours = ours.with_target("deadpool", LevelFilter::OFF);
    let ours = ours.with_target("batchscan_server", level).with_target("request", level);
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colour);
    let log = tracing_subscriber::registry().with(ours);
    match format {
        LogFormat::Text => log.with(lines).init(),
        LogFormat::Json => log.with(lines.json().flatten_event(true)).init(),
    }
}

/// Whether to colour what goes to standard output.
pub(crate) fn colours() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// What a table is written for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// Whether to colour it.
    pub(crate) colours: bool,
    /// How many columns there are; none is known of a pipe or a file, and nothing has to fit there.
    pub(crate) columns: Option<usize>,
}

impl Screen {
    /// The one that standard output goes to.
    pub(crate) fn of_stdout() -> Self {
        let out = std::io::stdout();
        let size = out.is_terminal().then(|| tcgetwinsize(&out).ok()).flatten();
        // Some terminals, those of containers among them, say 0 for unknown.
        let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
        Self { colours: colours(), columns }
    }

    /// The text in a colour or weight, by its SGR code, if there are colours.
    pub(crate) fn painted(self, code: u8, text: &str) -> String {
        if self.colours && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A bar on a terminal; nothing elsewhere.
pub(crate) fn bar(what: &str, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10));
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.progress_chars("━╸─"));
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Tells a bar how far a job of the store is.
pub(crate) fn progress_of(bar: &ProgressBar) -> Progress {
    let bar = bar.clone();
    Arc::new(move |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    })
}
