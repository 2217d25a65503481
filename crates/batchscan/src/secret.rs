//! Where a client secret comes from: a file, the environment, a pipe or the terminal.
//! Never the command line, where others could read it; and no failure repeats any of it.

use std::fs::File;
use std::io::{IsTerminal, Read, Stdin, Write};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use batchscan_model::ClientSecret;
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

/// The variable that may hold it.
const VARIABLE: &str = "BATCHSCAN_CLIENT_SECRET";

/// A secret is some 43 bytes; whatever is longer than this is not one.
const SECRET_BYTES_MAX: usize = 4_096;

const CTRL_C: u8 = 3;

/// From a file, `-` being standard input; without one, from BATCHSCAN_CLIENT_SECRET.
pub(crate) fn given(file: Option<&Path>) -> anyhow::Result<Option<ClientSecret>> {
    match file {
        Some(path) => from_file(path).map(Some),
        None => Ok(std::env::var(VARIABLE).ok().filter(|text| !text.is_empty()).map(ClientSecret::new)),
    }
}

/// From what is piped into standard input, if something is.
pub(crate) fn piped() -> anyhow::Result<Option<ClientSecret>> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(None);
    }
    let text = read(stdin.lock()).context("cannot read the secret")?;
    let text = text.trim();
    if text.contains(char::is_control) {
        bail!("what was typed holds a control character; a secret has none");
    }
    Ok((!text.is_empty()).then(|| ClientSecret::new(text)))
}

/// From whoever sits at the terminal, if somebody does and types something. The typing is not shown.
pub(crate) fn asked(question: &str) -> anyhow::Result<Option<ClientSecret>> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(None);
    }
    let line = typed_unseen(question).context("cannot read the secret from the terminal")?;
    if line.last() == Some(&CTRL_C) {
        // The terminal is as it was found again: now the key may do what it always does.
        kill_process(getpid(), Signal::INT)?;
        bail!("interrupted");
    }
    let text = String::from_utf8(line).map_err(|_| anyhow!("what was typed is not UTF-8 text"))?;
    // What is pasted often brings a blank along.
    let text = text.trim();
    if text.contains(char::is_control) {
        bail!("what was typed holds a control character; a secret has none");
    }
    Ok((!text.is_empty()).then(|| ClientSecret::new(text)))
}

/// A terminal that shows nothing of what is typed, until it is dropped.
struct Unseen {
    terminal: Stdin,
    as_found: Termios,
}

impl Unseen {
    fn new(terminal: Stdin) -> std::io::Result<Self> {
        let as_found = tcgetattr(&terminal)?;
        let mut unseen = as_found.clone();
        // Ctrl-C ends the line instead of the program, which would leave the terminal blind.
        unseen.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        unseen.local_modes.insert(LocalModes::ICANON);
        unseen.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
        tcsetattr(&terminal, OptionalActions::Now, &unseen)?;
        Ok(Self { terminal, as_found })
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        // There is nothing left to try if the terminal is gone.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.as_found);
    }
}

/// One line as the terminal hands it over, with the key that ended it; nothing after Ctrl-D.
fn typed_unseen(question: &str) -> std::io::Result<Vec<u8>> {
    let unseen = Unseen::new(std::io::stdin())?;
    let mut prompt = std::io::stderr().lock();
    write!(prompt, "{question}")?;
    let mut line = vec![0; SECRET_BYTES_MAX];
    // A terminal keeps a line of that length at most, and hands it over in one piece.
    let length = unseen.terminal.lock().read(&mut line)?;
    writeln!(prompt)?;
    line.truncate(length);
    Ok(line)
}

fn from_stdin() -> anyhow::Result<ClientSecret> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        // It would show what is typed.
        bail!("standard input is a terminal: pipe the client secret into it");
    }
    one_line(stdin.lock(), "standard input")
}

/// From a file; `-` is standard input.
pub(crate) fn from_file(path: &Path) -> anyhow::Result<ClientSecret> {
    if path == Path::new("-") {
        return from_stdin();
    }
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot read the client secret from {name}"))?;
    one_line(file, &name)
}

fn one_line(source: impl Read, name: &str) -> anyhow::Result<ClientSecret> {
    let text = read(source).with_context(|| format!("cannot read the client secret from {name}"))?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        bail!("{name} is empty: it should hold the client secret");
    }
    Ok(ClientSecret::new(text))
}

fn read(source: impl Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    source.take(SECRET_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > SECRET_BYTES_MAX {
        bail!("it has more than {SECRET_BYTES_MAX} bytes");
    }
    // The bytes themselves would be in the error's own value.
    String::from_utf8(bytes).map_err(|_| anyhow!("it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_file(bytes: &[u8]) -> Result<String, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let name = file.path().display().to_string();
        match given(Some(file.path())) {
            Ok(secret) => Ok(secret.unwrap().reveal().to_owned()),
            Err(error) => Err(format!("{error:#}").replace(&name, "FILE")),
        }
    }

    #[test]
    fn a_files_secret_loses_its_line_end_and_nothing_else() {
        assert_eq!(read_file(b"hush\n").unwrap(), "hush");
        assert_eq!(read_file(b" hu sh \r\n").unwrap(), " hu sh ");
        assert_eq!(read_file(&[b'x'; SECRET_BYTES_MAX]).unwrap().len(), SECRET_BYTES_MAX);
    }

    #[test]
    fn a_file_without_a_secret_is_named() {
        assert_eq!(read_file(b"\n").unwrap_err(), "FILE is empty: it should hold the client secret");
        let missing = given(Some(Path::new("no/such/file"))).unwrap_err();
        assert_eq!(missing.to_string(), "cannot read the client secret from no/such/file");
    }

    #[test]
    fn a_refused_secret_is_not_repeated() {
        let told = read_file(&[b'x'; SECRET_BYTES_MAX + 1]).unwrap_err();
        assert_eq!(told, "cannot read the client secret from FILE: it has more than 4096 bytes");
        let told = read_file(b"hush\xff").unwrap_err();
        assert_eq!(told, "cannot read the client secret from FILE: it is not UTF-8 text");
    }
}
