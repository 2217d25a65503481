//! Claims about compressed pages, and what is true of packs in the SQLite file (decision 049).

use batchscan_model::{Batch, DateRange, UtcInstant};
use batchscan_store::{Form, PageLimit, PageText, Walk};
use rusqlite::Connection;

use crate::fixture::{Fixture, batch, commented, text_of, whole};

/// Imports that append, fall in between, correct and move batches, many of them of one instant.
pub(crate) async fn a_compressed_page_has_the_text_of_the_plain_one_whatever_was_imported(fixture: &Fixture) {
    let mut draw = Draw(7);
    for round in 0..12 {
        let batches: Vec<Batch> = (0..draw.below(260)).map(|_| some_batch(&mut draw, round)).collect();
        fixture.import(&batches).await;
        for _ in 0..6 {
            let window = DateRange { start: some_end(&mut draw), end: some_end(&mut draw) };
            for range in [whole(), window] {
                let rows = usize::try_from(1 + draw.below(400)).unwrap();
                same_walk(fixture, range, PageLimit { rows, bytes: usize::MAX }).await;
            }
        }
        for _ in 0..4 {
            let window = DateRange { start: some_end(&mut draw), end: None };
            let bytes = usize::try_from(2_000 + draw.below(40_000)).unwrap();
            same_whole(fixture, window, PageLimit { rows: usize::MAX, bytes }).await;
        }
    }
}

/// Walks in both forms, page by page.
async fn same_walk(fixture: &Fixture, range: DateRange, limit: PageLimit) {
    let mut walk = None;
    loop {
        let plain = fixture.page_as(Form::Plain, range, walk.clone(), limit).await;
        let compressed = fixture.page_as(Form::Deflated, range, walk.clone(), limit).await;
        assert_eq!(text_of(&compressed), text_of(&plain), "{range:?} {limit:?} {walk:?}");
        assert_eq!((compressed.rows, &compressed.next), (plain.rows, &plain.next));
        let since = plain.version.number;
        let Some(after) = compressed.next else { return };
        walk = Some(Walk { after, since, seen: since });
    }
}

/// A limit of bytes is met to the batch or to the pack, so pages differ; all of them together do not.
async fn same_whole(fixture: &Fixture, range: DateRange, limit: PageLimit) {
    let all = PageLimit { rows: 1_000_000, bytes: usize::MAX };
    let plain = text_of(&fixture.page_as(Form::Plain, range, None, all).await);
    let (mut parts, mut walk) = (Vec::new(), None);
    loop {
        let page = fixture.page_as(Form::Deflated, range, walk, limit).await;
        parts.push(text_of(&page));
        let since = page.version.number;
        let Some(after) = page.next else { break };
        walk = Some(Walk { after, since, seen: since });
    }
    assert_eq!(parts.join(","), plain, "{range:?} {limit:?}");
}

/// Batches of some kilobytes, so that a limit of bytes is reached among those before a pack.
#[tokio::test]
async fn no_pack_is_added_to_a_page_that_is_full() {
    let fixture = Fixture::sqlite().await;
    let long = |id: String, created| commented(batch(&id, created), &"x".repeat(3_000));
    let batches: Vec<Batch> = (0..400).map(|number| long(format!("b{number:04}"), number * 10)).collect();
    fixture.import(&batches).await;
    fixture.import(&[long("late1".into(), 1_005), long("late2".into(), 1_015)]).await;
    for start in (0..4_000).step_by(70) {
        let range = DateRange { start: UtcInstant::from_micros(start), end: None };
        same_whole(&fixture, range, PageLimit { rows: usize::MAX, bytes: 256 * 1024 }).await;
    }
}

#[tokio::test]
async fn a_page_of_a_thousand_comes_from_packs_and_an_edge_stays_text() {
    let fixture = Fixture::sqlite().await;
    fixture.import(&in_a_row(1_220)).await;
    let limit = PageLimit { rows: 1_000, bytes: usize::MAX };
    let page = fixture.page_as(Form::Deflated, whole(), None, limit).await;
    assert!(matches!(page.text, PageText::Deflated(_)));
    let few = PageLimit { rows: 20, ..limit };
    let page = fixture.page_as(Form::Deflated, whole(), None, few).await;
    assert!(matches!(page.text, PageText::Plain(_)), "no pack fits, so nothing is compressed here");
    let (packs, packed) = packs(&fixture);
    assert_eq!((packs, packed), (24, 1_200), "what does not fill a pack waits for the next import");
}

