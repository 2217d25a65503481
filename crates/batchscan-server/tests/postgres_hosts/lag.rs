//! Standbys that are behind: nobody is led back in time, and nobody refused who has a right.

use std::time::{Duration, Instant};

use batchscan_store::{ReadFrom, StoreError};
use batchscan_testbed::Settings;

use crate::site::{ANSWER_LIMIT, Client, Site, first_five_and, harm, now, until};

/// What a revocation may take on every node is 5 s (decision 010); a standby that lags may be read from for 2 of them.
const STALE_LIMIT: Duration = Duration::from_secs(3);

/// Store contract, "Never back in time".
#[tokio::test(flavor = "multi_thread")]
async fn who_has_seen_a_version_gets_no_older_page() {
    let site = Site::start(ReadFrom::Standby).await;
    let nursery = &site.nursery;
    site.hold_standbys_back().await;
    nursery.add("new").await;
    let seen = nursery.store.org(crate::site::ORG).await.unwrap().version.number;
    for _ in 0..10 {
        assert_eq!(nursery.ids_since(seen).await.unwrap(), first_five_and(&["new"]));
    }
    harm(|| site.cluster.primary().kill());
    nursery.sees_host(site.cluster.primary(), false).await;
    let asked = Instant::now();
    let refused = nursery.ids_since(seen).await;
    assert!(matches!(refused, Err(StoreError::Unreachable(_))), "{refused:?}");
    assert!(asked.elapsed() < ANSWER_LIMIT, "{:?}", asked.elapsed());
    println!("no host is new enough: told after {:?}", asked.elapsed());
    assert_eq!(nursery.ids().await, first_five_and(&[]), "who has seen nothing is served");
}

/// Decisions 022, 031: what a client has seen is in its cursor and its ETag.
#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_and_an_etag_lead_to_the_primary_or_to_a_503() {
    let site = Site::start(ReadFrom::Standby).await;
    let nursery = &site.nursery;
    let token = nursery.token(&nursery.client).await;
    site.hold_standbys_back().await;
    nursery.add("new").await;
    let is_new = async || nursery.get("/v1/batches", &token).await.ids() == first_five_and(&["new"]);
    until(STALE_LIMIT, is_new).await;
    let first = nursery.get("/v2/batches", &token).await;
    let second = nursery.get(&first.next_path(), &token).await;
    assert_eq!(second.ids(), ["b2", "b3"]);
    assert_eq!(nursery.get(&second.next_path(), &token).await.ids(), ["b4", "new"]);
    assert_eq!(nursery.get_unless("/v2/batches", &token, first.etag()).await.status, 304);
    harm(|| site.cluster.primary().kill());
    nursery.sees_host(site.cluster.primary(), false).await;
    nursery.get(&second.next_path(), &token).await.is_unavailable();
    nursery.get_unless("/v2/batches", &token, first.etag()).await.is_unavailable();
    assert_eq!(nursery.get("/v2/batches", &token).await.ids(), ["b0", "b1"]);
}

/// Decisions 006, 010, 028: a standby's "I know of no such credential" is no answer; its "revoked" is one.
#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_standbys_do_not_know_works_or_is_a_503_and_never_a_401() {
    let site = Site::start(ReadFrom::Standby).await;
    let nursery = &site.nursery;
    let revoked = nursery.add_credential().await;
    let dead_token = nursery.token(&revoked).await;
    nursery.store.revoke_credential(&revoked.id, now()).await.unwrap();
    site.catch_up();
    site.hold_standbys_back().await;
    let new = nursery.add_credential().await;
    let token = nursery.token(&new).await;
    assert_eq!(nursery.get("/v2/batches", &token).await.ids(), ["b0", "b1"]);
    harm(|| site.cluster.primary().kill());
    nursery.auth(&new).await.is_unavailable();
    nursery.get("/v1/batches", &token).await.is_unavailable();
    nursery.get("/v2/batches", &token).await.is_unavailable();
    // It may be a secret that the standbys have not heard of.
    let wrong = Client { secret: new.secret.clone(), ..nursery.client.clone() };
    nursery.auth(&wrong).await.is_unavailable();
    assert_eq!(nursery.get("/v2/batches", &dead_token).await.status, 401);
    assert_eq!(nursery.auth(&revoked).await.status, 401);
    assert_eq!(nursery.auth(&nursery.client).await.status, 200, "what they know will do");
}

/// Decision 029: a table that only standbys lack, as during a migration, is no damage.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_standbys_have_not_heard_of_is_read_on_the_primary() {
    let site = Site::with(&Settings::default().with("log_statement", "all"), ReadFrom::Standby).await;
    let change = |statement| harm(|| site.cluster.primary().sql(&site.database, statement));
    change("ALTER TABLE service_key RENAME TO made_later");
    site.catch_up();
    site.spares_its_primary().await;
    site.hold_standbys_back().await;
    change("ALTER TABLE made_later RENAME TO service_key");
    for _ in 0..4 {
        assert_eq!(site.nursery.store.keys(now()).await.unwrap().len(), 3);
    }
}

/// Decision 028: also where the first question is put to a host that has just frozen.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_that_takes_two_questions_is_told_in_time_too() {
    let site = Site::start(ReadFrom::Any).await;
    let nursery = &site.nursery;
    site.hold_standbys_back().await;
    let new = nursery.add_credential().await;
    harm(|| site.cluster.primary().freeze());
    let asked = Instant::now();
    // As many as there are hosts: one of them begins at the frozen one.
    let replies = tokio::join!(nursery.auth(&new), nursery.auth(&new), nursery.auth(&new));
    let took = asked.elapsed();
    println!("a credential that only a frozen primary knows: told after {took:?}");
    assert!(took < ANSWER_LIMIT - Duration::from_millis(300), "{took:?} leaves nothing for a busy machine");
    for reply in [replies.0, replies.1, replies.2] {
        reply.is_unavailable();
    }
    site.cluster.primary().thaw();
    until(ANSWER_LIMIT, async || nursery.auth(&new).await.status == 200).await;
}

/// Decision 010.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_that_lags_is_not_read_from_while_the_primary_is_up() {
    let site = Site::start(ReadFrom::Standby).await;
    let nursery = &site.nursery;
    let victim = nursery.add_credential().await;
    let token = nursery.token(&victim).await;
    site.catch_up();
    site.hold_standbys_back().await;
    nursery.add("new").await;
    nursery.store.revoke_credential(&victim.id, now()).await.unwrap();
    let committed = Instant::now();
    until(STALE_LIMIT, async || nursery.ids().await == first_five_and(&["new"])).await;
    println!("a lagging standby was read from for {:?}", committed.elapsed());
    for _ in 0..30 {
        assert_eq!(nursery.ids().await, first_five_and(&["new"]));
        assert_eq!(nursery.get("/v2/batches", &token).await.status, 401);
    }
    for standby in site.cluster.standbys() {
        harm(|| standby.sql("postgres", "SELECT pg_wal_replay_resume()"));
    }
    site.catch_up();
    assert_eq!(nursery.ids().await, first_five_and(&["new"]));
}
