//! Claims about organisations, credentials, keys, backups and examinations.

use std::sync::Arc;

use batchscan_model::ClientId;
use batchscan_store::{
    AdminError, Caller, Credential, DatabaseUrl, Freshness, KeyPurpose, KeyRotation, NewCredential,
    OpenError, Opening, OrgName, Progress, Rotation, ServiceKey, Store, Which,
};

use crate::fixture::{Fixture, ORG, at, batch, new_credential, whole};

pub(crate) async fn organisations_are_added_renamed_and_removed(fixture: &Fixture) {
    let store = &fixture.store;
    let name = |text: &str| OrgName::new(text).unwrap();
    assert!(matches!(store.add_org(&name(ORG), at(0)).await, Err(AdminError::OrgExists(_))));
    store.add_org(&name("Second"), at(0)).await.unwrap();
    assert!(matches!(store.rename_org("Second", &name(ORG)).await, Err(AdminError::OrgExists(_))));
    store.rename_org("Second", &name("Third")).await.unwrap();
    let names: Vec<String> = store.orgs().await.unwrap().into_iter().map(|org| org.name).collect();
    assert_eq!(names, [ORG, "Third"]);
    store.remove_org("Third").await.unwrap();
    for outcome in [store.remove_org("Third").await, store.rename_org("Third", &name("x")).await] {
        assert!(matches!(outcome, Err(AdminError::NoSuchOrg(_))));
    }
}

pub(crate) async fn a_removed_organisation_takes_all_that_is_its_own(fixture: &Fixture) {
    fixture.import(&[batch("a", 1)]).await;
    fixture.store.remove_org(ORG).await.unwrap();
    assert_eq!(fixture.store.standing(&fixture.tenant, at(0)).await.unwrap(), None);
    assert!(credential(fixture, &fixture.tenant.client).await.is_none());
    let again = crate::fixture::new_tenant(&fixture.store, ORG, "bs_again").await;
    assert_ne!(again.org, fixture.tenant.org, "a number is never given twice");
    assert_eq!(fixture.store.org(ORG).await.unwrap().batches, 0);
}

pub(crate) async fn a_credential_has_two_secrets_at_most(fixture: &Fixture) {
    let client = &fixture.tenant.client;
    for number in 2..5u8 {
        let rotation = Rotation { secret_hash: [number; 32], retire_at: at(100), now: at(10) };
        let ended = fixture.store.rotate_credential(client, rotation).await.unwrap();
        assert_eq!(ended, (number > 2).then(|| at(100)), "what was retiring already is told to have ended");
        let secrets = credential(fixture, client).await.unwrap().secrets;
        let kept: Vec<_> = secrets.iter().map(|secret| (secret.hash[0], secret.retires_at)).collect();
        assert_eq!(kept, [(number - 1, Some(at(100))), (number, None)]);
    }
}

/// Decision 010.
pub(crate) async fn a_revoked_credential_is_dead_for_good(fixture: &Fixture) {
    let (store, client) = (&fixture.store, &fixture.tenant.client);
    store.revoke_credential(client, at(5)).await.unwrap();
    assert_eq!(fixture.neighbour.standing(&fixture.tenant, at(5)).await.unwrap(), None);
    assert!(credential(fixture, client).await.unwrap().secrets.is_empty());
    let rotation = Rotation { secret_hash: [2; 32], retire_at: at(9), now: at(6) };
    assert!(matches!(store.rotate_credential(client, rotation).await, Err(AdminError::Revoked(_))));
    let nobody = ClientId::new("bs_nobody").unwrap();
    assert!(matches!(store.revoke_credential(&nobody, at(5)).await, Err(AdminError::NoSuchCredential(_))));
}

/// Decision 010.
pub(crate) async fn a_credential_dies_in_the_moment_of_its_expiry(fixture: &Fixture) {
    let client = ClientId::new("bs_short").unwrap();
    let new = NewCredential { expires_at: Some(at(100)), ..new_credential(&client) };
    fixture.store.add_credential(ORG, new).await.unwrap();
    let tenant = Caller { org: fixture.tenant.org, client };
    assert!(fixture.store.standing(&tenant, at(99)).await.unwrap().is_some());
    assert!(fixture.store.standing(&tenant, at(100)).await.unwrap().is_none());
}

pub(crate) async fn keys_are_made_once_and_shared(fixture: &Fixture) {
    let (mine, theirs) = tokio::join!(fixture.store.keys(at(0)), fixture.neighbour.keys(at(0)));
    let names = |keys: Vec<ServiceKey>| keys.into_iter().map(|key| (key.kid, key.bytes)).collect::<Vec<_>>();
    let (mine, theirs) = (names(mine.unwrap()), names(theirs.unwrap()));
    assert_eq!(mine, theirs);
    assert_eq!(mine.len(), 3, "one for tokens, one for cursors, one for secrets");
}

