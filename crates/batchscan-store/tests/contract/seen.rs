//! Claims about the marks of seen batches.

use std::collections::BTreeMap;

use batchscan_model::ClientId;
use batchscan_store::{
    Caller, DatabaseUrl, NewCredential, OpenOptions, SeenChange, SeenMark, Store, copy_database,
};

use crate::audit::ALL;
use crate::fixture::{Fixture, ORG, at, batch, new_caller, new_credential};

const DAY_SECS: i64 = 24 * 3_600;

const SEEN: SeenChange = SeenChange { is_seen: Some(true), note: None };
const UNSEEN: SeenChange = SeenChange { is_seen: Some(false), note: None };

fn noted(note: &str) -> SeenChange {
    SeenChange { is_seen: None, note: Some(note.to_owned()) }
}

fn changes(seen: &[&str], unseen: &[&str]) -> BTreeMap<String, SeenChange> {
    let seen = seen.iter().map(|subject| ((*subject).to_owned(), SEEN));
    seen.chain(unseen.iter().map(|subject| ((*subject).to_owned(), UNSEEN))).collect()
}

/// Subjects and the seconds at which they were marked.
fn listed(marks: Option<Vec<SeenMark>>) -> Vec<(String, i64)> {
    marks.unwrap().into_iter().map(|SeenMark { subject, at, .. }| (subject, at.secs())).collect()
}

async fn mark(
    store: &Store,
    caller: &Caller,
    seen: &[&str],
    unseen: &[&str],
    secs: i64,
) -> Vec<(String, i64)> {
    listed(store.change_seen(caller, changes(seen, unseen), at(secs)).await.unwrap())
}

fn named(marks: &[(&str, i64)]) -> Vec<(String, i64)> {
    marks.iter().map(|(subject, secs)| ((*subject).to_owned(), *secs)).collect()
}

pub(crate) async fn marks_belong_to_an_organisation(fixture: &Fixture) {
    let (store, caller) = (&fixture.store, &fixture.caller);
    let other = new_caller(store, "Other", "bs_other").await;
    fixture.import(&[batch("a", 1)]).await;
    let (version, entries) = (fixture.version().await, store.audit(ALL).await.unwrap());
    assert_eq!(mark(store, caller, &["a", "%_'\u{1f331}"], &[], 5).await.len(), 2);
    assert_eq!(mark(store, &other, &["a"], &[], 6).await, named(&[("a", 6)]));
    mark(store, &other, &[], &["a", "%_'\u{1f331}"], 7).await;
    let read = async |caller: &Caller| listed(fixture.second.seen(caller, at(8)).await.unwrap());
    assert_eq!(read(caller).await, named(&[("%_'\u{1f331}", 5), ("a", 5)]), "in another process");
    assert_eq!(read(&other).await, []);
    assert_eq!((fixture.version().await, store.audit(ALL).await.unwrap()), (version, entries));
    store.remove_org(ORG, at(9)).await.unwrap();
    assert_eq!(fixture.sql("SELECT count(*) FROM seen"), "0");
}

pub(crate) async fn marking_again_keeps_the_first_time(fixture: &Fixture) {
    let (store, caller) = (&fixture.store, &fixture.caller);
    assert_eq!(mark(store, caller, &["b", "c", "b"], &[], 5).await, named(&[("b", 5), ("c", 5)]));
    let marks = mark(store, caller, &["c", "a"], &["b", "unknown"], 6).await;
    assert_eq!(marks, named(&[("c", 5), ("a", 6)]));
    assert_eq!(mark(store, caller, &[], &[], 7).await, marks);
    assert_eq!(mark(store, caller, &["b"], &["c", "a"], 8).await, named(&[("b", 8)]));
}

pub(crate) async fn a_note_and_being_seen_are_independent(fixture: &Fixture) {
    let store = &fixture.store;
    let write = async |caller: &Caller, change: SeenChange, secs: i64| {
        let changes = BTreeMap::from([("a".to_owned(), change)]);
        let marks = store.change_seen(caller, changes, at(secs)).await.unwrap().unwrap();
        assert_eq!(fixture.second.seen(caller, at(secs)).await.unwrap().unwrap(), marks);
        let mark = marks.into_iter().next()?;
        assert_eq!(mark.subject, "a");
        Some((mark.is_seen, mark.at.secs(), mark.by, mark.note))
    };
    let marked = |is_seen, secs, by: &str, note: &str| {
        Some((is_seen, at(secs).secs(), by.to_owned(), note.to_owned()))
    };
    let caller = &fixture.caller;
    let colleague = &Caller { org: caller.org, client: ClientId::new("bs_colleague").unwrap() };
    let credential = NewCredential { label: "Anna".into(), ..new_credential(&colleague.client) };
    store.add_credential(ORG, credential).await.unwrap();
    assert_eq!(write(caller, SEEN, 1).await, marked(true, 1, "test", ""));
    assert_eq!(write(colleague, SEEN, 2).await, marked(true, 1, "test", ""));
    let note = "resown, % \u{1f331}";
    assert_eq!(write(colleague, noted(note), 3).await, marked(true, 3, "Anna", note));
    assert_eq!(write(caller, noted(note), 4).await, marked(true, 3, "Anna", note));
    assert_eq!(write(caller, UNSEEN, 5).await, marked(false, 5, "test", note));
    assert_eq!(write(colleague, noted("done"), 6).await, marked(false, 6, "Anna", "done"));
    assert_eq!(write(caller, SEEN, 7).await, marked(true, 7, "test", "done"));
    assert_eq!(write(colleague, noted(""), 8).await, marked(true, 8, "Anna", ""));
    assert_eq!(write(caller, UNSEEN, 9).await, None);
    assert_eq!(write(caller, noted(""), 9).await, None);
    let both = SeenChange { is_seen: Some(true), note: Some("both".into()) };
    assert_eq!(write(caller, both, 10).await, marked(true, 10, "test", "both"));
}

