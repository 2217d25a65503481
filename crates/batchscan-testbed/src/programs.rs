//! Finds the servers' programs and runs the short-lived ones.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Debian has a folder for each version here.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";
/// Debian's folder of servers, which is not on every user's PATH.
const SERVERS: &str = "/usr/sbin";
/// PostgreSQL and pgbouncer do not run as root. Debian's package creates this user.
const SERVER_USER: &str = "postgres";
/// Enough to load or copy a big table on a slow machine.
const TOOL_TIMEOUT_SECS: &str = "600";
/// A frozen server accepts a connection and never responds.
const CONNECT_TIMEOUT_SECS: &str = "60";

/// The folder with the programs of the newest PostgreSQL on this machine.
pub(crate) fn postgres_folder() -> Result<PathBuf> {
    let versions = fs::read_dir(POSTGRES_VERSIONS).into_iter().flatten().flatten().filter_map(|entry| {
        let version = entry.file_name().to_str()?.parse::<u32>().ok()?;
        entry.path().join("bin/initdb").is_file().then(|| (version, entry.path().join("bin")))
    });
    let newest = versions.max().map(|(_, folder)| folder);
    newest.or_else(|| find_on_path("initdb")).context(
        "no PostgreSQL server found (initdb in /usr/lib/postgresql/*/bin or on the PATH); run xtask/setup.sh",
    )
}

/// A server's program.
pub(crate) fn server(program: &str) -> Result<PathBuf> {
    let folder = find_on_path(program).unwrap_or_else(|| PathBuf::from(SERVERS));
    let path = folder.join(program);
    if !path.is_file() {
        bail!("no {program} on this machine; run xtask/setup.sh");
    }
    Ok(path)
}

/// A command that runs as the user `postgres` if we are root, else as us. `setpriv` replaces itself by the program, so the
/// child's id is the server's.
pub(crate) fn as_server_user(program: &Path) -> Command {
    let mut command = Command::new(program);
    if is_root() {
        command = Command::new("setpriv");
        command.arg(format!("--reuid={SERVER_USER}")).arg(format!("--regid={SERVER_USER}"));
        command.arg("--clear-groups").arg(program);
    }
    set_environment(&mut command);
    command
}

/// Makes a path that we created belong to the servers' user.
pub(crate) fn give_to_server_user(path: &Path) -> Result<()> {
    if is_root() {
        run(Command::new("chown").arg(format!("{SERVER_USER}:{SERVER_USER}")).arg(path))?;
    }
    Ok(())
}

/// Runs a command and returns its stdout. The error contains its stderr.
pub(crate) fn run(command: &Command) -> Result<String> {
    let mut limited = Command::new("timeout");
    limited.args(["--signal=KILL", TOOL_TIMEOUT_SECS]).arg(command.get_program()).args(command.get_args());
    set_environment(&mut limited);
    let name = Path::new(command.get_program()).display();
    let output = limited.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{name}`"))?;
    if !output.status.success() {
        bail!("`{name}` failed: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{name}` did not print UTF-8"))
}

/// Removes a developer's own `PG*` settings and language. The current folder may be closed to the servers' user.
fn set_environment(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C.UTF-8").env("PGCONNECT_TIMEOUT", CONNECT_TIMEOUT_SECS).current_dir("/");
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

fn find_on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|folder| folder.join(program).is_file())
}
