//! Claims about deliveries (decision 055): the record of imports, keys, and tokens of the operator API.

use std::sync::Arc;

use batchscan_model::{Batch, ClientId};
use batchscan_store::{
    Actor, AdminError, CredentialStatus, DatabaseUrl, FOLDER_BYTES_MAX, HOST_BYTES_MAX, ImportEnd,
    ImportEntry, ImportFilter, ImportResult, ImportRow, ImportSource, ImportStep, NewCredential, OpenOptions,
    OperatorRole, OperatorToken, OrgName, Store, WATCHER_TIMEOUT_SECS, Watcher, WatcherState, copy_database,
};
use tokio::sync::mpsc;

use crate::fixture::{Fixture, ORG, at, batch, commented, new_caller, new_credential};

/// Delivers batches with a key, whose file has a hash of this byte.
async fn deliver(store: &Store, key: &str, hash: u8, batches: &[Batch]) -> Result<ImportResult, AdminError> {
    let (steps, rows) = mpsc::channel(2);
    steps.send(ImportStep::Rows(batches.iter().map(ImportRow::from).collect())).await.unwrap();
    steps.send(ImportStep::End(ImportEnd { warnings: 7, ..ImportEnd::default() })).await.unwrap();
    let (file, key, hash) = (Some("a.csv".into()), Some(key.into()), Some([hash; 32]));
    let source = ImportSource { file, key, hash, ..ImportSource::default() };
    store.import(ORG, source, rows, at(8)).await
}

async fn entries(store: &Store) -> Vec<ImportEntry> {
    store.imports(ORG, ImportFilter::default(), 0, i64::MAX).await.unwrap()
}

pub(crate) async fn every_import_is_recorded(fixture: &Fixture) {
    let store =
        fixture.store.with_actor(Actor { name: "op_1".into(), source: "10.0.0.7".into(), token: None });
    let first = deliver(&store, "k1", 1, &[batch("a", 1), batch("b", 2)]).await.unwrap();
    let second = deliver(&store, "k2", 2, &[batch("a", 1)]).await.unwrap();
    assert_eq!((first.id, second.id), (Some(1), Some(2)));
    assert_eq!((first.counts.new, second.counts.unchanged), (2, 1));
    let all = entries(&fixture.second).await;
    let summary = |entry: &ImportEntry| {
        (entry.id, entry.counts, entry.warnings, entry.key.clone().unwrap(), entry.hash.unwrap()[0])
    };
    assert_eq!(
        all.iter().map(summary).collect::<Vec<_>>(),
        [(1, first.counts, 7, "k1".into(), 1), (2, second.counts, 7, "k2".into(), 2)]
    );
    let version = fixture.version().await.unwrap().number;
    assert!(all.iter().all(|entry| entry.version == version && entry.file.as_deref() == Some("a.csv")));
    assert!(all.iter().all(|entry| entry.actor == "op_1" && entry.source == "10.0.0.7"));
    assert!(all.iter().all(|entry| entry.at == at(8)));
    let wanted = async |since, file: &str, rejected, after| {
        let filter = ImportFilter { since: Some(at(since)), file: Some(file.into()), rejected };
        fixture.store.imports(ORG, filter, after, 1).await.unwrap()
    };
    assert_eq!(wanted(8, "a.c", false, 1).await, all[1..]);
    for (since, file, rejected) in [(9, "a.c", false), (8, "A.c", false), (8, "a.c", true)] {
        assert_eq!(wanted(since, file, rejected, 0).await, [], "{since} {file} {rejected}");
    }
    let acknowledge = async |file: &str| {
        let filter = ImportFilter { file: Some(file.into()), ..ImportFilter::default() };
        store.acknowledge_imports(ORG, filter, at(9)).await.unwrap()
    };
    assert_eq!((acknowledge("b").await, acknowledge("a").await, acknowledge("a").await), (0, 2, 0));
}

/// An old file that is sent again does not undo a correction.
pub(crate) async fn a_repeated_delivery_returns_the_first_result(fixture: &Fixture) {
    let old = [batch("a", 1)];
    let first = deliver(&fixture.store, "k1", 1, &old).await.unwrap();
    deliver(&fixture.store, "k2", 2, &[commented(batch("a", 1), "corrected")]).await.unwrap();
    let before = fixture.version().await;
    let again = deliver(&fixture.second, "k1", 1, &old).await.unwrap();
    assert_eq!(again, ImportResult { is_replay: true, ..first });
    assert_eq!(fixture.version().await, before);
    let reused = deliver(&fixture.store, "k1", 9, &old).await;
    assert!(matches!(reused, Err(AdminError::KeyReused)));
    assert_eq!(entries(&fixture.store).await.len(), 2);
}

