//! Stores organisations, credentials and batches. The only crate that knows the tables of the service.
//!
//! # The contract
//!
//! Both stores keep these promises; `tests/contract` checks them.
//!
//! 1. **Isolation.** Every read of batches for a client takes a [`Caller`], fails if its credential is revoked or expired,
//!    and returns only that organisation's batches.
//! 2. **One snapshot.** [`Store::page`] reads the credential, the data version and the batches in one snapshot. If no
//!    batches are read, because the client or a cache has the page, the credential is as new as the version or newer.
//! 3. **Order.** Batches are ordered by creation time, then by the bytes of their id (decision 018).
//! 4. **Exact bytes.** The JSON text of a batch is returned exactly as it was imported.
//! 5. **Versions.** Every change of an organisation's batches creates a new [`DataVersion`] in the same transaction. An
//!    import without changes keeps the version.
//! 6. **All or nothing.** An import is applied completely or not at all, even if the process is killed.
//! 7. **No repeats while paging.** A batch whose creation date is corrected during paging is not returned twice
//!    (decision 025).
//! 8. **Never back in time.** A page is not older than [`PageRequest::min_version`], on whichever host it is read.
//! 9. **Audit.** Every change by an operator adds an entry to the audit log in the same transaction.
//! 10. **Kinds of errors.** [`StoreError::Unreachable`] can be retried, [`StoreError::Unreadable`] after a repair,
//!     [`StoreError::Broken`] cannot.

mod access;
mod array;
mod audit;
mod backup;
mod blocks;
mod change;
mod changes;
mod copy;
mod credentials;
mod doctor;
mod dump;
mod errors;
mod gzip;
mod import_file;
mod import_settings;
mod imports;
mod keys;
mod migrations;
mod operator_tokens;
mod organisations;
mod page;
mod page_builder;
pub mod platform;
mod postgres;
mod seen;
mod sessions;
mod shares;
mod sql;
mod sqlite;
mod status;
mod store;
mod types;
mod url;
mod versions;
mod watchers;

pub use access::{
    ActiveSession, Credential, CredentialStatus, IdAndSecret, NewCredential, OperatorRole, Rate, RateLimit,
    Rejected, Rotation, Secret, SecretHash, SecretKey, Session, SessionResult, SessionUse, WrongSecrets,
    is_issued_id, is_label, new_secret,
};
pub use array::{ArrayBody, ArrayChunks, ArrayError, ArrayRequest, BatchArray};
pub use audit::{AuditEntry, AuditRange};
pub use change::Actor;
pub use changes::{ChangeKey, Changes, ChangesPosition, ChangesRequest, SyncProgress};
pub use copy::{CopiedOrg, CopyError, copy_database};

pub use doctor::DoctorReport;
pub use errors::{AdminError, OpenError, StoreError};
pub use gzip::gzip;
pub use import_file::{ImportError, ImportOptions, hash_file, import_file};
pub use imports::{ImportEntry, ImportFilter, ImportResult, ImportSource};
pub use keys::{KeyPurpose, KeyRotation, ServiceKey};
pub use operator_tokens::OperatorToken;
pub use organisations::{OrgName, OrgOverview, Organisation};
pub use page::{
    Caller, DataVersion, Encoding, OneBatch, OrgState, Page, PageLimit, PageRequest, PageResult, Resume,
};
pub use postgres::{PostgresUrl, PostgresUrlError, describe as describe_postgres_error};
pub use seen::{SEEN_SUBJECT_BYTES_MAX, SeenChange, SeenMark};
pub use status::{OrgStatus, Status};
pub use store::Store;
pub use types::{
    CONNECTIONS_DEFAULT, Freshness, HostHealth, ImportCounts, ImportEnd, ImportRow, ImportRows, ImportStep,
    OpenOptions, Progress, ReadFrom,
};
pub use url::{DatabaseUrl, DatabaseUrlError};
pub use watchers::{FOLDER_BYTES_MAX, HOST_BYTES_MAX, WATCHER_TIMEOUT_SECS, Watcher, WatcherState};
