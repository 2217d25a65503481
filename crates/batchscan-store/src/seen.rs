//! What the users of an organisation have marked as seen in the dashboard. A mark changes no batch, and its subject is a
//! text that only the dashboard understands.

use std::collections::{BTreeMap, HashMap};

use batchscan_model::{OrgId, UtcInstant};

use crate::access::CredentialStatus;
use crate::dump::SEEN;
use crate::errors::{AdminError, StoreError};
use crate::page::Caller;
use crate::sql::{Columns, Sql, Values, values};
use crate::store::{End, Store};
use crate::types::Freshness;

/// Bytes of a subject, which is part of a key. PostgreSQL limits keys to 2,700 bytes.
pub const SEEN_SUBJECT_BYTES_MAX: usize = 1_000;
/// The dashboard shows what is unusual for seven days, and a decline of a crop for as long as it lasts.
const KEPT_SECS: i64 = 60 * 24 * 3_600;
/// Marks of an organisation that are kept: the newest. A client cannot fill the database.
const MARKS_MAX: i64 = 2_000;

/// A mark: that something was seen, a note about it, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenMark {
    /// What it is about.
    pub subject: String,
    /// Whether somebody has seen it.
    pub is_seen: bool,
    /// When it was last changed.
    pub at: UtcInstant,
    /// The label of the credential that did so, as it was then.
    pub by: String,
    /// Such as "resown". Empty if there is none.
    pub note: String,
}

/// The change of a mark. `None` leaves a part as it is.
#[derive(Clone, Debug, Default)]
pub struct SeenChange {
    /// Whether it counts as seen from now on.
    pub is_seen: Option<bool>,
    /// Replaces the note.
    pub note: Option<String>,
}

/// Credential and marks in one statement, and so in one snapshot. A credential without marks has one row.
const SELECT: &str = "
    SELECT c.revoked_at, c.expires_at, c.label, s.subject, s.is_seen, s.at, s.by, s.note
    FROM credential c LEFT JOIN seen s ON s.org_id = c.org_id
    WHERE c.client_id = $1 AND c.org_id = $2
    ORDER BY s.at, s.subject";

impl Store {
    /// The marks of the caller's organisation, oldest first; `None` if the credential is invalid.
    pub async fn seen(&self, caller: &Caller, now: UtcInstant) -> Result<Option<Vec<SeenMark>>, StoreError> {
        let rows = self.read(Freshness::Latest, SELECT, values![&caller.client, caller.org], row).await?;
        Ok(marks(rows, now).map(|(_, marks)| marks))
    }

    /// Changes the marks of some subjects, and returns all, as [`Store::seen`] does. Gives up early if the database is locked.
    pub async fn change_seen(
        &self,
        caller: &Caller,
        changes: BTreeMap<String, SeenChange>,
        now: UtcInstant,
    ) -> Result<Option<Vec<SeenMark>>, AdminError> {
        let caller = caller.clone();
        self.change_quickly(async move |sql| {
            // Changes of an organisation's marks follow each other.
            let lock = format!("SELECT id FROM organisation WHERE id = $1 {}", sql.dialect().for_update);
            sql.integer(&lock, values![caller.org]).await?;
            let Some((by, known)) = all(sql, &caller, now).await? else {
                return Ok(End::RollBack(None));
            };
            let known: HashMap<String, SeenMark> =
                known.into_iter().map(|mark| (mark.subject.clone(), mark)).collect();
            let mut changed = Vec::new();
            for (subject, change) in changes {
                let old = known.get(&subject).map(|old| (old.is_seen, old.note.clone()));
                let (was_seen, old_note) = old.clone().unwrap_or_default();
                let is_seen = change.is_seen.unwrap_or(was_seen);
                let note = change.note.unwrap_or_else(|| old_note.clone());
                if (is_seen, &note) == (was_seen, &old_note) {
                    continue;
                }
                if old.is_some() {
                    let delete = "DELETE FROM seen WHERE org_id = $1 AND subject = $2";
                    sql.execute(delete, values![caller.org, &subject]).await?;
                }
                if is_seen || !note.is_empty() {
                    let mark = SeenMark { subject, is_seen, at: now, by: by.clone(), note };
                    changed.push(mark.into_values(caller.org));
                }
            }
            // In one statement: the database may be in another data centre.
            sql.insert(&SEEN, &changed).await?;
            prune(sql, caller.org, now).await?;
            match all(sql, &caller, now).await? {
                Some((_, marks)) => Ok(End::Commit(Some(marks))),
                None => Ok(End::RollBack(None)),
            }
        })
        .await
    }
}

impl SeenMark {
    fn into_values(self, org: OrgId) -> Values {
        let Self { subject, is_seen, at, by, note } = self;
        vec![org.into(), subject.into(), is_seen.into(), at.into(), by.into(), note.into()]
    }
}

/// Removes marks that are too old or too many.
async fn prune(sql: &mut dyn Sql, org: OrgId, now: UtcInstant) -> Result<(), AdminError> {
    let remove_old = "DELETE FROM seen WHERE org_id = $1 AND at < $2";
    sql.execute(remove_old, values![org, now.plus_secs(-KEPT_SECS)]).await?;
    // Both databases need a limit for an offset.
    let remove_oldest = "
        DELETE FROM seen WHERE org_id = $1 AND subject IN
            (SELECT subject FROM seen WHERE org_id = $1
             ORDER BY at DESC, subject DESC LIMIT 1000000 OFFSET $2)";
    sql.execute(remove_oldest, values![org, MARKS_MAX]).await.map(drop)
}

async fn all(sql: &mut dyn Sql, caller: &Caller, now: UtcInstant) -> Result<Option<Marks>, AdminError> {
    Ok(marks(sql.all(SELECT, values![&caller.client, caller.org], row).await?, now))
}

/// The label of the caller's credential, and the marks.
type Marks = (String, Vec<SeenMark>);
/// The end of a credential, its label, and a mark.
type Row = (Option<i64>, Option<i64>, String, Option<SeenMark>);

fn row(row: &dyn Columns) -> Result<Row, StoreError> {
    let mark = row.optional_string(3)?.map(|subject| {
        let (is_seen, at) = (row.number(4)? != 0, row.instant(5)?);
        Ok::<_, StoreError>(SeenMark { subject, is_seen, at, by: row.string(6)?, note: row.string(7)? })
    });
    Ok((row.integer(0)?, row.integer(1)?, row.string(2)?, mark.transpose()?))
}

/// `None` if the credential is invalid.
fn marks(rows: Vec<Row>, now: UtcInstant) -> Option<Marks> {
    let (revoked, expires, label, _) = rows.first()?;
    let is_active = CredentialStatus::from_micros(*revoked, *expires, now) == CredentialStatus::Active;
    let label = label.clone();
    is_active.then(|| (label, rows.into_iter().filter_map(|(.., mark)| mark).collect()))
}
