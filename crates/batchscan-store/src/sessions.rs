//! Browser sessions and sign-in links. Their rules are in [`crate::access`].

use batchscan_model::{ClientId, UtcInstant};

use crate::access::{
    ActiveSession, SecretHash, Session, SessionChange, SessionResult, SessionRow, SessionUse, use_session,
};
use crate::change::Change;
use crate::errors::{AdminError, StoreError};
use crate::organisations::find_org;
use crate::page::Caller;
use crate::sql::{Columns, Sql, values};
use crate::store::{End, Store};
use crate::types::Freshness;

/// Sessions of one credential, and as many links. The oldest ends when there are more.
const SESSIONS_MAX: i64 = 100;
/// Selects sessions with what their credentials allow, for [`session_row`].
const SELECT: &str = "
    SELECT s.id, s.client_id, s.is_link, s.hash, s.previous_hash, s.created_at, s.expires_at, s.last_used_at,
           c.org_id, o.name, c.label, c.expires_at, c.revoked_at,
           (SELECT max(retires_at) FROM secret WHERE client_id = s.client_id
            HAVING max(created_at) > s.created_at)
    FROM session s
    JOIN credential c ON c.client_id = s.client_id
    JOIN organisation o ON o.id = c.org_id ";

impl Store {
    /// Adds a session or a sign-in link. The oldest of the credential ends if it has too many.
    ///
    /// A session ends with the secret that it was started with, given by its hash. If that has ended already, for example by
    /// a rotation after it was verified, there is no session.
    pub async fn add_session(
        &self,
        mut session: Session,
        secret_hash: Option<SecretHash>,
    ) -> Result<(), AdminError> {
        let now = session.created_at;
        self.change(now, async move |sql| {
            if let Some(hash) = secret_hash {
                let retires_at = lock_secret(sql, &session.client, &hash, now).await?;
                session.expires_at = retires_at.map_or(session.expires_at, |end| end.min(session.expires_at));
            }
            sql.execute("DELETE FROM session WHERE expires_at <= $1", values![now]).await?;
            write(sql, &session).await?;
            // Only links are made by an operator.
            let link =
                || Change::new("credential link", session.client.as_str()).detail(session.id.to_string());
            Ok(((), session.is_link.then(link).into_iter().collect()))
        })
        .await
    }

    /// Uses a session or a sign-in link, and replaces its secret when that is due.
    pub async fn use_session(&self, request: SessionUse) -> Result<SessionResult, AdminError> {
        // Guesses and most uses change nothing: they lock nothing. A standby may still have a session that was ended.
        let find = format!("{SELECT}WHERE s.id = $1");
        let row = self.read(Freshness::Latest, &find, values![&request.id], session_row).await?.pop();
        let (result, change) = use_session(row, &request);
        if let SessionChange::Keep = change {
            return Ok(result);
        }
        self.transaction(async move |sql| {
            let lock = format!("SELECT expires_at FROM session WHERE id = $1 {}", sql.dialect().for_update);
            sql.all(&lock, values![&request.id], |_| Ok(())).await?;
            let row = sql.first(&find, values![&request.id], session_row).await?;
            let (result, change) = use_session(row, &request);
            match change {
                SessionChange::Keep => {}
                SessionChange::Update(session) => write(sql, &session).await?,
                SessionChange::Remove => end_all(sql, request.id.as_str()).await.map(drop)?,
            }
            Ok(End::Commit(result))
        })
        .await
    }

    /// Ends the session with this id and secret; `false` if there is none.
    pub async fn sign_out(&self, id: &ClientId, hash: SecretHash) -> Result<bool, AdminError> {
        let id = id.clone();
        let find = "SELECT created_at FROM session WHERE id = $1 AND (hash = $2 OR previous_hash = $2)";
        if self.read(Freshness::Latest, find, values![&id, &hash], |_| Ok(())).await?.is_empty() {
            return Ok(false);
        }
        let delete = "DELETE FROM session WHERE id = $1 AND (hash = $2 OR previous_hash = $2)";
        let delete = async move |sql: &mut (dyn Sql + '_)| {
            Ok(End::Commit(sql.execute(delete, values![&id, &hash]).await? > 0))
        };
        self.transaction(delete).await
    }

    /// The sessions and links of an organisation, or of all, oldest first.
    pub async fn sessions(&self, org: Option<&str>, now: UtcInstant) -> Result<Vec<Session>, AdminError> {
        let org = org.map(str::to_owned);
        self.snapshot(async move |sql| {
            let org = find_org(sql, org.as_deref()).await?;
            let by_age =
                "WHERE (c.org_id = $1 OR $1 IS NULL) AND s.expires_at > $2 ORDER BY s.created_at, s.id";
            let rows = sql.all(&format!("{SELECT}{by_age}"), values![org, now], session_row).await?;
            Ok(rows.into_iter().map(|row| row.session).collect())
        })
        .await
    }

