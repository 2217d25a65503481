//! `serve --log-format json`: every line on standard error is JSON.

use serde_json::Value;

use crate::http;
use crate::program::Outcome;
use crate::site::{ORG, Site};

/// The lines of a log. Fails if one of them is not a JSON object with a level and a message or a route.
#[track_caller]
fn parse_lines(log: &str) -> Vec<Value> {
    let parse = |line: &str| {
        let json: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(
            json["timestamp"].is_string() && json["level"].is_string() && json["target"].is_string(),
            "{line}"
        );
        assert!(json["message"].is_string() || json["route"].is_string(), "{line}");
        json
    };
    log.lines().map(parse).collect()
}

#[test]
fn a_service_logs_json_from_start_to_stop() {
    let site = Site::new();
    let credential = site.credential();
    let pem = site.name("try.pem");
    let flags = ["--log-format", "json", "--operator-listen", "127.0.0.1:0", "--self-signed", &pem];
    let mut tls = site.serve(&flags);
    tls.stop();
    let mut service = site.serve(&flags[..4]);
    let token = http::token(&service, &credential);
    http::get(&service, "/v2/batches", &token);
    http::get(&service, "/v2/batches?start_date=x", &token);
    http::get(&service, "/v2/batches", "wrong");
    http::request(&service, "not HTTP", "");
    service.stop();
    assert!(parse_lines(&tls.log()).iter().any(|line| line["sha256"].is_string()), "{}", tls.log());
    let lines = parse_lines(&service.log());
    assert_eq!(lines[0]["version"], env!("CARGO_PKG_VERSION"), "{}", service.log());
    // A line is written when its response has been sent, so lines of different connections come in any order.
    let requests: Vec<_> = lines.iter().filter(|line| line["status"].is_u64()).collect();
    let mut statuses: Vec<_> = requests.iter().filter_map(|line| line["status"].as_u64()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 400, 401, 422]);
    assert!(requests.iter().all(|line| line["address"] == "127.0.0.1"));
    let page = requests.iter().find(|line| line["route"] == "/v2/batches" && line["status"] == 200);
    let page = page.expect("a line for the page");
    let who = ["org_name", "client", "method"].map(|name| page[name].as_str().unwrap());
    assert_eq!(who, [ORG, &credential.id, "GET"]);
    assert_eq!(lines.last().unwrap()["level"], "INFO");
}

#[test]
fn a_service_that_cannot_start_reports_it_in_json() {
    let site = Site::new();
    let missing = site.url("missing/scans.db");
    let run = |flags: &[&str], variables: &[(&str, &str)]| {
        let mut command = site.command(&["serve"]);
        Outcome::run(command.args(flags).envs(variables.iter().copied()))
    };
    let in_json = ("BATCHSCAN_LOG_FORMAT", "json");
    for (flags, variables, code, message) in [
        (&["--log-format=json", "--listen", "192.0.2.1:1"][..], &[][..], 1, "cannot listen on 192.0.2.1:1"),
        (&["--log-format", "json", "--database", &missing], &[], 1, "is not a folder"),
        (&["--tls-cert", "a.pem", "--tls-key", "b.pem"], &[in_json], 1, "cannot read a.pem"),
        (
            &[],
            &[in_json, ("BATCHSCAN_LOG", "loud")],
            2,
            "invalid value 'loud' for BATCHSCAN_LOG: expected error, warn, info, debug or trace",
        ),
        (&["--page-size", "0", "--log-format", "json"], &[], 2, "invalid value '0' for '--page-size <N>'"),
        (
            &["--database", "scans.db"],
            &[in_json],
            2,
            "invalid value for '--database <URL>': not a database URL",
        ),
        (&["--unknown"], &[in_json], 2, "unexpected argument '--unknown'"),
    ] {
        let outcome = run(flags, variables);
        let lines = parse_lines(&outcome.err);
        let last = lines.last().unwrap();
        assert!(last["message"].as_str().unwrap().contains(message), "{flags:?}: {last}");
        assert_eq!((outcome.code, last["level"].as_str()), (Some(code), Some("ERROR")), "{outcome:?}");
    }
    // The option overrides the variable.
    let text = run(&["--log-format", "text", "--listen", "192.0.2.1:1"], &[in_json]);
    assert!(text.err.lines().last().unwrap().starts_with("error: cannot listen on 192.0.2.1:1"), "{text:?}");
}
