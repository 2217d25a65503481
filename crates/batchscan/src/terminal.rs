//! Standard output and standard error: results, notes, errors, and the size and colours of the terminal.

use std::io::{BufRead, ErrorKind, IsTerminal, Write};
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use batchscan_server::clock::Clock;
use serde_json::json;

use crate::platform;

/// Prints a result. It is not an error if the reader has closed the pipe (`| head`).
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match write_out(text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context(NOT_PRINTED),
    }
}

/// Prints a line for people: only on a terminal.
pub(crate) fn print_hint(text: &str) -> anyhow::Result<()> {
    if std::io::stdout().is_terminal() { print(&format!("{text}\n")) } else { Ok(()) }
}

/// Prints what cannot be printed again.
pub(crate) fn print_once(text: &str) -> anyhow::Result<()> {
    write_out(text).context(NOT_PRINTED)
}

const NOT_PRINTED: &str = "cannot write to standard output";

fn write_out(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Whether every line on standard error must be JSON. Set at start.
static JSON_ERRORS: AtomicBool = AtomicBool::new(false);

pub(crate) fn set_json_errors(is_json: bool) {
    JSON_ERRORS.store(is_json, Ordering::Relaxed);
}

/// Prints an error as a line of text or JSON. The log may not have started yet.
pub(crate) fn print_error(text: &str) {
    if !JSON_ERRORS.load(Ordering::Relaxed) {
        return note(&format!("error: {text}"));
    }
    let timestamp = Clock::system().now().to_string();
    let line = json!({ "timestamp": timestamp, "level": "ERROR", "message": text, "target": "batchscan" });
    note(&line.to_string());
}

/// Reports a wrong command line and exits.
pub(crate) fn exit_with_usage_error(error: &clap::Error) -> ! {
    if error.use_stderr() && JSON_ERRORS.load(Ordering::Relaxed) {
        let text = error.render().to_string();
        print_error(text.trim_start_matches("error: ").split("\n\n").next().unwrap_or_default());
        std::process::exit(2);
    }
    error.exit()
}

/// Prints an error in one line, with every cause that adds something.
pub(crate) fn fail(error: &anyhow::Error) -> ExitCode {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    print_error(&text);
    ExitCode::FAILURE
}

/// Runs a command. If it panics, that is one line.
pub(crate) fn catch_panic(run: impl FnOnce() -> ExitCode) -> ExitCode {
    static PLACE: Mutex<String> = Mutex::new(String::new());
    // Some panics of libraries are caught and reported as errors: nothing is printed here.
    std::panic::set_hook(Box::new(|panic| {
        if panic.payload_as_str().is_some_and(|text| text.contains("spawn")) {
            // At once: unwinding would wait for threads that were never started.
            print_error("cannot start a thread: the system limit on processes or memory was reached");
            std::process::exit(1);
        }
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        *PLACE.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }));
    std::panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        let place = PLACE.lock().unwrap_or_else(PoisonError::into_inner);
        print_error(&format!("internal error at {place}; please report this line"));
        ExitCode::FAILURE
    })
}

/// Prints a line on standard error. There is no place to report that it is closed or full.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prompts for a line on standard error. `None` if standard input is not a terminal.
pub(crate) fn prompt(question: &str) -> anyhow::Result<Option<String>> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Ok(None);
    }
    let mut err = std::io::stderr().lock();
    err.write_all(question.as_bytes()).and_then(|()| err.flush())?;
    let mut line = String::new();
    stdin.lock().read_line(&mut line).context("cannot read from the terminal")?;
    Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned()))
}

/// Whether the user types what is expected.
pub(crate) fn is_confirmed(question: &str, expected: &str) -> anyhow::Result<bool> {
    let typed = prompt(question)?;
    Ok(typed.context("cannot ask for confirmation without a terminal: add --yes")? == expected)
}

pub(crate) fn use_colours() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() && platform::enable_colours()
}

/// The terminal that a table is printed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    pub(crate) colours: bool,
    /// Width in columns; `None` for a pipe or a file.
    pub(crate) columns: Option<usize>,
}

impl Screen {
    pub(crate) fn stdout() -> Self {
        let columns = std::io::stdout().is_terminal().then(platform::terminal_columns).flatten();
        // Some terminals report 0 for unknown.
        let columns = columns.map(usize::from).filter(|columns| *columns > 0);
        Self { colours: use_colours(), columns }
    }

    /// The text in a colour or weight (an SGR code), if colours are on.
    pub(crate) fn paint(self, code: u8, text: &str) -> String {
        if self.colours && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
