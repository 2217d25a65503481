//! Linux, macOS and other Unix systems.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Metadata, TryLockError};
use std::io::{self, ErrorKind, Read, Stdin, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::process::{Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use tokio::signal::unix::{SignalKind, signal};

/// The file that systemd reads for the service.
pub(crate) const SETTINGS_FILE: &str = "/etc/batchscan/environment";

/// Where a user's settings are; `.config` in the home folder if it is not set.
pub(crate) const CONFIG_VARIABLE: &str = "XDG_CONFIG_HOME";

const CTRL_C: u8 = 3;

/// Completes when the process is asked to stop. Must be called in a runtime; catches the signals from then on.
pub(crate) fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// The allocator requests huge pages. They made every command 10 to 40 MiB larger, and nothing faster that we measured.
pub(crate) fn disable_huge_pages() {
    // Fails only on kernels without huge pages.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Allows so many open files, if possible.
pub(crate) fn raise_file_limit(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    let raised = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if limit.current.is_some_and(|current| current < raised) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum });
    }
}

/// Creates a folder that only its owner can open.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Whether others than its owner can read or write a file.
pub(crate) fn is_open_to_others(file: &Metadata) -> bool {
    file.mode() & 0o077 != 0
}

/// Waits until the names of a folder are on the disk.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Locks a file that is being written. False if another process has locked or removed it.
pub(crate) fn lock_new_file(file: &File, path: &Path) -> bool {
    let inode = |metadata: io::Result<Metadata>| metadata.map(|metadata| metadata.ino()).ok();
    // Some file systems have no locks.
    !matches!(file.try_lock(), Err(TryLockError::WouldBlock))
        && inode(file.metadata()) == inode(fs::symlink_metadata(path))
}

/// Removes a file that no process is writing; before it, what belongs to it.
pub(crate) fn remove_abandoned(path: &Path, remove_others: impl FnOnce()) -> io::Result<()> {
    match File::open(path) {
        Ok(left) if lock_new_file(&left, path) => {
            remove_others();
            fs::remove_file(path)
        }
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether a file can have this name.
pub(crate) fn is_valid_name(_name: &OsStr) -> bool {
    true
}

/// Whether another program prevents that the file is replaced.
pub(crate) fn is_in_use(_path: &Path) -> bool {
    false
}

/// Standard input without a buffer.
pub(crate) fn open_stdin() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// Opens a file that is complete. A pipe would block, and a link would import another file.
pub(crate) fn open_complete(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    File::options().read(true).custom_flags(flags).open(path)
}

/// A file name without its first bytes, which are ASCII.
pub(crate) fn skip_bytes(name: &OsStr, count: usize) -> &OsStr {
    OsStr::from_bytes(name.as_bytes().get(count..).unwrap_or_default())
}

/// The width of the terminal.
pub(crate) fn terminal_columns() -> Option<u16> {
    tcgetwinsize(io::stdout()).ok().map(|size| size.ws_col)
}

/// Whether a terminal shows colours.
pub(crate) fn enable_colours() -> bool {
    true
}

/// Prompts for a line that is not shown: with the key that ended it; empty after Ctrl-D. `None` after Ctrl-C.
pub(crate) fn read_hidden_line(question: &str, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let input = HiddenInput::new(io::stdin())?;
    let mut prompt = io::stderr().lock();
    write!(prompt, "{question}")?;
    let mut line = vec![0; bytes_max];
    // A terminal returns at most one line per read.
    let length = input.terminal.lock().read(&mut line)?;
    writeln!(prompt)?;
    line.truncate(length);
    drop(input);
    if line.last() == Some(&CTRL_C) {
        kill_process(getpid(), Signal::INT)?;
        return Ok(None);
    }
    Ok(Some(line))
}

/// Turns off the terminal's echo until it is dropped.
///
/// Not the `rpassword` crate: on Ctrl-C it raises SIGINT before it restores the terminal, so that the shell is left
/// without echo. Here Ctrl-C only ends the line.
struct HiddenInput {
    terminal: Stdin,
    original: Termios,
}

impl HiddenInput {
    fn new(terminal: Stdin) -> io::Result<Self> {
        let original = tcgetattr(&terminal)?;
        let mut hidden = original.clone();
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        hidden.local_modes.insert(LocalModes::ICANON);
        hidden.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
        tcsetattr(&terminal, OptionalActions::Now, &hidden)?;
        Ok(Self { terminal, original })
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        // Fails only if the terminal is gone.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.original);
    }
}

/// A name as one word of a shell command.
pub(crate) fn shell_quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./".contains(c);
    if name.chars().all(is_plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', r"'\''")) }
}

/// Commands that a user of the demo can paste into a shell.
pub(crate) fn demo_commands(url: &str, id: &str, secret: &str, since: &str, program: &str) -> String {
    let program = shell_quoted(program);
    format!(
        r#"  export BATCHSCAN_URL={url} BATCHSCAN_CLIENT_ID={id} BATCHSCAN_CLIENT_SECRET={secret}
  {program} pull --output batches.xlsx
  TOKEN=$(curl -s {url}/v2/auth -d grant_type=client_credentials -d client_id={id} -d client_secret={secret} | sed 's/.*"access_token":"\([^"]*\)".*/\1/')
  curl -s -H "Authorization: Bearer $TOKEN" "{url}/v2/batches?start_date={since}"
  curl -s -H "Authorization: Bearer $TOKEN" --compressed {url}/v1/batches -o batches.json && wc -c batches.json"#
    )
}
