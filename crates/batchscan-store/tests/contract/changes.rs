//! Claims about changes: whoever applies them has the batches.

use std::collections::BTreeMap;

use batchscan_model::{Batch, BatchId};
use batchscan_store::{
    AdminError, Caller, Changes, ChangesPosition, ChangesRequest, Encoding, OrgState, PageResult, Store,
    SyncProgress,
};

use crate::fixture::{Fixture, ORG, at, batch, commented, ids_of, texts_of, whole};

/// A client's copy of the batches.
#[derive(Default)]
pub(crate) struct Mirror {
    position: Option<ChangesPosition>,
    /// JSON texts by id.
    pub(crate) batches: BTreeMap<String, String>,
}

impl Mirror {
    /// Applies the next changes. Returns whether there are more.
    pub(crate) async fn read(
        &mut self,
        store: &Store,
        caller: &Caller,
        rows: usize,
        encoding: Encoding,
    ) -> bool {
        let request =
            ChangesRequest { position: self.position.clone(), rows, body_prefix: "[", encoding, now: at(0) };
        let Changes { page, removed, position } = match store.changes(caller, request, |_| None::<()>).await {
            Ok(PageResult::Read(Some(changes))) => changes,
            other => panic!("no changes but {other:?}"),
        };
        assert!(page.rows + removed.len() <= rows);
        for text in texts_of(page) {
            let id = Batch::from_json(&text).unwrap().batch_id.as_str().to_owned();
            assert!(!removed.contains(&id), "{id} twice");
            self.batches.insert(id, text);
        }
        self.batches.retain(|id, _| !removed.contains(id));
        let has_more = position.progress != SyncProgress::Complete;
        self.position = Some(position);
        has_more
    }

    /// The ids of the copy when it is complete.
    pub(crate) async fn ids(&mut self, fixture: &Fixture, rows: usize) -> Vec<&str> {
        while self.read(&fixture.store, &fixture.caller, rows, Encoding::Identity).await {}
        self.batches.keys().map(String::as_str).collect()
    }

    pub(crate) async fn is_gone(&self, store: &Store, caller: &Caller) -> bool {
        let (position, encoding) = (self.position.clone(), Encoding::Identity);
        let request = ChangesRequest { position, rows: 9, body_prefix: "[", encoding, now: at(0) };
        let result = store.changes(caller, request, |_| None::<()>).await.unwrap();
        matches!(result, PageResult::Read(None))
    }
}

async fn remove(fixture: &Fixture, ids: &[&str]) -> Result<(), AdminError> {
    remove_and_prune(fixture, ids, 0).await
}

async fn remove_and_prune(fixture: &Fixture, ids: &[&str], prune_secs: i64) -> Result<(), AdminError> {
    let ids = ids.iter().map(|id| BatchId::new(*id).unwrap()).collect();
    fixture.store.remove_batches(ORG, ids, at(prune_secs), at(8)).await
}

pub(crate) async fn changes_come_in_pages_of_any_size(fixture: &Fixture) {
    let batches: Vec<_> = (0..30).map(|number| batch(&format!("b{number:02}"), number / 7)).collect();
    fixture.import(&batches[..20]).await;
    let mut mirrors: Vec<Mirror> = (0..32).map(|_| Mirror::default()).collect();
    for (rows, mirror) in mirrors.iter_mut().enumerate() {
        // One page of the state, from which the changes below are then read.
        mirror.read(&fixture.store, &fixture.caller, rows + 1, Encoding::Identity).await;
    }
    fixture.import(&batches[15..]).await;
    remove(fixture, &["b03", "b04", "b17", "b29"]).await.unwrap();
    fixture.import(&[commented(batch("b05", 7), "moved"), batch("b04", 3)]).await;
    let expected = fixture.ids(whole(), 100).await;
    for (rows, mirror) in mirrors.iter_mut().enumerate() {
        let mut ids = expected.clone();
        ids.sort();
        assert_eq!(mirror.ids(fixture, rows + 1).await, ids, "pages of {}", rows + 1);
    }
}

pub(crate) async fn a_batch_occurs_once_in_a_page(fixture: &Fixture) {
    let mut mirror = Mirror::default();
    mirror.ids(fixture, 10).await;
    for comment in ["1", "2", "3"] {
        fixture.import(&[commented(batch("a", 1), comment)]).await;
    }
    // `read` checks that none is removed and present.
    remove(fixture, &["a"]).await.unwrap();
    fixture.import(&[batch("a", 1)]).await;
    assert_eq!(mirror.ids(fixture, 10).await, ["a"]);
}

pub(crate) async fn without_news_nothing_is_read(fixture: &Fixture) {
    fixture.import(&[batch("a", 1)]).await;
    let mut mirror = Mirror::default();
    mirror.ids(fixture, 10).await;
    let position = mirror.position.unwrap();
    let version = fixture.version().await.unwrap();
    assert!(position.is_complete_in(version));
    let state = OrgState { version, revoked: 0 };
    assert_eq!(
        fixture.store.org_states(vec![fixture.caller.org]).await.unwrap(),
        [(fixture.caller.org, state)]
    );
    fixture.import(&[batch("b", 1)]).await;
    assert!(!position.is_complete_in(fixture.version().await.unwrap()));
}

