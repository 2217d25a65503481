//! Copies one database into another, verifies the copy, and continues an interrupted copy.
//!
//! Each organisation is copied in one transaction, so an interrupted copy has only complete organisations. Numbers, keys,
//! versions and hashes are kept: tokens, secrets, cursors and ETags of the source work on the copy. What the target had
//! before is replaced: keys, operator tokens and the entries of its audit log.

use tokio::sync::mpsc;

use crate::dump::{DumpFilter, DumpStep, Fingerprint, FingerprintBuilder, Part};
use crate::errors::AdminError;
use crate::organisations::Organisation;
use crate::store::Store;

/// The maximum number of queued steps, which bounds the memory of a copy.
const STEPS_QUEUED_MAX: usize = 4;

/// A copied organisation.
#[derive(Clone, Debug)]
pub struct CopiedOrg {
    /// Its name.
    pub name: String,
    /// How many batches it has.
    pub batches: u64,
    /// A SHA-256 digest of its content, the same in source and target.
    pub digest: String,
    /// Whether an earlier attempt had already copied it.
    pub existed: bool,
}

/// Why a copy is not complete.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// A store failed.
    #[error(transparent)]
    Store(#[from] AdminError),
    /// The target has other data.
    #[error("the target is in use: {0}; copy into an empty database")]
    TargetInUse(String),
    /// The source changed during the copy.
    #[error("\"{0}\" was changed in the source during the copy: run the same command again")]
    SourceChanged(String),
    /// The copy differs from the source.
    #[error("the copy of \"{0}\" differs from the source: run `batchscan doctor` on both, then copy again")]
    Differs(String),
    /// The copy has another audit log, other keys or other operator tokens.
    #[error(
        "keys, operator tokens or the audit log were changed in the source during the copy: run the same command again"
    )]
    AdminChanged,
}

/// Copies all of `from` into `to`. Returns the organisations in the order of their names.
///
/// The target must be empty or an unfinished copy of the same source. A finished copy is only verified, because it may be
/// in use. `on_progress` is called with the number of copied batches and the total.
pub async fn copy_database(
    from: &Store,
    to: &Store,
    on_progress: &(dyn Fn(u64, u64) + Send + Sync),
) -> Result<Vec<CopiedOrg>, CopyError> {
    let (source, target) = (from.orgs().await?, to.orgs().await?);
    let unfinished = to.unfinished_copy().await?;
    require_copy_of(from, unfinished.as_deref(), &source, &target).await?;
    let is_new = unfinished.is_some() || target.is_empty() && !to.has_history().await?;
    let mut copied = Vec::new();
    for org in &source {
        if is_copied(from, to, org, &target).await? {
            copied.push(org.id);
        }
    }
    let missing: Vec<&Organisation> = source.iter().filter(|org| !copied.contains(&org.id)).collect();
    if is_new {
        let total = missing.iter().map(|org| org.batches).sum();
        let orgs = missing.iter().map(|org| org.id).collect();
        let filter = DumpFilter { orgs: Some(orgs), with_admin: true };
        from.copy_into(to, filter, &|done| on_progress(done, total)).await?;
    } else if let Some(org) = missing.first() {
        return Err(CopyError::TargetInUse(match target.is_empty() {
            true => "it has the history of other organisations".into(),
            false => format!("its \"{}\" differs from the source", org.name),
        }));
    }
    require_no_other(from, &source).await?;
    let mut report = Vec::new();
    for org in source {
        let Fingerprint { batches, digest } = verify(from, to, &org).await?;
        report.push(CopiedOrg { existed: copied.contains(&org.id), name: org.name, batches, digest });
    }
    verify_admin(from, to, is_new).await?;
    to.finish_copy().await?;
    Ok(report)
}

/// Rejects a target that is not a copy of this source.
async fn require_copy_of(
    from: &Store,
    unfinished: Option<&str>,
    source: &[Organisation],
    target: &[Organisation],
) -> Result<(), CopyError> {
    // The creation time distinguishes organisations of different databases with the same number.
    let is_same = |a: &Organisation, b: &Organisation| (a.id, a.created_at) == (b.id, b.created_at);
    if let Some(other) = target.iter().find(|org| !source.iter().any(|known| is_same(org, known))) {
        let what = format!("it has an organisation \"{}\" that is not in the source", other.name);
        return Err(CopyError::TargetInUse(what));
    }
    if let Some(key) = unfinished
        && key != from.source_key().await?
    {
        return Err(CopyError::TargetInUse("it is an unfinished copy of another database".into()));
    }
    Ok(())
}

