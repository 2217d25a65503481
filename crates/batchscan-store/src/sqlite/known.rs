//! The data versions of callers that were read since the last commit of any process.
//!
//! Most requests ask for what has not changed. `PRAGMA data_version` notices a commit in memory that all processes share, so
//! such a request needs no reader thread, and does not wait for reads from a slow disk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use batchscan_model::UtcInstant;
use foldhash::fast::RandomState;
use rusqlite::Connection;

use crate::access::CredentialStatus;
use crate::page::{Caller, DataVersion};

/// Callers that are kept. Each takes some hundred bytes.
const CALLERS_MAX: usize = 10_000;

/// The async runtime must not wait for longer than some milliseconds.
const LOCK_TRIES_MAX: usize = 100;
const LOCK_WAIT: Duration = Duration::from_micros(100);

/// What is known, and the connection that notices commits.
#[derive(Debug)]
pub(super) struct KnownVersions(Mutex<State>);

#[derive(Debug)]
struct State {
    connection: Connection,
    data_version: i64,
    /// How many times something was committed, as far as it was noticed.
    commits: u64,
    callers: HashMap<Caller, Known, RandomState>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    version: DataVersion,
    expires_at: Option<i64>,
}

/// A read whose version becomes known, unless something is committed meanwhile.
pub(super) struct Learning {
    versions: Arc<KnownVersions>,
    caller: Caller,
    commits: u64,
    /// The version before the read, which may be an old one.
    known: Option<DataVersion>,
}

impl KnownVersions {
    pub(super) fn new(connection: Connection) -> rusqlite::Result<Self> {
        // A caller would wait on the async runtime.
        connection.busy_timeout(Duration::ZERO)?;
        Ok(Self(Mutex::new(State { connection, data_version: 0, commits: 0, callers: HashMap::default() })))
    }

    /// What `skip` returns for the version of a caller with a valid credential, or what to do with the version once it is
    /// read. `skip` is called before the look for commits, which takes 3,300 instructions: a query that is not cached needs
    /// none.
    pub(super) fn find<S>(
        self: &Arc<Self>,
        caller: &Caller,
        now: UtcInstant,
        skip: impl Fn(DataVersion) -> Option<S>,
    ) -> Result<S, Option<Learning>> {
        let state = self.lock().ok_or(None)?;
        let (commits, known) = (state.commits, state.callers.get(caller).copied());
        drop(state);
        let learning = |commits, known| {
            let (versions, caller) = (self.clone(), caller.clone());
            Some(Learning { versions, caller, commits, known })
        };
        let found = match known.filter(|known| known.is_valid(now)) {
            Some(Known { version, .. }) => {
                Some(skip(version).ok_or_else(|| learning(commits, Some(version)))?)
            }
            None => None,
        };
        let latest = self.current().ok_or(None)?.commits;
        found.filter(|_| latest == commits).ok_or_else(|| learning(latest, None))
    }

    /// What is known after the last commit. `None` if that cannot be told soon: the commit is being read from a slow disk, or a
    /// process that repairs the file after a crash has locked it.
    fn current(&self) -> Option<MutexGuard<'_, State>> {
        let mut state = self.lock()?;
        let mut read = state.connection.prepare_cached("PRAGMA data_version").ok()?;
        let data_version = read.query_row([], |row| row.get(0)).ok();
        drop(read);
        let data_version = data_version?;
        if data_version != state.data_version {
            state.data_version = data_version;
            state.commits += 1;
            state.callers.clear();
        }
        Some(state)
    }

    /// Looking takes some microseconds. `None` if another request takes far longer.
    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        for _ in 0..LOCK_TRIES_MAX {
            match self.0.try_lock() {
                Ok(state) => return Some(state),
                Err(TryLockError::Poisoned(state)) => return Some(state.into_inner()),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_WAIT),
            }
        }
        None
    }
}

impl Known {
    fn is_valid(&self, now: UtcInstant) -> bool {
        CredentialStatus::from_micros(None, self.expires_at, now) == CredentialStatus::Active
    }
}

impl Learning {
    /// Keeps what a snapshot has that was opened after [`KnownVersions::find`].
    pub(super) fn learn(self, version: DataVersion, expires_at: Option<i64>) {
        // Otherwise the old version is forgotten.
        if self.known == Some(version) {
            return;
        }
        let Some(mut state) = self.versions.current() else { return };
        if state.commits != self.commits {
            return;
        }
        if state.callers.len() >= CALLERS_MAX {
            state.callers.clear();
        }
        state.callers.insert(self.caller, Known { version, expires_at });
    }
}
