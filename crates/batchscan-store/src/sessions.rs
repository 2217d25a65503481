//! Browser sessions and sign-in links, and their rules.

use std::fmt;

use batchscan_model::{ClientId, UtcInstant};

use crate::access::CredentialStatus;
use crate::change::Change;
use crate::errors::{AdminError, StoreError};
use crate::organisations::find_org;
use crate::page::Caller;
use crate::sql::{Columns, Sql, values};
use crate::store::{End, Store};
use crate::types::Freshness;

/// Sessions of one credential, and as many links. The oldest ends when there are more.
const SESSIONS_MAX: i64 = 100;
/// How long a secret is used before it is replaced. In between, a use of a session only reads: it does not wait for an
/// import that holds SQLite's write lock.
const RENEW_AFTER_SECS: i64 = 24 * 3_600;

/// How long the tabs of a browser may take until all have the new secret.
const RENEWAL_SECS: i64 = 60;

/// A browser that is signed in to the dashboard, or a sign-in link that is not used yet.
#[derive(Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id, which is not secret.
    pub id: ClientId,
    /// The credential that it ends with.
    pub client: ClientId,
    /// Whether this is a link.
    pub is_link: bool,
    /// HMAC-SHA-256 of the current secret.
    pub hash: [u8; 32],
    /// The same of the secret before. It works until the current one is used: the browser may not have received that.
    pub previous_hash: Option<[u8; 32]>,
    /// When it was created.
    pub created_at: UtcInstant,
    /// When it ends.
    pub expires_at: UtcInstant,
    /// When it started or its secret was last replaced, which happens once a day while it is used. `None` for a link.
    pub last_used_at: Option<UtcInstant>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, client, is_link, .. } = self;
        f.debug_struct("Session")
            .field("id", id)
            .field("client", client)
            .field("is_link", is_link)
            .finish_non_exhaustive()
    }
}

/// A use of a session or a link.
#[derive(Clone)]
pub struct SessionUse {
    /// The id of the session.
    pub id: ClientId,
    /// The hash of the secret that the browser sent.
    pub hash: [u8; 32],
    /// The hash of the secret that replaces it, if it is due.
    pub next_hash: [u8; 32],
    /// For a link: when the session that it starts ends.
    pub link_until: Option<UtcInstant>,
    /// The current time.
    pub now: UtcInstant,
}

/// The outcome of a use of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionResult {
    /// A signed-in user.
    Active(Box<ActiveSession>),
    /// There is no such session, or the link was used or has expired.
    Unknown,
    /// A secret was used again after it was replaced: somebody has copied it. The session has ended.
    Copied(ClientId),
}

/// A session that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveSession {
    /// The organisation and credential.
    pub caller: Caller,
    /// The name of the organisation.
    pub org_name: String,
    /// When the credential expires.
    pub credential_expires_at: Option<UtcInstant>,
    /// When the session started.
    pub created_at: UtcInstant,
    /// When the session ends.
    pub expires_at: UtcInstant,
    /// Whether this use replaced the secret.
    pub is_renewed: bool,
}

/// A stored session with what its credential allows.
struct SessionRow {
    session: Session,
    active: ActiveSession,
    credential_revoked_at: Option<UtcInstant>,
    /// When the old secret retires, if there was a rotation since the session or link was created.
    secret_retires_at: Option<UtcInstant>,
}

/// What to do with the stored session.
enum SessionChange {
    Keep,
    Update(Session),
    Remove,
}

/// The rules: the outcome of a use, and what to change.
fn use_session(row: Option<SessionRow>, request: &SessionUse) -> (SessionResult, SessionChange) {
    let Some(SessionRow { mut session, mut active, credential_revoked_at, secret_retires_at }) = row else {
        return (SessionResult::Unknown, SessionChange::Keep);
    };
    let status = CredentialStatus::new(credential_revoked_at, active.credential_expires_at, request.now);
    if session.expires_at <= request.now || status != CredentialStatus::Active {
        return (SessionResult::Unknown, SessionChange::Remove);
    }
    let is_current = request.hash == session.hash;
    match request.link_until {
        // A link that is used twice does not end the session: people click twice.
        Some(_) if !session.is_link || !is_current => return (SessionResult::Unknown, SessionChange::Keep),
        None if session.is_link => return (SessionResult::Unknown, SessionChange::Keep),
        Some(until) => {
            let until = secret_retires_at.map_or(until, |end| end.min(until));
            session.is_link = false;
            session.created_at = request.now;
            session.expires_at = until;
            active.created_at = request.now;
            active.expires_at = until;
        }
        None if is_current => {
            let is_fresh = |at: UtcInstant| request.now < at.plus_secs(RENEW_AFTER_SECS);
            if session.last_used_at.is_some_and(is_fresh) {
                return (SessionResult::Active(Box::new(active)), SessionChange::Keep);
            }
            session.previous_hash = Some(session.hash);
        }
        None if session.previous_hash == Some(request.hash) => {
            // Another tab has just got the new secret: it must stay valid, whichever response arrives last.
            let is_recent = |at: UtcInstant| request.now < at.plus_secs(RENEWAL_SECS);
            if session.last_used_at.is_some_and(is_recent) {
                return (SessionResult::Active(Box::new(active)), SessionChange::Keep);
            }
        }
        None => return (SessionResult::Copied(session.client), SessionChange::Remove),
    }
    session.hash = request.next_hash;
    session.last_used_at = Some(request.now);
    active.is_renewed = true;
    (SessionResult::Active(Box::new(active)), SessionChange::Update(session))
}

