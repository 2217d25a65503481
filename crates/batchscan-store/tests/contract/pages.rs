//! Claims about reading: order, windows, pages, tenancy.

use batchscan_model::{DateRange, UtcInstant};
use batchscan_store::{Answer, Caller, Form, PageLimit, PageRequest, Walk};

use crate::fixture::{Fixture, at, batch, commented, ids_of, new_tenant, text_of, texts_of, whole};

/// Decision 018.
pub(crate) async fn batches_come_by_instant_then_by_the_bytes_of_their_id(fixture: &Fixture) {
    let ids = ["b", "B", "a", "Ä", "ä", "z", "10", "9"];
    let mut batches: Vec<_> = ids.iter().map(|id| batch(id, 5)).collect();
    batches.extend([batch("late", 6), batch("early", -5)]);
    fixture.import(&batches).await;
    let expected = ["early", "10", "9", "B", "a", "b", "z", "Ä", "ä", "late"];
    assert_eq!(fixture.ids(whole(), 100).await, expected);
}

pub(crate) async fn a_text_comes_out_as_it_went_in(fixture: &Fixture) {
    let tricky = commented(batch("\"\\ ␀ 💧 \u{2028}", 1), "a\u{0}b\n\"c\" \u{7f} é e\u{301} 🌱");
    let long = commented(batch("long", 2), &"x".repeat(60_000));
    fixture.import(&[tricky.clone(), long.clone()]).await;
    let page = fixture.page(whole(), None, 10).await;
    assert_eq!(texts_of(&page), [tricky.to_json(), long.to_json()]);
}

/// Decision 011.
pub(crate) async fn both_ends_of_a_window_are_inclusive_to_the_microsecond(fixture: &Fixture) {
    fixture.import(&[batch("a", 10), batch("b", 11), batch("c", 12), batch("d", 13)]).await;
    let instant = |micros| UtcInstant::from_micros(micros);
    let window = |start, end| DateRange { start, end };
    assert_eq!(fixture.ids(window(instant(11), instant(12)), 9).await, ["b", "c"]);
    assert_eq!(fixture.ids(window(instant(12), None), 9).await, ["c", "d"]);
    assert_eq!(fixture.ids(window(None, instant(10)), 9).await, ["a"]);
    assert_eq!(fixture.ids(window(instant(13), instant(10)), 9).await, Vec::<String>::new());
    // In a window, too, pages go on where the one before ended.
    assert_eq!(fixture.ids(window(instant(11), instant(13)), 1).await, ["b", "c", "d"]);
}

pub(crate) async fn pages_of_any_size_together_are_the_whole(fixture: &Fixture) {
    let batches: Vec<_> = (0..60).map(|number| batch(&format!("b{number:02}"), number / 7)).collect();
    fixture.import(&batches).await;
    let all = fixture.ids(whole(), 1_000).await;
    assert_eq!(all.len(), 60);
    for rows in [1, 2, 3, 7, 20, 59, 60, 61] {
        assert_eq!(fixture.ids(whole(), rows).await, all, "pages of {rows}");
    }
    let last = fixture.page(whole(), None, 60).await;
    assert_eq!(last.next, None, "a page that ends with the last batch has nothing after it");
}

pub(crate) async fn a_page_ends_at_its_limit_of_bytes(fixture: &Fixture) {
    let batches: Vec<_> =
        (0..9).map(|number| commented(batch(&format!("b{number}"), number), &"x".repeat(1_000))).collect();
    fixture.import(&batches).await;
    let limit = PageLimit { rows: usize::MAX, bytes: 2_500 };
    let ask = PageRequest { limit, opening: "[", ..ask(0) };
    let Answer::Page(page) = fixture.store.page(&fixture.tenant, ask, |_| None::<()>).await.unwrap() else {
        panic!("no page")
    };
    assert_eq!(page.rows, 2);
    assert!(text_of(&page).starts_with("[{"));
    assert_eq!(page.next, Some(batches[1].position()));
}

pub(crate) async fn a_tenant_sees_its_own_batches_alone(fixture: &Fixture) {
    let other = new_tenant(&fixture.store, "Other", "bs_other").await;
    fixture.import(&[batch("same id", 1), batch("mine", 2)]).await;
    crate::fixture::import(
        &fixture.store,
        "Other",
        &[commented(batch("same id", 3), "theirs")],
        Some(commit()),
    )
    .await
    .unwrap();
    assert_eq!(fixture.ids(whole(), 1).await, ["same id", "mine"]);
    let Answer::Page(theirs) = fixture.store.page(&other, ask(10), |_| None::<()>).await.unwrap() else {
        panic!("no page")
    };
    assert_eq!(ids_of(&theirs), ["same id"]);
    assert!(texts_of(&theirs)[0].contains("theirs"));
}

pub(crate) async fn a_credential_of_another_organisation_is_dead(fixture: &Fixture) {
    let other = new_tenant(&fixture.store, "Other", "bs_other").await;
    let mixed = Caller { org: fixture.tenant.org, client: other.client };
    let answer = fixture.store.page(&mixed, ask(10), |_| None::<()>).await.unwrap();
    assert!(matches!(answer, Answer::DeadCredential));
}

pub(crate) async fn what_is_known_of_the_version_spares_the_reading(fixture: &Fixture) {
    fixture.import(&[batch("a", 1)]).await;
    let current = fixture.store.standing(&fixture.tenant, at(0)).await.unwrap().unwrap();
    let answer =
        fixture.store.page(&fixture.tenant, ask(10), move |version| (version == current).then_some("known"));
    assert!(matches!(answer.await.unwrap(), Answer::Known("known")));
    fixture.import(&[batch("b", 2)]).await;
    let answer =
        fixture.store.page(&fixture.tenant, ask(10), move |version| (version == current).then_some("known"));
    assert!(matches!(answer.await.unwrap(), Answer::Page(page) if page.rows == 2));
}

/// Decision 025: no repeats ever, also when a correction carries a batch ahead of the walk.
pub(crate) async fn a_walk_never_meets_a_batch_again_whose_date_moved(fixture: &Fixture) {
    fixture.import(&[batch("a", 1), batch("b", 2), batch("c", 3), batch("d", 4)]).await;
    let first = fixture.page(whole(), None, 2).await;
    assert_eq!(ids_of(&first), ["a", "b"]);
    fixture.import(&[batch("a", 9), commented(batch("c", 3), "corrected in place"), batch("new", 8)]).await;
    let walk =
        Walk { after: first.next.clone().unwrap(), since: first.version.number, seen: first.version.number };
    let rest = fixture.page(whole(), Some(walk), 10).await;
    assert_eq!(ids_of(&rest), ["c", "d", "new"], "a was given out before; c did not move");
    assert_eq!(fixture.ids(whole(), 10).await, ["b", "c", "d", "new", "a"], "a new walk meets it");
}

fn ask(rows: usize) -> PageRequest {
    PageRequest {
        range: whole(),
        walk: None,
        limit: PageLimit { rows, bytes: usize::MAX },
        opening: "",
        seen: 0,
        now: at(0),
        form: Form::Plain,
    }
}

fn commit() -> batchscan_store::ImportStep {
    batchscan_store::ImportStep::Commit
}
