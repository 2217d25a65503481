//! A new store with an organisation, and short forms of what the claims need.

use std::io::Read as _;
use std::sync::OnceLock;

use batchscan_model::{Batch, BatchId, ClientId, DateRange, UtcInstant};
use batchscan_store::{
    AdminError, ArrayBody, Caller, DataVersion, DatabaseUrl, Encoding, ImportCounts, ImportEnd, ImportRow,
    ImportSource, ImportStep, NewCredential, OpenOptions, OrgName, Page, PageLimit, PageRequest, PageResult,
    Resume, Store,
};
use batchscan_testbed::{Postgres, Settings};
use flate2::read::GzDecoder;
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::sync::mpsc;

/// The organisation of every fixture.
pub(crate) const ORG: &str = "Green Valley";
/// Last steps of an import.
pub(crate) const COMMIT: Option<ImportStep> = Some(end(false));
pub(crate) const DRY_RUN: Option<ImportStep> = Some(end(true));

const fn end(dry_run: bool) -> ImportStep {
    ImportStep::End(ImportEnd {
        dry_run,
        warnings: 0,
        messages: Vec::new(),
        missing: Vec::new(),
        incomplete: Vec::new(),
        has_number_ids: false,
    })
}

pub(crate) struct Fixture {
    pub(crate) store: Store,
    /// A second handle on the same database, like another process.
    pub(crate) second: Store,
    pub(crate) caller: Caller,
    pub(crate) folder: TempDir,
    /// The name of the database on the server.
    postgres: Option<String>,
}

impl Fixture {
    pub(crate) async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = DatabaseUrl::Sqlite(folder.path().join("contract.db"));
        Self::open(&url, folder, None).await
    }

    pub(crate) async fn postgres() -> Self {
        let server = server();
        let name = server.fresh_database().unwrap();
        let url = server.url(&name).parse().unwrap();
        if std::env::var_os("PARTITIONS").is_some() {
            drop(Store::open(&url, OpenOptions::CREATE).await.unwrap());
            server.sql(&name, include_str!("../../../../deploy/postgresql/partitions.sql")).unwrap();
        }
        Self::open(&url, tempfile::tempdir().unwrap(), Some(name)).await
    }

    async fn open(url: &DatabaseUrl, folder: TempDir, postgres: Option<String>) -> Self {
        let store = Store::open(url, OpenOptions::CREATE).await.unwrap();
        let second = Store::open(url, OpenOptions::EXISTING).await.unwrap();
        let caller = new_caller(&store, ORG, "bs_first").await;
        Self { store, second, caller, folder, postgres }
    }

    /// Runs SQL outside the store. Returns the only value.
    pub(crate) fn sql(&self, statement: &str) -> String {
        match &self.postgres {
            Some(name) => server().sql(name, statement).unwrap(),
            None => {
                let file = Connection::open(self.folder.path().join("contract.db")).unwrap();
                let mut statement = file.prepare(statement).unwrap();
                match statement.column_count() {
                    0 => statement.execute([]).unwrap().to_string(),
                    _ => statement.query_one([], |row| row.get::<_, i64>(0)).unwrap().to_string(),
                }
            }
        }
    }

    /// Another database, of either kind, in which nothing was done yet.
    pub(crate) async fn empty_target(&self, is_postgres: bool) -> Store {
        let url = match is_postgres {
            true => server().url(&server().fresh_database().unwrap()).parse().unwrap(),
            false => DatabaseUrl::Sqlite(self.folder.path().join("target.db")),
        };
        Store::open(&url, OpenOptions::FOR_COPY).await.unwrap()
    }

    pub(crate) async fn import(&self, batches: &[Batch]) -> ImportCounts {
        import(&self.store, ORG, batches, COMMIT).await.unwrap()
    }

    pub(crate) async fn version(&self) -> Option<DataVersion> {
        self.store.data_version(&self.caller, at(0)).await.unwrap()
    }

    /// The ids of all pages of `rows` batches.
    pub(crate) async fn ids(&self, range: DateRange, rows: usize) -> Vec<String> {
        let mut ids = Vec::new();
        let mut resume = None;
        loop {
            let page = self.page(range, resume, rows).await;
            resume = page.next.clone();
            ids.extend(ids_of(page));
            if resume.is_none() {
                return ids;
            }
        }
    }

    /// One plain page.
    pub(crate) async fn page(&self, range: DateRange, resume: Option<Resume>, rows: usize) -> Page {
        self.read(PageRequest { range, resume, ..request(rows) }).await
    }

    pub(crate) async fn read(&self, request: PageRequest) -> Page {
        match self.store.page(&self.caller, request, |_| None::<()>).await.unwrap() {
            PageResult::Read(page) => page,
            other => panic!("no page but {other:?}"),
        }
    }
}

