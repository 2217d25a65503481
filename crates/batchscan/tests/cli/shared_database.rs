//! Several processes on one database.

use serde_json::Value;

use crate::http::{get, get_head, request, token};
use crate::scans;
use crate::service::Service;
use crate::site::{ORG, Site};

/// Reads all pages, in turns from both services.
fn read_pages(services: &[Service; 2], token: &str, query: &str) -> Vec<Value> {
    let mut pages = Vec::new();
    let mut target = format!("/v2/batches?{query}");
    loop {
        let service = &services[pages.len() % 2];
        let page: Value = serde_json::from_slice(&get(service, &target, token).ok()).unwrap();
        let next = page["next_token"].as_str().map(str::to_owned);
        pages.push(page);
        match next {
            Some(next) => target = format!("/v2/batches?next_token={next}"),
            None => return pages,
        }
    }
}

/// Decisions 003 and 022.
#[test]
fn tokens_and_cursors_work_on_both_services() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..3_456, "x")));
    let credential = site.credential();
    let services = [site.serve(&[]), site.serve(&[])];
    let tokens = services.each_ref().map(|service| token(service, &credential));
    let everything = scans::array(0..3_456, "x");
    for service in &services {
        for token in &tokens {
            assert_eq!(get(service, "/v1/batches", token).text(), everything);
        }
    }
    let pages = read_pages(&services, &tokens[0], "");
    let sizes: Vec<usize> = pages.iter().map(|page| page["data"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [1_000, 1_000, 1_000, 456]);
    let batches: Vec<Value> =
        pages.iter().flat_map(|page| page["data"].as_array().unwrap().clone()).collect();
    assert_eq!(batches, serde_json::from_str::<Vec<Value>>(&everything).unwrap());
}

/// Decision 031.
#[test]
fn both_services_send_the_same_bytes_and_etags() {
    for site in [Site::new, Site::on_postgres] {
        check_bytes_and_etags(&site());
    }
}

fn check_bytes_and_etags(site: &Site) {
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_500, "x")));
    let services = [site.serve(&[]), site.serve(&[])];
    let token = token(&services[0], &site.credential());
    let dates = format!("start_date={}&end_date={}", scans::created(10), scans::created(400));
    for target in
        ["/v1/batches", "/v2/batches?start_date=2026-01-01T00:10:00Z", &format!("/v2/batches?{dates}")]
    {
        let [one, other] = services.each_ref().map(|service| get(service, target, &token));
        let etag = one.header("etag").unwrap();
        assert_eq!(other.header("etag"), Some(etag));
        for service in &services {
            let head = format!("{}\r\nIf-None-Match: {etag}", get_head(target, &token));
            assert_eq!(request(service, &head, "").status, 304);
        }
        // Cursors are encrypted with a random nonce; all else is equal.
        let batches = |text: &str| text.split("\"next_token\"").next().unwrap().to_owned();
        assert_eq!(batches(one.text()), batches(other.text()));
    }
}

#[test]
fn both_services_see_an_import_at_once() {
    let site = Site::new();
    let services = [site.serve(&[]), site.serve(&[])];
    let token = token(&services[0], &site.credential());
    for round in 0..3 {
        let comment = format!("round {round}");
        site.import(&site.write("a.ndjson", scans::ndjson(0..1_200, &comment)));
        for service in &services {
            assert_eq!(get(service, "/v1/batches", &token).text(), scans::array(0..1_200, &comment));
            let page = get(service, "/v2/batches", &token).json();
            assert_eq!(page["data"][999]["comment"], comment.as_str());
        }
    }
}

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
