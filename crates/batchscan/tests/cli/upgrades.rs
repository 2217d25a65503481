//! A database of an older version is upgraded, and clients do not notice.

use crate::http::{get, get_head, request, token};
use crate::scans;
use crate::site::{Site, postgres};

/// Makes the newest schema the first one. For both databases.
pub(crate) const TO_FIRST_SCHEMA: &str = "
    DROP TABLE operator_token;
    DROP TABLE import;
    DROP TABLE audit;
    DROP INDEX batch_by_version;
    DROP INDEX moved_batch_by_version;
    ALTER TABLE organisation DROP COLUMN pruned_version;
    DROP TABLE data_version;
    ALTER TABLE organisation DROP COLUMN imported_at;
    DROP TABLE session;
    DELETE FROM schema_history WHERE version > 1;";

#[test]
fn an_upgrade_keeps_batches_tokens_and_etags() {
    check(&Site::new(), |site| site.sql().execute_batch(TO_FIRST_SCHEMA).unwrap());
}

#[test]
fn an_upgrade_of_postgresql_keeps_batches_tokens_and_etags() {
    check(&Site::on_postgres(), |site| {
        let name = site.database.rsplit('/').next().unwrap();
        postgres().sql(name, TO_FIRST_SCHEMA).unwrap();
    });
}

fn check(site: &Site, downgrade: impl Fn(&Site)) {
    const TARGETS: [&str; 2] = ["/v1/batches", "/v2/batches?limit=10"];
    site.import(&site.write("a.ndjson", scans::ndjson(0..40, "x")));
    let mut service = site.serve(&[]);
    let token = token(&service, &site.credential());
    let before = TARGETS.map(|target| get(&service, target, &token));
    service.stop();
    downgrade(site);
    let service = site.serve(&[]);
    for (target, old) in TARGETS.iter().zip(before) {
        let etag = old.header("etag").unwrap();
        let head = format!("{}\r\nIf-None-Match: {etag}", get_head(target, &token));
        assert_eq!(request(&service, &head, "").status, 304, "{target}");
        assert_eq!(get(&service, target, &token).body, old.body, "{target}");
    }
    let changes = get(&service, "/v2/changes", &token).json();
    assert_eq!(changes["data"].as_array().unwrap().len(), 40);
}
