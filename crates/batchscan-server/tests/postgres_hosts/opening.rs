//! What must be up for a service to start.

use batchscan_store::{OpenError, Opening, Store};
use batchscan_testbed::{Postgres, Settings};

use crate::site::{Nursery, harm, serve};

/// A primary with a standby, and one URL for both.
fn pair() -> (Postgres, Postgres) {
    let primary = harm(|| Postgres::start(&Settings::default()));
    let standby = harm(|| primary.standby("standby"));
    harm(|| primary.wait_for_standbys(&["standby"]));
    (primary, standby)
}

fn url(hosts: &[&Postgres], database: &str) -> String {
    let hosts: Vec<String> = hosts.iter().map(|host| format!("127.0.0.1:{}", host.port())).collect();
    format!("postgres://postgres@{}/{database}", hosts.join(","))
}

/// Operating guide, "PostgreSQL": a node that restarts during a failover must not need the primary.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_starts_on_standbys_alone_if_the_schema_is_current() {
    let (primary, standby) = pair();
    let database = harm(|| primary.fresh_database());
    let url = url(&[&primary, &standby], &database).parse().unwrap();
    let nursery = Nursery::open(&url, Opening::OR_MAKE).await;
    let token = nursery.token(&nursery.client).await;
    harm(|| standby.wait_to_catch_up_with(&primary));
    harm(|| primary.kill());
    let store = Store::open(&url, Opening::OR_MAKE).await.unwrap();
    let (address, http) = serve(&store).await;
    let reply = http.get(format!("{address}/v2/batches")).bearer_auth(&token).send().await.unwrap();
    assert_eq!(reply.status(), 200);
    let ready = http.get(format!("{address}/readyz")).send().await.unwrap();
    assert_eq!(ready.status(), 200);
}

/// Operating guide, "PostgreSQL".
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_database_without_a_primary_is_told_so() {
    let (primary, standby) = pair();
    let database = harm(|| primary.fresh_database());
    harm(|| standby.wait_to_catch_up_with(&primary));
    harm(|| primary.kill());
    let shown = url(&[&primary, &standby], &database);
    let refused = Store::open(&shown.parse().unwrap(), Opening::OR_MAKE).await.unwrap_err();
    assert!(matches!(refused, OpenError::NoPrimary(_)), "{refused:?}");
    let told = format!("no host of {shown} is a primary, and the schema is not up to date: start one first");
    assert_eq!(refused.to_string(), told);
}

/// The primary migrates, also where a host that was named before it takes connections and says nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_host_does_not_keep_the_primary_from_being_migrated() {
    let (primary, standby) = pair();
    let database = harm(|| primary.fresh_database());
    harm(|| standby.wait_to_catch_up_with(&primary));
    harm(|| standby.freeze());
    let url = url(&[&standby, &primary], &database).parse().unwrap();
    let opening = Store::open(&url, Opening::OR_MAKE);
    let opened = tokio::time::timeout(std::time::Duration::from_secs(10), opening).await;
    standby.thaw();
    opened.unwrap().unwrap();
}
