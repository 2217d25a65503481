//! Claims about blocks (decision 049).

use batchscan_model::{Batch, DateRange};
use batchscan_store::{Encoding, Page, PageLimit, PageRequest, Resume};
use batchscan_testbed::Random;

use crate::changes::Mirror;
use crate::fixture::{Fixture, ORG, batch, commented, range, request, text_of, whole};
use crate::repairs::{findings, repair};

/// Imports that append, insert, correct and move batches, many of them created at the same time.
pub(crate) async fn a_gzip_page_has_the_text_of_the_plain_one_after_any_import(fixture: &Fixture) {
    let mut random = Random(7);
    for round in 0..12 {
        let batches: Vec<Batch> = (0..random.below(260)).map(|_| random_batch(&mut random, round)).collect();
        fixture.import(&batches).await;
        for _ in 0..6 {
            for range in [whole(), range(random_end(&mut random), random_end(&mut random))] {
                let rows = usize::try_from(1 + random.below(400)).unwrap();
                compare_pages(fixture, range, rows).await;
            }
        }
        for _ in 0..4 {
            let bytes = usize::try_from(2_000 + random.below(40_000)).unwrap();
            compare_all(fixture, range(random_end(&mut random), None), bytes).await;
        }
    }
    assert_eq!(findings(fixture).await, Vec::<String>::new());
}

/// Long batches, so that a limit of bytes is reached before a block.
pub(crate) async fn no_block_is_added_to_a_full_page(fixture: &Fixture) {
    let long = |id: String, created| commented(batch(&id, created), &"x".repeat(3_000));
    let batches: Vec<Batch> = (0..400).map(|number| long(format!("b{number:04}"), number * 10)).collect();
    fixture.import(&batches).await;
    fixture.import(&[long("late1".into(), 1_005), long("late2".into(), 1_015)]).await;
    for start in (0..4_000).step_by(70) {
        compare_all(fixture, range(Some(start), None), 256 * 1024).await;
    }
}

/// As if the row of the organisation had been deleted with SQL.
pub(crate) async fn a_repair_deletes_blocks_without_an_organisation(fixture: &Fixture) {
    fixture.import(&sequence(0, 200)).await;
    for table in ["batch", "block"] {
        fixture.sql(&format!("UPDATE {table} SET org_id = 77"));
    }
    assert_eq!(repair(fixture).await, ["batches without an organisation deleted: 200"]);
    assert_eq!(blocks(fixture), (0, 0));
}

pub(crate) async fn the_newest_batches_stay_uncompressed_until_they_fill_a_block(fixture: &Fixture) {
    fixture.import(&sequence(0, 1_220)).await;
    assert_eq!(blocks(fixture), (24, 1_200));
    fixture.import(&sequence(1_220, 1_249)).await;
    assert_eq!(blocks(fixture), (24, 1_200));
    fixture.import(&sequence(1_249, 1_250)).await;
    assert_eq!(blocks(fixture), (25, 1_250));
}

pub(crate) async fn late_and_single_imports_do_not_leave_small_blocks(fixture: &Fixture) {
    let early: Vec<Batch> = (0..1_000).map(|number| batch(&format!("b{number:04}"), number * 10)).collect();
    fixture.import(&early).await;
    let mut random = Random(3);
    for number in 0..60 {
        let created = i64::try_from(random.below(10_000)).unwrap();
        fixture.import(&[batch(&format!("late{number}"), created)]).await;
        fixture.import(&[batch(&format!("older{number}"), -number)]).await;
    }
    let (blocks, batches) = blocks(fixture);
    assert!(batches >= 1_100 && blocks <= 32, "{blocks} blocks of {batches} batches");
    assert_eq!(findings(fixture).await, Vec::<String>::new());
}

pub(crate) async fn a_wrong_block_is_replaced_and_its_batches_are_sent_again(fixture: &Fixture) {
    fixture.import(&sequence(0, 300)).await;
    let mut mirror = Mirror::default();
    mirror.ids(fixture, 1_000).await;
    // Changes a text, but not its block.
    let update = "UPDATE batch SET json = replace(json, '\"batch_name\":\"n\"', '\"batch_name\":\"m\"') WHERE batch_id = 'b0150'";
    fixture.sql(update);
    let version = fixture.version().await;
    let repaired = repair(fixture).await;
    let expected = "new version; batches marked as changed: 50; compressed blocks replaced: 1";
    assert_eq!(repaired, [format!("\"{ORG}\": {expected}")]);
    assert_ne!(fixture.version().await, version, "cached pages are not used again");
    compare_pages(fixture, whole(), 1_000).await;
    assert_eq!(blocks(fixture), (6, 300));
    mirror.ids(fixture, 1_000).await;
    assert!(mirror.batches["b0150"].contains("\"batch_name\":\"m\""), "read from the wrong block before");
}

