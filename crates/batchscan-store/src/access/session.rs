//! Browser sessions and sign-in links (decision 051): how long a secret works, and when it is replaced.

use std::fmt;

use batchscan_model::{ClientId, UtcInstant};

use super::credential::CredentialStatus;
use super::secret::{IdAndSecret, SecretHash, SecretKey};
use crate::page::Caller;

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
    pub hash: SecretHash,
    /// The same of the secret before. It works until the current one is used: the browser may not have received that.
    pub previous_hash: Option<SecretHash>,
    /// When it was created.
    pub created_at: UtcInstant,
    /// When it ends.
    pub expires_at: UtcInstant,
    /// When it started or its secret was last replaced, which happens once a day while it is used. `None` for a link.
    pub last_used_at: Option<UtcInstant>,
}

impl Session {
    /// A new session or link, to be stored, and its secret; `None` if the random number generator failed.
    pub fn new(
        key: &SecretKey,
        client: ClientId,
        is_link: bool,
        expires_at: UtcInstant,
        now: UtcInstant,
    ) -> Option<(Self, IdAndSecret)> {
        let secret = IdAndSecret::random("")?;
        let session = Self {
            id: secret.id.clone(),
            client,
            is_link,
            hash: key.hash(&secret.secret),
            previous_hash: None,
            created_at: now,
            expires_at,
            last_used_at: (!is_link).then_some(now),
        };
        Some((session, secret))
    }
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
    pub hash: SecretHash,
    /// The hash of the secret that replaces it, if it is due.
    pub next_hash: SecretHash,
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
    /// The label of the credential.
    pub label: String,
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
pub(crate) struct SessionRow {
    pub(crate) session: Session,
    pub(crate) active: ActiveSession,
    pub(crate) credential_revoked_at: Option<UtcInstant>,
    /// When the old secret retires, if there was a rotation since the session or link was created.
    pub(crate) secret_retires_at: Option<UtcInstant>,
}

/// What to do with the stored session.
pub(crate) enum SessionChange {
    Keep,
    Update(Session),
    Remove,
}

/// The rules: the outcome of a use, and what to change.
pub(crate) fn use_session(row: Option<SessionRow>, request: &SessionUse) -> (SessionResult, SessionChange) {
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
                label: "Anna".to_owned(),
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
