//! Claims about imports: corrections, repeats, and all or nothing.

use batchscan_store::{AdminError, ImportCounts, ImportStep};

use crate::fixture::{Fixture, ORG, at, batch, commented, import, texts_of, whole};

/// Decision 037.
pub(crate) async fn a_known_id_is_corrected_also_when_its_date_moves(fixture: &Fixture) {
    fixture.import(&[batch("a", 1), batch("b", 2)]).await;
    let moved = commented(batch("a", 3), "moved");
    let counts = fixture.import(&[moved.clone(), commented(batch("b", 2), "in place"), batch("c", 4)]).await;
    assert_eq!(counts, ImportCounts { new: 1, corrected: 2, unchanged: 0, repeated: 0 });
    assert_eq!(fixture.ids(whole(), 10).await, ["b", "a", "c"]);
    assert_eq!(texts_of(&fixture.page(whole(), None, 10).await)[1], moved.to_json());
}

/// Decision 040.
pub(crate) async fn the_later_of_two_batches_with_one_id_wins_and_is_counted(fixture: &Fixture) {
    let counts = fixture
        .import(&[batch("a", 1), batch("b", 2), commented(batch("a", 5), "later"), batch("a", 6)])
        .await;
    assert_eq!(counts, ImportCounts { new: 2, corrected: 0, unchanged: 0, repeated: 2 });
    assert_eq!(fixture.ids(whole(), 10).await, ["b", "a"]);
    assert_eq!(texts_of(&fixture.page(whole(), None, 10).await)[1], batch("a", 6).to_json());
}

/// Decision 040: an export that only grows can be imported again and again.
pub(crate) async fn a_batch_that_comes_back_to_what_it_was_is_unchanged(fixture: &Fixture) {
    let export =
        [batch("a", 1), commented(batch("a", 1), "corrected"), commented(batch("a", 2), "and moved")];
    fixture.import(&export).await;
    let before = fixture.store.standing(&fixture.tenant, at(0)).await.unwrap();
    let counts = fixture.import(&export).await;
    assert_eq!(counts, ImportCounts { new: 0, corrected: 0, unchanged: 1, repeated: 2 });
    assert_eq!(fixture.store.standing(&fixture.tenant, at(0)).await.unwrap(), before);
}

pub(crate) async fn without_a_verdict_nothing_is_kept(fixture: &Fixture) {
    let outcome = import(&fixture.store, ORG, &[batch("a", 1)], None).await;
    assert!(matches!(outcome, Err(AdminError::Abandoned)));
    assert_eq!(fixture.ids(whole(), 10).await, Vec::<String>::new());
}

pub(crate) async fn a_dry_run_counts_and_keeps_nothing(fixture: &Fixture) {
    fixture.import(&[batch("a", 1)]).await;
    let tried = [batch("a", 1), batch("b", 2)];
    let counts = import(&fixture.store, ORG, &tried, Some(ImportStep::DryRun)).await.unwrap();
    assert_eq!((counts.new, counts.unchanged), (1, 1));
    assert_eq!(fixture.ids(whole(), 10).await, ["a"]);
}

pub(crate) async fn an_import_for_nobody_is_refused(fixture: &Fixture) {
    let outcome = import(&fixture.store, "Nobody", &[batch("a", 1)], Some(ImportStep::Commit)).await;
    assert!(matches!(outcome, Err(AdminError::NoSuchOrg(name)) if name == "Nobody"));
}
