//! The store of this process: one type for handlers and commands, for both databases.

use batchscan_model::{BatchId, ClientId, OrgId, UtcInstant};

use crate::audit::{Actor, AuditEntry, AuditRange, Change};
use crate::changes::{Changes, ChangesRequest};
use crate::credentials::{Credential, CredentialLookup, NewCredential, Rotation};
use crate::doctor::DoctorReport;
use crate::dump::{DumpFilter, DumpReceiver, DumpSender};
use crate::errors::{AdminError, OpenError, StoreError};
use crate::imports::{ImportEntry, ImportResult, ImportSource};
use crate::keys::{KeyRotation, ServiceKey};
use crate::operator_tokens::OperatorToken;
use crate::page::{Caller, DataVersion, OneBatch, OrgState, PageRequest, PageResult};
use crate::postgres::PostgresStore;
use crate::sessions::{Session, SessionResult, SessionUse};
use crate::sqlite::SqliteStore;
use crate::types::{
    Freshness, HostHealth, ImportRows, OpenOptions, OrgName, OrgOverview, Organisation, Progress,
};
use crate::url::DatabaseUrl;

/// An open database.
#[derive(Clone, Debug)]
pub enum Store {
    /// One file, opened by any number of processes on one machine.
    Sqlite(SqliteStore),
    /// A PostgreSQL cluster, used by any number of processes on any number of machines.
    Postgres(PostgresStore),
}

/// Calls the same method of either store.
macro_rules! call {
    ($self:ident.$method:ident($($argument:expr),*)) => {
        match $self {
            Store::Sqlite(store) => store.$method($($argument),*).await,
            Store::Postgres(store) => store.$method($($argument),*).await,
        }
    };
}

impl Store {
    /// Opens the database and migrates its schema.
    pub async fn open(url: &DatabaseUrl, options: OpenOptions) -> Result<Self, OpenError> {
        match url {
            DatabaseUrl::Sqlite(path) => SqliteStore::open(path, options).await.map(Store::Sqlite),
            DatabaseUrl::Postgres(url) => PostgresStore::open(url, options).await.map(Store::Postgres),
        }
    }

    /// One of the caller's batches, not older than a version, in one snapshot; `None` if the credential is invalid.
    pub async fn batch(
        &self,
        caller: &Caller,
        id: &BatchId,
        min_version: i64,
        now: UtcInstant,
    ) -> Result<Option<OneBatch>, StoreError> {
        match self {
            Store::Sqlite(store) => store.batch(caller, id, now).await,
            Store::Postgres(store) => {
                let request = PageRequest { min_version, ..PageRequest::version_only(now) };
                Box::pin(store.batch(caller, id, request)).await
            }
        }
    }

    /// Batches of an organisation as JSON, for operators: no credential is needed.
    pub async fn batches_by_id(
        &self,
        org: OrgId,
        ids: Vec<BatchId>,
    ) -> Result<Vec<Option<String>>, AdminError> {
        call!(self.batches_by_id(org, ids))
    }

