//! Standard output and standard error: results, notes, errors, and the size and colours of the terminal.
#![expect(clippy::print_stderr, reason = "this is the one place that writes to standard error")]

use std::io::{BufRead, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Context;
use rustix::termios::tcgetwinsize;

/// Prints a result. It is not an error if the reader has closed the pipe (`| head`).
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("cannot write to standard output"))
        }
        _ => Ok(()),
    }
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
    eprintln!("error: {text}");
    ExitCode::FAILURE
}

/// Prints a line on standard error.
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
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

pub(crate) fn use_colours() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
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
        let out = std::io::stdout();
        let size = out.is_terminal().then(|| tcgetwinsize(&out).ok()).flatten();
        // Some terminals report 0 for unknown.
        let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
        Self { colours: use_colours(), columns }
    }

    /// The text in a colour or weight (an SGR code), if colours are on.
    pub(crate) fn paint(self, code: u8, text: &str) -> String {
        if self.colours && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
