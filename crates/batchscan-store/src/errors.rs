//! How a store fails: to requests, to whoever opens it, and to operators.

use std::path::PathBuf;

use batchscan_model::ClientId;

/// Why a request could not be served from the store.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached now; it may be later. The text is for the log.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// The database answered with something that must not be. The text is for the log.
    #[error("the database is broken: {0}")]
    Broken(String),
}

/// Why a database could not be opened. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no database there, and none was asked for.
    #[error(
        "there is no database at {0}: `batchscan serve` and `batchscan org add` make one; or name another with --database"
    )]
    Missing(PathBuf),
    /// The PostgreSQL database has no tables of ours yet, and none were asked for.
    #[error("{0} holds no batchscan tables yet: `batchscan serve` and `batchscan org add` make them")]
    Empty(String),
    /// No PostgreSQL server answers.
    #[error("cannot reach {url}: {cause}; is the server running, and are host, port and sslmode right?")]
    Unreachable {
        /// The database, without a password.
        url: String,
        /// What the last host said.
        cause: String,
    },
    /// A PostgreSQL server answers, and refuses.
    #[error("{url} refuses: {cause}")]
    Refused {
        /// The database, without a password.
        url: String,
        /// What the server said.
        cause: String,
    },
    /// The schema must be brought up to date, and no host can be written.
    #[error("no host of {0} is a primary, and the schema is not up to date: start one first")]
    NoPrimary(String),
    /// The database holds something else.
    #[error("{0} holds tables that are not batchscan's: name another database with --database")]
    Foreign(String),
    /// The database cannot hold every text.
    #[error("{url} has the encoding {encoding}: make it anew with ENCODING 'UTF8'")]
    Encoding {
        /// The database, without a password.
        url: String,
        /// Its encoding.
        encoding: String,
    },
    /// Its folder does not exist, or is none.
    #[error("{0} is not a folder: make it first, or name another place with --database")]
    NoFolder(PathBuf),
    /// No room on the disk.
    #[error("the disk is full: make room, or name another place with --database")]
    DiskFull,
    /// The file or its folder cannot be written.
    #[error("cannot write {path}: {cause}; check the permissions of the file and its folder")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// The file holds something else.
    #[error("{0} is not a batchscan database: name another file with --database")]
    NotADatabase(PathBuf),
    /// The file is damaged.
    #[error("the database {path} is damaged ({cause}): restore a backup")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        cause: String,
    },
    /// Half a database.
    #[error("a copy into {0} was not finished: run the same `batchscan copy` again")]
    UnfinishedCopy(String),
    /// The schema is of a later program.
    #[error("the database has schema {found}, and this program knows up to {known}: update batchscan")]
    NewerSchema {
        /// The database's schema.
        found: i32,
        /// The newest this program has.
        known: i32,
    },
    /// All else.
    #[error("cannot open the database: {0}")]
    Other(String),
}

/// Why an operator's command was not carried out. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Somebody else is writing, for too long.
    #[error("the database is busy: another batchscan command is writing to it; try again when it is done")]
    Busy,
    /// No room on the disk.
    #[error("the disk is full: nothing was changed; make room and try again")]
    DiskFull,
    /// The database or its folder became read-only.
    #[error("the database cannot be written: {0}; check the permissions of the file and its folder")]
    ReadOnly(String),
    /// No organisation of that name.
    #[error(
        "there is no organisation named \"{0}\": `batchscan org list` shows them, `batchscan org add` adds one"
    )]
    NoSuchOrg(String),
    /// The name is taken.
    #[error("there is an organisation named \"{0}\" already: `batchscan org list` shows all")]
    OrgExists(String),
    /// No such credential.
    #[error("there is no credential {0}: `batchscan credential list --org NAME` shows them")]
    NoSuchCredential(ClientId),
    /// A dead credential stays dead.
    #[error(
        "the credential {0} is revoked already: issue a new one with `batchscan credential issue --org NAME`"
    )]
    Revoked(ClientId),
    /// The connection broke after the command was told to commit.
    #[error(
        "the database went away in the moment of the commit: the change may be there or not; look, or run the same command again"
    )]
    Unsure,
    /// The sender of an import went away without a verdict.
    #[error("the import was abandoned: nothing was changed")]
    Abandoned,
    /// The target of a backup is there already.
    #[error("{0} exists already: choose another name, or remove it first")]
    TargetExists(PathBuf),
    /// The target of a backup cannot be written.
    #[error("cannot write {path}: {cause}")]
    TargetUnwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
}

impl AdminError {
    /// What a request is told that needed the same: all but damage may pass.
    pub(super) fn for_a_request(self) -> StoreError {
        match self {
            AdminError::Store(error) => error,
            other => StoreError::Unreachable(other.to_string()),
        }
    }
}