    /// One page of the caller's batches.
    ///
    /// `skip` is called with the data version before any batch is read. If it returns something, for example a cached
    /// page, that is the result. It may be called again if a host fails during the read.
    pub async fn page<S: Send + 'static>(
        &self,
        caller: &Caller,
        request: PageRequest,
        skip: impl Fn(DataVersion) -> Option<S> + Send + Sync + 'static,
    ) -> Result<PageResult<S>, StoreError> {
        match self {
            Store::Sqlite(store) => store.page(caller, request, skip).await,
            // Boxed because the future is large, and requests to SQLite would move it, too.
            Store::Postgres(store) => Box::pin(store.page(caller, request, skip)).await,
        }
    }

    /// Changes of the caller's batches. `skip` is called as in [`Store::page`].
    ///
    /// `None` if the position cannot be continued: what the client has seen is not in this database, or removals that it
    /// has not seen were deleted.
    pub async fn changes<S: Send + 'static>(
        &self,
        caller: &Caller,
        request: ChangesRequest,
        skip: impl Fn(DataVersion) -> Option<S> + Send + Sync + 'static,
    ) -> Result<PageResult<S, Option<Changes>>, StoreError> {
        match self {
            Store::Sqlite(store) => store.changes(caller, request, skip).await,
            Store::Postgres(store) => Box::pin(store.changes(caller, request, skip)).await,
        }
    }

    /// The states of several organisations, in any order, without those that do not exist. A standby may return an older
    /// one.
    pub async fn org_states(&self, orgs: Vec<OrgId>) -> Result<Vec<(OrgId, OrgState)>, StoreError> {
        call!(self.org_states(orgs))
    }

    /// Removes batches: all of them, or none if one does not exist. Forgets removals before a time: clients that have
    /// not seen those have to read everything again.
    pub async fn remove_batches(
        &self,
        org: &str,
        ids: Vec<BatchId>,
        prune_before: UtcInstant,
        now: UtcInstant,
    ) -> Result<(), AdminError> {
        call!(self.remove_batches(org, ids, prune_before, now))
    }

    /// The version of the caller's batches; `None` if the credential is invalid.
    pub async fn data_version(
        &self,
        caller: &Caller,
        now: UtcInstant,
    ) -> Result<Option<DataVersion>, StoreError> {
        match self.page(caller, PageRequest::version_only(now), Some).await? {
            PageResult::Skipped(version) => Ok(Some(version)),
            PageResult::Read(_) | PageResult::InvalidCredential => Ok(None),
        }
    }

    /// Looks up a credential for authentication.
    pub async fn credential(
        &self,
        client: &ClientId,
        freshness: Freshness,
    ) -> Result<CredentialLookup, StoreError> {
        match self {
            Store::Sqlite(store) => store.credential(client).await,
            Store::Postgres(store) => Box::pin(store.credential(client, freshness)).await,
        }
    }

    /// Records when credentials were last used. Gives up early if the database is locked.
    pub async fn record_uses(&self, uses: Vec<(ClientId, UtcInstant)>) -> Result<(), StoreError> {
        call!(self.record_uses(uses))
    }

    /// The service's keys, newest first. Creates them if there are none.
    pub async fn keys(&self, now: UtcInstant) -> Result<Vec<ServiceKey>, StoreError> {
        call!(self.keys(now, Freshness::Any))
    }

    /// The same from the primary: a standby may lack a key that is in use.
    pub async fn latest_keys(&self, now: UtcInstant) -> Result<Vec<ServiceKey>, StoreError> {
        call!(self.keys(now, Freshness::Latest))
    }

    /// Creates new keys for tokens and cursors, and removes old ones.
    pub async fn rotate_keys(&self, rotation: KeyRotation) -> Result<Vec<ServiceKey>, AdminError> {
        call!(self.rotate_keys(rotation))
    }

    /// The hosts of a PostgreSQL cluster; none for SQLite.
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

    /// `Ok` if the database responds.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.has_orgs().await.map(drop)
    }

    /// Adds an organisation.
    pub async fn add_org(&self, name: &OrgName, now: UtcInstant) -> Result<Organisation, AdminError> {
        call!(self.add_org(name, now))
    }

    /// Whether there is an organisation.
    pub async fn has_orgs(&self) -> Result<bool, StoreError> {
        call!(self.has_orgs())
    }

    /// All organisations, by name.
    pub async fn orgs(&self) -> Result<Vec<Organisation>, AdminError> {
        call!(self.orgs())
    }

    /// All organisations, without counting anything.
    pub async fn org_overviews(&self) -> Result<Vec<OrgOverview>, StoreError> {
        call!(self.org_overviews())
    }

    /// How many batches an organisation has. Reads an index of all of them.
    pub async fn count_batches(&self, org: OrgId) -> Result<u64, StoreError> {
        call!(self.count_batches(org))
    }

    /// The organisation with this name.
    pub async fn org(&self, name: &str) -> Result<Organisation, AdminError> {
        call!(self.org(name))
    }

    /// Renames an organisation.
    pub async fn rename_org(&self, name: &str, to: &OrgName, now: UtcInstant) -> Result<(), AdminError> {
        call!(self.rename_org(name, to, now))
    }

    /// Removes an organisation with its credentials and batches.
    pub async fn remove_org(&self, name: &str, now: UtcInstant) -> Result<(), AdminError> {
        call!(self.remove_org(name, now))
    }

    /// Adds a credential with its first secret.
    pub async fn add_credential(&self, org: &str, new: NewCredential) -> Result<(), AdminError> {
        call!(self.add_credential(org, new))
    }

    /// The credentials of an organisation, oldest first.
    pub async fn credentials(&self, org: &str) -> Result<Vec<Credential>, AdminError> {
        call!(self.credentials(org))
    }

    /// Adds a secret. The current one retires later; one that was already retiring ends now, and the time until which it
    /// would have worked is returned. Sessions and sign-in links end with the current secret at the latest.
    pub async fn rotate_credential(
        &self,
        client: &ClientId,
        rotation: Rotation,
    ) -> Result<Option<UtcInstant>, AdminError> {
        call!(self.change_credential("credential rotate", client, rotation.now, move |credential| {
            credential.rotate(&rotation)
        }))
    }

    /// Revokes a credential.
    pub async fn revoke_credential(&self, client: &ClientId, now: UtcInstant) -> Result<(), AdminError> {
        call!(
            self.change_credential("credential revoke", client, now, move |credential| credential
                .revoke(now))
        )
    }

    /// Adds a session or a sign-in link. The oldest of the credential ends if it has too many.
    pub async fn add_session(&self, session: Session) -> Result<(), AdminError> {
        call!(self.add_session(session))
    }

    /// Uses a session or a sign-in link, and replaces its secret when that is due.
    pub async fn use_session(&self, request: SessionUse) -> Result<SessionResult, AdminError> {
        match self {
            Store::Sqlite(store) => store.use_session(request).await,
            Store::Postgres(store) => Box::pin(store.use_session(request)).await,
        }
    }

    /// Ends the session with this id and secret; `false` if there is none.
    pub async fn sign_out(&self, id: &ClientId, hash: [u8; 32]) -> Result<bool, AdminError> {
        call!(self.sign_out(id, hash))
    }

    /// The sessions and links of an organisation, oldest first.
    pub async fn sessions(&self, org: &str, now: UtcInstant) -> Result<Vec<Session>, AdminError> {
        call!(self.sessions(org, now))
    }

    /// Ends a session by its id, or all sessions of a client id; how many.
    pub async fn end_sessions(&self, id: &str, now: UtcInstant) -> Result<u64, AdminError> {
        call!(self.end_sessions(id, now))
    }

    /// The id of an organisation.
    pub async fn org_id(&self, name: &str) -> Result<OrgId, AdminError> {
        call!(self.org_id(name))
    }

    /// Imports batches in one transaction.
    pub async fn import(
        &self,
        org: &str,
        source: ImportSource,
        rows: ImportRows,
        now: UtcInstant,
    ) -> Result<ImportResult, AdminError> {
        call!(self.import(org, source, rows, now))
    }

    /// The recorded imports of an organisation with a higher number, at most so many, oldest first.
    pub async fn imports(&self, org: &str, after: i64, limit: i64) -> Result<Vec<ImportEntry>, AdminError> {
        call!(self.imports(org, after, limit))
    }

    /// Adds a token of the operator API.
    pub async fn add_operator_token(&self, token: OperatorToken) -> Result<(), AdminError> {
        call!(self.add_operator_token(token))
    }

    /// The tokens of the operator API, oldest first.
    pub async fn operator_tokens(&self) -> Result<Vec<OperatorToken>, StoreError> {
        call!(self.operator_tokens(None))
    }

    /// The token of the operator API with this id.
    pub async fn operator_token(&self, id: &ClientId) -> Result<Option<OperatorToken>, StoreError> {
        Ok(call!(self.operator_tokens(Some(id.clone())))?.pop())
    }

    /// Revokes a token of the operator API.
    pub async fn revoke_operator_token(&self, id: &ClientId, now: UtcInstant) -> Result<(), AdminError> {
        call!(self.revoke_operator_token(id, now))
    }

    /// The same database, with changes by someone else in the audit log.
    pub fn acting_as(&self, actor: Actor) -> Self {
        match self {
            Store::Sqlite(store) => Store::Sqlite(store.acting_as(actor)),
            Store::Postgres(store) => Store::Postgres(store.acting_as(actor)),
        }
    }

    /// Entries of the audit log, oldest first.
    pub async fn audit(&self, range: AuditRange) -> Result<Vec<AuditEntry>, AdminError> {
        call!(self.audit(range))
    }

    /// Checks the database and every stored batch.
    pub async fn doctor(&self, progress: Progress) -> Result<DoctorReport, AdminError> {
        call!(self.doctor(progress))
    }

    /// Repairs what [`Store::doctor`] found, as far as that is possible, in one transaction. Returns what was done.
    pub async fn repair(&self, now: UtcInstant) -> Result<Vec<String>, AdminError> {
        let repairs = call!(self.repair(now))?;
        Ok(repairs.iter().map(Change::describe).collect())
    }

    /// Sends the content of the database from one snapshot.
    pub(crate) async fn dump(&self, filter: DumpFilter, steps: DumpSender) -> Result<(), AdminError> {
        call!(self.dump(filter, steps))
    }

    /// Loads a dump: each organisation in one transaction, replacing its previous content.
    pub(crate) async fn load(&self, steps: DumpReceiver) -> Result<(), AdminError> {
        call!(self.load(steps))
    }

    /// If the database is an unfinished copy: the [`crate::dump::Shared::source_key`] of its source.
    pub(crate) async fn unfinished_copy(&self) -> Result<Option<String>, AdminError> {
        call!(self.unfinished_copy())
    }

    /// Whether organisations were changed here, or batches are left of one: then the database is not overwritten.
    pub(crate) async fn has_history(&self) -> Result<bool, AdminError> {
        call!(self.has_history())
    }

    /// Marks a copy as complete.
    pub(crate) async fn finish_copy(&self) -> Result<(), AdminError> {
        call!(self.finish_copy())
    }
}
