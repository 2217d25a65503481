//! Claims about mirrors. How they follow a service is tested with the command.

use batchscan_model::{Batch, Hundredths};
use batchscan_store::{DatabaseUrl, Mirror, MirrorChanges};
use rusqlite::Connection;

use crate::fixture::{batch, server};

fn changes(batches: Vec<Batch>) -> MirrorChanges {
    MirrorChanges { batches, removed: Vec::new(), since: "1".into(), more: false, restarts: false }
}

/// On one thread: what releases the lock runs while the mirror waits for it.
#[tokio::test]
async fn a_mirror_that_waits_for_sqlite_does_not_stop_other_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mirror.db");
    let mut mirror = Mirror::open(&DatabaseUrl::Sqlite(path.clone()), "http://service").await.unwrap();
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN IMMEDIATE").unwrap();
    let release = async { reader.execute_batch("COMMIT").unwrap() };
    let (applied, ()) = tokio::join!(mirror.apply(changes(vec![batch("a", 1)])), release);
    applied.unwrap();
    let rows: i64 = reader.query_row("SELECT count(*) FROM batches", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 1);
}

#[tokio::test]
async fn decimals_of_a_postgresql_mirror_are_exact() {
    let name = server().fresh_database().unwrap();
    let mut mirror = Mirror::open(&server().url(&name).parse().unwrap(), "http://service").await.unwrap();
    let mut full = batch("a", 1);
    full.avg_germination_rate = Hundredths::from_hundredths(9_250);
    mirror.apply(changes(vec![full, batch("b", 2)])).await.unwrap();
    let values =
        "SELECT string_agg(coalesce(avg_germination_rate::text, 'null'), ' ' ORDER BY batch_id) FROM batches";
    assert_eq!(server().sql(&name, values).unwrap(), "92.50 null");
    let kinds = "SELECT DISTINCT data_type, numeric_precision, numeric_scale FROM information_schema.columns
                 WHERE table_name = 'batches' AND column_name LIKE 'avg%'";
    assert_eq!(server().sql(&name, kinds).unwrap(), "numeric|14|2", "as in the view of a service's database");
}
