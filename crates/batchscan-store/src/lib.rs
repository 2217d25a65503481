//! Where organisations, credentials and batches are kept. The one place that knows SQL and drivers.
//!
//! # The contract
//!
//! Every store keeps these promises; `tests/store_contract` holds each of them to it.
//!
//! 1. **Tenancy.** Whatever reads batches takes the [`Caller`] first and sees that organisation's batches alone.
//! 2. **One snapshot.** [`Store::page`] reads the tenant's standing, the data version and the batches in one snapshot.
//! 3. **Order.** Batches come by creation instant, then by the bytes of their id (decision 018).
//! 4. **Exact bytes.** A batch's JSON text comes out as it went in.
//! 5. **Versions.** Every change of an organisation's batches gives it a [`DataVersion`] it never had before, in the
//!    same transaction; an import that changes nothing leaves it alone.
//! 6. **All or nothing.** An import is there whole or not at all, also when the process dies in the middle of it.
//! 7. **A walk never repeats.** A batch whose creation date was corrected after a walk began is not met by that walk
//!    again (decision 025).
//! 8. **Never back in time.** A page is not older than what the caller has seen ([`PageRequest::seen`]), whichever host
//!    it is read from.
//! 9. **Two failures.** What cannot be reached now is [`StoreError::Unreachable`]; all else is [`StoreError::Broken`].

mod backup;
pub mod copy;
pub mod deflate;
mod dump;
mod errors;
mod examine;
mod filling;
mod import_file;
mod keys;
mod postgres;
mod sqlite;
mod types;
mod url;

pub use dump::{
    BatchRecord, CredentialRecord, DumpSource, DumpStep, DumpSteps, Fingerprint, MovedRecord, OrgRecord,
    SecretRecord, Shared, Which,
};
pub use errors::{AdminError, OpenError, StoreError};
pub use import_file::{ImportError, import_file};
pub use postgres::{BadPostgresUrl, PostgresStore, PostgresUrl};
pub use sqlite::SqliteStore;
pub use types::*;
pub use url::{BadDatabaseUrl, DatabaseUrl};

use std::path::Path;

use batchscan_model::{ClientId, OrgId, UtcInstant};
use tokio::sync::mpsc;

use dump::Fingerprinting;

/// Steps of a dump on their way: with this the memory of a copy is bounded.
const DUMP_STEPS_WAITING_MAX: usize = 4;

/// The store of this process: one type for handlers and commands, whatever database is behind it.
#[derive(Clone, Debug)]
pub enum Store {
    /// One file, opened by any number of processes on one machine.
    Sqlite(SqliteStore),
    /// A PostgreSQL cluster, opened by any number of processes on any number of machines.
    Postgres(PostgresStore),
}

impl Store {
    /// Opens the database and brings its schema up to date.
    pub async fn open(url: &DatabaseUrl, opening: Opening) -> Result<Self, OpenError> {
        match url {
            DatabaseUrl::Sqlite(path) => SqliteStore::open(path, opening).await.map(Store::Sqlite),
            DatabaseUrl::Postgres(url) => PostgresStore::open(url, opening).await.map(Store::Postgres),
        }
    }

