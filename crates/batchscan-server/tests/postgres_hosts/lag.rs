//! Lagging standbys: clients never get older data, and no valid credential is rejected.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use batchscan_store::{ReadFrom, StoreError};
use batchscan_testbed::Settings;

use crate::http::{Client, Reply};

use super::site::{Site, blocking, first_five_plus, until};

const MOMENT: Duration = Duration::from_millis(500);

/// Store contract, "Never back in time".
#[tokio::test(flavor = "multi_thread")]
async fn a_client_never_gets_a_page_older_than_it_has_seen() {
    let site = Site::start(ReadFrom::Standby).await;
    let nursery = &site.nursery;
    site.pause_standbys().await;
    nursery.add("new").await;
    let seen = nursery.store.org(super::site::ORG).await.unwrap().version.number;
    for _ in 0..10 {
        assert_eq!(nursery.ids_since(seen).await.unwrap(), first_five_plus(&["new"]));
    }
    blocking(|| site.cluster.primary().kill());
    nursery.wait_for_host(site.cluster.primary(), false).await;
    let result = nursery.ids_since(seen).await;
    assert!(matches!(result, Err(StoreError::Unreachable(_))), "{result:?}");
    assert_eq!(nursery.ids().await, first_five_plus(&[]), "older data is fine for others");
}

/// Decisions 022, 031: cursors and ETags contain the data version that the client has seen.
#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_or_an_etag_is_served_by_the_primary_or_gets_a_503() {
    let site = Site::start(ReadFrom::Standby).await;
    let nursery = &site.nursery;
    let token = nursery.token(&nursery.client).await;
    site.pause_standbys().await;
    nursery.add("new").await;
    let is_new = async || nursery.get("/v1/batches", &token).await.ids() == first_five_plus(&["new"]);
    until(is_new).await;
    let first = nursery.get("/v2/batches", &token).await;
    let etag = first.header("etag").unwrap();
    let second = nursery.get(&next_path(&first), &token).await;
    assert_eq!(second.ids(), ["b2", "b3"]);
    assert_eq!(nursery.get(&next_path(&second), &token).await.ids(), ["b4", "new"]);
    assert_eq!(nursery.get_if_changed("/v2/batches", &token, &etag).await.status, 304);
    blocking(|| site.cluster.primary().kill());
    nursery.wait_for_host(site.cluster.primary(), false).await;
    nursery.get(&next_path(&second), &token).await.is_unavailable();
    nursery.get_if_changed("/v2/batches", &token, &etag).await.is_unavailable();
    assert_eq!(nursery.get("/v2/batches", &token).await.ids(), ["b0", "b1"]);
}

/// Decision 052: a synchronous standby shows a commit before the primary, which waits for an acknowledgement.
#[tokio::test(flavor = "multi_thread")]
async fn a_position_from_a_standby_is_known_to_the_primary_when_its_commit_is_acknowledged() {
    let site = Site::start(ReadFrom::Standby).await;
    let nursery = &site.nursery;
    let token = nursery.token(&nursery.client).await;
    let acknowledge_by = |names| {
        let primary = site.cluster.primary();
        blocking(|| {
            primary.sql("postgres", &format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"))
        });
        blocking(|| primary.sql("postgres", "SELECT pg_reload_conf()"));
    };
    acknowledge_by("nobody");
    let commit = nursery.add("new");
    let read = async {
        until(async || nursery.ids().await == first_five_plus(&["new"])).await;
        let first = nursery.get("/v2/changes", &token).await.json();
        let position = format!("/v2/changes?since={}", first["since"].as_str().unwrap());
        for standby in site.cluster.standbys() {
            blocking(|| standby.kill());
            nursery.wait_for_host(standby, false).await;
        }
        let acknowledge = async { acknowledge_by("") };
        tokio::join!(nursery.get(&position, &token), acknowledge).0
    };
    let ((), continued) = tokio::join!(commit, read);
    assert_eq!(continued.status, 200, "{}", continued.text());
}

/// Decisions 031, 041: text and ETag of a batch come from one host, and only the primary says that there is none.
#[tokio::test(flavor = "multi_thread")]
async fn a_single_batch_and_its_etag_are_of_one_version() {
    let site = Site::start(ReadFrom::Standby).await;
    let nursery = &site.nursery;
    let token = nursery.token(&nursery.client).await;
    let old = nursery.get("/v2/batches/b0", &token).await;
    site.pause_standbys().await;
    nursery.correct("b0", "corrected").await;
    nursery.add("new").await;
    let mut texts = BTreeMap::from([(old.header("etag").unwrap(), old.text().to_owned())]);
    for _ in 0..50 {
        let reply = nursery.get("/v2/batches/b0", &token).await;
        let (etag, text) = (reply.header("etag").unwrap(), reply.text().to_owned());
        assert_eq!(*texts.entry(etag).or_insert_with(|| text.clone()), text);
    }
    assert_eq!(nursery.get("/v2/batches/new", &token).await.status, 200, "standbys do not have it");
    let is_new = async || nursery.get("/v2/batches/b0", &token).await.text().contains("corrected");
    until(is_new).await;
    let etag = nursery.get("/v2/batches/b0", &token).await.header("etag").unwrap();
    blocking(|| site.cluster.primary().kill());
    nursery.wait_for_host(site.cluster.primary(), false).await;
    nursery.get_if_changed("/v2/batches/b0", &token, &etag).await.is_unavailable();
    nursery.get("/v2/batches/none", &token).await.is_unavailable();
}

/// Decisions 006, 010, 028: a credential that a standby does not have may exist; one that is revoked there is revoked.
#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_standbys_do_not_have_works_or_is_a_503_and_never_a_401() {
    let site = Site::start(ReadFrom::Standby).await;
    let nursery = &site.nursery;
    let revoked = nursery.add_credential().await;
    let revoked_token = nursery.token(&revoked).await;
    nursery.store.revoke_credential(&revoked.client_id(), nursery.now()).await.unwrap();
    site.catch_up();
    site.pause_standbys().await;
    let new = nursery.add_credential().await;
    let token = nursery.token(&new).await;
    assert_eq!(nursery.get("/v2/batches", &token).await.ids(), ["b0", "b1"]);
    blocking(|| site.cluster.primary().kill());
    nursery.auth(&new).await.is_unavailable();
    nursery.get("/v1/batches", &token).await.is_unavailable();
    nursery.get("/v2/batches", &token).await.is_unavailable();
    // It may be a new secret that the standbys do not have.
    let wrong = Client { secret: new.secret.clone(), ..nursery.client.clone() };
    nursery.auth(&wrong).await.is_unavailable();
    assert_eq!(nursery.get("/v2/batches", &revoked_token).await.status, 401);
    assert_eq!(nursery.auth(&revoked).await.status, 401);
    assert_eq!(nursery.auth(&nursery.client).await.status, 200, "known to the standbys");
}

