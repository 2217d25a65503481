//! Claims about imports: versions, corrections, repeats, and all or nothing.

use std::collections::HashSet;

use batchscan_formats::read::{IdRules, RepeatedIds};
use batchscan_model::{Batch, Field};
use batchscan_store::{AdminError, ImportCounts, ImportEnd, ImportRow, ImportSource, ImportStep};
use tokio::sync::mpsc;

use crate::fixture::{COMMIT, DRY_RUN, Fixture, ORG, at, batch, commented, import, texts_of, whole};

pub(crate) async fn every_change_creates_a_new_version(fixture: &Fixture) {
    let mut seen = HashSet::new();
    let mut last = -1;
    let corrected = || commented(batch("a", 1), "corrected");
    for change in [batch("a", 1), corrected(), batch("a", 2), batch("new", 3), corrected()] {
        fixture.import(&[change]).await;
        let version = fixture.version().await.unwrap();
        assert!(seen.insert(version) && version.number > last);
        last = version.number;
    }
}

pub(crate) async fn an_import_without_changes_keeps_the_version(fixture: &Fixture) {
    let batches = [batch("a", 1), batch("b", 2)];
    fixture.import(&batches).await;
    let before = fixture.version().await;
    let counts = fixture.import(&batches).await;
    assert_eq!((counts.new, counts.corrected, counts.unchanged), (0, 0, 2));
    assert_eq!(fixture.version().await, before);
}

/// Decision 037.
pub(crate) async fn a_known_id_is_corrected_even_if_its_date_moves(fixture: &Fixture) {
    fixture.import(&[batch("a", 1), batch("b", 2)]).await;
    let moved = commented(batch("a", 3), "moved");
    let counts = fixture.import(&[moved.clone(), commented(batch("b", 2), "in place"), batch("c", 4)]).await;
    assert_eq!(counts, ImportCounts { new: 1, corrected: 2, unchanged: 0, duplicates: 0 });
    assert_eq!(fixture.ids(whole(), 10).await, ["b", "a", "c"]);
    assert_eq!(texts_of(fixture.page(whole(), None, 10).await)[1], moved.to_json());
}

/// Decision 040.
pub(crate) async fn the_last_of_several_batches_with_one_id_wins(fixture: &Fixture) {
    let rows = [batch("a", 1), batch("b", 2), commented(batch("a", 5), "later"), batch("a", 6)];
    let counts = fixture.import(&rows).await;
    assert_eq!(counts, ImportCounts { new: 2, corrected: 0, unchanged: 0, duplicates: 2 });
    assert_eq!(fixture.ids(whole(), 10).await, ["b", "a"]);
    assert_eq!(texts_of(fixture.page(whole(), None, 10).await)[1], batch("a", 6).to_json());
    // Also if the first of them is as the store has it.
    let counts = fixture.import(&[batch("a", 6), commented(batch("a", 6), "later")]).await;
    assert_eq!(counts, ImportCounts { new: 0, corrected: 1, unchanged: 0, duplicates: 1 });
}

/// Imports a file with a warning. Returns the number of warnings and their texts.
async fn import_table(
    fixture: &Fixture,
    id_rules: IdRules,
    batches: &[Batch],
    missing: Vec<Field>,
) -> Result<(u64, Vec<String>), AdminError> {
    import_until(fixture, id_rules, batches, ImportEnd { missing, ..ImportEnd::default() }).await
}

async fn import_until(
    fixture: &Fixture,
    id_rules: IdRules,
    batches: &[Batch],
    end: ImportEnd,
) -> Result<(u64, Vec<String>), AdminError> {
    let (steps, rows) = mpsc::channel(2);
    steps.send(ImportStep::Rows(batches.iter().map(ImportRow::from).collect())).await.unwrap();
    let messages = vec!["first".into()];
    let end = ImportEnd { warnings: 1, messages, has_number_ids: true, ..end };
    steps.send(ImportStep::End(end)).await.unwrap();
    let source = ImportSource { id_rules, ..ImportSource::default() };
    fixture.store.import(ORG, source, rows, at(8)).await.map(|result| (result.warnings, result.messages))
}