pub(crate) async fn of_concurrent_deliveries_with_one_key_one_is_applied(fixture: &Fixture) {
    let stores = [&fixture.store, &fixture.second];
    let deliveries = (0..8).map(|number| {
        let store = stores[number % 2].clone();
        tokio::spawn(async move { deliver(&store, "same", 1, &[batch("a", 1)]).await.unwrap() })
    });
    let mut results = Vec::new();
    for delivery in deliveries.collect::<Vec<_>>() {
        results.push(delivery.await.unwrap());
    }
    assert!(results.iter().all(|result| result.id == Some(1) && result.counts.new == 1), "{results:?}");
    assert_eq!(entries(&fixture.store).await.len(), 1);
}

pub(crate) async fn add_token(store: &Store, id: &str, org: Option<&str>) -> Result<(), AdminError> {
    let role = if org.is_some() { OperatorRole::Ingest } else { OperatorRole::Admin };
    let new = NewCredential { expires_at: Some(at(100)), ..new_credential(&ClientId::new(id).unwrap()) };
    store.add_operator_token(role, org, new).await
}

pub(crate) async fn operator_tokens_are_issued_used_and_revoked(fixture: &Fixture) {
    let store = &fixture.store;
    let (admin, bound) = (ClientId::new("op_a").unwrap(), ClientId::new("op_b").unwrap());
    add_token(store, "op_a", None).await.unwrap();
    add_token(store, "op_b", Some(ORG)).await.unwrap();
    let unknown = add_token(store, "op_c", Some("Unknown")).await;
    assert!(matches!(unknown, Err(AdminError::OrgNotFound { .. })));
    let all = fixture.second.operator_tokens().await.unwrap();
    let access = |token: &OperatorToken| (token.credential.client.clone(), token.role, token.org.clone());
    let expected = [
        (admin.clone(), OperatorRole::Admin, None),
        (bound.clone(), OperatorRole::Ingest, Some(ORG.to_owned())),
    ];
    assert_eq!(all.iter().map(access).collect::<Vec<_>>(), expected);
    assert_eq!(store.operator_token(&bound).await.unwrap().as_ref(), all.get(1));
    store.record_uses(vec![(admin.clone(), at(5))]).await.unwrap();
    store.revoke_operator_token(&admin, at(6)).await.unwrap();
    let again = store.revoke_operator_token(&admin, at(7)).await;
    assert!(matches!(again, Err(AdminError::TokenNotFound(_))));
    let found = store.operator_token(&admin).await.unwrap().unwrap().credential;
    assert_eq!((found.last_used_at, found.revoked_at), (Some(at(5)), Some(at(6))));
    assert_eq!(found.status(at(0)), CredentialStatus::Revoked);
    let found = store.operator_token(&bound).await.unwrap().unwrap().credential;
    assert_eq!(found.status(at(99)), CredentialStatus::Active);
    assert_eq!(found.status(at(100)), CredentialStatus::Expired);
    store.remove_org(ORG, at(0)).await.unwrap();
    assert_eq!(store.operator_token(&bound).await.unwrap(), None, "it could deliver to no other");
}

