//! Imports, and their record: what was imported, when and by whom.

use std::sync::Arc;

use batchscan_formats::read::{IdRules, RepeatedIds, WARNINGS_SHOWN_MAX};
use batchscan_model::{Field, OrgId, UtcInstant};

use crate::change::{self, Actor, Change};
use crate::errors::{AdminError, StoreError};
use crate::organisations::{lock_org, org_id};
use crate::sql::{Columns, Merged, Sql, values};
use crate::store::{End, Store};
use crate::types::{ImportCounts, ImportEnd, ImportRows};
use crate::versions::{next_version, set_version};

/// Where the batches of an import come from.
#[derive(Clone, Debug, Default)]
pub struct ImportSource {
    /// The name of the file.
    pub file: Option<String>,
    /// Identifies the import: another one with the same key changes nothing and returns the first result.
    pub key: Option<String>,
    /// SHA-256 of the file.
    pub hash: Option<[u8; 32]>,
    /// The import fails if the name belongs to another organisation by now.
    pub org: Option<OrgId>,
    /// How to check the ids.
    pub id_rules: IdRules,
}

impl ImportSource {
    /// Whether the organisation with this name is the one that the import is for.
    fn require_org(&self, id: OrgId, name: &str) -> Result<(), AdminError> {
        match self.org {
            Some(expected) if expected != id => Err(AdminError::org_not_found(name)),
            _ => Ok(()),
        }
    }
}

/// A new id of digits only, and a stored one that differs from it in its leading zeros only.
async fn find_shortened(
    sql: &mut dyn Sql,
    org: OrgId,
    version: i64,
) -> Result<Option<(String, String)>, AdminError> {
    const ZEROS_MAX: usize = 12;
    let spellings: Vec<String> = (0..=ZEROS_MAX)
        .map(|zeros| format!("'{}' || ltrim(added.batch_id, '0')", "0".repeat(zeros)))
        .collect();
    // With the plus, SQLite does not search by version.
    let query = format!(
        "SELECT added.batch_id, stored.batch_id
         FROM ({}) AS added
         JOIN batch AS stored ON stored.org_id = $1 AND +stored.version < $2 AND stored.batch_id IN ({})
         WHERE ltrim(added.batch_id, '0123456789') = ''
         ORDER BY added.batch_id, stored.batch_id LIMIT 1",
        sql.dialect().added_ids,
        spellings.join(", ")
    );
    sql.first(&query, values![org, version], |row| Ok((row.string(0)?, row.string(1)?))).await
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportResult {
    /// Its number in the organisation; `None` for a dry run.
    pub id: Option<i64>,
    /// The number of batches by their change.
    pub counts: ImportCounts,
    /// How many values cannot be right.
    pub warnings: u64,
    /// The first warnings.
    pub messages: Vec<String>,
    /// Whether the same file was imported before with this key, with this result.
    pub is_replay: bool,
}

/// A recorded import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportEntry {
    /// Its number in the organisation.
    pub id: i64,
    /// When.
    pub at: UtcInstant,
    /// By whom.
    pub actor: String,
    /// From which host.
    pub source: String,
    /// The name of the file.
    pub file: Option<String>,
    /// The key of the import.
    pub key: Option<String>,
    /// SHA-256 of the file.
    pub hash: Option<[u8; 32]>,
    /// The number of batches by their change.
    pub counts: ImportCounts,
    /// How many values cannot be right.
    pub warnings: u64,
    /// The version of the organisation's batches afterwards.
    pub version: i64,
    /// Whether the file had errors: then nothing was imported.
    pub is_rejected: bool,
    /// The first warnings or errors.
    pub messages: Vec<String>,
}

/// Which recorded imports.
#[derive(Clone, Debug, Default)]
pub struct ImportFilter {
    /// Those since this time.
    pub since: Option<UtcInstant>,
    /// Those of files whose name contains this text.
    pub file: Option<String>,
    /// Only rejected files.
    pub rejected: bool,
}

