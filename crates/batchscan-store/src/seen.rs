//! What the users of an organisation have marked as seen in the dashboard. A mark changes no batch, and its subject is a
//! text that only the dashboard understands.

use std::collections::{BTreeMap, HashSet};

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
    /// When it was first marked, or got its note.
    pub at: UtcInstant,
    /// The label of the credential that did so, as it was then.
    pub by: String,
    /// Why nobody else needs to look, such as "resown".
    pub note: Option<String>,
}

/// Marks to add and to remove.
#[derive(Clone, Debug, Default)]
pub struct SeenChange {
    /// What was seen. A mark that exists stays as it is, unless there is a note: that replaces it, and an empty one too.
    pub seen: BTreeMap<String, Option<String>>,
    /// Whose marks are removed.
    pub unseen: Vec<String>,
}

/// Credential and marks in one statement, and so in one snapshot. A credential without marks has one row.
const SELECT: &str = "
    SELECT c.revoked_at, c.expires_at, c.label, s.subject, s.at, s.by, s.note
    FROM credential c LEFT JOIN seen s ON s.org_id = c.org_id
    WHERE c.client_id = $1 AND c.org_id = $2
    ORDER BY s.at, s.subject";

impl Store {
    /// The marks of the caller's organisation, oldest first; `None` if the credential is invalid.
    pub async fn seen(&self, caller: &Caller, now: UtcInstant) -> Result<Option<Vec<SeenMark>>, StoreError> {
        let rows = self.read(Freshness::Latest, SELECT, values![&caller.client, caller.org], row).await?;
        Ok(marks(rows, now).map(|(_, marks)| marks))
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
            let Some((label, known)) = all(sql, &caller, now).await? else {
                return Ok(End::RollBack(None));
            };
            let known: HashSet<&str> = known.iter().map(|mark| mark.subject.as_str()).collect();
            let added = change
                .seen
                .into_iter()
                .filter(|(subject, note)| note.is_some() || !known.contains(&**subject));
            add(sql, caller.org, added.collect(), &label, now).await?;
            remove(sql, caller.org, &change.unseen).await?;
            prune(sql, caller.org, now).await?;
            match all(sql, &caller, now).await? {
                Some((_, marks)) => Ok(End::Commit(Some(marks))),
                None => Ok(End::RollBack(None)),
            }
        })
        .await
    }
}

/// Adds all in one statement: the database may be in another data centre. A mark with a note replaces the earlier one.
async fn add(
    sql: &mut dyn Sql,
    org: OrgId,
    marks: Vec<(String, Option<String>)>,
    label: &str,
    now: UtcInstant,
) -> Result<(), AdminError> {
    let replaced: Vec<String> =
        marks.iter().filter(|(_, note)| note.is_some()).map(|(subject, _)| subject.clone()).collect();
    remove(sql, org, &replaced).await?;
    let row = |(subject, note): (String, Option<String>)| -> Values {
        let note = note.filter(|note| !note.is_empty());
        vec![org.into(), subject.into(), now.into(), label.to_owned().into(), note.into()]
    };
    sql.insert(&SEEN, &marks.into_iter().map(row).collect::<Vec<_>>()).await
}

async fn remove(sql: &mut dyn Sql, org: OrgId, subjects: &[String]) -> Result<(), AdminError> {
    for subject in subjects {
        sql.execute("DELETE FROM seen WHERE org_id = $1 AND subject = $2", values![org, subject]).await?;
    }
    Ok(())
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
        let (at, by, note) = (row.instant(4)?, row.string(5)?, row.optional_string(6)?);
        Ok::<_, StoreError>(SeenMark { subject, at, by, note })
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