fn rules(repeated: RepeatedIds) -> IdRules {
    IdRules { repeated, ..IdRules::default() }
}

fn forced() -> IdRules {
    IdRules { is_forced: true, ..rules(RepeatedIds::Warn) }
}

/// Decision 040: in files that people edit.
pub(crate) async fn an_id_of_several_batches_is_a_warning_or_an_error(fixture: &Fixture) {
    let import = async |rules, batches: &[Batch]| import_table(fixture, rules, batches, Vec::new()).await;
    let template = IdRules { has_template: true, ..IdRules::default() };
    let repeated = "batch_id: \"a\" is the id of several rows; the last one counts".to_owned();
    let rows = [batch("b", 1), batch("a", 2), batch("b", 2), batch("a", 3)];
    let found = import(rules(RepeatedIds::Warn), &rows).await.unwrap();
    assert_eq!(found, (2, vec![repeated, "first".into()]));
    for rules in [rules(RepeatedIds::Reject), template] {
        assert!(matches!(import(rules, &rows).await, Err(AdminError::InvalidIds(_))));
    }
}

/// Decision 040: in files that people edit.
pub(crate) async fn a_file_replaces_other_batches_only_if_it_is_forced(fixture: &Fixture) {
    let import = async |rules, batch: Batch| import_table(fixture, rules, &[batch], Vec::new()).await;
    let named = |name: &str, created| Batch { batch_name: name.into(), ..batch("a", created) };
    fixture.import(&[named("x", 3)]).await;
    // The name or the time of a batch may be corrected. Both at once is probably another batch, as is another day.
    const DAY: i64 = 86_400_000_000;
    for (corrected, is_other) in
        [(named("x", 4), false), (named("y", 4), false), (named("z", 6), true), (named("y", 4 + DAY), true)]
    {
        if is_other {
            for repeated in [RepeatedIds::Warn, RepeatedIds::Reject] {
                let error = import(rules(repeated), corrected.clone()).await.unwrap_err().to_string();
                assert!(error.contains("a different name and time") && error.contains("--force"), "{error}");
            }
        }
        let rules = if is_other { forced() } else { rules(RepeatedIds::Reject) };
        assert_eq!(import(rules, corrected).await.unwrap().0, if is_other { 2 } else { 1 });
        fixture.import(&[named("y", 4)]).await;
    }
    assert_eq!(import(IdRules::default(), named("z", 9 + DAY)).await.unwrap().0, 1);
}

pub(crate) async fn a_file_without_the_column_of_a_stored_value_must_be_forced(fixture: &Fixture) {
    let missing = || vec![Field::CropType, Field::Comment];
    let import = async |rules, batches: &[Batch]| import_table(fixture, rules, batches, missing()).await;
    fixture.import(&[batch("a", 1), commented(batch("b", 2), "a \"comment\":null"), batch("c", 3)]).await;
    let expected = "comment: no column or no values in the file: batches that it corrects lose this value, \"b\" for example";
    let corrected = [batch("a", 2), batch("b", 2), batch("new", 4)];
    let error = import(rules(RepeatedIds::Warn), &corrected).await.unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    let (warnings, messages) = import(forced(), &corrected).await.unwrap();
    assert!(warnings == 2 && messages[0].starts_with(expected), "{messages:?}");
    // Nothing is lost.
    let rows = [batch("b", 3), batch("c", 3), batch("n", 5)];
    assert_eq!(import(rules(RepeatedIds::Warn), &rows).await.unwrap().0, 1);
    let crop = |id| Batch { crop_type: Some("Leek".into()), ..commented(batch(id, 6), "") };
    fixture.import(&[commented(batch("b", 6), "value"), crop("d"), crop("e")]).await;
    assert_eq!(import(IdRules::default(), &[batch("d", 7)]).await.unwrap().0, 1);
    // A row that has the value, from another sheet, loses nothing. Nor does an empty text.
    let rows = [commented(batch("c", 7), "kept"), batch("b", 7), batch("e", 7), batch("d", 8)];
    let (_, messages) = import(forced(), &rows).await.unwrap();
    let expected = "crop_type, comment: no column or no values in the file: batches that it corrects lose these values, \"e\"";
    assert!(messages[0].starts_with(expected), "{messages:?}");
}

