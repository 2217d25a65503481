//! Claims about data versions: what ETags and caches hang on.

use std::collections::HashSet;

use crate::fixture::{Fixture, at, batch, commented, whole};

pub(crate) async fn every_change_gives_a_version_that_never_was(fixture: &Fixture) {
    let mut seen = HashSet::new();
    let mut last = -1;
    for number in 0..5 {
        let version = fixture.store.standing(&fixture.tenant, at(0)).await.unwrap().unwrap();
        assert!(seen.insert(version) && version.number > last);
        last = version.number;
        fixture.import(&[commented(batch("a", 1), &format!("change {number}"))]).await;
    }
}

pub(crate) async fn an_import_that_changes_nothing_leaves_the_version_alone(fixture: &Fixture) {
    let batches = [batch("a", 1), batch("b", 2)];
    fixture.import(&batches).await;
    let before = fixture.store.standing(&fixture.tenant, at(0)).await.unwrap();
    let counts = fixture.import(&batches).await;
    assert_eq!((counts.new, counts.corrected, counts.unchanged), (0, 0, 2));
    assert_eq!(fixture.store.standing(&fixture.tenant, at(0)).await.unwrap(), before);
}

pub(crate) async fn a_second_handle_sees_a_commit_at_once(fixture: &Fixture) {
    for number in 0..20 {
        fixture.import(&[batch(&format!("b{number}"), number)]).await;
        let mine = fixture.store.standing(&fixture.tenant, at(0)).await.unwrap();
        assert_eq!(fixture.neighbour.standing(&fixture.tenant, at(0)).await.unwrap(), mine);
    }
    assert_eq!(fixture.ids(whole(), 7).await.len(), 20);
}
