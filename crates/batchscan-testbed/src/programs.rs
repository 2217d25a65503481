//! Where the servers' programs are, as whom they run, and how the short-lived ones among them are run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::geteuid;

/// Debian keeps PostgreSQL's programs here, a folder a version.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";
/// Debian's home of servers, which is not on every user's PATH.
const SERVERS: &str = "/usr/sbin";
/// PostgreSQL and pgbouncer refuse to run as root; Debian's package makes this user.
const SERVER_USER: &str = "postgres";
/// As long as a big table may take to load or to copy on a slow machine.
const TOOL_LIMIT_SECS: &str = "600";
/// A server that is frozen takes a connection and then says nothing.
const CONNECT_LIMIT_SECS: &str = "10";

/// The folder with the programs of the newest PostgreSQL on this machine.
pub(crate) fn postgres_folder() -> Result<PathBuf> {
    let versions = fs::read_dir(POSTGRES_VERSIONS).into_iter().flatten().flatten().filter_map(|entry| {
        let version = entry.file_name().to_str()?.parse::<u32>().ok()?;
        entry.path().join("bin/initdb").is_file().then(|| (version, entry.path().join("bin")))
    });
    let newest = versions.max().map(|(_, folder)| folder);
    newest.or_else(|| on_path("initdb")).context(
        "no PostgreSQL server on this machine (looked for initdb in /usr/lib/postgresql/*/bin and on the PATH); \
         run `apt-get install postgresql-15`, or whichever version there is",
    )
}

/// A server's program, from the PATH or where Debian puts it.
pub(crate) fn server(program: &str) -> Result<PathBuf> {
    let debian = Path::new(SERVERS).join(program);
    let found = on_path(program).map(|folder| folder.join(program)).or(debian.is_file().then_some(debian));
    found.with_context(|| format!("no {program} on this machine; run `apt-get install {program}`"))
}

/// A command that runs as ourselves, unless we are root: then as the user `postgres`. `setpriv` becomes the
/// program, so that the id of the child is the server's.
pub(crate) fn as_server_user(program: &Path) -> Command {
    let mut command = Command::new(program);
    if geteuid().is_root() {
        command = Command::new("setpriv");
        command.arg(format!("--reuid={SERVER_USER}")).arg(format!("--regid={SERVER_USER}"));
        command.arg("--clear-groups").arg(program);
    }
    neutral(&mut command);
    command
}

/// Lets the servers' user write where we, as root, made a file or folder.
pub(crate) fn give_to_server_user(path: &Path) -> Result<()> {
    if geteuid().is_root() {
        let owner = format!("{SERVER_USER}:{SERVER_USER}");
        stdout_of(Command::new("chown").arg(owner).arg(path))?;
    }
    Ok(())
}

/// Runs a command to its end, within a limit, and gives its stdout; the failure carries its stderr.
pub(crate) fn stdout_of(command: &Command) -> Result<String> {
    let mut limited = Command::new("timeout");
    limited.args(["--signal=KILL", TOOL_LIMIT_SECS]).arg(command.get_program()).args(command.get_args());
    neutral(&mut limited);
    let name = Path::new(command.get_program()).display();
    let output = limited.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{name}`"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{name}` failed: {}\n{}", output.status, stderr.trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{name}` did not print UTF-8"))
}

/// A developer's own `PG*` settings and language shall not steer the servers, and the folder we are in may be
/// closed to their user.
fn neutral(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C.UTF-8").env("PGCONNECT_TIMEOUT", CONNECT_LIMIT_SECS).current_dir("/");
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|folder| folder.join(program).is_file())
}