pub(crate) async fn an_empty_cell_that_empties_a_stored_value_is_a_warning(fixture: &Fixture) {
    let import = async |rules, batches: &[Batch]| {
        let incomplete = vec![Field::CropType, Field::Comment];
        import_until(fixture, rules, batches, ImportEnd { incomplete, ..ImportEnd::default() }).await
    };
    fixture.import(&[commented(batch("b", 2), "value"), batch("c", 3)]).await;
    let corrected = [batch("b", 2), commented(batch("c", 3), "new")];
    let expected = "comment: empty cells: batches that it corrects lose this value, \"b\" for example";
    let error = import(rules(RepeatedIds::Reject), &corrected).await.unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert_eq!(
        import(rules(RepeatedIds::Warn), &corrected).await.unwrap(),
        (2, vec![expected.into(), "first".into()])
    );
    assert_eq!(import(rules(RepeatedIds::Reject), &corrected).await.unwrap().0, 1);
}

pub(crate) async fn an_id_with_other_leading_zeros_must_be_forced(fixture: &Fixture) {
    fixture.import(&[batch("0007", 1), batch("12", 2), batch("05", 3), batch("5", 4), batch("00x", 5)]).await;
    let import = async |rules, id: &str| import_table(fixture, rules, &[batch(id, 9)], Vec::new()).await;
    for (id, stored) in [("7", "0007"), ("012", "12"), ("000012", "012"), ("00007", "0007")] {
        let expected = format!("\"{id}\" differs from the stored \"{stored}\" only in leading zeros");
        let error = import(rules(RepeatedIds::Warn), id).await.unwrap_err().to_string();
        assert!(error.contains(&expected), "{error}");
        let (warnings, messages) = import(forced(), id).await.unwrap();
        assert!(warnings == 2 && messages[0].contains(&expected), "{messages:?}");
    }
    // Also a correction of a batch with a twin.
    for id in ["70", "x", "0x", "0", "1", "99", "05", "7"] {
        assert_eq!(import(rules(RepeatedIds::Reject), id).await.unwrap().0, 1, "{id}");
    }
    assert_eq!(import(IdRules::default(), "0012").await.unwrap().0, 1);
}

/// Decision 040: an export that only grows can be imported repeatedly.
pub(crate) async fn a_batch_that_is_restored_counts_as_unchanged(fixture: &Fixture) {
    let export =
        [batch("a", 1), commented(batch("a", 1), "corrected"), commented(batch("a", 2), "and moved")];
    fixture.import(&export).await;
    let before = fixture.version().await;
    let counts = fixture.import(&export).await;
    assert_eq!(counts, ImportCounts { new: 0, corrected: 0, unchanged: 1, duplicates: 2 });
    assert_eq!(fixture.version().await, before);
}

pub(crate) async fn a_dry_run_counts_and_keeps_nothing(fixture: &Fixture) {
    fixture.import(&[batch("a", 1)]).await;
    let rows = [batch("a", 1), batch("b", 2)];
    let counts = import(&fixture.store, ORG, &rows, DRY_RUN).await.unwrap();
    assert_eq!((counts.new, counts.unchanged), (1, 1));
    assert_eq!(fixture.ids(whole(), 10).await, ["a"]);
}

pub(crate) async fn an_import_for_an_unknown_organisation_fails(fixture: &Fixture) {
    let result = import(&fixture.store, "Unknown", &[batch("a", 1)], COMMIT).await;
    assert!(matches!(result, Err(AdminError::OrgNotFound { name, .. }) if name == "Unknown"));
}
