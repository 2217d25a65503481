//! Claims about the SQLite file: creation, migration, permissions, and the view for SQL users.

use std::os::unix::fs::PermissionsExt;

use batchscan_model::Field;
use batchscan_store::{DataVersion, DatabaseUrl, OpenOptions, PageResult, Store};
use rusqlite::Connection;

use crate::fixture::{COMMIT, Fixture, ORG, at, batch, commented, import, request};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_concurrent_opens_migrate_a_new_file_once() {
    let folder = tempfile::tempdir().unwrap();
    let url = DatabaseUrl::Sqlite(folder.path().join("new.db"));
    let opening: Vec<_> = (0..10)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { Store::open(&url, OpenOptions::CREATE).await.map(|_| ()) })
        })
        .collect();
    for opened in opening {
        opened.await.unwrap().unwrap();
    }
    let file = Connection::open(folder.path().join("new.db")).unwrap();
    let applied: i64 = file.query_row("SELECT count(*) FROM schema_history", [], |row| row.get(0)).unwrap();
    assert_eq!(applied, 1);
}

#[tokio::test]
async fn only_the_owner_can_read_the_file_and_its_log() {
    let fixture = Fixture::sqlite().await;
    fixture.import(&[batch("a", 1)]).await;
    for name in ["contract.db", "contract.db-wal", "contract.db-shm"] {
        let mode = std::fs::metadata(fixture.folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

/// The batches would be lost when the process ends.
#[tokio::test]
async fn nothing_is_imported_into_a_file_that_was_removed() {
    let fixture = Fixture::sqlite().await;
    fixture.import(&[batch("a", 1)]).await;
    std::fs::remove_file(fixture.folder.path().join("contract.db")).unwrap();
    let error = import(&fixture.store, ORG, &[batch("b", 2)], COMMIT).await.unwrap_err().to_string();
    assert!(error.contains("moved or replaced"), "{error}");
}

/// Such a request waits for no slow disk.
#[tokio::test]
async fn an_unchanged_version_is_found_without_a_reader_soon_after_each_change() {
    let fixture = Fixture::sqlite().await;
    let first = fixture.version().await;
    assert!(!is_found_by_reader(&fixture, first).await);
    fixture.import(&[batch("a", 1)]).await;
    let second = fixture.second.data_version(&fixture.caller, at(0)).await.unwrap();
    for expected in [true, true, false, false] {
        assert_eq!(is_found_by_reader(&fixture, second).await, expected);
    }
}

async fn is_found_by_reader(fixture: &Fixture, cached: Option<DataVersion>) -> bool {
    let is_reader = || std::thread::current().name() == Some("sqlite-reader");
    let skip = move |version| (Some(version) == cached).then(is_reader);
    match fixture.store.page(&fixture.caller, request(1), skip).await.unwrap() {
        PageResult::Skipped(is_by_reader) => is_by_reader,
        other => panic!("not cached but {other:?}"),
    }
}

#[tokio::test]
async fn the_view_has_the_eighteen_typed_fields() {
    let fixture = Fixture::sqlite().await;
    let mut full = commented(batch("a", 1_500_000), "fine");
    full.avg_germination_rate = batchscan_model::Hundredths::from_hundredths(9_250);
    fixture.import(&[full]).await;
    let file = Connection::open(fixture.folder.path().join("contract.db")).unwrap();
    let view = file.prepare("SELECT * FROM batches").unwrap();
    let columns: Vec<&str> = view.column_names().skip(1).collect();
    assert_eq!(columns, Field::ALL.map(Field::name));
    let typed = "SELECT organisation, batch_creation_date, avg_germination_rate + 0.5, warnings, comment, crop_type FROM batches";
    let row = file.query_row(typed, [], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
    });
    let row: (String, String, f64, bool, String, Option<String>) = row.unwrap();
    let expected = ("Green Valley".into(), "1970-01-01T00:00:01.5Z".into(), 93.0, false, "fine".into(), None);
    assert_eq!(row, expected);
}
