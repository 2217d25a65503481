//! Reads a client secret from a file, the environment, a pipe or the terminal.
//! Never from the command line, where other users could see it. No error contains any part of it.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use batchscan_model::ClientSecret;

use crate::platform::read_hidden_line;

const VARIABLE: &str = "BATCHSCAN_CLIENT_SECRET";

/// A secret has 43 bytes. The limit bounds the memory for a wrong file.
const SECRET_BYTES_MAX: usize = 4_096;

/// Reads the secret from a file (`-` is standard input), or from the environment if no file is given.
pub(crate) fn from_file_or_env(file: Option<&Path>) -> anyhow::Result<Option<ClientSecret>> {
    match file {
        Some(path) => from_file(path).map(Some),
        None => Ok(std::env::var(VARIABLE).ok().filter(|text| !text.is_empty()).map(ClientSecret::new)),
    }
}

/// Reads the secret from standard input, if it is a pipe or a file.
pub(crate) fn from_pipe() -> anyhow::Result<Option<ClientSecret>> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(None);
    }
    parse(&read(stdin.lock()).context("cannot read the client secret")?)
}

/// Prompts for the secret, if there is a terminal. What is typed is not shown.
pub(crate) fn from_prompt(question: &str) -> anyhow::Result<Option<ClientSecret>> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(None);
    }
    let line = read_hidden_line(question, SECRET_BYTES_MAX);
    let line = line.context("cannot read the client secret from the terminal")?.context("interrupted")?;
    parse(&String::from_utf8(line).map_err(|_| anyhow!("the client secret is not UTF-8 text"))?)
}

/// Pasted text often has spaces around it.
fn parse(text: &str) -> anyhow::Result<Option<ClientSecret>> {
    let text = text.trim();
    if text.contains(char::is_control) {
        bail!("the client secret contains a control character; type or paste it again");
    }
    Ok((!text.is_empty()).then(|| ClientSecret::new(text)))
}

fn from_file(path: &Path) -> anyhow::Result<ClientSecret> {
    if path == Path::new("-") {
        let stdin = std::io::stdin();
        if stdin.is_terminal() {
            // It would show what is typed.
            bail!("standard input is a terminal: pipe the client secret into it");
        }
        return first_line(stdin.lock(), "standard input");
    }
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot read the client secret from {name}"))?;
    first_line(file, &name)
}

fn first_line(source: impl Read, name: &str) -> anyhow::Result<ClientSecret> {
    let text = read(source).with_context(|| format!("cannot read the client secret from {name}"))?;
    let secret = parse(text.trim_start_matches('\u{feff}'))?;
    secret.with_context(|| format!("{name} is empty: it must contain the client secret"))
}

fn read(source: impl Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    source.take(SECRET_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > SECRET_BYTES_MAX {
        bail!("it has more than {SECRET_BYTES_MAX} bytes");
    }
    // The original error would contain the bytes.
    String::from_utf8(bytes).map_err(|_| anyhow!("it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_file(bytes: &[u8]) -> Result<String, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let name = file.path().display().to_string();
        match from_file_or_env(Some(file.path())) {
            Ok(secret) => Ok(secret.unwrap().reveal().to_owned()),
            Err(error) => Err(format!("{error:#}").replace(&name, "FILE")),
        }
    }

    #[test]
    fn white_space_and_a_byte_order_mark_are_removed() {
        assert_eq!(read_file(b"hush\n").unwrap(), "hush");
        assert_eq!(read_file(b"\xef\xbb\xbf hush \t\r\n\r\n").unwrap(), "hush");
        assert_eq!(read_file(&[b'x'; SECRET_BYTES_MAX]).unwrap().len(), SECRET_BYTES_MAX);
    }

    #[test]
    fn errors_name_the_file_and_do_not_contain_the_secret() {
        assert_eq!(read_file(b"\n").unwrap_err(), "FILE is empty: it must contain the client secret");
        let error = read_file(&[b'x'; SECRET_BYTES_MAX + 1]).unwrap_err();
        assert_eq!(error, "cannot read the client secret from FILE: it has more than 4096 bytes");
        let error = read_file(b"hush\xff").unwrap_err();
        assert_eq!(error, "cannot read the client secret from FILE: it is not UTF-8 text");
    }
}
