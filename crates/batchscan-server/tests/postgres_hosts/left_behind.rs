//! An old primary that comes back after a failover and still takes itself for the primary.

use batchscan_store::{ReadFrom, StoreError};

use crate::site::{Site, first_five_and, harm, now};

/// Design, "Storage": written to whichever host is primary, and there is one.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_primary_that_comes_back_is_neither_read_nor_written() {
    let site = Site::start(ReadFrom::Any).await;
    let (nursery, old) = (&site.nursery, &site.cluster.nodes()[0]);
    harm(|| old.kill());
    harm(|| site.cluster.fail_over());
    nursery.add("after").await;
    site.catch_up_living();
    harm(|| old.start_again());
    nursery.sees_host(old, true).await;
    assert!(!harm(|| old.is_in_recovery()), "it takes itself for the primary");
    let new = format!("127.0.0.1:{}", site.cluster.primary().port());
    let primaries = |host: &batchscan_store::HostHealth| host.is_primary.then(|| host.host.clone());
    assert_eq!(nursery.store.hosts().iter().filter_map(primaries).collect::<Vec<_>>(), [new]);
    for number in 0..20 {
        nursery.add("after").await;
        nursery.store.record_uses(vec![(nursery.client.id.clone(), now().plus_secs(number))]).await.unwrap();
        assert_eq!(nursery.ids().await, first_five_and(&["after"]));
    }
    site.is_untouched(old);
}

/// Nor when nobody else is left: a hiccup of the true primary must not make two histories.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_primary_that_comes_back_does_not_take_over_from_the_next() {
    let site = Site::start(ReadFrom::Any).await;
    let (nursery, old) = (&site.nursery, &site.cluster.nodes()[0]);
    harm(|| old.kill());
    harm(|| site.cluster.fail_over());
    nursery.add("after").await;
    site.catch_up_living();
    harm(|| old.start_again());
    nursery.sees_host(old, true).await;
    harm(|| site.cluster.primary().freeze());
    nursery.sees_host(site.cluster.primary(), false).await;
    let noted = nursery.store.record_uses(vec![(nursery.client.id.clone(), now())]).await;
    assert!(matches!(noted, Err(StoreError::Unreachable(_))), "{noted:?}");
    for _ in 0..20 {
        assert_eq!(nursery.ids().await, first_five_and(&["after"]), "the standby knows it");
    }
    let last = site.cluster.standbys().into_iter().find(|node| node.port() != old.port()).unwrap();
    harm(|| last.kill());
    nursery.sees_host(last, false).await;
    let refused = nursery.ids_since(0).await;
    assert!(matches!(refused, Err(StoreError::Unreachable(_))), "{refused:?}");
    site.cluster.primary().thaw();
    nursery.sees_host(site.cluster.primary(), true).await;
    assert_eq!(nursery.ids().await, first_five_and(&["after"]));
    site.is_untouched(old);
}

impl Site {
    /// As [`Site::catch_up`], while the old primary is dead.
    fn catch_up_living(&self) {
        for standby in self.cluster.standbys().into_iter().filter(|standby| standby.is_running()) {
            harm(|| standby.wait_to_catch_up_with(self.cluster.primary()));
        }
    }

    /// A host has what the site began with, and nothing that was written after.
    fn is_untouched(&self, old: &batchscan_testbed::Postgres) {
        let told =
            "SELECT (SELECT count(*) FROM batch), (SELECT version FROM organisation WHERE name = 'Nursery'),
                           (SELECT count(last_used_at) FROM credential)";
        assert_eq!(harm(|| old.sql(&self.database, told)), "5|1|0");
    }
}
