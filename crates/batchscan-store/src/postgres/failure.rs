//! What PostgreSQL says, sorted into what another host may do better and what will not pass by itself.

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::filling::NotABatch;
use crate::{AdminError, StoreError};

/// Why one attempt at one host failed.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// The host went away, or cannot answer now. Another may.
    Away(String),
    /// The host is a standby that has not heard yet of what was asked about.
    Behind,
    /// No host will do better.
    Broken(String),
}

/// What the server said, with its code: the driver's own text is only "db error".
pub(super) fn told(error: &Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(said), _) if is_of_a_pooler(error) => {
            format!("{}: behind pgbouncer set ignore_startup_parameters = options", said.message())
        }
        (Some(said), _) if *said.code() == SqlState::INVALID_SQL_STATEMENT_NAME => {
            format!("{}: behind a pooler in transaction mode add prepare=off to the URL", said.message())
        }
        (Some(said), _) => format!("{} ({})", said.message(), said.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

/// Whether a pooler does not pass on what a session begins with.
fn is_of_a_pooler(error: &Error) -> bool {
    error.as_db_error().is_some_and(|said| said.message().starts_with("unsupported startup parameter"))
}

/// Whether the server answered and it is no use to ask again: a wrong or missing password, a database that is not
/// there, TLS that it does not have or a certificate that does not fit.
pub(super) fn is_refusal(error: &Error) -> bool {
    if let Some(code) = error.code() {
        let is_barred = code.code().starts_with("28") || *code == SqlState::INVALID_CATALOG_NAME;
        return is_barred || is_of_a_pooler(error);
    }
    match error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>()) {
        Some(io) => io.kind() == std::io::ErrorKind::InvalidData,
        // Neither a broken connection nor an answer: the driver itself will not go on.
        None => !error.is_closed(),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let told = told(&error);
        let Some(code) = error.code() else {
            // No code means no answer: the connection broke. All but texts that cannot be read.
            let is_ours =
                !error.is_closed() && error.source().is_none_or(|cause| !cause.is::<std::io::Error>());
            return if is_ours { Failure::Broken(told) } else { Failure::Away(told) };
        };
        let passes = [
            SqlState::QUERY_CANCELED,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::READ_ONLY_SQL_TRANSACTION,
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        ];
        // 08: the connection; 53: no resources; 57P: shutting down, starting up; 58: the system around it; 28 and 3D:
        // one host may be set up wrongly, and the others rightly.
        let class = |prefix| code.code().starts_with(prefix);
        if passes.contains(code) || ["08", "53", "57P", "58", "28", "3D"].into_iter().any(class) {
            Failure::Away(told)
        } else {
            Failure::Broken(told)
        }
    }
}

impl From<NotABatch> for Failure {
    fn from(unsound: NotABatch) -> Self {
        Failure::Broken(unsound.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unreachable(why) => Failure::Away(why),
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
            Failure::Away(why) => StoreError::Unreachable(why),
            Failure::Behind => StoreError::Unreachable("no host is up to date".into()),
            Failure::Broken(why) => StoreError::Broken(why),
        }
    }
}

/// The same for commands, which can tell a person what to do.
impl From<Error> for AdminError {
    fn from(error: Error) -> Self {
        match error.code() {
            Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => AdminError::Busy,
            Some(code) if *code == SqlState::DISK_FULL => AdminError::DiskFull,
            _ => AdminError::Store(Failure::from(error).into()),
        }
    }
}
