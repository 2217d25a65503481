//! The hot path: the standing in one round trip; if nothing is known of its version, the page in a second one, with
//! the standing of the same snapshot.

use std::pin::pin;

use batchscan_model::UtcInstant;
use deadpool_postgres::ClientWrapper;
use futures_util::TryStreamExt;
use futures_util::future::try_join4;
use tokio::sync::Semaphore;
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Error, RowStream, Statement};

use super::PostgresStore;
use super::failure::Failure;
use crate::filling::PageBuilder;
use crate::{Answer, Caller, DataVersion, Freshness, PageLimit, PageRequest, StoreError};

/// What a batch takes at least: a chunk that is limited in bytes asks for no more rows than could fill it.
const BATCH_BYTES_SMALL: usize = 512;

/// A statement, and the types of what it is asked with.
struct Ask {
    sql: &'static str,
    types: &'static [Type],
}

/// A statement that can be sent.
enum Ready {
    Named(Statement),
    Unnamed(&'static Ask),
}

/// One row in any case: it also tells whether this host's word is the last one.
static STANDING: Ask = Ask {
    sql: "SELECT pg_is_in_recovery(), o.version, o.version_mark, o.moved_version,
                 c.revoked_at IS NOT NULL, c.expires_at
          FROM (SELECT) AS one
          LEFT JOIN credential c ON c.client_id = $1 AND c.org_id = $2
          LEFT JOIN organisation o ON o.id = c.org_id",
    types: &[Type::TEXT, Type::INT8],
};

/// Batches after a place in the order. No id is empty, so that an instant and no id is the place before all of it.
static BATCHES: Ask = Ask {
    sql: "SELECT json FROM batch
          WHERE org_id = $1 AND (created_at, batch_id) > ($2, $3) AND created_at <= $4
          ORDER BY created_at, batch_id LIMIT $5",
    types: &[Type::INT8, Type::INT8, Type::TEXT, Type::INT8, Type::INT8],
};

/// The same for the rare walk during which a batch changed its place: those it may have met before are left out.
static BATCHES_WITHOUT_MOVED: Ask = Ask {
    sql: "SELECT json FROM batch
          WHERE org_id = $1 AND (created_at, batch_id) > ($2, $3) AND created_at <= $4
            AND NOT EXISTS (SELECT 1 FROM moved_batch m
                            WHERE m.org_id = $1 AND m.batch_id = batch.batch_id AND m.version > $6)
          ORDER BY created_at, batch_id LIMIT $5",
    types: &[Type::INT8, Type::INT8, Type::TEXT, Type::INT8, Type::INT8, Type::INT8],
};

impl PostgresStore {
    pub(crate) async fn page<T: Send + 'static>(
        &self,
        tenant: &Caller,
        ask: PageRequest,
        known: impl Fn(DataVersion) -> Option<T> + Send + Sync + 'static,
    ) -> Result<Answer<T>, StoreError> {
        let mut route = self.hosts.route(Freshness::Any);
        loop {
            let lease = route.next().await?;
            let (prepare, pages) = (self.prepare, &self.pages);
            let reading = Reading { client: &lease, prepare, pages, tenant, ask: &ask };
            let outcome = lease.during(reading.answer(&known)).await;
            if let Some(answer) = route.settle(lease, outcome)? {
                return Ok(answer);
            }
        }
    }
}

/// One attempt at one host.
struct Reading<'a> {
    client: &'a ClientWrapper,
    prepare: bool,
    pages: &'a Semaphore,
    tenant: &'a Caller,
    ask: &'a PageRequest,
}

/// How a tenant stands.
#[derive(Clone, Copy)]
enum Standing {
    Alive { version: DataVersion, moved: i64 },
    Dead,
}

