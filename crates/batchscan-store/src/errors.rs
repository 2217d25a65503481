//! Errors of a store: for requests, for opening it, and for operators' commands.

use std::path::{Path, PathBuf};

use batchscan_formats::read::ReadError;
use batchscan_model::ClientId;

/// Why a request could not be served.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The database is not available now. A retry may succeed. The text is for the log.
    #[error("the database is unreachable: {0}")]
    Unreachable(String),
    /// The file is damaged or its disk fails. An operator has to repair it. The text is for the log.
    #[error("the database file cannot be read or written: {0}; run `batchscan doctor`")]
    Unreadable(String),
    /// The database does not accept a value of the request. The text is for the log.
    #[error("the database rejected a value: {0}")]
    Rejected(String),
    /// The database returned invalid data or failed in another way. The text is for the log.
    #[error("the database failed: {0}")]
    Broken(String),
}

/// Why a database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file does not exist.
    #[error("there is no database at {0}: check the path, or create one with `batchscan org add`")]
    Missing(PathBuf),
    /// The database has no tables yet, or the file is empty.
    #[error(
        "{0} has no batchscan tables: check the URL, or create them with `batchscan serve` or `batchscan org add`"
    )]
    Empty(String),
    /// No PostgreSQL server responds.
    #[error("cannot reach {url}: {cause}; check that the server is running, and the host, port and sslmode")]
    Unreachable {
        /// The database, without a password.
        url: String,
        /// The error of the last host.
        cause: String,
    },
    /// A PostgreSQL server rejects the connection.
    #[error("{url} rejected the connection: {cause}")]
    Refused {
        /// The database, without a password.
        url: String,
        /// The server's error.
        cause: String,
    },
    /// The schema must be migrated, and there is no primary.
    #[error("cannot migrate the schema of {0}: no host is a primary; start one first")]
    NoPrimary(String),
    /// The database belongs to another program.
    #[error("{0} has tables that are not batchscan's: choose another database with --database")]
    Foreign(String),
    /// The database cannot store every text.
    #[error("{url} has the encoding {encoding}: create the database again with ENCODING 'UTF8'")]
    Encoding {
        /// The database, without a password.
        url: String,
        /// Its encoding.
        encoding: String,
    },
    /// The folder does not exist.
    #[error("{0} is not a folder: create it, or choose another path with --database")]
    NoFolder(PathBuf),
    /// The disk is full.
    #[error("the disk is full: free some space, or choose another path with --database")]
    DiskFull,
    /// The file or its folder is not writable.
    #[error("cannot write {path}: {cause}; check the permissions of the file and its folder")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: String,
    },
    /// The file is something else.
    #[error("{0} is not a batchscan database: choose another file with --database")]
    NotADatabase(PathBuf),
    /// The file is corrupt.
    #[error("the database {path} is damaged ({cause}): restore a backup")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        cause: String,
    },
    /// The database is an incomplete copy.
    #[error("the copy into {0} is not finished: run the same `batchscan copy` again")]
    UnfinishedCopy(String),
    /// The schema belongs to a newer program.
    #[error(
        "the database has schema version {found}, but this program supports up to {known}: update batchscan"
    )]
    NewerSchema {
        /// The database's schema.
        found: i32,
        /// The newest schema this program knows.
        known: i32,
    },
    /// Any other error.
    #[error("cannot open the database: {0}")]
    Other(String),
}

/// Why an operator's command failed.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another process holds the write lock.
    #[error("the database is locked by another batchscan command: try again when it has finished")]
    Busy,
    /// The disk is full.
    #[error("the disk is full: nothing was changed; free some space and try again")]
    DiskFull,
    /// The database or its folder became read-only.
    #[error("cannot write to the database: {0}; check the permissions of the file and its folder")]
    ReadOnly(String),
    /// A row with the same key exists. The text is for the log.
    #[error("another command has just changed the same: try again ({0})")]
    Duplicate(String),
    /// No organisation has this name.
    #[error(
        "there is no organisation named \"{name}\": {}list them with `batchscan org list`, or add one with `batchscan org add`",
        .similar.as_ref().map_or(String::new(), |similar| format!("did you mean \"{similar}\"? Otherwise "))
    )]
    OrgNotFound {
        /// The name.
        name: String,
        /// The name of an organisation that may be meant.
        similar: Option<String>,
    },
    /// The name is taken.
    #[error("an organisation named \"{0}\" already exists: list all with `batchscan org list`")]
    OrgExists(String),
    /// The organisation has no batch with this id.
    #[error("there is no batch with the id \"{0}\": nothing was changed")]
    BatchNotFound(String),
    /// The key of an import belongs to another file.
    #[error("the key was already used for another file: send each file with a key of its own")]
    KeyReused,
    /// The ids of the file are not accepted.
    #[error(transparent)]
    InvalidIds(ReadError),
    /// No operator token has this id.
    #[error("there is no operator token {0}: list them with `batchscan operator token list`")]
    TokenNotFound(String),
    /// The operator token was revoked or has expired while it was used.
    #[error("the operator token no longer works: nothing was changed")]
    TokenEnded,
    /// The credential does not exist.
    #[error("there is no credential {0}: list them with `batchscan credential list`")]
    CredentialNotFound(ClientId),
    /// The credential is revoked.
    #[error(
        "the credential {0} is already revoked: issue a new one with `batchscan credential issue --org NAME`"
    )]
    Revoked(ClientId),
    /// The connection broke before the commit was confirmed.
    #[error(
        "connection lost during commit; the change may or may not have been applied: check, or run the same command again"
    )]
    CommitUnknown,
    /// The sender of an import or a copy stopped.
    #[error("the operation was aborted: nothing was changed")]
    Aborted,
    /// The target of a backup exists.
    #[error("{0} already exists: choose another name, or remove it first")]
    TargetExists(PathBuf),
    /// The target of a backup cannot be written.
    #[error("cannot write {path}: {cause}")]
    TargetUnwritable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: String,
    },
}

impl AdminError {
    pub(crate) fn org_not_found(name: &str) -> Self {
        AdminError::OrgNotFound { name: name.to_owned(), similar: None }
    }
}

/// For requests that need an operator's operation. Most errors can be retried.
impl From<AdminError> for StoreError {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::Store(error) => error,
            other => StoreError::Unreachable(other.to_string()),
        }
    }
}

pub(crate) fn unwritable(path: &Path, cause: &impl ToString) -> AdminError {
    AdminError::TargetUnwritable { path: path.to_owned(), cause: cause.to_string() }
}