    /// Ends a session by its id, or all sessions of a client id; how many.
    pub async fn end_sessions(&self, id: &str, now: UtcInstant) -> Result<u64, AdminError> {
        let id = id.to_owned();
        self.change(now, async move |sql| {
            let ended = end_all(sql, &id).await?;
            let change = || Change::new("session end", &id).detail(format!("{ended} ended"));
            Ok((ended, (ended > 0).then(change).into_iter().collect()))
        })
        .await
    }
}

/// When a valid secret retires. Its credential is locked until the end of the transaction: no rotation comes between.
async fn lock_secret(
    sql: &mut dyn Sql,
    client: &ClientId,
    hash: &SecretHash,
    now: UtcInstant,
) -> Result<Option<UtcInstant>, AdminError> {
    let lock = format!("SELECT created_at FROM credential WHERE client_id = $1 {}", sql.dialect().for_update);
    sql.all(&lock, values![client], |_| Ok(())).await?;
    let find = "SELECT retires_at FROM secret WHERE client_id = $1 AND hash = $2";
    let found = sql.first(find, values![client, hash], |row| row.optional_instant(0)).await?;
    let valid = found.filter(|retires_at| retires_at.is_none_or(|end| now < end));
    valid.ok_or_else(|| AdminError::CredentialNotFound(client.clone()))
}

/// Writes a session or link, and ends the oldest ones if there are too many.
async fn write(sql: &mut dyn Sql, session: &Session) -> Result<(), AdminError> {
    let Session { id, client, is_link, hash, previous_hash, created_at, expires_at, last_used_at } = session;
    // An update keeps the row, for which a concurrent use may wait.
    let write = "
        INSERT INTO session (id, client_id, is_link, hash, previous_hash, created_at, expires_at, last_used_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (id) DO UPDATE SET is_link = excluded.is_link, hash = excluded.hash,
            previous_hash = excluded.previous_hash, created_at = excluded.created_at,
            expires_at = excluded.expires_at, last_used_at = excluded.last_used_at";
    let values = values![id, client, *is_link, hash, previous_hash, *created_at, *expires_at, *last_used_at];
    sql.execute(write, values).await?;
    // Both databases need a limit for an offset.
    let remove_oldest = "
        DELETE FROM session WHERE id IN
            (SELECT id FROM session WHERE client_id = $1 AND is_link = $2
             ORDER BY created_at DESC, id LIMIT 1000000 OFFSET $3)";
    sql.execute(remove_oldest, values![client, *is_link, SESSIONS_MAX]).await.map(drop)
}

/// Ends the sessions and links of a credential, or one session. Returns how many.
pub(crate) async fn end_all(sql: &mut dyn Sql, id: &str) -> Result<u64, AdminError> {
    sql.execute("DELETE FROM session WHERE client_id = $1 OR id = $1", values![id]).await
}

/// The sessions and links of a credential end at that time, unless they end earlier.
pub(crate) async fn end_by(sql: &mut dyn Sql, client: &ClientId, end: UtcInstant) -> Result<(), AdminError> {
    let shorten = "UPDATE session SET expires_at = $1 WHERE client_id = $2 AND expires_at > $1";
    sql.execute(shorten, values![end, client]).await.map(drop)
}

/// The sessions of a secret that would have worked until `end` end now. Those of the next secret last longer.
pub(crate) async fn end_of_retired(
    sql: &mut dyn Sql,
    client: &ClientId,
    end: UtcInstant,
) -> Result<(), AdminError> {
    let delete = "DELETE FROM session WHERE client_id = $1 AND is_link = 0 AND expires_at <= $2";
    sql.execute(delete, values![client, end]).await.map(drop)
}

fn session_row(row: &dyn Columns) -> Result<SessionRow, StoreError> {
    let session = Session {
        id: row.client(0)?,
        client: row.client(1)?,
        is_link: row.number(2)? != 0,
        hash: row.hash(3)?,
        previous_hash: row.optional_hash(4)?,
        created_at: row.instant(5)?,
        expires_at: row.instant(6)?,
        last_used_at: row.optional_instant(7)?,
    };
    let active = ActiveSession {
        caller: Caller { org: row.org(8)?, client: session.client.clone() },
        org_name: row.string(9)?,
        label: row.string(10)?,
        credential_expires_at: row.optional_instant(11)?,
        created_at: session.created_at,
        expires_at: session.expires_at,
        is_renewed: false,
    };
    let (credential_revoked_at, secret_retires_at) = (row.optional_instant(12)?, row.optional_instant(13)?);
    Ok(SessionRow { session, active, credential_revoked_at, secret_retires_at })
}