pub(crate) async fn a_missing_block_is_harmless(fixture: &Fixture) {
    fixture.import(&sequence(0, 300)).await;
    fixture.sql("DELETE FROM block WHERE last_id = 'b0199'");
    assert_eq!(findings(fixture).await, Vec::<String>::new());
    compare_pages(fixture, whole(), 1_000).await;
    fixture.import(&[commented(batch("b0155", 155), "corrected")]).await;
    assert_eq!(blocks(fixture), (6, 300), "the next import in this range compresses it again");
}

/// A connection is used again, but not in the snapshot of a page that failed.
#[tokio::test]
async fn a_failed_page_leaves_no_open_transaction_on_postgres() {
    let fixture = Fixture::postgres().await;
    fixture.import(&sequence(0, 200)).await;
    fixture.sql("ALTER TABLE block RENAME COLUMN deflated TO hidden");
    let request = PageRequest { encoding: Encoding::Gzip, ..request(100) };
    assert!(fixture.store.page(&fixture.caller, request, |_| None::<()>).await.is_err());
    let open = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    assert_eq!(fixture.sql(open), "0");
    fixture.sql("ALTER TABLE block RENAME COLUMN hidden TO deflated");
    compare_pages(&fixture, whole(), 100).await;
}

/// Compares the pages of both encodings.
async fn compare_pages(fixture: &Fixture, range: DateRange, rows: usize) {
    let limit = PageLimit { rows, bytes: usize::MAX };
    let mut resume = None;
    loop {
        let plain = read(fixture, Encoding::Identity, range, resume.clone(), limit).await;
        let gzip = read(fixture, Encoding::Gzip, range, resume.clone(), limit).await;
        assert_eq!((gzip.rows, &gzip.next), (plain.rows, &plain.next));
        let next = gzip.next.clone();
        assert_eq!(text_of(gzip), text_of(plain), "{range:?} {rows} {resume:?}");
        resume = next;
        if resume.is_none() {
            return;
        }
    }
}

/// Compares all pages together: with a limit of bytes, a gzip page may end with a block.
async fn compare_all(fixture: &Fixture, range: DateRange, bytes: usize) {
    let all = PageLimit { rows: 1_000_000, bytes: usize::MAX };
    let plain = text_of(read(fixture, Encoding::Identity, range, None, all).await);
    let (mut parts, mut resume) = (Vec::new(), None);
    loop {
        let page = read(fixture, Encoding::Gzip, range, resume, PageLimit { rows: usize::MAX, bytes }).await;
        resume = page.next.clone();
        parts.push(text_of(page).trim_matches(['[', ']']).to_owned());
        if resume.is_none() {
            break;
        }
    }
    assert_eq!(format!("[{}]", parts.join(",")), plain, "{range:?} {bytes}");
}

async fn read(
    fixture: &Fixture,
    encoding: Encoding,
    range: DateRange,
    resume: Option<Resume>,
    limit: PageLimit,
) -> Page {
    fixture.read(PageRequest { range, resume, limit, encoding, ..request(0) }).await
}

/// Batches `b0000`, `b0001` and so on, one per microsecond.
fn sequence(from: i64, to: i64) -> Vec<Batch> {
    (from..to).map(|number| batch(&format!("b{number:04}"), number)).collect()
}

/// The number of blocks, and of the batches in them.
fn blocks(fixture: &Fixture) -> (i64, i64) {
    let number = |query| fixture.sql(query).parse().unwrap();
    (
        number("SELECT count(*) FROM block"),
        number("SELECT CAST(coalesce(sum(batches), 0) AS BIGINT) FROM block"),
    )
}

fn random_batch(random: &mut Random, round: u64) -> Batch {
    // Some ids are known already: a correction, which often moves the batch.
    let id = format!("b{}", random.below(300 + round * 150));
    let created = i64::try_from(random.below(40 + round * 30)).unwrap();
    commented(batch(&id, created), &format!("round {round}"))
}

fn random_end(random: &mut Random) -> Option<i64> {
    (random.below(3) > 0).then(|| i64::try_from(random.below(300)).unwrap())
}
