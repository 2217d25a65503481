//! Claims about repairs: what the doctor found is gone, and clients that keep a copy miss nothing.

use std::sync::Arc;

use batchscan_store::Encoding;

use crate::audit::{ALL, line};
use crate::changes::Mirror;
use crate::fixture::{Fixture, ORG, at, batch, commented};

pub(crate) async fn findings(fixture: &Fixture) -> Vec<String> {
    fixture.store.doctor(Arc::new(|_, _| {})).await.unwrap().findings
}

/// Finds something, repairs it, and finds nothing. Returns what was repaired.
pub(crate) async fn repair(fixture: &Fixture) -> Vec<String> {
    let found = findings(fixture).await;
    assert!(
        !found.is_empty() && found.iter().all(|finding| finding.contains("doctor --repair")),
        "{found:?}"
    );
    let repaired = fixture.store.repair(at(9)).await.unwrap();
    assert_eq!(findings(fixture).await, Vec::<String>::new());
    assert_eq!(fixture.store.repair(at(9)).await.unwrap(), Vec::<String>::new(), "nothing is left");
    repaired
}

/// As if the organisation's row had been restored from a backup.
pub(crate) async fn batches_newer_than_their_version_are_sent_again(fixture: &Fixture) {
    let (mut old, mut new, mut halfway) = (Mirror::default(), Mirror::default(), Mirror::default());
    fixture.import(&[batch("a", 1), batch("b", 2)]).await;
    assert_eq!(old.ids(fixture, 10).await, ["a", "b"]);
    let mark = fixture.sql("SELECT version_mark FROM organisation");
    fixture.import(&[commented(batch("a", 1), "corrected"), batch("c", 3)]).await;
    fixture.import(&[batch("d", 4), batch("b", 7)]).await;
    assert_eq!(new.ids(fixture, 10).await, ["a", "b", "c", "d"]);
    halfway.read(&fixture.store, &fixture.caller, 2, Encoding::Identity).await;
    fixture.sql(&format!("UPDATE organisation SET version = 1, version_mark = {mark}"));
    let repaired = repair(fixture).await;
    assert_eq!(repaired, [format!("\"{ORG}\": new version; batches marked as changed: 4")]);
    let entries = fixture.store.audit(ALL).await.unwrap();
    let entry = entries.last().unwrap();
    assert_eq!(
        (line(entry), entry.at),
        (format!("doctor repair|{ORG}|-|new version; batches marked as changed: 4"), at(9))
    );
    fixture.import(&[batch("e", 5)]).await;
    for mirror in [&mut old, &mut new, &mut halfway] {
        assert_eq!(mirror.ids(fixture, 2).await, ["a", "b", "c", "d", "e"]);
        assert!(mirror.batches["a"].contains("corrected"));
    }
}

/// As if the operator had incremented the version with SQL.
pub(crate) async fn a_client_continues_from_a_version_that_was_not_recorded(fixture: &Fixture) {
    fixture.import(&[batch("a", 1)]).await;
    fixture.sql("UPDATE organisation SET version = version + 1");
    let mut mirror = Mirror::default();
    assert_eq!(mirror.ids(fixture, 10).await, ["a"]);
    assert!(mirror.is_gone(&fixture.store, &fixture.caller).await, "without the repair");
    repair(fixture).await;
    fixture.import(&[batch("b", 2)]).await;
    assert_eq!(mirror.ids(fixture, 10).await, ["a", "b"]);
}

pub(crate) async fn batches_without_an_organisation_are_deleted(fixture: &Fixture) {
    fixture.import(&[batch("a", 1), batch("b", 2)]).await;
    fixture.sql("UPDATE batch SET org_id = 77 WHERE batch_id = 'a'");
    assert_eq!(repair(fixture).await, ["batches without an organisation deleted: 1"]);
    assert_eq!(fixture.sql("SELECT count(*) FROM batch"), "1");
}