/// A request for the first plain page of everything.
pub(crate) fn request(rows: usize) -> PageRequest {
    PageRequest {
        range: whole(),
        resume: None,
        limit: PageLimit { rows, bytes: usize::MAX },
        body_prefix: "[",
        encoding: Encoding::Identity,
        min_version: 0,
        now: at(0),
    }
}

/// The PostgreSQL server of this test run. Every fixture has its own database.
pub(crate) fn server() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(|| Postgres::start(&Settings::default()).unwrap())
}

/// Adds an organisation with a credential.
pub(crate) async fn new_caller(store: &Store, name: &str, client: &str) -> Caller {
    let org = store.add_org(&OrgName::new(name).unwrap(), at(0)).await.unwrap();
    let client = ClientId::new(client).unwrap();
    store.add_credential(name, new_credential(&client)).await.unwrap();
    Caller { org: org.id, client }
}

pub(crate) fn new_credential(client: &ClientId) -> NewCredential {
    let (client, label) = (client.clone(), "test".into());
    NewCredential { client, label, expires_at: None, secret_hash: [1; 32], now: at(0) }
}

/// Imports batches, then sends the last step or drops the sender.
pub(crate) async fn import(
    store: &Store,
    org: &str,
    batches: &[Batch],
    last: Option<ImportStep>,
) -> Result<ImportCounts, AdminError> {
    let rows = batches.iter().map(ImportRow::from);
    let (steps, receiver) = mpsc::channel(2);
    steps.send(ImportStep::Rows(rows.collect())).await.unwrap();
    if let Some(last) = last {
        steps.send(last).await.unwrap();
    }
    drop(steps);
    store.import(org, ImportSource::default(), receiver, at(8)).await.map(|result| result.counts)
}

/// A batch created so many microseconds after 1970.
pub(crate) fn batch(id: &str, micros: i64) -> Batch {
    let text = r#"{"batch_id":"x","batch_name":"n","batch_creation_date":"1970-01-01T00:00:00Z","number_of_images":1,"warnings":false}"#;
    let mut batch = Batch::from_json(text).unwrap();
    batch.batch_id = BatchId::new(id).unwrap();
    batch.batch_creation_date = UtcInstant::from_micros(micros).unwrap();
    batch
}

pub(crate) fn commented(mut batch: Batch, comment: &str) -> Batch {
    batch.comment = Some(comment.into());
    batch
}

pub(crate) fn at(secs: i64) -> UtcInstant {
    UtcInstant::EPOCH.plus_secs(secs)
}

pub(crate) fn whole() -> DateRange {
    DateRange::default()
}

pub(crate) fn range(start: Option<i64>, end: Option<i64>) -> DateRange {
    let instant = |micros| UtcInstant::from_micros(micros).unwrap();
    DateRange { start: start.map(instant), end: end.map(instant) }
}

pub(crate) fn ids_of(page: Page) -> Vec<String> {
    let id = |text: &String| Batch::from_json(text).unwrap().batch_id.as_str().to_owned();
    texts_of(page).iter().map(id).collect()
}

/// The JSON texts of a page, separated by an independent parser.
pub(crate) fn texts_of(page: Page) -> Vec<String> {
    let parts: Vec<Box<serde_json::value::RawValue>> = serde_json::from_str(&text_of(page)).unwrap();
    parts.iter().map(|part| part.get().to_owned()).collect()
}

/// Everything that an array sends.
pub(crate) async fn bytes_of(body: ArrayBody) -> Vec<u8> {
    let mut bytes = Vec::new();
    match body {
        ArrayBody::Whole(whole) => bytes.extend(whole),
        ArrayBody::Chunks(mut chunks) => {
            while let Some(chunk) = chunks.next(at(0)).await.unwrap() {
                bytes.extend(chunk);
            }
        }
    }
    bytes
}

/// The text of a page as an array.
pub(crate) fn text_of(page: Page) -> String {
    let encoding = page.encoding();
    decode(encoding, &page.finish("]"))
}

pub(crate) fn decode(encoding: Encoding, body: &[u8]) -> String {
    let mut text = String::new();
    match encoding {
        Encoding::Identity => text = String::from_utf8(body.to_vec()).unwrap(),
        Encoding::Gzip => drop(GzDecoder::new(body).read_to_string(&mut text).unwrap()),
    }
    text
}