pub(crate) async fn a_position_of_a_lost_version_is_gone(fixture: &Fixture) {
    fixture.import(&[batch("a", 1)]).await;
    let mut mirror = Mirror::default();
    mirror.ids(fixture, 10).await;
    assert!(!mirror.is_gone(&fixture.store, &fixture.caller).await);
    let seen = &mut mirror.position.as_mut().unwrap().seen;
    seen.mark ^= 1;
    assert!(mirror.is_gone(&fixture.store, &fixture.caller).await, "another mark");
    let seen = &mut mirror.position.as_mut().unwrap().seen;
    (seen.mark, seen.number) = (seen.mark ^ 1, seen.number + 1);
    assert!(mirror.is_gone(&fixture.store, &fixture.caller).await, "a later version");
}

pub(crate) async fn a_position_is_gone_only_if_it_has_not_seen_a_pruned_removal(fixture: &Fixture) {
    const FAR: i64 = 10_000_000_000;
    fixture.import(&[batch("a", 1), batch("b", 2), batch("c", 3)]).await;
    let (mut old, mut halfway, mut new) = (Mirror::default(), Mirror::default(), Mirror::default());
    old.ids(fixture, 10).await;
    halfway.read(&fixture.store, &fixture.caller, 1, Encoding::Identity).await;
    remove(fixture, &["a"]).await.unwrap();
    new.ids(fixture, 10).await;
    assert!(!old.is_gone(&fixture.store, &fixture.caller).await);
    remove_and_prune(fixture, &["b"], 0).await.unwrap();
    assert!(!old.is_gone(&fixture.store, &fixture.caller).await, "nothing was pruned");
    new.ids(fixture, 10).await;
    // Prunes all three removals.
    remove_and_prune(fixture, &["c"], FAR).await.unwrap();
    for mirror in [&old, &halfway, &new] {
        assert!(mirror.is_gone(&fixture.store, &fixture.caller).await);
    }
    let mut latest = Mirror::default();
    assert!(latest.ids(fixture, 10).await.is_empty());
    assert!(!latest.is_gone(&fixture.store, &fixture.caller).await);
}

/// Decision 052.
pub(crate) async fn only_the_newest_versions_are_kept(fixture: &Fixture) {
    const KEPT: i64 = 1_000_000;
    fixture.import(&[batch("a", 1), batch("b", 2)]).await;
    let (mut first, mut second) = (Mirror::default(), Mirror::default());
    first.ids(fixture, 10).await;
    fixture.import(&[batch("c", 3)]).await;
    second.ids(fixture, 10).await;
    // As if there had been as many changes as are kept.
    fixture.sql(&format!("UPDATE organisation SET version = {KEPT}"));
    fixture.import(&[batch("d", 4)]).await;
    assert_eq!(fixture.sql("SELECT count(*) FROM data_version"), "2", "the second and the new one");
    assert!(first.is_gone(&fixture.store, &fixture.caller).await);
    assert_eq!(second.ids(fixture, 10).await, ["a", "b", "c", "d"]);
}

/// Decision 052: no client can continue from them.
pub(crate) async fn versions_before_a_pruned_removal_are_deleted(fixture: &Fixture) {
    fixture.import(&[batch("a", 1), batch("b", 2)]).await;
    fixture.import(&[batch("c", 3)]).await;
    remove(fixture, &["a"]).await.unwrap();
    remove_and_prune(fixture, &["b"], 10_000_000_000).await.unwrap();
    assert_eq!(fixture.sql("SELECT count(*) FROM data_version"), "1");
    let mut mirror = Mirror::default();
    assert_eq!(mirror.ids(fixture, 10).await, ["c"]);
    assert!(!mirror.is_gone(&fixture.store, &fixture.caller).await);
}

pub(crate) async fn removing_is_all_or_nothing(fixture: &Fixture) {
    fixture.import(&[batch("a", 1), batch("b", 2)]).await;
    let version = fixture.version().await;
    let missing = remove(fixture, &["a", "x"]).await;
    assert!(matches!(missing, Err(AdminError::BatchNotFound(id)) if id == "x"));
    assert_eq!(fixture.version().await, version);
    assert_eq!(fixture.ids(whole(), 10).await, ["a", "b"]);
    remove(fixture, &["a", "b"]).await.unwrap();
    assert_ne!(fixture.version().await, version);
    assert!(fixture.ids(whole(), 10).await.is_empty());
}

/// Decision 025.
pub(crate) async fn paging_does_not_return_a_batch_again_that_was_removed_and_imported(fixture: &Fixture) {
    fixture.import(&[batch("a", 1), batch("b", 2)]).await;
    let first = fixture.page(whole(), None, 1).await;
    let resume = first.next.clone();
    assert_eq!(ids_of(first), ["a"]);
    remove(fixture, &["a"]).await.unwrap();
    fixture.import(&[batch("a", 3)]).await;
    assert_eq!(ids_of(fixture.page(whole(), resume, 9).await), ["b"]);
}