/// Selects sessions with what their credentials allow, for [`session_row`].
const SELECT: &str = "
    SELECT s.id, s.client_id, s.is_link, s.hash, s.previous_hash, s.created_at, s.expires_at, s.last_used_at,
           c.org_id, o.name, c.expires_at, c.revoked_at,
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
        secret_hash: Option<[u8; 32]>,
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
    pub async fn sign_out(&self, id: &ClientId, hash: [u8; 32]) -> Result<bool, AdminError> {
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
    hash: &[u8; 32],
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
        credential_expires_at: row.optional_instant(10)?,
        created_at: session.created_at,
        expires_at: session.expires_at,
        is_renewed: false,
    };
    let (credential_revoked_at, secret_retires_at) = (row.optional_instant(11)?, row.optional_instant(12)?);
    Ok(SessionRow { session, active, credential_revoked_at, secret_retires_at })
}

#[cfg(test)]
mod tests {
    use batchscan_model::OrgId;

    use super::*;

    /// After so many days: a secret is replaced each day.
    fn at(days: i64) -> UtcInstant {
        UtcInstant::EPOCH.plus_secs(days * RENEW_AFTER_SECS)
    }

    /// A session that expires on day 100, whose secrets are numbers.
    fn session(is_link: bool) -> Session {
        Session {
            id: ClientId::new("s").unwrap(),
            client: ClientId::new("c").unwrap(),
            is_link,
            hash: [1; 32],
            previous_hash: None,
            created_at: at(0),
            expires_at: at(100),
            last_used_at: (!is_link).then_some(at(0)),
        }
    }

    /// Uses a session, and keeps what is stored.
    fn send(stored: &mut Option<Session>, secret: u8, next: u8, link: bool, day: i64) -> &'static str {
        let row = stored.clone().map(|session| SessionRow {
            active: ActiveSession {
                caller: Caller { org: OrgId(1), client: session.client.clone() },
                org_name: "Green Valley".to_owned(),
                credential_expires_at: None,
                created_at: session.created_at,
                expires_at: session.expires_at,
                is_renewed: false,
            },
            session,
            credential_revoked_at: None,
            secret_retires_at: None,
        });
        let link_until = link.then(|| at(day + 100));
        let request = SessionUse {
            id: ClientId::new("s").unwrap(),
            hash: [secret; 32],
            next_hash: [next; 32],
            link_until,
            now: at(day),
        };
        let (result, change) = use_session(row, &request);
        match change {
            SessionChange::Keep => {}
            SessionChange::Update(session) => *stored = Some(session),
            SessionChange::Remove => *stored = None,
        }
        match result {
            SessionResult::Active(active) if active.is_renewed => "renewed",
            SessionResult::Active(_) => "active",
            SessionResult::Unknown => "unknown",
            SessionResult::Copied(_) => "copied",
        }
    }

    #[test]
    fn the_secret_is_replaced_once_a_day() {
        let mut stored = Some(session(false));
        assert_eq!(send(&mut stored, 1, 2, false, 0), "active", "nothing is written");
        assert_eq!(send(&mut stored, 1, 2, false, 1), "renewed");
        assert_eq!(send(&mut stored, 2, 3, false, 2), "renewed");
        assert_eq!(send(&mut stored, 3, 4, false, 2), "active");
        assert_eq!(send(&mut stored, 1, 4, false, 3), "copied", "an old secret ends the session");
        assert_eq!(send(&mut stored, 3, 4, false, 4), "unknown", "for everyone");
    }

    #[test]
    fn a_lost_response_does_not_end_a_session() {
        let mut stored = Some(session(false));
        assert_eq!(send(&mut stored, 1, 2, false, 1), "renewed");
        assert_eq!(send(&mut stored, 1, 3, false, 2), "renewed", "secret 2 never arrived");
        assert_eq!(send(&mut stored, 1, 4, false, 3), "renewed", "nor did 3");
        assert_eq!(send(&mut stored, 4, 5, false, 4), "renewed");
        assert_eq!(send(&mut stored, 2, 6, false, 5), "copied");
    }

    #[test]
    fn two_tabs_that_renew_at_once_stay_signed_in() {
        let mut stored = Some(session(false));
        assert_eq!(send(&mut stored, 1, 2, false, 1), "renewed");
        assert_eq!(
            send(&mut stored, 1, 3, false, 1),
            "active",
            "the other tab keeps its cookie until it has the new one"
        );
        assert_eq!(send(&mut stored, 2, 4, false, 1), "active");
        assert_eq!(send(&mut stored, 2, 5, false, 2), "renewed");
    }

    #[test]
    fn a_session_ends_at_its_expiry() {
        let mut stored = Some(session(false));
        assert_eq!(send(&mut stored, 1, 2, false, 99), "renewed");
        assert_eq!(send(&mut stored, 2, 3, false, 100), "unknown");
        assert_eq!(stored, None);
    }

    #[test]
    fn a_link_works_once_and_only_as_a_link() {
        let mut stored = Some(session(true));
        assert_eq!(send(&mut stored, 1, 2, false, 1), "unknown", "its secret is no cookie");
        assert_eq!(send(&mut stored, 9, 2, true, 1), "unknown");
        assert_eq!(send(&mut stored, 1, 2, true, 50), "renewed");
        assert_eq!(send(&mut stored, 1, 3, true, 51), "unknown", "used twice");
        assert_eq!(send(&mut stored, 2, 3, false, 149), "renewed", "its session has a lifetime of its own");
        assert_eq!(send(&mut Some(session(true)), 1, 2, true, 100), "unknown", "expired");
    }
}