/// It may have been revoked after the request was accepted.
pub(crate) async fn a_revoked_operator_token_changes_nothing(fixture: &Fixture) {
    add_token(&fixture.store, "op_a", None).await.unwrap();
    let token = ClientId::new("op_a").unwrap();
    let actor = Actor { name: "op_a".into(), source: "10.0.0.7".into(), token: Some(token.clone()) };
    let store = fixture.store.with_actor(actor);
    deliver(&store, "k1", 1, &[batch("a", 1)]).await.unwrap();
    let before = fixture.version().await;
    fixture.second.revoke_operator_token(&token, at(6)).await.unwrap();
    for imported in [batch("a", 1), batch("b", 1)] {
        let imported = deliver(&store, "k2", 2, &[imported]).await;
        assert!(matches!(imported, Err(AdminError::TokenEnded)), "{imported:?}");
    }
    let added = store.add_org(&OrgName::new("New").unwrap(), at(8)).await;
    assert!(matches!(added, Err(AdminError::TokenEnded)), "{added:?}");
    let recorded = store.record_rejected(ORG, ImportSource::default(), vec!["error".into()], at(8)).await;
    assert!(matches!(recorded, Err(AdminError::TokenEnded)), "{recorded:?}");
    assert_eq!(entries(&fixture.store).await.len(), 1);
    let (host, folder, state) = ("a".into(), "/srv/scans".into(), WatcherState::Running);
    let watcher = Watcher { host, folder, state, detail: String::new(), seen_at: at(8) };
    let reported = store.record_watcher(ORG, watcher).await;
    assert!(matches!(reported, Err(AdminError::TokenEnded)), "{reported:?}");
    assert_eq!(fixture.store.status().await.unwrap().orgs.remove(0).watchers, []);
    assert_eq!((fixture.version().await, fixture.store.orgs().await.unwrap().len()), (before, 1));
}

pub(crate) async fn copies_and_backups_have_imports_and_operator_tokens(fixture: &Fixture) {
    let store = &fixture.store;
    store.keys(at(0)).await.unwrap();
    new_caller(store, "Other", "bs_other").await;
    deliver(store, "k1", 1, &[batch("a", 1)]).await.unwrap();
    add_token(store, "op_a", None).await.unwrap();
    add_token(store, "op_b", Some(ORG)).await.unwrap();
    let backup = fixture.folder.path().join("backup.db");
    store.backup(&backup, Arc::new(|_, _| {})).await.unwrap();
    let copy = DatabaseUrl::Sqlite(fixture.folder.path().join("copy.db"));
    let copied = Store::open(&copy, OpenOptions::FOR_COPY).await.unwrap();
    copy_database(store, &copied, &|_, _| ()).await.unwrap();
    let restored = Store::open(&DatabaseUrl::Sqlite(backup), OpenOptions::EXISTING).await.unwrap();
    for other in [copied, restored] {
        assert_eq!(entries(&other).await, entries(store).await);
        assert_eq!(other.operator_tokens().await.unwrap(), store.operator_tokens().await.unwrap());
    }
}

pub(crate) async fn watchers_are_listed_until_they_are_forgotten(fixture: &Fixture) {
    let store = &fixture.store;
    let watcher = |host: &str, second: i64| Watcher {
        host: host.into(),
        folder: "/srv/scans".into(),
        state: WatcherState::Waiting,
        detail: format!("at {second}"),
        seen_at: at(second),
    };
    let listed = async || {
        let watchers = store.status().await.unwrap().orgs.remove(0).watchers;
        watchers.into_iter().map(|watcher| (watcher.host, watcher.detail)).collect::<Vec<_>>()
    };
    let shown = |host: &str, second: i64| (host.to_owned(), format!("at {second}"));
    for (host, second) in [("b", 1), ("a", 2), ("b", 3)] {
        store.record_watcher(ORG, watcher(host, second)).await.unwrap();
    }
    assert_eq!(listed().await, [shown("a", 2), shown("b", 3)]);
    store.record_watcher("Unknown", watcher("a", 4)).await.unwrap_err();
    let long = Watcher { host: "€".repeat(85), folder: "€".repeat(666), ..watcher("c", 0) };
    assert!(long.host.len() <= HOST_BYTES_MAX && long.folder.len() <= FOLDER_BYTES_MAX);
    store.record_watcher(ORG, long).await.unwrap();
    assert_eq!(store.forget_watchers(ORG, at(1 + WATCHER_TIMEOUT_SECS)).await.unwrap(), 1, "the long one");
    assert_eq!(store.forget_watchers(ORG, at(3 + WATCHER_TIMEOUT_SECS)).await.unwrap(), 1);
    assert_eq!(listed().await, [shown("b", 3)], "one has died");
    let stopped = Watcher { state: WatcherState::Stopped, ..watcher("b", 4) };
    store.record_watcher(ORG, stopped).await.unwrap();
    assert_eq!(store.forget_watchers(ORG, at(4)).await.unwrap(), 1);
    // A client cannot fill the database.
    for second in 10..120 {
        store.record_watcher(ORG, watcher(&format!("host {second}"), second)).await.unwrap();
    }
    let listed = listed().await;
    assert_eq!((listed.len(), &*listed[0].0), (100, "host 100"));
}