impl ImportEntry {
    /// The result for a replay of this import. Fails if the key was used for another file.
    fn replay(&self, source: &ImportSource) -> Result<ImportResult, AdminError> {
        if self.hash != source.hash {
            return Err(AdminError::KeyReused);
        }
        let Self { id, counts, warnings, .. } = *self;
        Ok(ImportResult { id: Some(id), counts, warnings, messages: self.messages.clone(), is_replay: true })
    }
}

const COLUMNS: &str = "id, at, actor, source, file, key, hash, added, corrected, unchanged, duplicates, warnings, version, \
                       is_rejected, messages";
/// The imports of an organisation that an [`ImportFilter`] wants: `$2` to `$4` are its fields.
const WANTED: &str =
    "org_id = $1 AND ($2 IS NULL OR at >= $2) AND ($3 IS NULL OR replace(file, $3, '') <> file)
                      AND (is_rejected = 1 OR $4 = 0)";
/// Rejected files of an organisation that are kept.
const REJECTED_MAX: i64 = 100;

impl Store {
    /// Imports batches in one transaction.
    pub async fn import(
        &self,
        org: &str,
        source: ImportSource,
        mut rows: ImportRows,
        now: UtcInstant,
    ) -> Result<ImportResult, AdminError> {
        let (name, actor) = (org.to_owned(), self.actor());
        let import = Import { name, source, actor, now };
        let again = import.clone();
        let imported = self.transaction(async move |sql| import.run(sql, &mut rows).await).await;
        match imported.map_err(nothing_imported)? {
            // An import without changes is rolled back, so that clients continue to get 304. Its record is kept.
            (result, true) if result.id.is_none() => {
                self.transaction(async move |sql| again.record_unchanged(sql, result).await).await
            }
            (result, _) => Ok(result),
        }
    }

    /// Records a file with errors.
    pub async fn record_rejected(
        &self,
        org: &str,
        source: ImportSource,
        errors: Vec<String>,
        now: UtcInstant,
    ) -> Result<(), AdminError> {
        // Its key may be used again for the corrected file.
        let import = Import {
            name: org.to_owned(),
            source: ImportSource { key: None, ..source },
            actor: self.actor(),
            now,
        };
        self.transaction(async move |sql| {
            let org = lock_org(sql, &import.name).await?;
            import.source.require_org(org, &import.name)?;
            let result = ImportResult { messages: errors, ..ImportResult::default() };
            change::check_token(sql, &import.actor, now).await?;
            import.record(sql, org, &result, true).await?;
            let delete = "DELETE FROM import WHERE org_id = $1 AND is_rejected = 1 AND id <=
                          (SELECT id FROM import WHERE org_id = $1 AND is_rejected = 1
                           ORDER BY id DESC LIMIT 1 OFFSET $2)";
            sql.execute(delete, values![org, REJECTED_MAX]).await?;
            Ok(End::Commit(()))
        })
        .await
    }

    /// An operator has seen these rejected files and warnings. Returns the number of imports that were not acknowledged before.
    pub async fn acknowledge_imports(
        &self,
        org: &str,
        filter: ImportFilter,
        now: UtcInstant,
    ) -> Result<u64, AdminError> {
        let name = org.to_owned();
        self.change(now, async move |sql| {
            let org = lock_org(sql, &name).await?;
            let acknowledge = format!(
                "UPDATE import SET is_acknowledged = 1
                 WHERE {WANTED} AND is_acknowledged = 0 AND (is_rejected = 1 OR warnings > 0)"
            );
            let ImportFilter { since, file, rejected } = filter;
            let acknowledged = sql.execute(&acknowledge, values![org, since, &file, rejected]).await?;
            let change = Change { subject: file, ..Change::of_org("imports acknowledge", &name) };
            Ok((acknowledged, if acknowledged == 0 { Vec::new() } else { vec![change] }))
        })
        .await
    }

    /// The recorded imports of an organisation with a higher number, oldest first, at most `limit`.
    pub async fn imports(
        &self,
        org: &str,
        filter: ImportFilter,
        after: i64,
        limit: i64,
    ) -> Result<Vec<ImportEntry>, AdminError> {
        let org = org.to_owned();
        self.snapshot(async move |sql| {
            let org = org_id(sql, &org).await?;
            let ImportFilter { since, file, rejected } = filter;
            let query =
                format!("SELECT {COLUMNS} FROM import WHERE {WANTED} AND id > $5 ORDER BY id LIMIT $6");
            sql.all(&query, values![org, since, &file, rejected, after, limit], import_entry).await
        })
        .await
    }
}

