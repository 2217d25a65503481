//! Claims about the targets of copies.

use std::sync::atomic::{AtomicBool, Ordering};

use batchscan_store::{ImportFilter, Store, copy_database};

use crate::audit::ALL;
use crate::deliveries::add_token;
use crate::fixture::{Fixture, ORG, at, batch, new_caller};
use crate::operators::session;

/// Into both databases. A target that was opened has its own keys, operator tokens and entries.
pub(crate) async fn a_copy_replaces_what_its_target_had(fixture: &Fixture) {
    let store = &fixture.store;
    fixture.import(&[batch("a", 1)]).await;
    store.keys(at(0)).await.unwrap();
    add_token(store, "op_source", None).await.unwrap();
    store.add_session(session("browser", &fixture.caller.client, false, at(900)), None).await.unwrap();
    for is_postgres in [false, true] {
        let target = fixture.empty_target(is_postgres).await;
        target.keys(at(0)).await.unwrap();
        add_token(&target, "op_target", None).await.unwrap();
        copy_database(store, &target, &|_, _| ()).await.unwrap();
        assert_eq!(target.audit(ALL).await.unwrap(), store.audit(ALL).await.unwrap());
        let tokens = target.operator_tokens().await.unwrap();
        assert_eq!(
            tokens.iter().map(|token| token.credential.client.as_str()).collect::<Vec<_>>(),
            ["op_source"]
        );
        let kids = async |store: &Store| {
            store.keys(at(0)).await.unwrap().into_iter().map(|key| key.kid).collect::<Vec<_>>()
        };
        assert_eq!(kids(&target).await, kids(store).await);
        let imports = async |store: &Store| store.imports(ORG, ImportFilter::default(), 0, 9).await.unwrap();
        assert_eq!(imports(&target).await, imports(store).await);
        assert!(target.sessions(Some(ORG), at(0)).await.unwrap().is_empty(), "everyone signs in again");
        copy_database(store, &target, &|_, _| ()).await.unwrap();
        add_token(&target, "op_later", None).await.unwrap();
        let in_use = copy_database(store, &target, &|_, _| ()).await.unwrap_err().to_string();
        assert!(in_use.contains("its keys, operator tokens or audit log differ"), "{in_use}");
    }
}

pub(crate) async fn a_target_with_the_history_of_others_is_not_overwritten(fixture: &Fixture) {
    let target = fixture.empty_target(false).await;
    new_caller(&target, "Other", "bs_other").await;
    target.remove_org("Other", at(0)).await.unwrap();
    let entries = target.audit(ALL).await.unwrap();
    for (from, to) in [(&fixture.store, &target), (&target, &fixture.store)] {
        let error = copy_database(from, to, &|_, _| ()).await.unwrap_err().to_string();
        assert!(error.contains("the target is in use"), "{error}");
    }
    assert_eq!(target.audit(ALL).await.unwrap(), entries);
}

pub(crate) async fn a_change_of_the_source_during_the_copy_is_noticed(fixture: &Fixture) {
    fixture.import(&[batch("a", 1)]).await;
    let target = fixture.empty_target(false).await;
    for (change, error) in [
        (
            "INSERT INTO organisation (name, created_at) VALUES ('New', 0)",
            "\"New\" was changed in the source",
        ),
        (
            "INSERT INTO audit (id, at, actor, source, action) VALUES (99, 0, '', '', '')",
            "or the audit log were changed",
        ),
    ] {
        let is_changed = AtomicBool::new(false);
        // Called during the copy.
        let on_progress = |_, _| {
            if !is_changed.swap(true, Ordering::SeqCst) {
                fixture.sql(change);
            }
        };
        let failed = copy_database(&fixture.store, &target, &on_progress).await.unwrap_err().to_string();
        assert!(failed.contains(error), "{failed}");
        fixture.import(&[batch("a", 2)]).await;
    }
    copy_database(&fixture.store, &target, &|_, _| ()).await.unwrap();
    assert_eq!(target.audit(ALL).await.unwrap(), fixture.store.audit(ALL).await.unwrap());
}
