//! What differs between Unix and Windows. Both files have the same functions; those of the store are in its own module.
//!
//! | | Unix | Windows |
//! |---|---|---|
//! | who may read `profiles.json` | its owner; the file is rejected if others can | whom the folder allows: by default the user's own `%LOCALAPPDATA%` |
//! | a file that is being written | is locked; a lock does not hinder other handles | no process can open it exclusively. A lock would also stop SQLite in the same process |
//! | a file that another program has open | can be read, moved and replaced | cannot: `watch` tries again later, `pull` fails before it starts |
//! | stop | SIGTERM, Ctrl-C | Ctrl-C, Ctrl-Break, the window is closed, the system shuts down |
//! | settings of an installed service | `/etc/batchscan/environment` | only `BATCHSCAN_SETTINGS`: every user can create `C:\etc` |

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;
