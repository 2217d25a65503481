//! The rules of `batchscan check`: everything of the contract and the decisions that any client can see.

use batchscan_check::{Secret, Target, run};
use batchscan_model::Batch;

use super::*;

/// Every rule names its section or decision. No other test repeats decisions 001, 002, 012, 017 and 024.
#[tokio::test(flavor = "multi_thread")]
async fn the_service_follows_every_rule() {
    let batches = [many(1_200), vec![Batch::from_json(FULL).unwrap()]].concat();
    let (app, client, _) = TestApp::filled(500, &batches).await;
    let target = Target {
        base_url: app.url.clone(),
        client_id: client.id,
        client_secret: Secret::new(client.secret),
        ca_cert: None,
    };
    let report = tokio::task::spawn_blocking(move || run(&target, &mut |_| {})).await.unwrap().unwrap();
    assert!(report.conforms(true), "{}", report.text(true, false));
}
