//! What the users of an organisation have marked as seen in the dashboard. A mark changes no batch, and its subject is a
//! text that only the dashboard understands.

use std::collections::{BTreeSet, HashSet};

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

/// A mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenMark {
    /// What was seen.
    pub subject: String,
    /// When it was first marked.
    pub at: UtcInstant,
}

/// Marks to add and to remove.
#[derive(Clone, Debug, Default)]
pub struct SeenChange {
    /// What was seen. A mark that exists stays as it is.
    pub seen: Vec<String>,
    /// Whose marks are removed.
    pub unseen: Vec<String>,
}

/// Credential and marks in one statement, and so in one snapshot. A credential without marks has one row.
const SELECT: &str = "
    SELECT c.revoked_at, c.expires_at, s.subject, s.at
    FROM credential c LEFT JOIN seen s ON s.org_id = c.org_id
    WHERE c.client_id = $1 AND c.org_id = $2
    ORDER BY s.at, s.subject";

impl Store {
    /// The marks of the caller's organisation, oldest first; `None` if the credential is invalid.
    pub async fn seen(&self, caller: &Caller, now: UtcInstant) -> Result<Option<Vec<SeenMark>>, StoreError> {
        let rows = self.read(Freshness::Latest, SELECT, values![&caller.client, caller.org], row).await?;
        Ok(marks(rows, now))
    }

    /// Changes marks and returns those that are left, as [`Store::seen`] does. Gives up early if the database is locked.
    pub async fn change_seen(
        &self,
        caller: &Caller,
        change: SeenChange,
        now: UtcInstant,
    ) -> Result<Option<Vec<SeenMark>>, AdminError> {
        let caller = caller.clone();
        self.change_quickly(async move |sql| {
            // Changes of an organisation's marks follow each other.
            let lock = format!("SELECT id FROM organisation WHERE id = $1 {}", sql.dialect().for_update);
            sql.integer(&lock, values![caller.org]).await?;
            let Some(known) = all(sql, &caller, now).await? else { return Ok(End::RollBack(None)) };
            add(sql, caller.org, &known, change.seen, now).await?;
            remove(sql, caller.org, &change.unseen, now).await?;
            match all(sql, &caller, now).await? {
                Some(marks) => Ok(End::Commit(Some(marks))),
                None => Ok(End::RollBack(None)),
            }
        })
        .await
    }
}

/// Adds all in one statement: the database may be in another data centre.
async fn add(
    sql: &mut dyn Sql,
    org: OrgId,
    known: &[SeenMark],
    seen: Vec<String>,
    now: UtcInstant,
) -> Result<(), AdminError> {
    let known: HashSet<&str> = known.iter().map(|mark| mark.subject.as_str()).collect();
    let new: BTreeSet<String> = seen.into_iter().filter(|subject| !known.contains(&**subject)).collect();
    let rows: Vec<Values> =
        new.into_iter().map(|subject| vec![org.into(), subject.into(), now.into()]).collect();
    sql.insert(&SEEN, &rows).await
}

/// Removes marks, and those that are too old or too many.
async fn remove(sql: &mut dyn Sql, org: OrgId, unseen: &[String], now: UtcInstant) -> Result<(), AdminError> {
    let remove = "DELETE FROM seen WHERE org_id = $1 AND subject = $2";
    for subject in unseen {
        sql.execute(remove, values![org, subject]).await?;
    }
    let remove_old = "DELETE FROM seen WHERE org_id = $1 AND at < $2";
    sql.execute(remove_old, values![org, now.plus_secs(-KEPT_SECS)]).await?;
    // Both databases need a limit for an offset.
    let remove_oldest = "
        DELETE FROM seen WHERE org_id = $1 AND subject IN
            (SELECT subject FROM seen WHERE org_id = $1
             ORDER BY at DESC, subject DESC LIMIT 1000000 OFFSET $2)";
    sql.execute(remove_oldest, values![org, MARKS_MAX]).await.map(drop)
}

async fn all(
    sql: &mut dyn Sql,
    caller: &Caller,
    now: UtcInstant,
) -> Result<Option<Vec<SeenMark>>, AdminError> {
    Ok(marks(sql.all(SELECT, values![&caller.client, caller.org], row).await?, now))
}

/// The end of a credential, and a mark.
type Row = (Option<i64>, Option<i64>, Option<SeenMark>);

fn row(row: &dyn Columns) -> Result<Row, StoreError> {
    let subject = row.optional_string(2)?;
    let mark = subject.map(|subject| Ok::<_, StoreError>(SeenMark { subject, at: row.instant(3)? }));
    Ok((row.integer(0)?, row.integer(1)?, mark.transpose()?))
}

/// `None` if the credential is invalid.
fn marks(rows: Vec<Row>, now: UtcInstant) -> Option<Vec<SeenMark>> {
    let (revoked, expires, _) = rows.first()?;
    let is_active = CredentialStatus::from_micros(*revoked, *expires, now) == CredentialStatus::Active;
    is_active.then(|| rows.into_iter().filter_map(|(_, _, mark)| mark).collect())
}
