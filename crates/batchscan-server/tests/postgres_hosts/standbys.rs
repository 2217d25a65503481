//! Who is read from: `ReadFrom::Standby` spares the primary, as long as there is a choice.

use std::time::{Duration, Instant};

use batchscan_store::ReadFrom;
use batchscan_testbed::{Postgres, Settings};

use crate::site::{Site, first_five_and, harm, until};

/// A standby that is further behind is not read from.
const LAG_MAX: Duration = Duration::from_secs(2);

/// How many pages a server has read, by its own log.
fn pages_read(host: &Postgres) -> usize {
    host.log().matches("SELECT json FROM batch").count()
}

impl Site {
    /// Waits until it is known that the standbys can be read from. Needs servers that log their statements.
    pub(crate) async fn spares_its_primary(&self) {
        let is_spared = async || {
            let before = pages_read(self.cluster.primary());
            self.nursery.ids().await;
            pages_read(self.cluster.primary()) == before
        };
        until(Duration::from_secs(5), is_spared).await;
    }
}

/// Operating guide, "PostgreSQL".
#[tokio::test(flavor = "multi_thread")]
async fn standbys_are_read_from_where_that_is_asked_for_and_the_primary_when_none_is_left() {
    let settings = Settings::default().with("log_statement", "all");
    let site = Site::with(&settings, ReadFrom::Standby).await;
    let (primary, standbys) = (site.cluster.primary(), site.cluster.standbys());
    let by_primary = async |reads| {
        let before = pages_read(primary);
        for _ in 0..reads {
            assert_eq!(site.nursery.ids().await, first_five_and(&[]));
        }
        pages_read(primary) - before
    };
    // At first nobody knows how far the standbys are.
    until(Duration::from_secs(5), async || by_primary(4).await == 0).await;
    let before = [pages_read(standbys[0]), pages_read(standbys[1])];
    assert_eq!(by_primary(40).await, 0, "it is spared");
    for (standby, before) in standbys.iter().zip(before) {
        assert_eq!(pages_read(standby), before + 20, "{} takes its turns", standby.name());
    }
    harm(|| standbys[0].kill());
    site.nursery.sees_host(standbys[0], false).await;
    assert_eq!(by_primary(10).await, 0, "one is left");
    harm(|| standbys[1].kill());
    site.nursery.sees_host(standbys[1], false).await;
    assert_eq!(by_primary(10).await, 10, "nobody else is left");
}

/// Operating guide, "PostgreSQL".
#[tokio::test(flavor = "multi_thread")]
async fn all_hosts_are_read_from_in_turn_if_nothing_else_is_said() {
    let settings = Settings::default().with("log_statement", "all");
    let site = Site::with(&settings, ReadFrom::Any).await;
    let all = || site.cluster.nodes().iter().map(pages_read).collect::<Vec<_>>();
    until(Duration::from_secs(5), async || {
        let before = all();
        for _ in 0..30 {
            assert_eq!(site.nursery.ids().await, first_five_and(&[]));
        }
        all().iter().zip(&before).all(|(now, before)| now - before == 10)
    })
    .await;
}

/// Decision 010: a little behind is not too far behind, also while the primary is written to without pause.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_that_follows_a_busy_primary_closely_is_read_from() {
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
    site.spares_its_primary().await;
    let (began, mut reads, mut by_primary) = (Instant::now(), 0, 0);
    while began.elapsed() < LAG_MAX * 2 {
        by_primary += at_primary().await;
        reads += 1;
    }
    writing.abort();
    println!("{by_primary} of {reads} reads went to a primary that is busy");
    assert!(by_primary * 10 < reads, "{by_primary} of {reads}");
}
