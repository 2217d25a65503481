//! Windows 10 and later.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsHandle;
use std::path::Path;

use console::{Key, Term};
use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};

pub(crate) const SETTINGS_FILE: &str = "";

/// Not `APPDATA`, which Windows may copy to a server.
pub(crate) const CONFIG_VARIABLE: &str = "LOCALAPPDATA";

const ERROR_SHARING_VIOLATION: i32 = 32;
const DELETE: u32 = 0x0001_0000;
const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
const FILE_SHARE_READ: u32 = 1;
const FILE_SHARE_DELETE: u32 = 4;

pub(crate) fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let (mut interrupt, mut stop) = (ctrl_c()?, ctrl_break()?);
    let (mut close, mut shutdown) = (ctrl_close()?, ctrl_shutdown()?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = stop.recv() => {}
            _ = close.recv() => {}
            _ = shutdown.recv() => {}
        }
    })
}

pub(crate) fn disable_huge_pages() {}

/// There is no limit.
pub(crate) fn raise_file_limit(_wanted: u64) {}

pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

pub(crate) fn is_open_to_others(_file: &Metadata) -> bool {
    false
}

/// NTFS writes names to its journal by itself; a folder cannot be opened for it.
pub(crate) fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// It is open in this process, so that [`remove_abandoned`] fails in others.
pub(crate) fn lock_new_file(_file: &File, _path: &Path) -> bool {
    true
}

pub(crate) fn remove_abandoned(path: &Path, remove_others: impl FnOnce()) -> io::Result<()> {
    let mut options = File::options();
    options.access_mode(DELETE).share_mode(0).custom_flags(FILE_FLAG_DELETE_ON_CLOSE);
    match options.open(path) {
        Ok(left) => {
            remove_others();
            drop(left);
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::NotFound || is_sharing_violation(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A colon would name a hidden stream of another file, and some names are devices, with any extension.
pub(crate) fn is_valid_name(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let is_device = matches!(&*stem, "CON" | "PRN" | "AUX" | "NUL")
        || (stem.len() == 4 && (stem.starts_with("COM") || stem.starts_with("LPT")));
    let is_allowed = |c: char| !c.is_control() && !r#"<>:"|?*"#.contains(c);
    !is_device && !name.ends_with(['.', ' ']) && name.chars().all(is_allowed)
}

pub(crate) fn is_in_use(path: &Path) -> bool {
    File::options().access_mode(DELETE).open(path).is_err_and(|error| is_sharing_violation(&error))
}

pub(crate) fn open_stdin() -> io::Result<File> {
    io::stdin().as_handle().try_clone_to_owned().map(File::from)
}

/// Fails while another program can write to it.
pub(crate) fn open_complete(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).share_mode(FILE_SHARE_READ | FILE_SHARE_DELETE);
    options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(path)
}

fn is_sharing_violation(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_SHARING_VIOLATION)
}

pub(crate) fn skip_bytes(name: &OsStr, count: usize) -> &OsStr {
    name.to_str().and_then(|name| name.get(count..)).map_or(name, OsStr::new)
}

pub(crate) fn terminal_columns() -> Option<u16> {
    Term::stdout().size_checked().map(|(_, columns)| columns)
}

/// Older consoles must be told to interpret colours.
pub(crate) fn enable_colours() -> bool {
    Term::stdout().features().colors_supported()
}

/// Ctrl-C ends the process: nothing has to be restored.
pub(crate) fn read_hidden_line(question: &str, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let (terminal, mut line) = (Term::stderr(), String::new());
    terminal.write_str(question)?;
    loop {
        match terminal.read_key()? {
            Key::Enter => break,
            Key::Backspace => {
                line.pop();
            }
            Key::Char(c) if line.len() < bytes_max => line.push(c),
            _ => {}
        }
    }
    terminal.write_line("")?;
    Ok(Some(line.into_bytes()))
}

/// For the command prompt and PowerShell.
pub(crate) fn shell_quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if name.chars().all(is_plain) { name.to_owned() } else { format!("\"{name}\"") }
}

/// For PowerShell.
pub(crate) fn demo_commands(url: &str, id: &str, secret: &str, since: &str, program: &str) -> String {
    let program = program.replace('\'', "''");
    format!(
        r#"  $env:BATCHSCAN_URL = '{url}'; $env:BATCHSCAN_CLIENT_ID = '{id}'; $env:BATCHSCAN_CLIENT_SECRET = '{secret}'
  & '{program}' pull --output batches.xlsx
  & '{program}' list --start-date {since}"#
    )
}
