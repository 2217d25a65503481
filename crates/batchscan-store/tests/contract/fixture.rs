//! A fresh store with an organisation in it, and short ways to do what the claims need.

use std::io::Read as _;
use std::sync::OnceLock;

use batchscan_model::{Batch, BatchId, ClientId, DateRange, UtcInstant};
use batchscan_store::deflate::whole_gzip;
use batchscan_store::{
    Answer, Caller, DatabaseUrl, Form, ImportCounts, ImportRow, ImportStep, NewCredential, Opening, OrgName,
    Page, PageLimit, PageRequest, PageText, Store, Walk,
};
use batchscan_testbed::{Postgres, Settings};
use flate2::read::GzDecoder;
use tempfile::TempDir;
use tokio::sync::mpsc;

/// The organisation that every fixture has.
pub(crate) const ORG: &str = "Green Valley";

pub(crate) struct Fixture {
    pub(crate) store: Store,
    /// A second handle on the same data, as another process has it.
    pub(crate) neighbour: Store,
    pub(crate) tenant: Caller,
    pub(crate) folder: TempDir,
}

impl Fixture {
    pub(crate) async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = DatabaseUrl::Sqlite(folder.path().join("contract.db"));
        Self::on(&url, folder).await
    }

    pub(crate) async fn postgres() -> Self {
        let server = server();
        let url = server.url(&server.fresh_database().unwrap()).parse().unwrap();
        Self::on(&url, tempfile::tempdir().unwrap()).await
    }

    async fn on(url: &DatabaseUrl, folder: TempDir) -> Self {
        let store = Store::open(url, Opening::OR_MAKE).await.unwrap();
        let neighbour = Store::open(url, Opening::EXISTING).await.unwrap();
        let tenant = new_tenant(&store, ORG, "bs_first").await;
        Self { store, neighbour, tenant, folder }
    }

    /// Imports batches and keeps them.
    pub(crate) async fn import(&self, batches: &[Batch]) -> ImportCounts {
        import(&self.store, ORG, batches, Some(ImportStep::Commit)).await.unwrap()
    }

    /// The ids of a whole walk in pages of `rows`.
    pub(crate) async fn ids(&self, range: DateRange, rows: usize) -> Vec<String> {
        let mut ids = Vec::new();
        let mut walk = None;
        loop {
            let page = self.page(range, walk.clone(), rows).await;
            ids.extend(ids_of(&page));
            let since = walk.map_or(page.version.number, |walk: Walk| walk.since);
            let Some(after) = page.next else { return ids };
            walk = Some(Walk { after, since, seen: page.version.number });
        }
    }

    /// One page of `rows`.
    pub(crate) async fn page(&self, range: DateRange, walk: Option<Walk>, rows: usize) -> Page {
        self.page_as(Form::Plain, range, walk, PageLimit { rows, bytes: usize::MAX }).await
    }

    /// One page in the form asked for.
    pub(crate) async fn page_as(
        &self,
        form: Form,
        range: DateRange,
        walk: Option<Walk>,
        limit: PageLimit,
    ) -> Page {
        let ask = PageRequest { range, walk, limit, opening: "", seen: 0, now: at(0), form };
        match self.store.page(&self.tenant, ask, |_| None::<()>).await.unwrap() {
            Answer::Page(page) => page,
            other => panic!("no page but {other:?}"),
        }
    }
}

/// The PostgreSQL server of this test run; every fixture has a database of its own on it.
pub(crate) fn server() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(|| Postgres::start(&Settings::default()).unwrap())
}

/// Adds an organisation with a credential.
pub(crate) async fn new_tenant(store: &Store, name: &str, client: &str) -> Caller {
    let org = store.add_org(&OrgName::new(name).unwrap(), at(0)).await.unwrap();
    let client = ClientId::new(client).unwrap();
    store.add_credential(name, new_credential(&client)).await.unwrap();
    Caller { org: org.id, client }
}

pub(crate) fn new_credential(client: &ClientId) -> NewCredential {
    NewCredential {
        client: client.clone(),
        label: "test".into(),
        expires_at: None,
        secret_hash: [1; 32],
        now: at(0),
    }
}

/// Imports with a verdict, or lets the sender go away without one.
pub(crate) async fn import(
    store: &Store,
    org: &str,
    batches: &[Batch],
    verdict: Option<ImportStep>,
) -> Result<ImportCounts, batchscan_store::AdminError> {
    let rows = batches.iter().map(ImportRow::from);
    let (steps, receiver) = mpsc::channel(2);
    steps.send(ImportStep::Rows(rows.collect())).await.unwrap();
    if let Some(verdict) = verdict {
        steps.send(verdict).await.unwrap();
    }
    drop(steps);
    store.import(org, receiver).await
}

/// A batch of that id, created so many microseconds after 1970.
pub(crate) fn batch(id: &str, micros: i64) -> Batch {
    let text = r#"{"batch_id":"x","batch_name":"n","batch_creation_date":"1970-01-01T00:00:00Z","number_of_images":1,"warnings":false}"#;
    let mut batch = Batch::from_json(text).unwrap();
    batch.batch_id = BatchId::new(id).unwrap();
    batch.batch_creation_date = UtcInstant::from_micros(micros).unwrap();
    batch
}

/// The same batch with another comment.
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

/// The ids on a page, by its JSON.
pub(crate) fn ids_of(page: &Page) -> Vec<String> {
    texts_of(page).iter().map(|text| Batch::from_json(text).unwrap().batch_id.as_str().to_owned()).collect()
}

/// A page's text, whatever its form.
pub(crate) fn text_of(page: &Page) -> String {
    let text = match &page.text {
        PageText::Plain(text) => text.clone(),
        PageText::Deflated(piece) => {
            let mut text = Vec::new();
            GzDecoder::new(&*whole_gzip(piece)).read_to_end(&mut text).unwrap();
            text
        }
    };
    assert_eq!(page.text.text_bytes(), text.len());
    String::from_utf8(text).unwrap()
}

/// The texts on a page, taken apart by an independent reader of JSON.
pub(crate) fn texts_of(page: &Page) -> Vec<String> {
    let array = format!("[{}]", text_of(page));
    let parts: Vec<Box<serde_json::value::RawValue>> = serde_json::from_str(&array).unwrap();
    parts.iter().map(|part| part.get().to_owned()).collect()
}
