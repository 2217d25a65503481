//! Claims about organisations, credentials, keys, copies, backups and doctor.

use std::sync::Arc;

use batchscan_model::{ClientId, UtcInstant};
use batchscan_store::{
    AdminError, Credential, CredentialStatus, DatabaseUrl, Freshness, KeyPurpose, KeyRotation, OpenOptions,
    Progress, Rotation, ServiceKey, Session, SessionResult, SessionUse, Store, copy_database,
};

use crate::audit::ALL;
use crate::fixture::{Fixture, ORG, at, batch, new_caller};

pub(crate) async fn an_overview_has_the_time_of_the_last_change(fixture: &Fixture) {
    let overview = async || fixture.store.org_overviews().await.unwrap().remove(0);
    assert_eq!(overview().await.imported_at, None);
    let batches = [batch("a", 1), batch("b", 2)];
    fixture.import(&batches).await;
    let first = overview().await;
    assert_eq!((&*first.name, Some(first.version)), (ORG, fixture.version().await));
    assert_eq!(first.imported_at, Some(at(8)));
    assert_eq!(fixture.store.count_batches(first.id).await.unwrap(), 2);
    fixture.import(&batches).await;
    assert_eq!(overview().await, first, "nothing changed");
}

pub(crate) async fn a_removed_organisation_takes_everything_with_it(fixture: &Fixture) {
    fixture.import(&[batch("a", 1)]).await;
    fixture.store.remove_org(ORG, at(0)).await.unwrap();
    assert_eq!(fixture.version().await, None);
    assert!(credential(fixture, &fixture.caller.client).await.is_none());
    let again = new_caller(&fixture.store, ORG, "bs_again").await;
    assert_ne!(again.org, fixture.caller.org, "numbers are not reused");
    assert_eq!(fixture.store.org(ORG).await.unwrap().batches, 0);
}

pub(crate) async fn a_credential_has_at_most_two_secrets(fixture: &Fixture) {
    let client = &fixture.caller.client;
    for number in 2..5u8 {
        let rotation = Rotation { secret_hash: [number; 32], retire_at: at(100), now: at(10) };
        let ended = fixture.store.rotate_credential(client, rotation).await.unwrap();
        assert_eq!(ended, (number > 2).then(|| at(100)), "a secret that was already retiring ends");
        let secrets = credential(fixture, client).await.unwrap().secrets;
        let kept: Vec<_> = secrets.iter().map(|secret| (secret.hash[0], secret.retires_at)).collect();
        assert_eq!(kept, [(number - 1, Some(at(100))), (number, None)]);
    }
}

/// Decision 051.
pub(crate) async fn a_rotation_ends_sessions_and_links_with_the_old_secret(fixture: &Fixture) {
    let (store, client) = (&fixture.store, &fixture.caller.client);
    let other = new_caller(store, "Other", "bs_other").await.client;
    for (id, client, is_link, secs) in [
        ("long", client, false, 900),
        ("link", client, true, 900),
        ("short", client, false, 50),
        ("other", &other, false, 900),
    ] {
        store.add_session(session(id, client, is_link, at(secs)), None).await.unwrap();
    }
    let rotation = Rotation { secret_hash: [2; 32], retire_at: at(100), now: at(10) };
    store.rotate_credential(client, rotation).await.unwrap();
    let mut left = store.sessions(Some(ORG), at(10)).await.unwrap();
    left.extend(store.sessions(Some("Other"), at(10)).await.unwrap());
    let mut ends: Vec<_> = left.iter().map(|session| (session.id.as_str(), session.expires_at)).collect();
    ends.sort_unstable();
    assert_eq!(ends, [("link", at(100)), ("long", at(100)), ("other", at(900)), ("short", at(50))]);
    // A secret that was verified before the rotation.
    let late = |id: &str, now| Session { created_at: at(now), ..session(id, client, false, at(900)) };
    store.add_session(late("late", 20), Some([1; 32])).await.unwrap();
    let all = store.sessions(Some(ORG), at(20)).await.unwrap();
    assert_eq!(all.iter().find(|session| session.id.as_str() == "late").unwrap().expires_at, at(100));
    let too_late = store.add_session(late("too-late", 100), Some([1; 32])).await;
    assert!(matches!(too_late, Err(AdminError::CredentialNotFound(_))), "{too_late:?}");
    // A link made before the rotation starts a session that ends as well; one made after it does not.
    let new_link = Session { created_at: at(11), ..session("new-link", client, true, at(900)) };
    store.add_session(new_link, None).await.unwrap();
    for (id, end) in [("link", at(100)), ("new-link", at(5_000))] {
        assert_eq!(use_link(fixture, id, at(99)).await, end, "{id}");
    }
    // Another rotation ends the old secret now, and its sessions.
    let rotation = Rotation { secret_hash: [3; 32], retire_at: at(200), now: at(49) };
    store.rotate_credential(client, rotation).await.unwrap();
    let left = store.sessions(Some(ORG), at(49)).await.unwrap();
    assert!(!left.is_empty() && left.iter().all(|session| session.expires_at == at(200)), "{left:?}");
}