/// The last import of an organisation, or its last rejected file.
pub(crate) async fn last(
    sql: &mut dyn Sql,
    org: OrgId,
    is_rejected: bool,
) -> Result<Option<ImportEntry>, AdminError> {
    let query = format!(
        "SELECT {COLUMNS} FROM import WHERE org_id = $1 AND is_rejected = $2 ORDER BY id DESC LIMIT 1"
    );
    sql.first(&query, values![org, is_rejected], import_entry).await
}

/// Files with warnings, which have changed batches, then rejected ones, that were not imported again since, nor
/// acknowledged; newest first. Imports without a file name count as one file.
pub(crate) async fn open(sql: &mut dyn Sql, org: OrgId) -> Result<Vec<ImportEntry>, AdminError> {
    let query = format!(
        "SELECT {COLUMNS} FROM import WHERE org_id = $1 AND (is_rejected = 1 OR warnings > 0) AND is_acknowledged = 0
           AND id IN (SELECT max(id) FROM import WHERE org_id = $1 GROUP BY file)
         ORDER BY is_rejected, id DESC"
    );
    sql.all(&query, values![org], import_entry).await
}

fn nothing_imported(error: AdminError) -> AdminError {
    match error {
        AdminError::Store(StoreError::Unreachable(why)) => {
            let why = format!("{why}; nothing was imported: run the same command again");
            StoreError::Unreachable(why).into()
        }
        other => other,
    }
}

/// An import of one file.
#[derive(Clone)]
struct Import {
    /// The name of the organisation.
    name: String,
    source: ImportSource,
    actor: Arc<Actor>,
    now: UtcInstant,
}

impl Import {
    /// The result, and whether it is to be kept. It has no number yet if nothing has changed.
    async fn run(
        &self,
        sql: &mut dyn Sql,
        rows: &mut ImportRows,
    ) -> Result<End<(ImportResult, bool)>, AdminError> {
        // Fails for an unknown organisation before a long file is read.
        let org = org_id(sql, &self.name).await?;
        self.source.require_org(org, &self.name)?;
        if let Some(first) = self.find_replayed(sql, org).await? {
            return Ok(End::RollBack((first, false)));
        }
        let ImportEnd { dry_run, mut warnings, mut messages, missing, incomplete, has_number_ids } =
            sql.stage(org, rows).await?;
        // Meanwhile, another organisation may have got the name, or the same file may have been imported.
        if lock_org(sql, &self.name).await? != org {
            return Err(AdminError::org_not_found(&self.name));
        }
        if let Some(first) = self.find_replayed(sql, org).await? {
            return Ok(End::RollBack((first, false)));
        }
        let version = next_version(sql, org).await?;
        let rules = self.source.id_rules;
        let may_empty = match rules.repeated {
            RepeatedIds::Accept => Vec::new(),
            _ => [&*missing, &*incomplete].concat(),
        };
        let Merged { counts, repeated, replaced, emptied, moved } =
            sql.merge(org, version, &may_empty).await?;
        let (without_values, with_gaps): (Vec<_>, Vec<_>) =
            emptied.into_iter().partition(|(field, _)| missing.contains(field));
        let fields =
            |emptied: &[(Field, String)]| emptied.iter().map(|(field, _)| *field).collect::<Vec<_>>();
        let shortened = match has_number_ids && rules.is_checked() {
            true => find_shortened(sql, org, version).await?,
            false => None,
        };
        for checked in [
            shortened.map(|(id, stored)| rules.check_shortened(&id, &stored)),
            repeated.map(|id| rules.check_repeated(&id)),
            replaced.map(|id| rules.check_replaced(&id)),
            with_gaps.first().map(|(_, id)| rules.check_incomplete(id, &fields(&with_gaps))),
            without_values.first().map(|(_, id)| rules.check_emptied(id, &fields(&without_values))),
        ] {
            if let Some(warning) = checked.transpose().map_err(AdminError::InvalidIds)?.flatten() {
                warnings += 1;
                messages.insert(0, warning.to_string());
                messages.truncate(WARNINGS_SHOWN_MAX);
            }
        }
        let mut result = ImportResult { id: None, counts, warnings, messages, is_replay: false };
        if dry_run || counts.new + counts.corrected == 0 {
            return Ok(End::RollBack((result, !dry_run)));
        }
        set_version(sql, org, version, moved, self.now).await?;
        let imported = "UPDATE organisation SET imported_at = $2 WHERE id = $1";
        sql.execute(imported, values![org, self.now]).await?;
        result.id = Some(self.record(sql, org, &result, false).await?);
        change::record(sql, &self.actor, self.now, &[self.change(&counts)]).await?;
        Ok(End::Commit((result, true)))
    }

