//! Failures of any store. Those of one database are in `sqlite_failures` and `postgres_failures`.

use super::*;

/// Contract section 7; decision 029: the cause is in the log only.
#[tokio::test]
async fn a_permanent_failure_is_a_500_with_a_fixed_text() {
    let (app, client, token) = TestApp::filled(1_000, &many(3)).await;
    app.drop_batch_table();
    let cause = match crate::STORE {
        StoreKind::Sqlite => "no such table",
        StoreKind::Postgres => "42P01",
    };
    for (turn, path) in PATHS.into_iter().enumerate() {
        let id = format!("{}-{turn}", client.id);
        let reply = app.get_with(path, &token, "x-request-id", &id).await;
        reply.is_detail(500, "Internal Server Error");
        assert_eq!(reply.header("retry-after"), None);
        let lines = log::lines_with(&id);
        assert!(lines.len() == 1 && lines[0].contains(cause), "{lines:?}");
    }
}
