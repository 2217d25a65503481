//! pgbouncer in transaction mode, with `prepare=off`: every transaction may be on another server connection.

use batchscan_model::UtcInstant;
use batchscan_store::{
    Answer, DatabaseUrl, Freshness, KeyRotation, Opening, PageLimit, PageRequest, PageText, Store, Walk,
};
use batchscan_testbed::{PgBouncer, Postgres, Settings};
use futures_util::future::join_all;

use crate::site::{Nursery, batch, first_five_and, harm, now};

/// Fewer server connections than clients, so that they are handed around.
const FEW: &str = "ignore_startup_parameters = options\ndefault_pool_size = 3";

/// Operating guide, "PostgreSQL".
#[tokio::test(flavor = "multi_thread")]
async fn all_works_behind_a_pooler_that_hands_connections_around() {
    let postgres = harm(|| Postgres::start(&Settings::default()));
    let pooler = harm(|| PgBouncer::start(postgres.port(), FEW));
    let database = harm(|| postgres.fresh_database());
    let url: DatabaseUrl = format!("{}?prepare=off", pooler.url(&database)).parse().unwrap();
    // Migrates through the pooler.
    let nursery = Nursery::open(&url, Opening::OR_MAKE).await;
    let neighbour = Store::open(&url, Opening::EXISTING).await.unwrap();
    assert_eq!(nursery.ids().await, first_five_and(&[]));
    for round in 0..5 {
        nursery.import(&[batch("wanderer", round), batch(&format!("c{round}"), 100 + round)]).await.unwrap();
        let known = neighbour.credential(&nursery.client.id, Freshness::Latest).await.unwrap();
        assert!(known.is_latest && known.credential.is_some());
    }
    let walks = join_all((0..20).map(|turn| walk(&nursery, 1 + turn % 4))).await;
    assert!(walks.iter().all(|ids| ids.len() == 11 && *ids == walks[0]), "{walks:?}");
    let token = nursery.token(&nursery.client).await;
    let replies = join_all((0..20).map(|_| nursery.get("/v1/batches", &token))).await;
    assert!(replies.iter().all(|reply| reply.ids().len() == 11));
    let rotation = KeyRotation { now: now(), forget_before: UtcInstant::EPOCH };
    assert_eq!(nursery.store.rotate_keys(rotation).await.unwrap().len(), 5);
    nursery.store.revoke_credential(&nursery.client.id, now()).await.unwrap();
    assert_eq!(nursery.get("/v2/batches", &token).await.status, 401);
    assert!(neighbour.standing(&nursery.tenant, now()).await.unwrap().is_none());
}

/// The ids of a whole walk in pages of `rows`.
async fn walk(nursery: &Nursery, rows: usize) -> Vec<String> {
    let (mut ids, mut walk) = (Vec::new(), None::<Walk>);
    loop {
        let limit = PageLimit { rows, bytes: usize::MAX };
        let seen = walk.as_ref().map_or(0, |walk| walk.seen);
        let ask =
            PageRequest { walk: walk.clone(), limit, opening: "[", seen, ..PageRequest::nothing(now()) };
        let Answer::Page(page) = nursery.store.page(&nursery.tenant, ask, |_| None::<()>).await.unwrap()
        else {
            panic!("a dead credential")
        };
        let PageText::Plain(text) = page.text else { panic!("text that was not asked for") };
        let batches: Vec<serde_json::Value> = serde_json::from_slice(&[&*text, b"]"].concat()).unwrap();
        ids.extend(batches.iter().map(|batch| batch["batch_id"].to_string()));
        let since = walk.map_or(page.version.number, |walk| walk.since);
        let Some(after) = page.next else { return ids };
        walk = Some(Walk { after, since, seen: page.version.number });
    }
}
