//! The run against a correct service, and against services with one fault each.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests and their servers fail by panicking")]

mod dates;
mod mock_service;

use std::time::Duration;

use batchscan_check::{Finding, Limits, Report, Secret, Source, Target, Unreachable, Verdict, run_within};
use batchscan_testbed::ScriptedServer;
use batchscan_testbed::scripted_server::{Framing, Request, Response};
use mock_service::{CLIENT, Fault, MockService, SECRET, TOKEN};

#[test]
fn a_correct_service_passes_every_rule() {
    let report = check(MockService::large(Fault::None));
    assert_no_failures(&report);
    let undecided = ids(&report, |verdict| matches!(verdict, Verdict::Undecided { .. }));
    let unseen = ["errors-503-have-a-detail", "errors-503-say-when-to-retry", "errors-429-say-when-to-retry"];
    assert_eq!(undecided, unseen, "{}", report.text(true, false));
    assert!(report.requests <= Limits::default().requests, "{} requests", report.requests);
}

#[test]
fn a_bare_deployment_breaks_only_decisions() {
    let report = check(MockService::with(Fault::Bare));
    assert!(report.conforms(false), "{}", report.text(false, false));
    assert!(!report.conforms(true));
    assert_fails(&report, "batches-have-an-etag");
    assert_fails(&report, "token-type-is-bearer");
    assert_fails(&report, "gzip-on-demand");
}

#[test]
fn a_service_without_changes_breaks_no_rule() {
    let report = check(MockService::with(Fault::NoChanges));
    assert_no_failures(&report);
    assert_undecided(&report, "changes-give-all-batches", "the service has no /v2/changes");
    assert_undecided(&report, "batch-by-unknown-id-is-404", "the service has no /v2/batches/{batch_id}");
}

#[test]
fn a_service_with_few_batches_breaks_no_rule() {
    let empty = check(MockService::sized(Fault::None, 0, 30));
    assert_no_failures(&empty);
    assert!(empty.undecided() > 30, "{}", empty.text(true, false));
    let one_batch = check(MockService::sized(Fault::None, 1, 30));
    assert_no_failures(&one_batch);
    assert_eq!(verdict(&one_batch, "field-warnings"), &Verdict::Pass);
}

#[test]
fn a_base_url_may_have_a_path_and_a_trailing_slash() {
    let service = MockService::sized(Fault::None, 1, 30);
    let server = ScriptedServer::start(move |request| match request.target.strip_prefix("/api") {
        Some(target) => service.respond(&Request { target: target.to_owned(), ..request.clone() }),
        None => Response::new(404, ""),
    });
    for path in ["/api/", "/api"] {
        assert_no_failures(&check_url(&(server.url() + path)));
    }
}

#[test]
fn each_fault_fails_its_rule() {
    use Fault::*;
    let cases = [
        (CursorLoops, "page-walk-ends-with-null", "the next_token of an earlier page"),
        (PagesOverlap, "batch-id-is-unique", "batch-000029 again on page 2"),
        (SecretEchoed, "no-answer-echoes-a-secret", "the [secret]"),
        (SecretEchoed, "errors-repeat-no-input", "input"),
        (DecimalsAsNumbers, "field-avg-germination-rate", "avg_germination_rate: 92.5"),
        (FieldMissing, "batch-has-all-fields", "no comment"),
        (FieldAdded, "batch-has-no-other-fields", "organisation"),
        (DateWithoutZ, "field-batch-creation-date", "+00:00"),
        (IntegerAsString, "field-number-of-images", "\"12\""),
        (NullName, "field-batch-name", "null"),
        (PageTruncated, "v2-is-an-envelope", "200 {"),
        (BodyCutOff, "v1-is-a-flat-array", "an incomplete body"),
        (HtmlErrors, "errors-have-a-detail", "<html>"),
        (HtmlErrors, "auth-wrong-secret-is-401", "<html>"),
        (DetailAsText, "auth-missing-client-id-is-422", "a field is missing"),
        (StartExclusive, "window-v1-start-is-inclusive", "without batch"),
        (StartExclusive, "window-v2-start-is-inclusive", "without batch"),
        (EndExclusive, "window-v2-end-is-inclusive", "without batch"),
        (NaiveDateAccepted, "date-without-timezone-is-422", "200"),
        (V1DropsABatch, "versions-give-the-same-batches", "without batch"),
        (V1DropsABatch, "v1-above-1000-is-whole", "without batch"),
        (V1DiffersInAField, "versions-give-the-same-objects", "other"),
        (JsonBodyAccepted, "auth-json-body-is-refused", "200"),
        (WrongSecretAccepted, "auth-wrong-secret-is-401", "200"),
        (TokenNotChecked, "batches-refuse-an-invented-token", "200"),
        (UnavailableWithoutDetail, "errors-503-have-a-detail", "busy"),
        (OffsetRejected, "date-with-utc-offset-is-accepted", "422"),
        (WrongOrder, "v1-is-in-order", "before"),
        (ChangesDropABatch, "changes-give-all-batches", "without batch batch-000089"),
        (ChangesRepeat, "changes-without-news-are-empty", "200 {\"data\":[{"),
        (BatchByIdDiffers, "batch-by-id-is-the-same-object", "200"),
    ];
    for (fault, id, shown) in cases {
        let is_large = fault == V1DropsABatch;
        let report = check(if is_large { MockService::large(fault) } else { MockService::with(fault) });
        let (request, response, expected) = assert_fails(&report, id);
        assert!(response.contains(shown), "{id}: {response:?} does not contain {shown:?}");
        assert!(!request.is_empty() && !expected.is_empty(), "{id}");
    }
}

