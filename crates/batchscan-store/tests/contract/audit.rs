//! Claims about the audit log (decision 054).

use batchscan_model::BatchId;
use batchscan_store::{AuditEntry, AuditRange, KeyRotation, OrgName, Rotation, Store};

use crate::fixture::{DRY_RUN, Fixture, ORG, at, batch, import};
use crate::operators::session;

pub(crate) const ALL: AuditRange = AuditRange { since: None, after: 0, limit: i64::MAX };

fn name(text: &str) -> OrgName {
    OrgName::new(text).unwrap()
}

/// An entry as a line: action, organisation, subject, detail.
pub(crate) fn line(entry: &AuditEntry) -> String {
    let AuditEntry { action, org, subject, detail, .. } = entry;
    [Some(action), org.as_ref(), subject.as_ref(), detail.as_ref()]
        .map(|part| part.map_or("-", |part| part))
        .join("|")
}

async fn lines(store: &Store) -> Vec<String> {
    store.audit(ALL).await.unwrap().iter().map(line).collect()
}

pub(crate) async fn every_change_has_an_entry(fixture: &Fixture) {
    let (store, client) = (&fixture.store, &fixture.caller.client);
    fixture.import(&[batch("a", 1), batch("b", 2)]).await;
    fixture.import(&[batch("a", 3)]).await;
    let ids = ["a", "b"].map(|id| BatchId::new(id).unwrap());
    store.remove_batches(ORG, ids.to_vec(), at(0), at(8)).await.unwrap();
    store
        .rotate_credential(client, Rotation { secret_hash: [2; 32], retire_at: at(9), now: at(1) })
        .await
        .unwrap();
    store.add_session(session("link", client, true, at(900)), None).await.unwrap();
    store.add_session(session("browser", client, false, at(900)), None).await.unwrap();
    store.end_sessions(client.as_str(), at(8)).await.unwrap();
    store.revoke_credential(client, at(1)).await.unwrap();
    store.rename_org(ORG, &name("Blue Valley"), at(8)).await.unwrap();
    store.remove_org("Blue Valley", at(8)).await.unwrap();
    let expected = [
        "org add|Green Valley|-|-",
        "credential issue|Green Valley|bs_first|-",
        "import|Green Valley|-|2 new, 0 corrected, 0 unchanged",
        "import|Green Valley|-|0 new, 1 corrected, 0 unchanged",
        "batch remove|Green Valley|a|-",
        "batch remove|Green Valley|b|-",
        "credential rotate|Green Valley|bs_first|-",
        "credential link|Green Valley|bs_first|link",
        "session end|Green Valley|bs_first|2 ended",
        "credential revoke|Green Valley|bs_first|-",
        "org rename|Green Valley|-|to Blue Valley",
        "org remove|Blue Valley|-|-",
    ];
    assert_eq!(lines(store).await, expected);
    let times = [0, 0, 8, 8, 8, 8, 1, 0, 8, 1, 8, 8].map(at);
    let entries = store.audit(ALL).await.unwrap();
    assert_eq!(entries.iter().map(|entry| entry.at).collect::<Vec<_>>(), times, "the time of the operation");

    let created = store.keys(at(0)).await.unwrap();
    let rotated = store.rotate_keys(KeyRotation { now: at(5), remove_before: at(9) }).await.unwrap();
    let entries = lines(store).await.split_off(expected.len());
    let count = |action: &str| entries.iter().filter(|entry| entry.starts_with(action)).count();
    let removed = created.iter().filter(|key| !rotated.iter().any(|kept| kept.kid == key.kid)).count();
    assert_eq!(count("key create"), rotated.len() + removed);
    assert_eq!((count("key remove"), removed > 0), (removed, true));
    store.keys(at(0)).await.unwrap();
    assert_eq!(lines(store).await.len(), expected.len() + entries.len(), "reading keys is no change");
}

pub(crate) async fn what_changes_nothing_has_no_entry(fixture: &Fixture) {
    let store = &fixture.store;
    fixture.import(&[batch("a", 1)]).await;
    let before = lines(store).await;
    fixture.import(&[batch("a", 1)]).await;
    import(store, ORG, &[batch("b", 2)], DRY_RUN).await.unwrap();
    import(store, ORG, &[batch("b", 2)], None).await.unwrap_err();
    store.add_org(&name(ORG), at(0)).await.unwrap_err();
    store.remove_batches(ORG, vec![BatchId::new("missing").unwrap()], at(0), at(8)).await.unwrap_err();
    store.end_sessions("missing", at(8)).await.unwrap();
    assert_eq!(lines(store).await, before);
}

pub(crate) async fn entries_are_read_by_time_and_number(fixture: &Fixture) {
    fixture.import(&[batch("a", 1)]).await;
    let all = fixture.store.audit(ALL).await.unwrap();
    assert_eq!(all.iter().map(|entry| entry.id).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(all.iter().all(|entry| !entry.actor.is_empty() && !entry.source.is_empty()));
    let some = |since, after, limit| fixture.store.audit(AuditRange { since, after, limit });
    assert_eq!(some(None, 1, 1).await.unwrap(), all[1..2]);
    assert_eq!(some(Some(all[2].at), 0, 9).await.unwrap().last(), all.last());
    let day = 86_400;
    assert_eq!(some(Some(at(all[2].at.secs() + day)), 0, 9).await.unwrap(), []);
}

/// A reader that continues after the last number misses nothing.
pub(crate) async fn numbers_follow_the_order_of_commits(fixture: &Fixture) {
    const CHANGES: usize = 40;
    let stores = [fixture.store.clone(), fixture.second.clone()];
    let writing: Vec<_> = (0..CHANGES)
        .map(|number| {
            let store = stores[number % 2].clone();
            tokio::spawn(async move { store.add_org(&name(&format!("Org {number}")), at(0)).await })
        })
        .collect();
    let mut read = Vec::new();
    while read.len() < CHANGES + 2 {
        let after = read.last().copied().unwrap_or(0);
        let new = fixture.second.audit(AuditRange { after, ..ALL }).await.unwrap();
        read.extend(new.iter().map(|entry| entry.id));
    }
    for change in writing {
        change.await.unwrap().unwrap();
    }
    let all = fixture.store.audit(ALL).await.unwrap();
    assert_eq!(read, all.iter().map(|entry| entry.id).collect::<Vec<_>>());
}
