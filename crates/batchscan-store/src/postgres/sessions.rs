//! Browser sessions and sign-in links.

use batchscan_model::{ClientId, UtcInstant};
use deadpool_postgres::Transaction;
use tokio_postgres::Client;

use super::failure::Failure;
use super::organisations::org_id;
use super::rows::params;
use super::store::{PostgresStore, on_any_host};
use crate::audit::{session_added, sessions_ended};
use crate::errors::AdminError;
use crate::rows::{
    HAS_SESSION, REMOVE_EXPIRED_SESSIONS, REMOVE_OLDEST_SESSIONS, REMOVE_SESSION, REMOVE_SESSIONS,
    SESSION_BY_ID, SESSIONS_BY_AGE, SHORTEN_SESSIONS, SIGN_OUT, WRITE_SESSION, select_sessions, session_row,
};
use crate::sessions::{self, SESSIONS_MAX, Session, SessionChange, SessionResult, SessionUse};
use crate::types::Freshness;

/// Locks the session until the end of the transaction.
const LOCK: &str = select_sessions!("WHERE s.id = $1 FOR UPDATE OF s");

impl PostgresStore {
    pub(crate) async fn add_session(&self, session: Session) -> Result<(), AdminError> {
        self.change_audited(session.created_at, async |transaction| {
            let now = session.created_at.micros();
            transaction.execute_typed(REMOVE_EXPIRED_SESSIONS, &params![INT8: now]).await?;
            write(transaction, &session).await?;
            Ok(((), session_added(&session)))
        })
        .await
    }

    pub(crate) async fn use_session(&self, request: SessionUse) -> Result<SessionResult, AdminError> {
        // Guesses and most uses change nothing: they lock no row. A standby may still have a session that was ended.
        let (result, change) =
            on_any_host!(self, Freshness::Latest, |client| decide(client, SESSION_BY_ID, &request));
        if let SessionChange::Keep = change {
            return Ok(result);
        }
        self.change(async |transaction| {
            let (result, change) = decide(transaction.client(), LOCK, &request).await?;
            match change {
                SessionChange::Keep => {}
                SessionChange::Update(session) => write(transaction, &session).await?,
                SessionChange::Remove => {
                    let params = params![TEXT: request.id.as_str()];
                    transaction.execute_typed(REMOVE_SESSION, &params).await?;
                }
            }
            Ok(result)
        })
        .await
    }

    pub(crate) async fn sign_out(&self, id: &ClientId, hash: [u8; 32]) -> Result<bool, AdminError> {
        let (id, hash) = (id.as_str(), hash.as_slice());
        let found = on_any_host!(self, Freshness::Latest, |client| async {
            Ok(client.query_typed(HAS_SESSION, &params![TEXT: id, BYTEA: hash]).await?)
        });
        if found.is_empty() {
            return Ok(false);
        }
        self.change(async |transaction| {
            Ok(transaction.execute_typed(SIGN_OUT, &params![TEXT: id, BYTEA: hash]).await? > 0)
        })
        .await
    }

    pub(crate) async fn sessions(&self, org: &str, now: UtcInstant) -> Result<Vec<Session>, AdminError> {
        self.read_slowly(async |snapshot| {
            let org = org_id(snapshot, org).await?;
            let params = params![INT8: org.0, INT8: now.micros()];
            let rows = snapshot.query_typed(SESSIONS_BY_AGE, &params).await?;
            let session = |row| session_row(row, now).map(|row| row.session);
            Ok(rows.iter().map(session).collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(crate) async fn end_sessions(&self, id: &str, now: UtcInstant) -> Result<u64, AdminError> {
        self.change_audited(now, async |transaction| {
            let ended = transaction.execute_typed(REMOVE_SESSIONS, &params![TEXT: id]).await?;
            Ok((ended, sessions_ended(id, ended)))
        })
        .await
    }
}

/// The outcome of a use, and what to change.
async fn decide(
    client: &Client,
    select: &str,
    request: &SessionUse,
) -> Result<(SessionResult, SessionChange), Failure> {
    let rows = client.query_typed(select, &params![TEXT: request.id.as_str()]).await?;
    let row = rows.first().map(|row| session_row(row, request.now)).transpose()?;
    Ok(sessions::use_session(row, request))
}

/// Writes a session or link, and ends the oldest ones if there are too many.
async fn write(transaction: &Transaction<'_>, session: &Session) -> Result<(), AdminError> {
    let Session { id, client, is_link, hash, previous_hash, created_at, expires_at, last_used_at } = session;
    let (created_at, expires_at) = (created_at.micros(), expires_at.micros());
    let (last_used_at, is_link) = (last_used_at.map(UtcInstant::micros), i64::from(*is_link));
    let previous_hash = previous_hash.as_ref().map(<[u8; 32]>::as_slice);
    let params = params![TEXT: id.as_str(), TEXT: client.as_str(), INT8: is_link, BYTEA: hash.as_slice(), BYTEA: previous_hash, INT8: created_at, INT8: expires_at, INT8: last_used_at];
    transaction.execute_typed(WRITE_SESSION, &params).await?;
    let params = params![TEXT: client.as_str(), INT8: is_link, INT8: SESSIONS_MAX];
    transaction.execute_typed(REMOVE_OLDEST_SESSIONS, &params).await?;
    Ok(())
}

/// The sessions of a credential end with it.
pub(super) async fn remove_all(transaction: &Transaction<'_>, client: &ClientId) -> Result<(), AdminError> {
    transaction.execute_typed(REMOVE_SESSIONS, &params![TEXT: client.as_str()]).await?;
    Ok(())
}

/// The sessions and links of a credential end at that time, unless they end earlier.
pub(super) async fn shorten_all(
    transaction: &Transaction<'_>,
    client: &ClientId,
    end: UtcInstant,
) -> Result<(), AdminError> {
    let params = params![INT8: end.micros(), TEXT: client.as_str()];
    transaction.execute_typed(SHORTEN_SESSIONS, &params).await?;
    Ok(())
}