#[test]
fn a_fault_in_one_field_breaks_no_other_rule() {
    let failures_with = |fault| failures(&check(MockService::with(fault)));
    assert_eq!(failures_with(Fault::DecimalsAsNumbers), ["field-avg-germination-rate"]);
    assert_eq!(failures_with(Fault::FieldMissing), ["batch-has-all-fields"]);
    assert_eq!(failures_with(Fault::FieldAdded), ["batch-has-no-other-fields"]);
    assert_eq!(failures_with(Fault::NullName), ["field-batch-name"]);
}

#[test]
fn endless_pages_leave_rules_undecided() {
    let report = check(MockService::with(Fault::CursorNeverEnds));
    for id in ["page-walk-ends-with-null", "batch-id-is-unique", "v1-without-dates-gives-all"] {
        assert_undecided(&report, id, "the run's limit was reached after 12 pages");
    }
    assert!(report.requests <= Limits::default().requests);
}

#[test]
fn a_service_that_is_sometimes_unavailable_passes() {
    let report = check(MockService::with(Fault::SometimesUnavailable));
    assert!(report.conforms(false), "{}", report.text(false, false));
    assert_eq!(verdict(&report, "errors-503-have-a-detail"), &Verdict::Pass);
    // The mock sends Retry-After: 0, so that this test does not wait.
    assert_fails(&report, "errors-503-say-when-to-retry");
}

#[test]
fn an_unavailable_service_is_undecided() {
    let report = check(MockService::with(Fault::AlwaysUnavailable));
    assert_undecided(&report, "v2-is-an-envelope", "kept returning 503");
    assert_eq!(failures(&report), ["errors-503-say-when-to-retry"]);
    assert!(!report.conforms(false), "no rule on batches could be checked");
}

#[test]
fn control_characters_are_not_printed() {
    let report = check(MockService::with(Fault::ControlCharacters));
    assert_fails(&report, "field-warnings");
    let text = report.text(true, false);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n') && !text.contains('\u{202e}'));
}

#[test]
fn a_gzip_bomb_is_not_decompressed() {
    let limits = Limits { body_bytes: 1 << 20, ..limits() };
    let report = check_within(&MockService::with(Fault::GzipBomb).serve().url(), &limits).unwrap();
    assert_undecided(&report, "v2-is-an-envelope", "more than 1048576 bytes");
}

#[test]
fn a_service_that_stops_responding_does_not_block_the_run() {
    let limits = Limits { response_timeout: Duration::from_millis(200), ..limits() };
    let report = check_within(&MockService::with(Fault::StopsResponding).serve().url(), &limits).unwrap();
    let text = report.text(false, false);
    assert!(text.contains("response  no response within 0.2 s"), "{text}");
    assert!(text.contains("the service did not respond to 3 requests in a row"), "{text}");
}

#[test]
fn a_redirect_is_not_followed_and_another_web_server_fails() {
    let redirect = || Response::new(307, "").with("Location", "http://127.0.0.1:1/");
    let report = check_url(&ScriptedServer::start(move |_| redirect()).url());
    let (_, response, _) = assert_fails(&report, "auth-v2-gives-a-token");
    assert!(response.starts_with("307"), "{response}");
    let page = || Response::new(200, "<html>hello</html>").with("Content-Type", "text/html");
    let report = check_url(&ScriptedServer::start(move |_| page()).url());
    assert_fails(&report, "auth-v1-gives-a-token");
    assert_fails(&report, "batches-v1-need-a-token");
    assert!(!report.conforms(false));
}

