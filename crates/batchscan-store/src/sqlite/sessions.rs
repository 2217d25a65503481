//! Browser sessions and sign-in links.

use std::sync::Arc;

use batchscan_model::{ClientId, UtcInstant};
use rusqlite::{Connection, Transaction, params};

use super::organisations::org_id;
use super::rows::query_all;
use super::store::SqliteStore;
use crate::audit::{session_added, sessions_ended};
use crate::errors::{AdminError, StoreError};
use crate::rows::{
    HAS_SESSION, REMOVE_EXPIRED_SESSIONS, REMOVE_OLDEST_SESSIONS, REMOVE_SESSION, REMOVE_SESSIONS,
    SESSION_BY_ID, SESSIONS_BY_AGE, SHORTEN_SESSIONS, SIGN_OUT, WRITE_SESSION, session_row,
};
use crate::sessions::{self, SESSIONS_MAX, Session, SessionChange, SessionResult, SessionUse};

impl SqliteStore {
    pub(crate) async fn add_session(&self, session: Session) -> Result<(), AdminError> {
        self.change_audited(session.created_at, move |transaction| {
            transaction.execute(REMOVE_EXPIRED_SESSIONS, [session.created_at.micros()])?;
            write(transaction, &session)?;
            Ok(((), session_added(&session)))
        })
        .await
    }

    pub(crate) async fn use_session(&self, request: SessionUse) -> Result<SessionResult, AdminError> {
        let request = Arc::new(request);
        // Guesses and most uses change nothing: they do not wait for the write lock.
        let read = request.clone();
        let (result, change) = self.read(move |connection| decide(connection, &read)).await?;
        if let SessionChange::Keep = change {
            return Ok(result);
        }
        self.change(move |transaction| {
            let (result, change) = decide(transaction, &request)?;
            match change {
                SessionChange::Keep => {}
                SessionChange::Update(session) => write(transaction, &session)?,
                SessionChange::Remove => {
                    transaction.execute(REMOVE_SESSION, [request.id.as_str()])?;
                }
            }
            Ok(result)
        })
        .await
    }

    pub(crate) async fn sign_out(&self, id: &ClientId, hash: [u8; 32]) -> Result<bool, AdminError> {
        let id = id.clone();
        let read = id.clone();
        let is_found = self.read(move |connection| {
            let mut statement = connection.prepare_cached(HAS_SESSION)?;
            Ok(statement.exists(params![read.as_str(), hash])?)
        });
        if !is_found.await? {
            return Ok(false);
        }
        self.change(move |transaction| Ok(transaction.execute(SIGN_OUT, params![id.as_str(), hash])? > 0))
            .await
    }

    pub(crate) async fn sessions(&self, org: &str, now: UtcInstant) -> Result<Vec<Session>, AdminError> {
        let org = org.to_owned();
        self.read_slowly(move |connection| {
            let org = org_id(connection, &org)?;
            let mut statement = connection.prepare(SESSIONS_BY_AGE)?;
            let rows = query_all(&mut statement, [org.0, now.micros()], |row| session_row(row, now))?;
            Ok(rows.into_iter().map(|row| row.session).collect())
        })
        .await
    }

    pub(crate) async fn end_sessions(&self, id: &str, now: UtcInstant) -> Result<u64, AdminError> {
        let id = id.to_owned();
        self.change_audited(now, move |transaction| {
            let ended = transaction.execute(REMOVE_SESSIONS, [&id])? as u64;
            Ok((ended, sessions_ended(&id, ended)))
        })
        .await
    }
}

/// The outcome of a use, and what to change.
fn decide(
    connection: &Connection,
    request: &SessionUse,
) -> Result<(SessionResult, SessionChange), StoreError> {
    let mut statement = connection.prepare_cached(SESSION_BY_ID)?;
    let row = query_all(&mut statement, [request.id.as_str()], |row| session_row(row, request.now))?.pop();
    Ok(sessions::use_session(row, request))
}

/// Writes a session or link, and ends the oldest ones if there are too many.
fn write(transaction: &Transaction<'_>, session: &Session) -> rusqlite::Result<()> {
    let Session { id, client, is_link, hash, previous_hash, created_at, expires_at, last_used_at } = session;
    let (created_at, expires_at) = (created_at.micros(), expires_at.micros());
    let last_used_at = last_used_at.map(UtcInstant::micros);
    transaction.execute(
        WRITE_SESSION,
        params![
            id.as_str(),
            client.as_str(),
            is_link,
            hash,
            previous_hash,
            created_at,
            expires_at,
            last_used_at
        ],
    )?;
    transaction.execute(REMOVE_OLDEST_SESSIONS, params![client.as_str(), is_link, SESSIONS_MAX]).map(drop)
}

/// The sessions of a credential end with it.
pub(super) fn remove_all(transaction: &Transaction<'_>, client: &ClientId) -> rusqlite::Result<()> {
    transaction.execute(REMOVE_SESSIONS, [client.as_str()]).map(drop)
}

/// The sessions and links of a credential end at that time, unless they end earlier.
pub(super) fn shorten_all(
    transaction: &Transaction<'_>,
    client: &ClientId,
    end: UtcInstant,
) -> rusqlite::Result<()> {
    transaction.execute(SHORTEN_SESSIONS, params![end.micros(), client.as_str()]).map(drop)
}
