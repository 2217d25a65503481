//! What differs between Unix and Windows: who may open a database, whether an open file can be replaced, the names of the
//! user and the host.
//!
//! | | Unix | Windows |
//! |---|---|---|
//! | who may open a new file | its owner; in a folder that gives its files to its group (mode 2770), also the group | whom the folder allows: a database belongs in a folder of its user, not in a shared one |
//! | an open database is moved or replaced | detected by its device and inode | impossible: SQLite opens it so that Windows refuses |
//! | PostgreSQL through a Unix socket | yes | rejected |

pub(crate) use system::{
    check_permissions, create_database, lock_for_migration, set_host, sqlite_path, user_name,
};
pub use system::{file_id, give_to_folder, host_name, private};

#[cfg(unix)]
mod system {
    use std::fs::{File, OpenOptions, Permissions};
    use std::io;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
    use std::path::Path;

    use tokio_postgres::Config;
    use tokio_postgres::config::Host;

    const SETS_GROUP_AND_GROUP_WRITES: u32 = 0o2020;

    /// Creates files that only their owner can open.
    pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
        options.mode(0o600)
    }

    /// Creates the file before SQLite does, so that other users can never read it.
    pub(crate) fn create_database(path: &Path, folder: &Path) -> io::Result<()> {
        let file = private(OpenOptions::new().write(true).create_new(true)).open(path)?;
        give_to_folder(&file, folder)
    }

    /// Gives a new database to those who own the folder.
    pub fn give_to_folder(file: &File, folder: &Path) -> io::Result<()> {
        let folder = folder.metadata()?;
        // What root creates in the folder of the service belongs to the service.
        if file.metadata()?.uid() == 0 && folder.uid() != 0 {
            fchown(file, Some(folder.uid()), Some(folder.gid()))?;
        }
        if is_shared(folder.mode()) {
            file.set_permissions(Permissions::from_mode(0o660))?;
        }
        Ok(())
    }

    /// Waits for other processes that migrate. The lock is on the folder: SQLite locks the file itself, and a separate lock
    /// file would be left behind.
    pub(crate) fn lock_for_migration(_database: &Path, folder: &Path) -> io::Result<File> {
        let folder = File::open(folder)?;
        folder.lock().map(|()| folder)
    }

    /// What to change, if other users can open the file.
    pub(crate) fn check_permissions(path: &Path) -> Option<String> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = folder.metadata().map_or(0, |folder| folder.mode());
        let (others, right) = if is_shared(folder) { (0o007, "660") } else { (0o077, "600") };
        let is_open = path.metadata().ok()?.mode() & others != 0;
        is_open.then(|| format!("{0} can be opened by other users: run `chmod {right} {0}`", path.display()))
    }

    fn is_shared(folder_mode: u32) -> bool {
        folder_mode & SETS_GROUP_AND_GROUP_WRITES == SETS_GROUP_AND_GROUP_WRITES
    }

    /// Device and number of a file. Does not open it: closing it would release the locks that SQLite holds.
    pub fn file_id(path: &Path) -> io::Result<(u64, u64)> {
        path.metadata().map(|file| (file.dev(), file.ino()))
    }

    /// The path in a database URL.
    pub(crate) fn sqlite_path(path: &str) -> &str {
        path
    }

    /// Sets the host to connect to. Returns its name; `None` for one that this system cannot connect to.
    pub(crate) fn set_host(config: &mut Config, host: &Host) -> Option<String> {
        Some(match host {
            Host::Tcp(name) => {
                config.host(name);
                name.clone()
            }
            Host::Unix(path) => {
                config.host_path(path);
                path.display().to_string()
            }
        })
    }

    /// The user that runs this process.
    pub(crate) fn user_name() -> String {
        // With sudo, the user who typed the command.
        let user = ["SUDO_USER", "USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
        let name = user.filter(|name| !name.is_empty());
        name.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()))
    }

    /// The name of this machine.
    pub fn host_name() -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }
}

#[cfg(windows)]
#[allow(missing_docs, reason = "as on Unix")]
mod system {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::windows::fs::OpenOptionsExt;
    use std::path::Path;
    use std::time::Duration;

    use tokio_postgres::Config;
    use tokio_postgres::config::Host;

    const ERROR_ACCESS_DENIED: i32 = 5;
    const ERROR_SHARING_VIOLATION: i32 = 32;
    const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
    /// A migration takes seconds.
    const LOCK_TRIES_MAX: u32 = 600;
    /// A file that is being removed denies access for a moment.
    const REMOVAL_TRIES_MAX: u32 = 20;
    const LOCK_WAIT: Duration = Duration::from_millis(100);

    pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
        options
    }

    pub(crate) fn create_database(path: &Path, _folder: &Path) -> io::Result<()> {
        OpenOptions::new().write(true).create_new(true).open(path).map(drop)
    }

    pub fn give_to_folder(_file: &File, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    /// A folder cannot be locked: opens a file next to the database that no one else can open, and that is removed at the end.
    pub(crate) fn lock_for_migration(database: &Path, _folder: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create(true)
            .truncate(false)
            .share_mode(0)
            .custom_flags(FILE_FLAG_DELETE_ON_CLOSE);
        let mut tries = 0;
        loop {
            let lock = options.open(database.with_added_extension("lock"));
            let tries_max = match lock.as_ref().err().and_then(io::Error::raw_os_error) {
                Some(ERROR_SHARING_VIOLATION) => LOCK_TRIES_MAX,
                Some(ERROR_ACCESS_DENIED) => REMOVAL_TRIES_MAX,
                _ => 0,
            };
            if tries >= tries_max {
                return lock;
            }
            tries += 1;
            std::thread::sleep(LOCK_WAIT);
        }
    }

    pub(crate) fn check_permissions(_path: &Path) -> Option<String> {
        None
    }

    /// Constant for a file that exists: nothing can take its place while it is open.
    pub fn file_id(path: &Path) -> io::Result<(u64, u64)> {
        path.metadata().map(|_| (0, 0))
    }

    /// Other tools write sqlite:///C:/scans.db.
    pub(crate) fn sqlite_path(path: &str) -> &str {
        let is_drive = |rest: &&str| rest.as_bytes().get(1) == Some(&b':');
        path.strip_prefix('/').filter(is_drive).unwrap_or(path)
    }

    pub(crate) fn set_host(config: &mut Config, host: &Host) -> Option<String> {
        let Host::Tcp(name) = host;
        config.host(name);
        Some(name.clone()).filter(|name| !name.starts_with('/'))
    }

    pub(crate) fn user_name() -> String {
        std::env::var("USERNAME").unwrap_or_else(|_| "unknown".into())
    }

    pub fn host_name() -> String {
        std::env::var("COMPUTERNAME").unwrap_or_else(|_| "localhost".into())
    }
}