#[test]
fn the_limit_on_requests_is_kept() {
    let limits = Limits { requests: 40, ..limits() };
    let report = check_within(&MockService::with(Fault::None).serve().url(), &limits).unwrap();
    assert!(report.requests <= 40);
    assert_no_failures(&report);
    assert!(report.text(false, false).contains("the run's limit of 40 requests was reached"));
}

#[test]
fn no_output_contains_the_secret_or_a_token() {
    use Fault::*;
    for fault in [SecretEchoed, HtmlErrors, Bare, WrongSecretAccepted, TokenNotChecked] {
        let report = check(MockService::with(fault));
        let json = serde_json::to_string(&report).unwrap();
        for output in [report.text(true, false), json, format!("{report:?}")] {
            assert!(!output.contains(SECRET) && !output.contains(TOKEN), "{output}");
        }
    }
}

#[test]
fn findings_are_reported_during_the_run() {
    let server = MockService::sized(Fault::None, 0, 30).serve();
    let mut reported = Vec::new();
    let report = run_within(&target(&server.url()), &limits(), &mut |finding: &Finding| {
        reported.push(finding.clone())
    })
    .unwrap();
    assert_eq!(reported, report.findings);
    assert!(reported.iter().any(|finding| finding.source == Source::Decision(13)));
}

#[test]
fn an_unreachable_service_is_a_one_line_error() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let default = limits().response_timeout;
    let short = Duration::from_millis(200);
    let servers = [Response::none().framed(Framing::Silent), Response::new(401, ""), Response::new(404, "")]
        .map(|response| ScriptedServer::start(move |_| response.clone()));
    let [silent, unauthorized, not_found] = servers.each_ref().map(ScriptedServer::url);
    let cases = [
        (silent, short, ": no response within 0.2 s; check the address, and that"),
        (format!("http://{closed}"), default, ": connection refused; check the address, and that"),
        ("nursery".to_owned(), default, "it must begin with http:// or https://"),
        (unauthorized, default, "rejected the client id and secret"),
        (not_found, default, "give the base URL"),
    ];
    for (url, response_timeout, expected) in cases {
        let limits = Limits { response_timeout, ..limits() };
        let error = check_within(&url, &limits).unwrap_err().to_string();
        assert!(error.contains(url.trim_start_matches("http://")) && error.contains(expected), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

fn limits() -> Limits {
    Limits { retry_pause: Duration::from_millis(1), ..Limits::default() }
}

fn target(url: &str) -> Target {
    let client_secret = Secret::new(SECRET.to_owned());
    Target { base_url: url.to_owned(), client_id: CLIENT.to_owned(), client_secret, ca_cert: None }
}

fn check_within(url: &str, limits: &Limits) -> Result<Report, Unreachable> {
    run_within(&target(url), limits, &mut |_| {})
}

fn check_url(url: &str) -> Report {
    check_within(url, &limits()).unwrap()
}

fn check(service: MockService) -> Report {
    check_url(&service.serve().url())
}

fn verdict<'a>(report: &'a Report, id: &str) -> &'a Verdict {
    let finding = report.findings.iter().find(|finding| finding.id == id);
    &finding.unwrap_or_else(|| panic!("no rule {id}")).verdict
}

fn assert_fails<'a>(report: &'a Report, id: &str) -> (&'a str, &'a str, &'a str) {
    match verdict(report, id) {
        Verdict::Fail { request, response, expected } => (request, response, expected),
        verdict => panic!("{id}: {verdict:?}\n{}", report.text(true, false)),
    }
}

fn assert_undecided(report: &Report, id: &str, reason: &str) {
    let verdict = verdict(report, id);
    assert!(matches!(verdict, Verdict::Undecided { why } if why.contains(reason)), "{id}: {verdict:?}");
}

fn assert_no_failures(report: &Report) {
    assert_eq!(failures(report), [""; 0], "{}", report.text(true, false));
}

fn failures(report: &Report) -> Vec<&'static str> {
    ids(report, |verdict| matches!(verdict, Verdict::Fail { .. }))
}

fn ids(report: &Report, matches: impl Fn(&Verdict) -> bool) -> Vec<&'static str> {
    report.findings.iter().filter(|finding| matches(&finding.verdict)).map(|finding| finding.id).collect()
}