/// Whether an earlier attempt has copied the organisation in its current state.
async fn is_copied(
    from: &Store,
    to: &Store,
    org: &Organisation,
    target: &[Organisation],
) -> Result<bool, AdminError> {
    let state = |org: &Organisation| (org.id, org.version, org.batches);
    if !target.iter().any(|copy| state(copy) == state(org)) {
        return Ok(false);
    }
    let (source, copy) = fingerprints(from, to, Part::Org(org.id)).await?;
    Ok(source.is_some() && source == copy)
}

async fn verify(from: &Store, to: &Store, org: &Organisation) -> Result<Fingerprint, CopyError> {
    match fingerprints(from, to, Part::Org(org.id)).await? {
        (Some(source), Some(copy)) if source == copy => Ok(source),
        _ => match from.org(&org.name).await {
            Ok(now) if now.version == org.version => Err(CopyError::Differs(org.name.clone())),
            _ => Err(CopyError::SourceChanged(org.name.clone())),
        },
    }
}

/// Whether keys, operator tokens and the audit log are the same.
async fn verify_admin(from: &Store, to: &Store, is_new: bool) -> Result<(), CopyError> {
    let (source, copy) = fingerprints(from, to, Part::Admin).await?;
    let in_use = "its keys, operator tokens or audit log differ from the source";
    match source == copy {
        true => Ok(()),
        false if is_new => Err(CopyError::AdminChanged),
        false => Err(CopyError::TargetInUse(in_use.into())),
    }
}

/// Rejects an organisation that was added to the source during the copy.
async fn require_no_other(from: &Store, copied: &[Organisation]) -> Result<(), CopyError> {
    let now = from.orgs().await?;
    match now.iter().find(|org| !copied.iter().any(|known| known.id == org.id)) {
        Some(added) => Err(CopyError::SourceChanged(added.name.clone())),
        None => Ok(()),
    }
}

async fn fingerprints(
    from: &Store,
    to: &Store,
    part: Part,
) -> Result<(Option<Fingerprint>, Option<Fingerprint>), AdminError> {
    tokio::try_join!(from.fingerprint(part), to.fingerprint(part))
}

impl Store {
    /// Copies organisations into another store, which is an unfinished copy until [`Store::finish_copy`].
    pub(crate) async fn copy_into(
        &self,
        target: &Store,
        filter: DumpFilter,
        on_batches: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<(), AdminError> {
        let (dump, mut dumped) = mpsc::channel(STEPS_QUEUED_MAX);
        let (load, to_load) = mpsc::channel(STEPS_QUEUED_MAX);
        let forward = async move {
            let mut done = 0;
            while let Some(step) = dumped.recv().await {
                if let DumpStep::Rows(table, rows) = &step
                    && table.name == "batch"
                {
                    done += rows.len() as u64;
                    on_batches(done);
                }
                if load.send(step).await.is_err() {
                    break;
                }
            }
        };
        match tokio::join!(self.dump(filter, dump), forward, target.load(to_load)) {
            // The target failed first, and has the reason.
            (Err(AdminError::Aborted), (), loaded) => loaded,
            (dumped, (), loaded) => dumped.and(loaded),
        }
    }

    /// The fingerprint of an organisation, from all its rows, or `None` if it does not exist; or that of the rest.
    async fn fingerprint(&self, part: Part) -> Result<Option<Fingerprint>, AdminError> {
        let (orgs, with_admin) = match part {
            Part::Org(org) => (vec![org], false),
            Part::Shared { .. } | Part::Admin => (Vec::new(), true),
        };
        let (dump, mut dumped) = mpsc::channel(STEPS_QUEUED_MAX);
        let compute = async {
            let (mut builder, mut is_found, mut is_shared) = (FingerprintBuilder::new(), false, false);
            while let Some(step) = dumped.recv().await {
                match step {
                    DumpStep::Begin(begun) => {
                        is_found |= begun == part;
                        is_shared = matches!(begun, Part::Shared { .. });
                    }
                    // Keys do not belong to an organisation.
                    DumpStep::Rows(table, rows) if with_admin || !is_shared => builder.add(table, &rows),
                    DumpStep::Rows(..) | DumpStep::End => {}
                }
            }
            is_found.then(|| builder.finish())
        };
        let (done, fingerprint) =
            tokio::join!(self.dump(DumpFilter { orgs: Some(orgs), with_admin }, dump), compute);
        done.map(|()| fingerprint)
    }
}
