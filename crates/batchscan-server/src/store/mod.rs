//! Where organisations, credentials and batches are kept. The one place that knows SQL and drivers.
//!
//! # The contract
//!
//! Every store keeps these promises; `tests/store_contract` holds each of them to it.
//!
//! 1. **Tenancy.** Whatever reads batches takes the [`Tenant`] first and sees that organisation's batches alone.
//! 2. **One snapshot.** [`Store::page`] reads the tenant's standing, the data version and the batches in one snapshot.
//! 3. **Order.** Batches come by creation instant, then by the bytes of their id (decision 018).
//! 4. **Exact bytes.** A batch's JSON text comes out as it went in.
//! 5. **Versions.** Every change of an organisation's batches gives it a [`DataVersion`] it never had before, in the
//!    same transaction; an import that changes nothing leaves it alone.
//! 6. **All or nothing.** An import is there whole or not at all, also when the process dies in the middle of it.
//! 7. **A walk never repeats.** A batch whose creation date was corrected after a walk began is not met by that walk
//!    again (decision 025).
//! 8. **Two failures.** What cannot be reached now is [`StoreError::Unreachable`]; all else is [`StoreError::Broken`].

mod sqlite;
mod types;
mod url;

pub use sqlite::SqliteStore;
pub use types::*;
pub use url::{BadDatabaseUrl, DatabaseUrl};

use std::path::Path;

use batchscan_model::{ClientId, UtcInstant};

/// The store of this process: one type for handlers and commands, whatever database is behind it.
#[derive(Clone, Debug)]
pub enum Store {
    /// One file, opened by any number of processes on one machine.
    Sqlite(SqliteStore),
}

impl Store {
    /// Opens the database and brings its schema up to date. `make_if_missing` makes a new one where there is none.
    pub async fn open(url: &DatabaseUrl, make_if_missing: bool) -> Result<Self, OpenError> {
        match url {
            DatabaseUrl::Sqlite(path) => SqliteStore::open(path, make_if_missing).await.map(Store::Sqlite),
        }
    }

    /// One page of the tenant's batches, or what `known` makes of the data version without reading them.
    ///
    /// `known` runs inside the snapshot, before any batch is read: a cache or an ETag that is current by then
    /// spares the reading.
    pub async fn page<T: Send + 'static>(
        &self,
        tenant: &Tenant,
        ask: PageAsk,
        known: impl FnOnce(DataVersion) -> Option<T> + Send + 'static,
    ) -> Result<Answer<T>, StoreError> {
        match self {
            Store::Sqlite(store) => store.page(tenant, ask, known).await,
        }
    }

    /// The organisation's data version; `None` if the tenant's credential is dead.
    pub async fn standing(
        &self,
        tenant: &Tenant,
        now: UtcInstant,
    ) -> Result<Option<DataVersion>, StoreError> {
        match self.page(tenant, PageAsk::nothing(now), Some).await? {
            Answer::Known(version) => Ok(Some(version)),
            Answer::Page(_) | Answer::DeadCredential => Ok(None),
        }
    }

    /// What is needed to judge a client's secret.
    pub async fn credential(&self, client: &ClientId) -> Result<Option<Credential>, StoreError> {
        match self {
            Store::Sqlite(store) => store.credential(client).await,
        }
    }

    /// Notes when credentials were last used. Best effort: nobody waits for it.
    pub async fn record_uses(&self, uses: Vec<(ClientId, UtcInstant)>) -> Result<(), StoreError> {
        match self {
            Store::Sqlite(store) => store.record_uses(uses).await,
        }
    }

    /// The service's keys, made now if there are none.
    pub async fn keys(&self, now: UtcInstant) -> Result<Vec<ServiceKey>, StoreError> {
        match self {
            Store::Sqlite(store) => store.keys(now).await,
        }
    }

    /// `Ok` if the store can answer.
    pub async fn ping(&self) -> Result<(), StoreError> {
        match self {
            Store::Sqlite(store) => store.ping().await,
        }
    }

    /// Adds an organisation.
    pub async fn add_org(&self, name: &OrgName, now: UtcInstant) -> Result<Organisation, AdminError> {
        match self {
            Store::Sqlite(store) => store.add_org(name, now).await,
        }
    }

    /// Whether there is any organisation at all.
    pub async fn has_orgs(&self) -> Result<bool, StoreError> {
        match self {
            Store::Sqlite(store) => store.has_orgs().await,
        }
    }

    /// Every organisation, by name.
    pub async fn orgs(&self) -> Result<Vec<Organisation>, AdminError> {
        match self {
            Store::Sqlite(store) => store.orgs().await,
        }
    }

    /// The organisation of that name.
    pub async fn org(&self, name: &str) -> Result<Organisation, AdminError> {
        match self {
            Store::Sqlite(store) => store.org(name).await,
        }
    }

    /// Gives an organisation another name.
    pub async fn rename_org(&self, name: &str, to: &OrgName) -> Result<(), AdminError> {
        match self {
            Store::Sqlite(store) => store.rename_org(name, to).await,
        }
    }

    /// Removes an organisation with its credentials and batches.
    pub async fn remove_org(&self, name: &str) -> Result<(), AdminError> {
        match self {
            Store::Sqlite(store) => store.remove_org(name).await,
        }
    }

    /// Adds a credential with its first secret.
    pub async fn add_credential(&self, org: &str, new: NewCredential) -> Result<(), AdminError> {
        match self {
            Store::Sqlite(store) => store.add_credential(org, new).await,
        }
    }

    /// The credentials of an organisation, oldest first.
    pub async fn credentials(&self, org: &str) -> Result<Vec<CredentialInfo>, AdminError> {
        match self {
            Store::Sqlite(store) => store.credentials(org).await,
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
        }
    }

    /// Ends a credential.
    pub async fn revoke_credential(&self, client: &ClientId, now: UtcInstant) -> Result<(), AdminError> {
        match self {
            Store::Sqlite(store) => store.revoke_credential(client, now).await,
        }
    }

    /// Imports what comes through `rows` in one transaction, and commits if the sender says so at the end.
    pub async fn import(&self, org: &str, rows: ImportRows) -> Result<ImportCounts, AdminError> {
        match self {
            Store::Sqlite(store) => store.import(org, rows).await,
        }
    }

    /// Writes a copy of the whole database to a new file.
    pub async fn backup(&self, to: &Path, progress: Progress) -> Result<u64, AdminError> {
        match self {
            Store::Sqlite(store) => store.backup(to, progress).await,
        }
    }

    /// Looks for damage: in the database itself, and in every stored batch.
    pub async fn examine(&self, progress: Progress) -> Result<Examination, AdminError> {
        match self {
            Store::Sqlite(store) => store.examine(progress).await,
        }
    }
}