impl Reading<'_> {
    async fn answer<T>(&self, known: &impl Fn(DataVersion) -> Option<T>) -> Result<Answer<T>, Failure> {
        let Standing::Alive { version, mut moved } = self.standing(self.ready(&STANDING).await?).await?
        else {
            return Ok(Answer::DeadCredential);
        };
        if let Some(known) = known(version) {
            return Ok(Answer::Known(known));
        }
        if self.ask.limit.rows == 0 {
            return Ok(Answer::Page(PageBuilder::new(self.ask.opening, self.ask.limit).finish(version)));
        }
        let _turn = self.pages.acquire().await.map_err(|closed| Failure::Broken(closed.to_string()))?;
        loop {
            let without_moved = self.ask.walk.as_ref().map(|walk| walk.since).filter(|since| moved > *since);
            let (standing, filling) = self.snapshot(without_moved).await?;
            match standing {
                Standing::Dead => return Ok(Answer::DeadCredential),
                // A batch changed its place just now, and the walk must not meet it again: once more, without it.
                Standing::Alive { moved: later, .. } if later > moved && without_moved.is_none() => {
                    moved = later;
                }
                Standing::Alive { version, .. } => return Ok(Answer::Page(filling.finish(version))),
            }
        }
    }

    /// The standing and the batches of one snapshot, in one round trip.
    async fn snapshot(&self, without_moved: Option<i64>) -> Result<(Standing, PageBuilder), Failure> {
        let standing = self.ready(&STANDING).await?;
        let batches = self.ready(without_moved.map_or(&BATCHES, |_| &BATCHES_WITHOUT_MOVED)).await?;
        // All four are sent, in this order, before the first answer is waited for.
        let ((), standing, filling, ()) = try_join4(
            self.say("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"),
            self.standing(standing),
            self.batches(batches, without_moved),
            self.say("COMMIT"),
        )
        .await?;
        Ok((standing, filling))
    }

    /// Prepares a statement, if that is wanted and was not done before on this connection.
    async fn ready(&self, ask: &'static Ask) -> Result<Ready, Failure> {
        if !self.prepare {
            return Ok(Ready::Unnamed(ask));
        }
        Ok(Ready::Named(self.client.prepare_typed_cached(ask.sql, ask.types).await?))
    }

    async fn send(&self, statement: Ready, params: &[&(dyn ToSql + Sync)]) -> Result<RowStream, Error> {
        match statement {
            Ready::Named(statement) => self.client.query_raw(&statement, params.iter().copied()).await,
            Ready::Unnamed(ask) => {
                let typed = params.iter().copied().zip(ask.types.iter().cloned());
                self.client.query_typed_raw(ask.sql, typed).await
            }
        }
    }

    async fn say(&self, statement: &str) -> Result<(), Failure> {
        Ok(self.client.batch_execute(statement).await?)
    }

    async fn standing(&self, statement: Ready) -> Result<Standing, Failure> {
        let (client, org) = (self.tenant.client.as_str(), self.tenant.org.0);
        let mut rows = pin!(self.send(statement, &[&client, &org]).await?);
        let row = rows.try_next().await?.ok_or_else(|| Failure::Broken("no standing".into()))?;
        // The rest of the answer is read too: a stream that is dropped early leaves it to the next user.
        while rows.try_next().await?.is_some() {}
        let is_standby: bool = row.try_get(0)?;
        let Some(number) = row.try_get::<_, Option<i64>>(1)? else {
            // A standby may not have heard of the credential yet.
            return if is_standby { Err(Failure::Behind) } else { Ok(Standing::Dead) };
        };
        let expiry: Option<i64> = row.try_get(5)?;
        // What is revoked or has expired stays so: here a standby cannot be wrong.
        if row.try_get(4)? || expiry.is_some_and(|expiry| expiry <= self.ask.now.micros()) {
            return Ok(Standing::Dead);
        }
        if is_standby && number < self.ask.seen {
            return Err(Failure::Behind);
        }
        let version = DataVersion { number, mark: row.try_get(2)? };
        Ok(Standing::Alive { version, moved: row.try_get(3)? })
    }

    async fn batches(&self, statement: Ready, without_moved: Option<i64>) -> Result<PageBuilder, Failure> {
        let ask = self.ask;
        let rows_max = ask.limit.rows.min(ask.limit.bytes / BATCH_BYTES_SMALL + 1);
        let limit = PageLimit { rows: rows_max, bytes: ask.limit.bytes };
        // One more than fits, to know whether others follow.
        let wanted = i64::try_from(rows_max).unwrap_or(i64::MAX - 1) + 1;
        let org = self.tenant.org.0;
        let start = ask.range.start.map_or(i64::MIN, UtcInstant::micros);
        let end = ask.range.end.map_or(i64::MAX, UtcInstant::micros);
        let (after, id) = match &ask.walk {
            Some(walk) => (walk.after.created.micros(), walk.after.id.as_str()),
            None => (start, ""),
        };
        let mut params: Vec<&(dyn ToSql + Sync)> = vec![&org, &after, &id, &end, &wanted];
        params.extend(without_moved.iter().map(|since| since as &(dyn ToSql + Sync)));
        let rows = self.send(statement, &params).await?;
        fill(PageBuilder::new(ask.opening, limit), rows).await
    }
}

async fn fill(mut filling: PageBuilder, rows: RowStream) -> Result<PageBuilder, Failure> {
    let mut rows = pin!(rows);
    while let Some(row) = rows.try_next().await? {
        // Past the page's end the rest is read and let go: it is on its way already.
        if !filling.is_done() {
            filling.take(row.try_get::<_, Text<'_>>(0)?.0)?;
        }
    }
    Ok(filling)
}

/// A text as the bytes it came in: it was checked when it went into the database.
struct Text<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Text<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(wanted: &Type) -> bool {
        *wanted == Type::TEXT
    }
}