pub(crate) async fn an_invalid_credential_neither_reads_nor_marks(fixture: &Fixture) {
    let (store, caller) = (&fixture.store, &fixture.caller);
    let other = new_caller(store, "Other", "bs_other").await;
    let stranger = Caller { org: caller.org, client: other.client };
    mark(store, caller, &["a"], &[], 1).await;
    let rejects = async |caller: &Caller| {
        assert_eq!(store.seen(caller, at(2)).await.unwrap(), None);
        assert_eq!(store.change_seen(caller, changes(&["b"], &["a"]), at(2)).await.unwrap(), None);
        assert_eq!(fixture.sql("SELECT count(*) FROM seen WHERE subject = 'a'"), "1");
        assert_eq!(fixture.sql("SELECT count(*) FROM seen"), "1");
    };
    rejects(&stranger).await;
    store.revoke_credential(&caller.client, at(2)).await.unwrap();
    rejects(caller).await;
    store.remove_org("Other", at(2)).await.unwrap();
    rejects(&stranger).await;
}

pub(crate) async fn only_new_marks_are_kept(fixture: &Fixture) {
    let (store, caller) = (&fixture.store, &fixture.caller);
    mark(store, caller, &["old"], &[], 0).await;
    mark(store, caller, &["newer"], &[], 1).await;
    assert_eq!(mark(store, caller, &[], &[], 60 * DAY_SECS).await.len(), 2);
    assert_eq!(mark(store, caller, &[], &[], 60 * DAY_SECS + 1).await, named(&[("newer", 1)]));
    let subjects: Vec<String> = (0..2_000).map(|number| format!("{number:04}")).collect();
    for (secs, subjects) in subjects.chunks(500).enumerate() {
        let changes = subjects.iter().map(|subject| (subject.clone(), SEEN)).collect();
        store.change_seen(caller, changes, at(2 + secs.cast_signed() as i64)).await.unwrap();
    }
    let marks = mark(store, caller, &["last"], &[], 9).await;
    assert_eq!((marks.len(), &*marks[0].0, &*marks[1_999].0), (2_000, "0001", "last"));
    let long = "€".repeat(333);
    assert_eq!(mark(store, caller, &[&long], &[], 10).await.len(), 2_000);
}

pub(crate) async fn concurrent_changes_are_all_applied(fixture: &Fixture) {
    let (store, caller) = (&fixture.store, &fixture.caller);
    let forwards: Vec<String> = (0..50).map(|number| format!("{number:02}")).collect();
    let backwards: Vec<String> = forwards.iter().rev().cloned().collect();
    let changes = (0..4).map(async |number| {
        let seen = if number % 2 == 0 { &forwards } else { &backwards };
        let change = if number == 3 { noted("done") } else { SEEN };
        let changes = seen.iter().map(|subject| (subject.clone(), change.clone())).collect();
        let store = if number < 2 { store } else { &fixture.second };
        store.change_seen(caller, changes, at(number)).await.unwrap().unwrap().len()
    });
    assert_eq!(futures_util::future::join_all(changes).await, [50; 4]);
}

pub(crate) async fn copies_and_backups_have_marks(fixture: &Fixture) {
    let (store, caller) = (&fixture.store, &fixture.caller);
    store.change_seen(caller, BTreeMap::from([("a".to_owned(), noted("resown"))]), at(5)).await.unwrap();
    let marks = mark(store, caller, &["b"], &[], 5).await;
    let read = async |store: &Store| listed(store.seen(caller, at(6)).await.unwrap());
    for is_postgres in [false, true] {
        let target = fixture.empty_target(is_postgres).await;
        copy_database(store, &target, &|_, _| ()).await.unwrap();
        assert_eq!(target.seen(caller, at(6)).await.unwrap(), store.seen(caller, at(6)).await.unwrap());
        target.change_seen(caller, BTreeMap::from([("a".to_owned(), noted(""))]), at(7)).await.unwrap();
        mark(&target, caller, &["c"], &[], 7).await;
        copy_database(store, &target, &|_, _| ()).await.unwrap();
        assert_eq!(read(&target).await, named(&[("b", 5), ("c", 7)]), "a finished copy is in use");
    }
    let backup = fixture.folder.path().join("backup.db");
    store.backup(&backup, std::sync::Arc::new(|_, _| {})).await.unwrap();
    let restored = Store::open(&DatabaseUrl::Sqlite(backup), OpenOptions::EXISTING).await.unwrap();
    assert_eq!(read(&restored).await, marks);
}