#[tokio::test]
async fn batches_that_come_one_by_one_and_late_leave_no_crumbs() {
    let fixture = Fixture::sqlite().await;
    let early: Vec<Batch> = (0..1_000).map(|number| batch(&format!("b{number:04}"), number * 10)).collect();
    fixture.import(&early).await;
    let mut draw = Draw(3);
    for number in 0..60 {
        fixture.import(&[batch(&format!("late{number}"), i64::try_from(draw.below(10_000)).unwrap())]).await;
        fixture.import(&[batch(&format!("older{number}"), -number)]).await;
    }
    let (packs, packed) = packs(&fixture);
    assert!(packed >= 1_100 && packs <= 32, "{packs} packs of {packed} batches");
    let unsound = fixture.store.examine(std::sync::Arc::new(|_, _| ())).await.unwrap().findings;
    assert_eq!(unsound, Vec::<String>::new());
}

#[tokio::test]
async fn the_examination_finds_a_pack_that_is_not_what_its_batches_are() {
    let fixture = Fixture::sqlite().await;
    fixture.import(&in_a_row(300)).await;
    let file = file_of(&fixture);
    // As a person at an SQL prompt might: the text is changed, and the packs are not.
    let name = "UPDATE batch SET json = replace(json, '\"batch_name\":\"n\"', '\"batch_name\":\"m\"') WHERE batch_id = 'b0150'";
    assert_eq!(file.execute(name, []).unwrap(), 1);
    let found = fixture.store.examine(std::sync::Arc::new(|_, _| ())).await.unwrap().findings;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("compressed copy"), "{found:?}");
    assert!(found[0].contains("DELETE FROM pack WHERE id = 4; UPDATE organisation"), "{found:?}");
}

/// As a program does that is of a time before packs, or a person at an SQL prompt: the version is raised, no pack is dropped.
#[tokio::test]
async fn packs_are_left_aside_once_somebody_changed_batches_who_knew_of_none() {
    let fixture = Fixture::sqlite().await;
    fixture.import(&in_a_row(300)).await;
    let file = file_of(&fixture);
    file.execute("DELETE FROM batch WHERE batch_id = 'b0150'", []).unwrap();
    file.execute("UPDATE organisation SET version = version + 1, version_mark = random()", []).unwrap();
    let limit = PageLimit { rows: 1_000, bytes: usize::MAX };
    same_walk(&fixture, whole(), limit).await;
    fixture.import(&[batch("later", 5_000)]).await;
    same_walk(&fixture, whole(), limit).await;
    assert_eq!(packs(&fixture), (6, 300), "the next import packs all of it anew");
    let page = fixture.page_as(Form::Deflated, whole(), None, limit).await;
    assert!(matches!(page.text, PageText::Deflated(_)));
}

/// Batches `b0000`, `b0001` and so on, a microsecond apart.
fn in_a_row(count: i64) -> Vec<Batch> {
    (0..count).map(|number| batch(&format!("b{number:04}"), number)).collect()
}

/// The file behind the store's back.
fn file_of(fixture: &Fixture) -> Connection {
    Connection::open(fixture.folder.path().join("contract.db")).unwrap()
}

/// How many packs there are, and how many batches are in them.
fn packs(fixture: &Fixture) -> (i64, i64) {
    let count = "SELECT count(*), coalesce(sum(batches), 0) FROM pack";
    file_of(fixture).query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

fn some_batch(draw: &mut Draw, round: u64) -> Batch {
    // A known id now and then: a correction, which often moves.
    let id = format!("b{}", draw.below(300 + round * 150));
    let created = i64::try_from(draw.below(40 + round * 30)).unwrap();
    commented(batch(&id, created), &format!("round {round}"))
}

fn some_end(draw: &mut Draw) -> Option<UtcInstant> {
    (draw.below(3) > 0).then(|| UtcInstant::from_micros(i64::try_from(draw.below(300)).unwrap()).unwrap())
}

/// Numbers that look drawn and are the same each time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