    async fn record_unchanged(
        &self,
        sql: &mut dyn Sql,
        mut result: ImportResult,
    ) -> Result<End<ImportResult>, AdminError> {
        let org = lock_org(sql, &self.name).await?;
        self.source.require_org(org, &self.name)?;
        if let Some(first) = self.find_replayed(sql, org).await? {
            return Ok(End::RollBack(first));
        }
        change::check_token(sql, &self.actor, self.now).await?;
        result.id = Some(self.record(sql, org, &result, false).await?);
        Ok(End::Commit(result))
    }

    /// The result of the earlier import with the same key.
    async fn find_replayed(&self, sql: &mut dyn Sql, org: OrgId) -> Result<Option<ImportResult>, AdminError> {
        let Some(key) = &self.source.key else { return Ok(None) };
        let query = format!("SELECT {COLUMNS} FROM import WHERE org_id = $1 AND key = $2");
        let first = sql.first(&query, values![org, key], import_entry).await?;
        first.map(|first| first.replay(&self.source)).transpose()
    }

    /// Records the import with the next number, and returns that.
    async fn record(
        &self,
        sql: &mut dyn Sql,
        org: OrgId,
        result: &ImportResult,
        is_rejected: bool,
    ) -> Result<i64, AdminError> {
        let ImportSource { file, key, hash, .. } = &self.source;
        let ImportCounts { new, corrected, unchanged, duplicates } = result.counts;
        let record = format!(
            "INSERT INTO import (org_id, {COLUMNS})
             SELECT $1, (SELECT coalesce(max(id), 0) + 1 FROM import WHERE org_id = $1),
                    $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, version, $13, $14
             FROM organisation WHERE id = $1
             RETURNING id"
        );
        let Actor { name, source, .. } = &*self.actor;
        let values = values![
            org,
            self.now,
            name,
            source,
            file,
            key,
            hash,
            new,
            corrected,
            unchanged,
            duplicates,
            result.warnings,
            is_rejected,
            (!result.messages.is_empty()).then(|| result.messages.join("\n"))
        ];
        Ok(sql.integer(&record, values).await?.unwrap_or_default())
    }

    fn change(&self, counts: &ImportCounts) -> Change {
        let ImportCounts { new, corrected, unchanged, .. } = counts;
        let detail = format!("{new} new, {corrected} corrected, {unchanged} unchanged");
        let subject = self.source.file.as_ref().or(self.source.key.as_ref()).cloned();
        Change { subject, ..Change::of_org("import", &self.name).detail(detail) }
    }
}

fn import_entry(row: &dyn Columns) -> Result<ImportEntry, StoreError> {
    let (new, corrected, unchanged, duplicates) =
        (row.count(7)?, row.count(8)?, row.count(9)?, row.count(10)?);
    Ok(ImportEntry {
        id: row.number(0)?,
        at: row.instant(1)?,
        actor: row.string(2)?,
        source: row.string(3)?,
        file: row.optional_string(4)?,
        key: row.optional_string(5)?,
        hash: row.optional_hash(6)?,
        counts: ImportCounts { new, corrected, unchanged, duplicates },
        warnings: row.count(11)?,
        version: row.number(12)?,
        is_rejected: row.number(13)? != 0,
        messages: row.text(14)?.map_or_else(Vec::new, |text| text.lines().map(str::to_owned).collect()),
    })
}