    /// One page of the tenant's batches, or what `known` makes of the data version without reading them.
    ///
    /// `known` runs before any batch is read: a cache or an ETag that is current by then spares the reading. It may
    /// run again where a host goes away in the middle of the answer.
    pub async fn page<T: Send + 'static>(
        &self,
        tenant: &Caller,
        ask: PageRequest,
        known: impl Fn(DataVersion) -> Option<T> + Send + Sync + 'static,
    ) -> Result<Answer<T>, StoreError> {
        match self {
            Store::Sqlite(store) => store.page(tenant, ask, known).await,
            // Boxed, as below: what waits for a network is large, and would be moved about with every request to SQLite, too.
            Store::Postgres(store) => Box::pin(store.page(tenant, ask, known)).await,
        }
    }

    /// The organisation's data version; `None` if the tenant's credential is dead.
    pub async fn standing(
        &self,
        tenant: &Caller,
        now: UtcInstant,
    ) -> Result<Option<DataVersion>, StoreError> {
        match self.page(tenant, PageRequest::nothing(now), Some).await? {
            Answer::Known(version) => Ok(Some(version)),
            Answer::Page(_) | Answer::DeadCredential => Ok(None),
        }
    }

    /// What is needed to judge a client's secret.
    pub async fn credential(
        &self,
        client: &ClientId,
        freshness: Freshness,
    ) -> Result<KnownClient, StoreError> {
        match self {
            Store::Sqlite(store) => store.credential(client).await,
            Store::Postgres(store) => Box::pin(store.credential(client, freshness)).await,
        }
    }

    /// Notes when credentials were last used. Best effort: nobody waits for it.
    pub async fn record_uses(&self, uses: Vec<(ClientId, UtcInstant)>) -> Result<(), StoreError> {
        match self {
            Store::Sqlite(store) => store.record_uses(uses).await,
            Store::Postgres(store) => store.record_uses(uses).await,
        }
    }

    /// The service's keys, made now if there are none.
    pub async fn keys(&self, now: UtcInstant) -> Result<Vec<ServiceKey>, StoreError> {
        match self {
            Store::Sqlite(store) => store.keys(now).await,
            Store::Postgres(store) => store.keys(now, Freshness::Any).await,
        }
    }

    /// The same by the last word alone: a standby could take a key away that is in use.
    pub async fn latest_keys(&self, now: UtcInstant) -> Result<Vec<ServiceKey>, StoreError> {
        match self {
            Store::Sqlite(store) => store.keys(now).await,
            Store::Postgres(store) => store.keys(now, Freshness::Latest).await,
        }
    }

    /// Makes new keys for tokens and cursors, and forgets old ones.
    pub async fn rotate_keys(&self, rotation: KeyRotation) -> Result<Vec<ServiceKey>, AdminError> {
        match self {
            Store::Sqlite(store) => store.rotate_keys(rotation).await,
            Store::Postgres(store) => store.rotate_keys(rotation).await,
        }
    }

    /// Whether it keeps batches compressed as well (decision 049).
    pub fn has_packs(&self) -> bool {
        matches!(self, Store::Sqlite(_))
    }

    /// The hosts of the database; none where it is a file.
    pub fn hosts(&self) -> Vec<HostHealth> {
        match self {
            Store::Sqlite(_) => Vec::new(),
            Store::Postgres(store) => store.health(),
        }
    }

    /// Reads that were repeated on another host or connection.
    pub fn retries(&self) -> u64 {
        match self {
            Store::Sqlite(_) => 0,
            Store::Postgres(store) => store.retries(),
        }
    }

    /// `Ok` if the store can answer.
    pub async fn ping(&self) -> Result<(), StoreError> {
        match self {
            Store::Sqlite(store) => store.ping().await,
            Store::Postgres(store) => store.ping().await,
        }
    }

    /// Adds an organisation.
    pub async fn add_org(&self, name: &OrgName, now: UtcInstant) -> Result<Organisation, AdminError> {
        match self {
            Store::Sqlite(store) => store.add_org(name, now).await,
            Store::Postgres(store) => store.add_org(name, now).await,
        }
    }

    /// Whether there is any organisation at all.
    pub async fn has_orgs(&self) -> Result<bool, StoreError> {
        match self {
            Store::Sqlite(store) => store.has_orgs().await,
            Store::Postgres(store) => store.has_orgs().await,
        }
    }

    /// Every organisation, by name.
    pub async fn orgs(&self) -> Result<Vec<Organisation>, AdminError> {
        match self {
            Store::Sqlite(store) => store.orgs().await,
            Store::Postgres(store) => store.orgs().await,
        }
    }

    /// The organisation of that name.
    pub async fn org(&self, name: &str) -> Result<Organisation, AdminError> {
        match self {
            Store::Sqlite(store) => store.org(name).await,
            Store::Postgres(store) => store.org(name).await,
        }
    }

    /// Gives an organisation another name.
    pub async fn rename_org(&self, name: &str, to: &OrgName) -> Result<(), AdminError> {
        match self {
            Store::Sqlite(store) => store.rename_org(name, to).await,
            Store::Postgres(store) => store.rename_org(name, to).await,
        }
    }

    /// Removes an organisation with its credentials and batches.
    pub async fn remove_org(&self, name: &str) -> Result<(), AdminError> {
        match self {
            Store::Sqlite(store) => store.remove_org(name).await,
            Store::Postgres(store) => store.remove_org(name).await,
        }
    }

    /// Adds a credential with its first secret.
    pub async fn add_credential(&self, org: &str, new: NewCredential) -> Result<(), AdminError> {
        match self {
            Store::Sqlite(store) => store.add_credential(org, new).await,
            Store::Postgres(store) => store.add_credential(org, new).await,
        }
    }

    /// The credentials of an organisation, oldest first.
    pub async fn credentials(&self, org: &str) -> Result<Vec<CredentialInfo>, AdminError> {
        match self {
            Store::Sqlite(store) => store.credentials(org).await,
            Store::Postgres(store) => store.credentials(org).await,
        }
    }

    /// Adds a secret; the one before it retires later, and one that was retiring already ends now. Gives the instant
    /// until which that one was to work.
    pub async fn rotate_credential(
        &self,
        client: &ClientId,
        rotation: Rotation,
    ) -> Result<Option<UtcInstant>, AdminError> {
        match self {
            Store::Sqlite(store) => store.rotate_credential(client, rotation).await,
            Store::Postgres(store) => store.rotate_credential(client, rotation).await,
        }
    }

    /// Ends a credential.
    pub async fn revoke_credential(&self, client: &ClientId, now: UtcInstant) -> Result<(), AdminError> {
        match self {
            Store::Sqlite(store) => store.revoke_credential(client, now).await,
            Store::Postgres(store) => store.revoke_credential(client, now).await,
        }
    }

    /// Imports what comes through `rows` in one transaction, and commits if the sender says so at the end.
    pub async fn import(&self, org: &str, rows: ImportRows) -> Result<ImportCounts, AdminError> {
        match self {
            Store::Sqlite(store) => store.import(org, rows).await,
            Store::Postgres(store) => store.import(org, rows).await,
        }
    }

    /// Sends what the database holds, in one snapshot, as long as somebody takes it.
    pub async fn dump(&self, which: Which, steps: DumpSteps) -> Result<(), AdminError> {
        match self {
            Store::Sqlite(store) => store.dump(which, steps).await,
            Store::Postgres(store) => store.dump(which, steps).await,
        }
    }

    /// Takes what another store dumps: each organisation in one transaction, in place of what was there of it.
    pub async fn load(&self, source: DumpSource) -> Result<(), AdminError> {
        match self {
            Store::Sqlite(store) => store.load(source).await,
            Store::Postgres(store) => store.load(source).await,
        }
    }

    /// Dumps into another store, which counts as an unfinished copy until [`Store::finish_copy`]. `on_batches` is told
    /// how many have gone over.
    pub async fn pour_into(
        &self,
        target: &Store,
        which: Which,
        on_batches: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<(), AdminError> {
        let (dumping, mut dumped) = mpsc::channel(DUMP_STEPS_WAITING_MAX);
        let (loading, source) = mpsc::channel(DUMP_STEPS_WAITING_MAX);
        let passing_on = async move {
            let mut done = 0;
            while let Some(step) = dumped.recv().await {
                if let DumpStep::Batches(batches) = &step {
                    done += batches.len() as u64;
                    on_batches(done);
                }
                if loading.send(step).await.is_err() {
                    break;
                }
            }
        };
        let (dumped, (), loaded) = tokio::join!(self.dump(which, dumping), passing_on, target.load(source));
        match (dumped, loaded) {
            // The target failed first, and it says why.
            (Err(AdminError::Abandoned), loaded) => loaded,
            (dumped, loaded) => dumped.and(loaded),
        }
    }

    /// Whose copy the database is, if that was not finished: the [`Shared::source_key`] of its source.
    pub async fn unfinished_copy(&self) -> Result<Option<String>, AdminError> {
        match self {
            Store::Sqlite(store) => store.unfinished_copy().await,
            Store::Postgres(store) => store.unfinished_copy().await,
        }
    }

    /// Says that what was poured into the database is whole.
    pub async fn finish_copy(&self) -> Result<(), AdminError> {
        match self {
            Store::Sqlite(store) => store.finish_copy().await,
            Store::Postgres(store) => store.finish_copy().await,
        }
    }

    /// What all organisations of the database share, as it is now.
    pub async fn shared(&self) -> Result<Option<Shared>, AdminError> {
        let (steps, mut source) = mpsc::channel(DUMP_STEPS_WAITING_MAX);
        let (dumped, first) = tokio::join!(self.dump(Which::These(Vec::new()), steps), source.recv());
        dumped.map(|()| match first {
            Some(DumpStep::Shared(shared)) => Some(shared),
            _ => None,
        })
    }

    /// The fingerprint of an organisation, read to the last batch; `None` if there is no such organisation.
    pub async fn fingerprint(&self, org: OrgId) -> Result<Option<Fingerprint>, AdminError> {
        let (steps, mut source) = mpsc::channel(DUMP_STEPS_WAITING_MAX);
        let taking = async {
            let mut taken = None;
            while let Some(step) = source.recv().await {
                match step {
                    DumpStep::Org(org) => taken.get_or_insert_with(Fingerprinting::new).org(&org),
                    DumpStep::Batches(batches) => taken.iter_mut().for_each(|print| print.batches(&batches)),
                    DumpStep::Moved(moved) => taken.iter_mut().for_each(|print| print.moved(&moved)),
                    DumpStep::Shared(_) | DumpStep::OrgEnd => {}
                }
            }
            taken.map(Fingerprinting::finish)
        };
        let (dumped, print) = tokio::join!(self.dump(Which::These(vec![org]), steps), taking);
        dumped.map(|()| print)
    }

    /// Writes a copy of the whole database to a new SQLite file. Gives its size in bytes.
    pub async fn backup(&self, to: &Path, progress: Progress) -> Result<u64, AdminError> {
        match self {
            Store::Sqlite(store) => store.backup(to, progress).await,
            Store::Postgres(_) => backup::into_file(self, to, progress).await,
        }
    }

    /// Looks for damage: in the database itself, and in every stored batch.
    pub async fn examine(&self, progress: Progress) -> Result<Examination, AdminError> {
        match self {
            Store::Sqlite(store) => store.examine(progress).await,
            Store::Postgres(store) => store.examine(progress).await,
        }
    }
}
