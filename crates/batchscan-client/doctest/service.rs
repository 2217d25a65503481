// A real service for the documentation's examples and the tests, with a temporary database and a free port.

/// Runs a documentation example against a service with this many batches.
#[allow(dead_code, reason = "only documentation examples use it")]
pub(crate) fn run_example(
    batches: u32,
    example: impl AsyncFnOnce(&Service) -> Result<(), Box<dyn std::error::Error>>,
) {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let service = Service::with_batches(batches).await;
        example(&service).await.unwrap();
    });
}

/// A service that runs until it is dropped.
pub(crate) struct Service {
    pub(crate) url: String,
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
    pub(crate) store: batchscan_store::Store,
    _stop: tokio::sync::oneshot::Sender<()>,
    _folder: tempfile::TempDir,
}

#[allow(dead_code, reason = "each example uses some of it")]
impl Service {
    /// Starts a service with this many batches: one per hour from the start of 2026, every second one with a warning.
    pub(crate) async fn with_batches(count: u32) -> Self {
        let service = Self::configured(batchscan_server::config::Config::default(), None).await;
        service.import(0..count).await;
        service
    }

    /// Starts an empty service.
    pub(crate) async fn configured(
        config: batchscan_server::config::Config,
        tls: Option<batchscan_server::config::TlsFiles>,
    ) -> Self {
        use batchscan_server::{auth, clock::Clock, serve, tls::Tls};
        use batchscan_store as store;
        let folder = tempfile::tempdir().unwrap();
        let database = store::DatabaseUrl::Sqlite(folder.path().join("scans.db"));
        let store = store::Store::open(&database, store::OpenOptions::CREATE).await.unwrap();
        let now = Clock::system().now();
        store.add_org(&store::OrgName::new("Nursery").unwrap(), now).await.unwrap();
        let keys = auth::KeyRing::new(&store.keys(now).await.unwrap(), now).unwrap();
        let issued = store::IdAndSecret::of_client().unwrap();
        let secret_hash = keys.secret.hash(&issued.secret);
        let (client, label) = (issued.id.clone(), String::new());
        let new = store::NewCredential { client, label, expires_at: None, secret_hash, now };
        store.add_credential("Nursery", new).await.unwrap();
        let tls = tls.map(|files| Tls::load(files).unwrap());
        let (listen, drain) = ("127.0.0.1:0".to_owned(), std::time::Duration::from_secs(1));
        let options = serve::ServeOptions { listen, operator_listen: None, tls, drain, config };
        let server = serve::Server::bind(store.clone(), options, Clock::system()).await.unwrap();
        let (_stop, stopped) = tokio::sync::oneshot::channel();
        let url = server.url();
        tokio::spawn(server.run(async move { drop(stopped.await) }));
        let (client_id, client_secret) = (issued.id.to_string(), issued.secret.reveal().to_owned());
        Self { url, client_id, client_secret, store, _stop, _folder: folder }
    }

    /// Imports the batches with these numbers.
    pub(crate) async fn import(&self, numbers: std::ops::Range<u32>) {
        self.import_batches(&numbers.map(Self::batch).collect::<Vec<_>>()).await;
    }

    pub(crate) async fn import_batches(&self, batches: &[batchscan_model::Batch]) {
        use batchscan_store::{ImportEnd, ImportRow, ImportSource, ImportStep};
        let rows = batches.iter().map(ImportRow::from).collect();
        let (steps, received) = tokio::sync::mpsc::channel(2);
        steps.send(ImportStep::Rows(rows)).await.unwrap();
        steps.send(ImportStep::End(ImportEnd::default())).await.unwrap();
        self.store
            .import("Nursery", ImportSource::default(), received, batchscan_model::UtcInstant::EPOCH)
            .await
            .unwrap();
    }

    pub(crate) fn batch(number: u32) -> batchscan_model::Batch {
        let first: i64 = 1_767_225_600_000_000;
        let created =
            batchscan_model::UtcInstant::from_micros(first).unwrap().plus_secs(i64::from(number) * 3_600);
        let crop = ["Tomato", "Pepper", "Lettuce"][number as usize % 3];
        batchscan_model::Batch::from_json(&format!(
            r#"{{"batch_id":"b{number:06}","batch_name":"Tray {number}","batch_creation_date":"{created}",
            "crop_type":"{crop}","number_of_images":12,"avg_germination_rate":"{}.50","warnings":{}}}"#,
            80 + number % 19,
            number.is_multiple_of(2),
        ))
        .unwrap()
    }

    /// A client with valid credentials.
    pub(crate) fn client(&self) -> batchscan_client::ClientBuilder {
        batchscan_client::Client::builder(&self.url).credentials(&self.client_id, &self.client_secret)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn client_id(&self) -> &str {
        &self.client_id
    }

    pub(crate) fn client_secret(&self) -> &str {
        &self.client_secret
    }
}
