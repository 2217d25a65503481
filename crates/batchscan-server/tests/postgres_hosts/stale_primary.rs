//! A stale primary: it comes back after a failover and still accepts writes.

use batchscan_store::{ReadFrom, StoreError};

use super::site::{Site, blocking, first_five_plus};

/// Design, "Storage".
#[tokio::test(flavor = "multi_thread")]
async fn a_stale_primary_is_neither_read_nor_written() {
    let site = Site::start_with_stale_primary().await;
    let (nursery, old) = (&site.nursery, &site.cluster.nodes()[0]);
    assert!(!blocking(|| old.is_in_recovery()), "it accepts writes");
    let new = format!("127.0.0.1:{}", site.cluster.primary().port());
    let primaries = |host: &batchscan_store::HostHealth| host.is_primary.then(|| host.host.clone());
    assert_eq!(nursery.store.hosts().iter().filter_map(primaries).collect::<Vec<_>>(), [new]);
    for number in 0..20 {
        nursery.add("after").await;
        nursery
            .store
            .record_uses(vec![(nursery.client.client_id(), nursery.now().plus_secs(number))])
            .await
            .unwrap();
        assert_eq!(nursery.ids().await, first_five_plus(&["after"]));
    }
    site.is_unchanged(old);
}

/// Also if no other host is left: a short outage of the primary must not create a second timeline.
#[tokio::test(flavor = "multi_thread")]
async fn a_stale_primary_does_not_replace_an_unreachable_primary() {
    let site = Site::start_with_stale_primary().await;
    let (nursery, old) = (&site.nursery, &site.cluster.nodes()[0]);
    blocking(|| site.cluster.primary().freeze());
    nursery.wait_for_host(site.cluster.primary(), false).await;
    let result = nursery.store.record_uses(vec![(nursery.client.client_id(), nursery.now())]).await;
    assert!(matches!(result, Err(StoreError::Unreachable(_))), "{result:?}");
    for _ in 0..20 {
        assert_eq!(nursery.ids().await, first_five_plus(&["after"]), "from the standby");
    }
    let last = site.cluster.standbys().into_iter().find(|node| node.port() != old.port()).unwrap();
    blocking(|| last.kill());
    nursery.wait_for_host(last, false).await;
    let result = nursery.ids_since(0).await;
    assert!(matches!(result, Err(StoreError::Unreachable(_))), "{result:?}");
    site.cluster.primary().thaw();
    nursery.wait_for_host(site.cluster.primary(), true).await;
    assert_eq!(nursery.ids().await, first_five_plus(&["after"]));
    site.is_unchanged(old);
}

impl Site {
    /// The first node was replaced after a crash, and came back. A batch was added in between.
    async fn start_with_stale_primary() -> Self {
        let site = Self::start(ReadFrom::Any).await;
        let (nursery, old) = (&site.nursery, &site.cluster.nodes()[0]);
        blocking(|| old.kill());
        blocking(|| site.cluster.fail_over());
        nursery.add("after").await;
        for standby in site.cluster.standbys().into_iter().filter(|standby| standby.is_running()) {
            blocking(|| standby.wait_to_catch_up_with(site.cluster.primary()));
        }
        blocking(|| old.start_again());
        nursery.wait_for_host(old, true).await;
        site
    }

    /// The host has the initial data and nothing that was written later.
    fn is_unchanged(&self, old: &batchscan_testbed::Postgres) {
        let counts =
            "SELECT (SELECT count(*) FROM batch), (SELECT version FROM organisation WHERE name = 'Nursery'),
                           (SELECT count(last_used_at) FROM credential)";
        assert_eq!(blocking(|| old.sql(&self.database, counts)), "5|1|0");
    }
}
