//! pgbouncer in transaction mode, with `prepare=off`: every transaction may use another server connection.

use batchscan_model::UtcInstant;
use batchscan_store::{DatabaseUrl, Freshness, KeyRotation, OpenOptions, Resume, Store};
use batchscan_testbed::{PgBouncer, Postgres, Settings};
use futures_util::future::join_all;

use super::site::{Nursery, ORG, batch, blocking, first_five_plus};

/// Fewer server connections than clients, so that clients share them.
const FEW: &str = "ignore_startup_parameters = options\ndefault_pool_size = 3";

/// Operating guide, "PostgreSQL".
#[tokio::test(flavor = "multi_thread")]
async fn everything_works_with_a_transaction_pooler() {
    let postgres = blocking(|| Postgres::start(&Settings::default()));
    let pooler = blocking(|| PgBouncer::start(postgres.port(), FEW));
    let database = blocking(|| postgres.fresh_database());
    let url: DatabaseUrl = format!("{}?prepare=off", pooler.url(&database)).parse().unwrap();
    // Migrates through the pooler.
    let nursery = Nursery::open(&url, OpenOptions::CREATE).await;
    let neighbour = Store::open(&url, OpenOptions::EXISTING).await.unwrap();
    assert_eq!(nursery.ids().await, first_five_plus(&[]));
    for round in 0..5 {
        nursery.import(ORG, &[batch("moving", round), batch(&format!("c{round}"), 100 + round)]).await;
        let lookup = neighbour.credential(&nursery.client.client_id(), Freshness::Latest).await.unwrap();
        assert!(lookup.is_some());
    }
    let reads = join_all((0..20).map(|turn| read_all(&nursery, 1 + turn % 4))).await;
    assert!(reads.iter().all(|ids| ids.len() == 11 && *ids == reads[0]), "{reads:?}");
    let token = nursery.token(&nursery.client).await;
    let replies = join_all((0..20).map(|_| nursery.get("/v1/batches", &token))).await;
    assert!(replies.iter().all(|reply| reply.ids().len() == 11));
    let rotation = KeyRotation { now: nursery.now(), remove_before: UtcInstant::EPOCH };
    assert_eq!(nursery.store.rotate_keys(rotation).await.unwrap().len(), 5);
    nursery.store.revoke_credential(&nursery.client.client_id(), nursery.now()).await.unwrap();
    assert_eq!(nursery.get("/v2/batches", &token).await.status, 401);
    assert!(neighbour.data_version(&nursery.caller, nursery.now()).await.unwrap().is_none());
}

/// The ids on all pages of this size.
async fn read_all(nursery: &Nursery, rows: usize) -> Vec<String> {
    let (mut ids, mut resume) = (Vec::new(), None);
    loop {
        let min_version = resume.as_ref().map_or(0, |resume: &Resume| resume.last_version);
        let (page, next) = nursery.page(rows, min_version, resume).await.unwrap();
        ids.extend(page);
        let Some(next) = next else { return ids };
        resume = Some(next);
    }
}
