//! Which hosts are read: `ReadFrom::Standby` uses the primary only if no standby is current.

use batchscan_store::ReadFrom;
use batchscan_testbed::{Postgres, Settings};

use super::site::{Site, blocking, first_five_plus, until};

/// How many pages a server has read, according to its log.
fn pages_read(host: &Postgres) -> usize {
    host.log().matches("SELECT json FROM batch").count()
}

impl Site {
    /// Waits until the store reads from standbys. The servers must log their statements.
    pub(crate) async fn stops_reading_from_primary(&self) {
        let is_unused = async || {
            let before = pages_read(self.cluster.primary());
            self.nursery.ids().await;
            pages_read(self.cluster.primary()) == before
        };
        until(is_unused).await;
    }
}

/// Operating guide, "PostgreSQL".
#[tokio::test(flavor = "multi_thread")]
async fn with_read_from_standby_the_primary_is_read_only_if_no_standby_is_left() {
    let settings = Settings::default().with("log_statement", "all");
    let site = Site::with(&settings, ReadFrom::Standby).await;
    let (primary, standbys) = (site.cluster.primary(), site.cluster.standbys());
    let by_primary = async |reads| {
        let before = pages_read(primary);
        for _ in 0..reads {
            assert_eq!(site.nursery.ids().await, first_five_plus(&[]));
        }
        pages_read(primary) - before
    };
    // At first the lag of the standbys is unknown.
    until(async || {
        let before = [pages_read(standbys[0]), pages_read(standbys[1])];
        let is_fair = |share: usize| pages_read(standbys[share]) == before[share] + 20;
        by_primary(40).await == 0 && is_fair(0) && is_fair(1)
    })
    .await;
    blocking(|| standbys[0].kill());
    site.nursery.wait_for_host(standbys[0], false).await;
    until(async || by_primary(10).await == 0).await;
    blocking(|| standbys[1].kill());
    site.nursery.wait_for_host(standbys[1], false).await;
    until(async || by_primary(10).await == 10).await;
}

/// Operating guide, "PostgreSQL".
#[tokio::test(flavor = "multi_thread")]
async fn all_hosts_are_read_in_turn_by_default() {
    let settings = Settings::default().with("log_statement", "all");
    let site = Site::with(&settings, ReadFrom::Any).await;
    let all = || site.cluster.nodes().iter().map(pages_read).collect::<Vec<_>>();
    until(async || {
        let before = all();
        for _ in 0..30 {
            assert_eq!(site.nursery.ids().await, first_five_plus(&[]));
        }
        all().iter().zip(&before).all(|(now, before)| now - before == 10)
    })
    .await;
}

/// Decision 010: a small lag is acceptable, also during continuous writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_with_a_small_lag_is_read() {
    let settings = Settings::default().with("log_statement", "all").with("recovery_min_apply_delay", "500ms");
    let site = Site::with(&settings, ReadFrom::Standby).await;
    let (primary, nursery) = (site.cluster.primary(), &site.nursery);
    let (session, connection) =
        tokio_postgres::connect(&primary.url(&site.database), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    session.batch_execute("CREATE TABLE noise (line int)").await.unwrap();
    let writing = tokio::spawn(async move {
        loop {
            session.batch_execute("INSERT INTO noise SELECT generate_series(1, 200)").await.unwrap();
        }
    });
    let at_primary = async || {
        let before = pages_read(primary);
        nursery.ids().await;
        pages_read(primary) - before
    };
    // Some of them are read from the primary when a busy machine delays a standby more.
    until(async || {
        let mut by_primary = 0;
        for _ in 0..100 {
            by_primary += at_primary().await;
        }
        by_primary < 10
    })
    .await;
    writing.abort();
}