/// Decision 029: during a migration, a table may be missing on standbys only.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_missing_on_standbys_is_read_on_the_primary() {
    let site = Site::with(&Settings::default().with("log_statement", "all"), ReadFrom::Standby).await;
    let change = |statement| blocking(|| site.cluster.primary().sql(&site.database, statement));
    change("ALTER TABLE service_key RENAME TO made_later");
    site.catch_up();
    site.stops_reading_from_primary().await;
    site.pause_standbys().await;
    change("ALTER TABLE made_later RENAME TO service_key");
    for _ in 0..4 {
        assert_eq!(site.nursery.store.keys(site.nursery.now()).await.unwrap().len(), 3);
    }
}

/// Decision 028: also if the first host that is tried has just frozen.
#[tokio::test(flavor = "multi_thread")]
async fn a_lookup_on_two_hosts_is_a_503() {
    let site = Site::start(ReadFrom::Any).await;
    let nursery = &site.nursery;
    site.pause_standbys().await;
    let new = nursery.add_credential().await;
    blocking(|| site.cluster.primary().freeze());
    let started = Instant::now();
    // One request per host: one of them starts with the frozen host.
    let replies = tokio::join!(nursery.auth(&new), nursery.auth(&new), nursery.auth(&new));
    println!("three lookups: 503 after {:?}", started.elapsed());
    for reply in [replies.0, replies.1, replies.2] {
        reply.is_unavailable();
    }
    site.cluster.primary().thaw();
    until(async || nursery.auth(&new).await.status == 200).await;
}

/// Decision 010.
#[tokio::test(flavor = "multi_thread")]
async fn a_lagging_standby_is_not_read_while_the_primary_is_up() {
    let site = Site::start(ReadFrom::Standby).await;
    let nursery = &site.nursery;
    let revoked = nursery.add_credential().await;
    let token = nursery.token(&revoked).await;
    site.catch_up();
    site.pause_standbys().await;
    nursery.add("new").await;
    nursery.store.revoke_credential(&revoked.client_id(), nursery.now()).await.unwrap();
    let committed = Instant::now();
    until(async || nursery.ids().await == first_five_plus(&["new"])).await;
    println!("a lagging standby was read for {:?}", committed.elapsed());
    for _ in 0..30 {
        assert_eq!(nursery.ids().await, first_five_plus(&["new"]));
        assert_eq!(nursery.get("/v2/batches", &token).await.status, 401);
    }
    for standby in site.cluster.standbys() {
        blocking(|| standby.sql("postgres", "SELECT pg_wal_replay_resume()"));
    }
    site.catch_up();
    assert_eq!(nursery.ids().await, first_five_plus(&["new"]));
}

/// Decision 010: the revocation wakes the request, and the standbys that it reads from do not have it yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_request_is_rejected_after_a_revocation_that_standbys_do_not_have() {
    let site = Site::start(ReadFrom::Standby).await;
    let nursery = &site.nursery;
    let revoked = nursery.add_credential().await;
    let (token, valid) = (nursery.token(&revoked).await, nursery.token(&nursery.client).await);
    site.catch_up();
    let mut path = "/v2/changes".to_owned();
    loop {
        let body = nursery.get(&path, &valid).await.json();
        path = format!("/v2/changes?since={}", body["since"].as_str().unwrap());
        if body["more"] == false {
            break;
        }
    }
    site.pause_standbys().await;
    path += "&wait=40";
    let revoke = async {
        // Until both wait.
        tokio::time::sleep(MOMENT).await;
        nursery.store.revoke_credential(&revoked.client_id(), nursery.now()).await.unwrap();
        std::future::pending::<()>().await;
    };
    // Both wait for the same time, unless one of them ends early.
    tokio::select! {
        rejected = nursery.get(&path, &token) => rejected.is_invalid_token(),
        waited = nursery.get(&path, &valid) => panic!("only this one ended: {}", waited.text()),
        () = revoke => {}
    }
}

fn next_path(page: &Reply) -> String {
    format!("/v2/batches?next_token={}", page.next_token().unwrap())
}