/// Decision 042.
pub(crate) async fn new_keys_come_beside_the_old_ones_until_those_are_forgotten(fixture: &Fixture) {
    let names = |keys: &[ServiceKey], purpose| -> Vec<String> {
        keys.iter().filter(|key| key.purpose == purpose).map(|key| key.kid.clone()).collect()
    };
    let first = fixture.store.keys(at(0)).await.unwrap();
    let rotate = |now, forget_before| fixture.store.rotate_keys(KeyRotation { now, forget_before });
    let second = rotate(at(100), at(0)).await.unwrap();
    for purpose in [KeyPurpose::Token, KeyPurpose::Cursor] {
        let both = names(&second, purpose);
        assert_eq!((both.len(), &both[1..]), (2, &names(&first, purpose)[..]), "newest first");
    }
    assert_eq!(names(&second, KeyPurpose::Secret), names(&first, KeyPurpose::Secret), "never rotated");
    let third = rotate(at(200), at(101)).await.unwrap();
    assert_eq!(names(&third, KeyPurpose::Token)[1..], names(&second, KeyPurpose::Token)[..1]);
    let last = rotate(at(300), at(301)).await.unwrap();
    assert_eq!(names(&last, KeyPurpose::Token).len(), 1, "all others are gone at once");
    let found = fixture.neighbour.keys(at(300)).await.unwrap();
    assert_eq!(names(&found, KeyPurpose::Token), names(&last, KeyPurpose::Token));
}

pub(crate) async fn what_is_poured_into_another_store_is_the_same_there(fixture: &Fixture) {
    fixture.import(&[batch("a", 1), batch("b", 2), batch("c", 3)]).await;
    fixture.import(&[batch("a", 9)]).await;
    crate::fixture::new_tenant(&fixture.store, "Empty", "bs_empty").await;
    let keys = fixture.store.keys(at(0)).await.unwrap();
    let file = DatabaseUrl::Sqlite(fixture.folder.path().join("poured.db"));
    let target = Store::open(&file, Opening::FOR_COPY).await.unwrap();
    fixture.store.pour_into(&target, Which::All, &|_| {}).await.unwrap();
    assert!(matches!(Store::open(&file, Opening::OR_MAKE).await, Err(OpenError::UnfinishedCopy(_))));
    target.finish_copy().await.unwrap();
    Store::open(&file, Opening::EXISTING).await.unwrap();
    for org in fixture.store.orgs().await.unwrap() {
        let mine = fixture.store.fingerprint(org.id).await.unwrap().unwrap();
        assert_eq!(target.fingerprint(org.id).await.unwrap(), Some(mine), "{}", org.name);
        assert_eq!(mine.batches, org.batches);
    }
    let kids = |keys: Vec<ServiceKey>| keys.into_iter().map(|key| (key.kid, key.bytes)).collect::<Vec<_>>();
    assert_eq!(kids(target.keys(at(0)).await.unwrap()), kids(keys));
    // And back, into what is there: an organisation is replaced, not doubled.
    target.pour_into(&fixture.store, Which::All, &|_| {}).await.unwrap();
    assert_eq!(fixture.ids(whole(), 10).await, ["b", "c", "a"]);
    let before = fixture.store.fingerprint(fixture.tenant.org).await.unwrap();
    assert_eq!(target.fingerprint(fixture.tenant.org).await.unwrap(), before);
    fixture.import(&[batch("b", 7)]).await;
    assert_ne!(fixture.store.fingerprint(fixture.tenant.org).await.unwrap(), before, "it tells a change");
}

pub(crate) async fn the_last_use_only_moves_forward(fixture: &Fixture) {
    let client = fixture.tenant.client.clone();
    for secs in [50, 40] {
        fixture.store.record_uses(vec![(client.clone(), at(secs))]).await.unwrap();
    }
    let info = fixture.store.credentials(ORG).await.unwrap().remove(0);
    assert_eq!(info.last_used_at, Some(at(50)));
}

pub(crate) async fn a_backup_is_a_whole_store(fixture: &Fixture) {
    fixture.import(&[batch("a", 1), batch("b", 2)]).await;
    fixture.store.keys(at(0)).await.unwrap();
    let copy = fixture.folder.path().join("copy.db");
    fixture.store.backup(&copy, quiet()).await.unwrap();
    assert!(matches!(fixture.store.backup(&copy, quiet()).await, Err(AdminError::TargetExists(_))));
    let restored = Store::open(&DatabaseUrl::Sqlite(copy), Opening::EXISTING).await.unwrap();
    assert_eq!(
        restored.standing(&fixture.tenant, at(0)).await.unwrap(),
        fixture.store.standing(&fixture.tenant, at(0)).await.unwrap()
    );
    assert_eq!(restored.org(ORG).await.unwrap().batches, 2);
    assert_eq!(restored.examine(quiet()).await.unwrap().findings, Vec::<String>::new());
}

pub(crate) async fn an_examination_finds_a_sound_store_well(fixture: &Fixture) {
    fixture.import(&[batch("a", 1), batch("b", 2)]).await;
    let found = fixture.store.examine(quiet()).await.unwrap();
    assert_eq!((found.orgs, found.batches, found.findings.len()), (1, 2, 0));
    assert_eq!(fixture.ids(whole(), 10).await.len(), 2);
}

async fn credential(fixture: &Fixture, client: &ClientId) -> Option<Credential> {
    let known = fixture.store.credential(client, Freshness::Any).await.unwrap();
    assert!(known.is_latest, "there is no standby that could be behind");
    known.credential
}

fn quiet() -> Progress {
    Arc::new(|_, _| {})
}