/// Decision 051.
pub(crate) async fn links_do_not_end_sessions(fixture: &Fixture) {
    let (store, client) = (&fixture.store, &fixture.caller.client);
    let count = async |is_link: bool| {
        let all = store.sessions(Some(ORG), at(10)).await.unwrap();
        all.iter().filter(|session| session.is_link == is_link).count()
    };
    for number in 0..102 {
        store.add_session(session(&format!("session-{number}"), client, false, at(900)), None).await.unwrap();
    }
    store.add_session(session("link", client, true, at(900)), None).await.unwrap();
    assert_eq!((count(false).await, count(true).await), (100, 1));
    use_link(fixture, "link", at(10)).await;
    assert_eq!((count(false).await, count(true).await), (100, 0));
}

/// Uses a link, and returns when its session ends.
async fn use_link(fixture: &Fixture, id: &str, now: UtcInstant) -> UtcInstant {
    let (id, link_until) = (ClientId::new(id).unwrap(), Some(at(5_000)));
    let request = SessionUse { id, hash: [1; 32], next_hash: [2; 32], link_until, now };
    match fixture.store.use_session(request).await.unwrap() {
        SessionResult::Active(session) => session.expires_at,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn session(id: &str, client: &ClientId, is_link: bool, expires_at: UtcInstant) -> Session {
    Session {
        id: ClientId::new(id).unwrap(),
        client: client.clone(),
        is_link,
        hash: [1; 32],
        previous_hash: None,
        created_at: at(0),
        expires_at,
        last_used_at: None,
    }
}

/// Decision 010.
pub(crate) async fn a_revoked_credential_stays_invalid(fixture: &Fixture) {
    let (store, client) = (&fixture.store, &fixture.caller.client);
    store.revoke_credential(client, at(5)).await.unwrap();
    assert_eq!(fixture.second.data_version(&fixture.caller, at(5)).await.unwrap(), None);
    let credential = credential(fixture, client).await.unwrap();
    assert_eq!((credential.status(at(5)), credential.secrets.len()), (CredentialStatus::Revoked, 0));
    let rotation = Rotation { secret_hash: [2; 32], retire_at: at(9), now: at(6) };
    assert!(matches!(store.rotate_credential(client, rotation).await, Err(AdminError::Revoked(_))));
    let unknown = ClientId::new("bs_unknown").unwrap();
    assert!(matches!(store.revoke_credential(&unknown, at(5)).await, Err(AdminError::CredentialNotFound(_))));
}

pub(crate) async fn keys_are_created_once_and_shared(fixture: &Fixture) {
    let (mine, theirs) = tokio::join!(fixture.store.keys(at(0)), fixture.second.keys(at(0)));
    let names = |keys: Vec<ServiceKey>| keys.into_iter().map(|key| (key.kid, key.bytes)).collect::<Vec<_>>();
    let (mine, theirs) = (names(mine.unwrap()), names(theirs.unwrap()));
    assert_eq!(mine, theirs);
    assert_eq!(mine.len(), 3, "one for tokens, one for cursors, one for secrets");
}

/// Decision 042.
pub(crate) async fn old_keys_are_kept_until_they_are_removed(fixture: &Fixture) {
    let names = |keys: &[ServiceKey], purpose| -> Vec<String> {
        keys.iter().filter(|key| key.purpose == purpose).map(|key| key.kid.clone()).collect()
    };
    let first = fixture.store.keys(at(0)).await.unwrap();
    let rotate = |now, remove_before| fixture.store.rotate_keys(KeyRotation { now, remove_before });
    let second = rotate(at(100), at(0)).await.unwrap();
    for purpose in [KeyPurpose::Token, KeyPurpose::Cursor] {
        let both = names(&second, purpose);
        assert_eq!((both.len(), &both[1..]), (2, &names(&first, purpose)[..]), "newest first");
    }
    assert_eq!(names(&second, KeyPurpose::Secret), names(&first, KeyPurpose::Secret), "never rotated");
    let third = rotate(at(200), at(101)).await.unwrap();
    assert_eq!(names(&third, KeyPurpose::Token)[1..], names(&second, KeyPurpose::Token)[..1]);
    let last = rotate(at(300), at(301)).await.unwrap();
    assert_eq!(names(&last, KeyPurpose::Token).len(), 1, "all others are removed");
    let found = fixture.second.keys(at(300)).await.unwrap();
    assert_eq!(names(&found, KeyPurpose::Token), names(&last, KeyPurpose::Token));
}

pub(crate) async fn a_copy_is_equal_to_its_source(fixture: &Fixture) {
    fixture.import(&[batch("a", 1), batch("b", 2), batch("c", 3)]).await;
    fixture.import(&[batch("a", 9)]).await;
    new_caller(&fixture.store, "Empty", "bs_empty").await;
    fixture.store.keys(at(0)).await.unwrap();
    let file = DatabaseUrl::Sqlite(fixture.folder.path().join("copy.db"));
    let target = Store::open(&file, OpenOptions::FOR_COPY).await.unwrap();
    let copied = copy_database(&fixture.store, &target, &|_, _| ()).await.unwrap();
    let names: Vec<_> = copied.iter().map(|org| (org.name.as_str(), org.batches, org.existed)).collect();
    assert_eq!(names, [("Empty", 0, false), (ORG, 3, false)]);
    assert_eq!(contents(&target).await, contents(&fixture.store).await);
    let again = copy_database(&target, &fixture.store, &|_, _| ()).await.unwrap();
    assert!(again.iter().zip(&copied).all(|(a, b)| a.existed && a.digest == b.digest), "only verified");
    fixture.import(&[batch("b", 7)]).await;
    let in_use = copy_database(&target, &fixture.store, &|_, _| ()).await.unwrap_err().to_string();
    assert!(in_use.contains("differs from the source"), "{in_use}");
}

/// What the copy of a store must have.
async fn contents(store: &Store) -> impl PartialEq + std::fmt::Debug {
    let keys = store.keys(at(0)).await.unwrap();
    let keys: Vec<_> = keys.into_iter().map(|key| (key.kid, key.bytes)).collect();
    let credentials =
        [store.credentials(Some(ORG)).await.unwrap(), store.credentials(Some("Empty")).await.unwrap()];
    let mut overviews = store.org_overviews().await.unwrap();
    overviews.sort_by_key(|overview| overview.id.0);
    (store.orgs().await.unwrap(), overviews, keys, credentials)
}

pub(crate) async fn the_last_use_only_moves_forward(fixture: &Fixture) {
    let client = fixture.caller.client.clone();
    for secs in [50, 40] {
        fixture.store.record_uses(vec![(client.clone(), at(secs))]).await.unwrap();
    }
    let info = fixture.store.credentials(Some(ORG)).await.unwrap().remove(0);
    assert_eq!(info.last_used_at, Some(at(50)));
}

pub(crate) async fn a_backup_is_a_complete_store(fixture: &Fixture) {
    fixture.import(&[batch("a", 1), batch("b", 2)]).await;
    fixture.store.keys(at(0)).await.unwrap();
    let copy = fixture.folder.path().join("copy.db");
    fixture.store.backup(&copy, quiet()).await.unwrap();
    assert!(matches!(fixture.store.backup(&copy, quiet()).await, Err(AdminError::TargetExists(_))));
    let restored = Store::open(&DatabaseUrl::Sqlite(copy), OpenOptions::EXISTING).await.unwrap();
    let version = restored.data_version(&fixture.caller, at(0)).await.unwrap();
    assert_eq!(version, fixture.version().await);
    assert_eq!(restored.org(ORG).await.unwrap().batches, 2);
    assert_eq!(restored.audit(ALL).await.unwrap(), fixture.store.audit(ALL).await.unwrap());
    assert_eq!(restored.doctor(quiet()).await.unwrap().findings, Vec::<String>::new());
}

async fn credential(fixture: &Fixture, client: &ClientId) -> Option<Credential> {
    fixture.store.credential(client, Freshness::Any).await.unwrap()
}

fn quiet() -> Progress {
    Arc::new(|_, _| {})
}
