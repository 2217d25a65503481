//! Which hosts must be up to start.

use batchscan_store::{OpenError, OpenOptions, Store};
use batchscan_testbed::{Postgres, Settings};

use super::site::{Nursery, blocking, serve};

/// A primary with a standby.
fn pair() -> (Postgres, Postgres) {
    let primary = blocking(|| Postgres::start(&Settings::default()));
    let standby = blocking(|| primary.standby("standby"));
    blocking(|| primary.wait_for_standbys(&["standby"]));
    (primary, standby)
}

fn url(hosts: &[&Postgres], database: &str) -> String {
    let hosts: Vec<String> = hosts.iter().map(|host| format!("127.0.0.1:{}", host.port())).collect();
    format!("postgres://postgres@{}/{database}", hosts.join(","))
}

/// Operating guide, "PostgreSQL": a node that restarts during a failover must not need the primary.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_starts_with_standbys_only_if_the_schema_is_current() {
    let (primary, standby) = pair();
    let database = blocking(|| primary.fresh_database());
    let url = url(&[&primary, &standby], &database).parse().unwrap();
    let nursery = Nursery::open(&url, OpenOptions::CREATE).await;
    let token = nursery.token(&nursery.client).await;
    blocking(|| standby.wait_to_catch_up_with(&primary));
    blocking(|| primary.kill());
    let app = serve(&url, OpenOptions::CREATE).await;
    assert_eq!(app.get("/v2/batches", &token).await.status, 200);
    assert_eq!(app.send("GET", "/readyz").await.status, 200);
}

/// Operating guide, "PostgreSQL".
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_database_without_a_primary_is_an_error() {
    let (primary, standby) = pair();
    let database = blocking(|| primary.fresh_database());
    blocking(|| standby.wait_to_catch_up_with(&primary));
    blocking(|| primary.kill());
    let shown = url(&[&primary, &standby], &database);
    let error = Store::open(&shown.parse().unwrap(), OpenOptions::CREATE).await.unwrap_err();
    assert!(matches!(error, OpenError::NoPrimary(_)), "{error:?}");
}

/// Also if a host that comes first in the URL accepts connections and sends nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_host_does_not_prevent_the_migration_of_the_primary() {
    let (primary, standby) = pair();
    let database = blocking(|| primary.fresh_database());
    blocking(|| standby.wait_to_catch_up_with(&primary));
    blocking(|| standby.freeze());
    let url = url(&[&standby, &primary], &database).parse().unwrap();
    let opening = Store::open(&url, OpenOptions::CREATE);
    let opened = tokio::time::timeout(crate::http::HANG_LIMIT, opening).await;
    standby.thaw();
    opened.unwrap().unwrap();
}
