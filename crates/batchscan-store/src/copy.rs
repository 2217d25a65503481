//! Copies one database into another, verifies the copy, and goes on where an earlier attempt was interrupted.
//!
//! Every organisation goes over in one transaction, so that an interruption leaves whole ones and none in parts.
//! Numbers of organisations, keys, versions and hashes are kept: tokens, secrets, cursors and ETags of the source
//! work on the copy.

use batchscan_model::OrgId;

use crate::{AdminError, Fingerprint, Organisation, Store, Which};

/// How far a copy is: batches gone over, and in all.
pub type OnProgress<'a> = &'a (dyn Fn(u64, u64) + Send + Sync);

/// What became of an organisation.
#[derive(Clone, Debug)]
pub struct Copied {
    /// Its name.
    pub name: String,
    /// What source and target both have.
    pub fingerprint: Fingerprint,
    /// Whether an earlier attempt had copied it already.
    pub was_there: bool,
}

/// Why a copy is not complete. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// A store failed.
    #[error(transparent)]
    Store(#[from] AdminError),
    /// The target holds something else.
    #[error("the target is in use: {0}; copy into an empty database")]
    TargetInUse(String),
    /// The source changed while it was copied.
    #[error("\"{0}\" was changed in the source while it was copied: run the same command again")]
    SourceChanged(String),
    /// The copy is not what the source is.
    #[error("the copy of \"{0}\" differs from its source: run `batchscan doctor` on both, then copy again")]
    Differs(String),
}

/// Copies all of `from` into `to`. The report comes in the order of the organisations' names.
///
/// The target has to be empty, or to hold what an earlier attempt at the same copy left there. One that was copied to
/// the end may only be found equal: it could have been in use since.
pub async fn copy(from: &Store, to: &Store, on_progress: OnProgress<'_>) -> Result<Vec<Copied>, CopyError> {
    let (source, target) = (from.orgs().await?, to.orgs().await?);
    let unfinished = to.unfinished_copy().await?;
    refuse_strangers(from, unfinished.as_deref(), &source, &target).await?;
    let mut there = Vec::new();
    for org in &source {
        if is_copied(from, to, org, &target).await? {
            there.push(org.id);
        }
    }
    let missing: Vec<&Organisation> = source.iter().filter(|org| !there.contains(&org.id)).collect();
    if !target.is_empty() && unfinished.is_none() {
        if let Some(org) = missing.first() {
            let what = format!("its \"{}\" is not what it is in the source", org.name);
            return Err(CopyError::TargetInUse(what));
        }
    } else {
        let total = missing.iter().map(|org| org.batches).sum();
        let which = Which::These(missing.iter().map(|org| org.id).collect());
        from.pour_into(to, which, &|done| on_progress(done, total)).await?;
    }
    let mut copied = Vec::new();
    for org in source {
        let fingerprint = verified(from, to, &org).await?;
        copied.push(Copied { was_there: there.contains(&org.id), name: org.name, fingerprint });
    }
    to.finish_copy().await?;
    Ok(copied)
}

/// Refuses a target that holds anything but a copy of this source.
async fn refuse_strangers(
    from: &Store,
    unfinished: Option<&str>,
    source: &[Organisation],
    target: &[Organisation],
) -> Result<(), CopyError> {
    // Two databases may both have a first organisation; it was added at another moment.
    let is_same =
        |org: &Organisation, known: &Organisation| (org.id, org.created_at) == (known.id, known.created_at);
    let is_known = |org: &&Organisation| source.iter().any(|known| is_same(org, known));
    if let Some(stranger) = target.iter().find(|org| !is_known(org)) {
        let what = format!("it holds an organisation \"{}\" that the source does not have", stranger.name);
        return Err(CopyError::TargetInUse(what));
    }
    let shared = from.shared().await?;
    let source_key = shared.as_ref().map_or("", |shared| shared.source_key());
    if unfinished.is_some_and(|key| key != source_key) {
        return Err(CopyError::TargetInUse("it is an unfinished copy of another database".into()));
    }
    Ok(())
}

/// Whether an earlier attempt has copied the organisation as it is now.
async fn is_copied(
    from: &Store,
    to: &Store,
    org: &Organisation,
    target: &[Organisation],
) -> Result<bool, AdminError> {
    let same =
        |copy: &Organisation| copy.id == org.id && copy.version == org.version && copy.batches == org.batches;
    if !target.iter().any(same) {
        return Ok(false);
    }
    let (mine, theirs) = fingerprints(from, to, org.id).await?;
    Ok(mine.is_some() && mine == theirs)
}

async fn verified(from: &Store, to: &Store, org: &Organisation) -> Result<Fingerprint, CopyError> {
    match fingerprints(from, to, org.id).await? {
        (Some(mine), Some(theirs)) if mine == theirs => Ok(mine),
        _ => match from.org(&org.name).await {
            Ok(now) if now.version == org.version => Err(CopyError::Differs(org.name.clone())),
            _ => Err(CopyError::SourceChanged(org.name.clone())),
        },
    }
}

async fn fingerprints(
    from: &Store,
    to: &Store,
    org: OrgId,
) -> Result<(Option<Fingerprint>, Option<Fingerprint>), AdminError> {
    let (mine, theirs) = tokio::join!(from.fingerprint(org), to.fingerprint(org));
    Ok((mine?, theirs?))
}
