//! Several processes on one database.

use crate::http::{get, token};
use crate::scans;
use crate::service::Service;
use crate::site::{ORG, Site};

#[test]
fn services_that_start_together_create_one_database() {
    let site = Site::without_org();
    let services: Vec<Service> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..4).map(|_| scope.spawn(|| site.serve(&[]))).collect();
        starting.into_iter().map(|started| started.join().unwrap()).collect()
    });
    site.run(&["org", "add", ORG]).succeeds();
    let credential = site.credential();
    let token = token(&services[3], &credential);
    for service in &services {
        assert_eq!(get(service, "/v1/batches", &token).ok(), b"[]");
    }
    assert!(site.run(&["doctor"]).succeeds().ends_with("no problems found\n"));
}

#[test]
fn a_service_starts_and_responds_while_another_process_writes() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_200, "x")));
    let credential = site.credential();
    drop(site.serve(&[]));
    let writer = site.sql();
    writer.execute_batch("BEGIN IMMEDIATE; UPDATE organisation SET version = version + 1").unwrap();
    let service = site.serve(&[]);
    let token = token(&service, &credential);
    assert_eq!(get(&service, "/v1/batches", &token).text(), scans::array(0..1_200, "x"));
    assert_eq!(get(&service, "/readyz", &token).status, 200);
    assert!(site.run(&["credential", "list", "--org", ORG]).succeeds().contains(&credential.id));
    writer.execute_batch("ROLLBACK").unwrap();
}

#[test]
fn concurrent_imports_are_serialised() {
    let site = Site::new();
    let files: Vec<String> = (0..4)
        .map(|part| {
            site.write(&format!("{part}.ndjson"), scans::ndjson(part * 3_000..(part + 1) * 3_000, "x"))
        })
        .collect();
    std::thread::scope(|scope| {
        for file in &files {
            scope.spawn(|| assert!(site.import(file).contains(": 3,000 new, 0 corrected, 0 unchanged")));
        }
    });
    let service = site.serve(&[]);
    let token = token(&service, &site.credential());
    assert_eq!(get(&service, "/v1/batches", &token).text(), scans::array(0..12_000, "x"));
}
