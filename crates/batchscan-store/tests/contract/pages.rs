//! Claims about reading: order, date ranges, page sizes, encodings, isolation.

use batchscan_model::Batch;
use batchscan_store::{ArrayBody, ArrayRequest, Caller, Encoding, PageLimit, PageRequest, PageResult};

use crate::fixture::{
    Fixture, at, batch, bytes_of, commented, decode, ids_of, new_caller, range, request, text_of, texts_of,
    whole,
};

/// Decision 018.
pub(crate) async fn batches_are_ordered_by_time_then_by_the_bytes_of_their_id(fixture: &Fixture) {
    let ids = ["b", "B", "a", "Ä", "ä", "z", "10", "9"];
    let mut batches: Vec<_> = ids.iter().map(|id| batch(id, 5)).collect();
    batches.extend([batch("late", 6), batch("early", -5)]);
    fixture.import(&batches).await;
    let expected = ["early", "10", "9", "B", "a", "b", "z", "Ä", "ä", "late"];
    assert_eq!(fixture.ids(whole(), 100).await, expected);
}

pub(crate) async fn a_text_is_returned_as_it_was_imported(fixture: &Fixture) {
    let tricky = commented(batch("\"\\ ␀ 💧 \u{2028}", 1), "a\u{0}b\n\"c\" \u{7f} é e\u{301} 🌱");
    let long = commented(batch("long", 2), &"x".repeat(60_000));
    fixture.import(&[tricky.clone(), long.clone()]).await;
    let page = fixture.page(whole(), None, 10).await;
    assert_eq!(texts_of(page), [tricky.to_json(), long.to_json()]);
}

/// Decision 011.
pub(crate) async fn both_ends_of_a_date_range_are_inclusive_to_the_microsecond(fixture: &Fixture) {
    fixture.import(&[batch("a", 10), batch("b", 11), batch("c", 12), batch("d", 13)]).await;
    for (start, end, rows, expected) in [
        (Some(11), Some(12), 9, &["b", "c"][..]),
        (Some(12), None, 9, &["c", "d"]),
        (None, Some(10), 9, &["a"]),
        (Some(13), Some(10), 9, &[]),
        (Some(11), Some(13), 1, &["b", "c", "d"]),
    ] {
        assert_eq!(fixture.ids(range(start, end), rows).await, expected, "{start:?} to {end:?}");
    }
}

pub(crate) async fn pages_of_any_size_add_up_to_the_whole(fixture: &Fixture) {
    let batches: Vec<_> = (0..60).map(|number| batch(&format!("b{number:02}"), number / 7)).collect();
    fixture.import(&batches).await;
    let all = fixture.ids(whole(), 1_000).await;
    assert_eq!(all.len(), 60);
    for rows in [1, 2, 3, 7, 20, 59, 60, 61] {
        assert_eq!(fixture.ids(whole(), rows).await, all, "pages of {rows}");
    }
    let last = fixture.page(whole(), None, 60).await;
    assert_eq!(last.next, None, "no page follows the last batch");
}

pub(crate) async fn a_page_ends_at_its_limit_of_bytes(fixture: &Fixture) {
    let batches = long_batches(9, 1_000);
    fixture.import(&batches).await;
    let limit = PageLimit { rows: usize::MAX, bytes: 2_500 };
    let page = fixture.read(PageRequest { limit, ..request(0) }).await;
    assert_eq!(page.rows, 2);
    assert_eq!(page.next.as_ref().unwrap().after, batches[1].position());
    assert!(text_of(page).starts_with("[{"));
}

/// Decision 020.
pub(crate) async fn an_array_has_all_batches_in_both_encodings(fixture: &Fixture) {
    // Several chunks, one, and none.
    for (count, is_whole) in [(0, true), (2, true), (40, false)] {
        fixture.import(&long_batches(count, 50_000)).await;
        let expected = text_of(fixture.read(request(1_000)).await);
        for encoding in [Encoding::Identity, Encoding::Gzip] {
            let request = ArrayRequest { range: whole(), encoding, min_version: 0, now: at(0) };
            let result = fixture.store.array(&fixture.caller, request, |_| None::<()>).await.unwrap();
            let PageResult::Read(array) = result else { panic!("no array") };
            assert_eq!(matches!(array.body, ArrayBody::Whole(_)), is_whole);
            let body = bytes_of(array.body).await;
            assert!(decode(array.encoding, &body) == expected, "{count} batches, {encoding:?}");
        }
    }
}

pub(crate) async fn a_credential_of_another_organisation_is_invalid(fixture: &Fixture) {
    let other = new_caller(&fixture.store, "Other", "bs_other").await;
    let mixed = Caller { org: fixture.caller.org, client: other.client };
    let result = fixture.store.page(&mixed, request(10), |_| None::<()>).await.unwrap();
    assert!(matches!(result, PageResult::InvalidCredential));
}

pub(crate) async fn skipping_by_version_reads_no_batches(fixture: &Fixture) {
    fixture.import(&[batch("a", 1)]).await;
    let current = fixture.version().await.unwrap();
    let page = || {
        fixture
            .store
            .page(&fixture.caller, request(10), move |version| (version == current).then_some("known"))
    };
    assert!(matches!(page().await.unwrap(), PageResult::Skipped("known")));
    fixture.import(&[batch("b", 2)]).await;
    assert!(matches!(page().await.unwrap(), PageResult::Read(page) if page.rows == 2));
}

/// Decision 025: even if a correction moves a batch ahead.
pub(crate) async fn paging_never_returns_a_batch_again_that_moved(fixture: &Fixture) {
    fixture.import(&[batch("a", 1), batch("b", 2), batch("c", 3), batch("d", 4)]).await;
    let first = fixture.page(whole(), None, 2).await;
    let resume = first.next.clone();
    assert_eq!(ids_of(first), ["a", "b"]);
    fixture.import(&[batch("a", 9), commented(batch("c", 3), "corrected"), batch("new", 8)]).await;
    for encoding in [Encoding::Identity, Encoding::Gzip] {
        let rest = fixture.read(PageRequest { resume: resume.clone(), encoding, ..request(10) }).await;
        assert_eq!(ids_of(rest), ["c", "d", "new"], "a was already returned, and c did not move");
    }
    assert_eq!(fixture.ids(whole(), 10).await, ["b", "c", "d", "new", "a"], "new paging returns it");
}

fn long_batches(count: i64, comment_bytes: usize) -> Vec<Batch> {
    let comment = "x".repeat(comment_bytes);
    (0..count).map(|number| commented(batch(&format!("b{number:04}"), number), &comment)).collect()
}
