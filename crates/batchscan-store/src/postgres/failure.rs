//! Classifies PostgreSQL's errors: those that another host or a retry may not have, and the others.

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::errors::{AdminError, StoreError};

/// Why one attempt at one host failed.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// The host is down or cannot respond now. Another may.
    Unavailable(String),
    /// The host does not have the data yet: a standby, or a primary that waits for a standby's acknowledgement.
    Lagging,
    /// The database does not accept a value of this request. Nothing is wrong with the host or the connection.
    Rejected(String),
    /// Every host would fail.
    Broken(String),
}

/// The server's message with its code: the driver's own text is only "db error".
pub fn describe(error: &Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(db), _) if is_pooler_error(error) => {
            format!("{}: behind pgbouncer, set ignore_startup_parameters = options", db.message())
        }
        (Some(db), _) if *db.code() == SqlState::INVALID_SQL_STATEMENT_NAME => {
            format!("{}: behind a pooler in transaction mode, add prepare=off to the URL", db.message())
        }
        (Some(db), _) => format!("{} ({})", db.message(), db.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

/// Whether a pooler rejects our startup parameters.
fn is_pooler_error(error: &Error) -> bool {
    error.as_db_error().is_some_and(|db| db.message().starts_with("unsupported startup parameter"))
}

/// Whether a retry is useless: a wrong or missing password, an unknown database, no TLS or an invalid certificate.
pub(super) fn is_rejection(error: &Error) -> bool {
    if let Some(code) = error.code() {
        let is_denied = code.code().starts_with("28") || *code == SqlState::INVALID_CATALOG_NAME;
        return is_denied || is_pooler_error(error);
    }
    match error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>()) {
        Some(io) => io.kind() == std::io::ErrorKind::InvalidData,
        // Neither a broken connection nor a response: the driver itself failed.
        None => !error.is_closed(),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let cause = describe(&error);
        let Some(code) = error.code() else {
            // Without a code there was no response: the connection broke, or the driver could not read the data.
            let is_ours =
                !error.is_closed() && error.source().is_none_or(|cause| !cause.is::<std::io::Error>());
            return if is_ours { Failure::Broken(cause) } else { Failure::Unavailable(cause) };
        };
        let temporary = [
            SqlState::QUERY_CANCELED,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::READ_ONLY_SQL_TRANSACTION,
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        ];
        // 08: connection; 53: no resources; 57P: shutdown or startup; 58: system error; 28 and 3D: one host may be
        // configured differently from the others.
        let class = |prefix| code.code().starts_with(prefix);
        if temporary.contains(code) || ["08", "53", "57P", "58", "28", "3D"].into_iter().any(class) {
            Failure::Unavailable(cause)
        } else if class("22") {
            // 22: data exception, such as a text with a NUL.
            Failure::Rejected(cause)
        } else {
            Failure::Broken(cause)
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unreachable(why) | StoreError::Unreadable(why) => Failure::Unavailable(why),
            StoreError::Rejected(why) => Failure::Rejected(why),
            StoreError::Broken(why) => Failure::Broken(why),
        }
    }
}

impl From<Failure> for AdminError {
    fn from(failure: Failure) -> Self {
        AdminError::Store(failure.into())
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unavailable(why) => StoreError::Unreachable(why),
            Failure::Lagging => StoreError::Unreachable("no host is up to date".into()),
            Failure::Rejected(why) => StoreError::Rejected(why),
            Failure::Broken(why) => StoreError::Broken(why),
        }
    }
}

impl From<Error> for AdminError {
    fn from(error: Error) -> Self {
        match error.code() {
            Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => AdminError::Busy,
            Some(code) if *code == SqlState::DISK_FULL => AdminError::DiskFull,
            Some(code) if *code == SqlState::UNIQUE_VIOLATION => AdminError::Duplicate(describe(&error)),
            _ => AdminError::Store(Failure::from(error).into()),
        }
    }
}
