//! The run against a right service, and against services that each do one thing wrong.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its servers too")]

mod dates;
mod fault;
mod toy;
mod wire;

use std::time::{Duration, Instant};

use batchscan_check::{Demand, Finding, Limits, Report, Secret, Target, Unreachable, Verdict, run_within};
use fault::Fault;
use toy::{CLIENT, SECRET, TOKEN, Toy};

#[test]
fn a_right_service_passes_every_rule() {
    let report = check(Toy::large(Fault::None));
    assert_eq!(failures(&report), [""; 0], "{}", report.text(true, false));
    let undecided = ids(&report, |verdict| matches!(verdict, Verdict::CannotTell(_)));
    let unmet = ["errors-503-have-a-detail", "errors-503-say-when-to-retry", "errors-429-say-when-to-retry"];
    assert_eq!(undecided, unmet, "{}", report.text(true, false));
    assert!(report.requests <= Limits::default().requests, "{} requests", report.requests);
}

#[test]
fn a_bare_deployment_breaks_decisions_only() {
    let report = check(Toy::with(Fault::Bare));
    assert!(report.conforms(false), "{}", report.text(false, false));
    assert!(!report.conforms(true));
    assert_fails(&report, "batches-have-an-etag");
    assert_fails(&report, "token-type-is-bearer");
}

#[test]
fn an_empty_organisation_leaves_rules_undecided_and_breaks_none() {
    let report = check(Toy::holding(0));
    assert_eq!(failures(&report), [""; 0], "{}", report.text(true, false));
    assert!(report.undecided() > 30, "{}", report.text(true, false));
}

#[test]
fn one_batch_is_enough_for_the_rules_on_fields() {
    let report = check(Toy::holding(1));
    assert_eq!(failures(&report), [""; 0], "{}", report.text(true, false));
    assert_eq!(finding(&report, "field-warnings").verdict, Verdict::Pass);
}

#[test]
fn a_base_url_may_have_a_path_and_a_slash() {
    let toy = Toy::holding(1);
    let url = wire::serve(move |mut request| {
        request.path = request.path.strip_prefix("/api")?.to_owned();
        toy.answer(&request)
    });
    for url in [format!("{url}/api/"), format!("{url}/api")] {
        let report = check_url(&url);
        assert_eq!(failures(&report), [""; 0], "{}", report.text(true, false));
    }
}

#[test]
fn one_fault_is_found_by_its_rule() {
    use Fault::*;
    let cases = [
        (CursorCircles, "page-walk-ends-with-null", "a next_token that had come before"),
        (PagesOverlap, "batch-id-is-unique", "batch-000029 a second time, on page 2"),
        (SecretEchoed, "no-answer-echoes-a-secret", "the [secret]"),
        (SecretEchoed, "errors-repeat-no-input", "input"),
        (DecimalsAsNumbers, "field-avg-germination-rate", "avg_germination_rate: 92.5"),
        (FieldMissing, "batch-has-all-fields", "no comment"),
        (FieldAdded, "batch-has-no-other-fields", "organisation"),
        (DateWithoutZ, "field-batch-creation-date", "+00:00"),
        (IntegerAsString, "field-number-of-images", "\"12\""),
        (NullName, "field-batch-name", "null"),
        (PageTruncated, "v2-is-an-envelope", "200 {"),
        (BodyCutOff, "v1-is-a-flat-array", "the body broke off"),
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
        (OffsetRefused, "date-with-utc-offset-is-accepted", "422"),
        (WrongOrder, "v1-is-in-order", "before"),
    ];
    for (fault, id, telling) in cases {
        let report = check(if fault == V1DropsABatch { Toy::large(fault) } else { Toy::with(fault) });
        let Verdict::Fail { sent, came, expected } = assert_fails(&report, id) else { continue };
        assert!(came.contains(telling), "{id} says {came:?}, without {telling:?}");
        assert!(!sent.is_empty() && !expected.is_empty(), "{id}");
    }
}

#[test]
fn a_fault_in_one_field_breaks_no_other_rule_of_the_interface() {
    for (fault, id) in [
        (Fault::DecimalsAsNumbers, "field-avg-germination-rate"),
        (Fault::FieldMissing, "batch-has-all-fields"),
        (Fault::FieldAdded, "batch-has-no-other-fields"),
        (Fault::NullName, "field-batch-name"),
    ] {
        assert_eq!(failures(&check(Toy::with(fault))), [id]);
    }
}

#[test]
fn a_walk_that_is_cut_is_undecided_and_the_run_ends() {
    let report = check(Toy::with(Fault::CursorNeverEnds));
    for id in ["page-walk-ends-with-null", "batch-id-is-unique", "v1-without-dates-gives-all"] {
        let verdict = &finding(&report, id).verdict;
        assert!(
            matches!(verdict, Verdict::CannotTell(why) if why.contains("cut after")),
            "{id}: {verdict:?}"
        );
    }
    assert!(report.requests <= Limits::default().requests);
}

#[test]
fn a_service_out_of_breath_now_and_then_still_passes() {
    let report = check(Toy::with(Fault::SometimesUnavailable));
    assert!(report.conforms(false), "{}", report.text(false, false));
    assert_eq!(finding(&report, "errors-503-have-a-detail").verdict, Verdict::Pass);
    // It says 0, so that this test need not wait.
    assert_fails(&report, "errors-503-say-when-to-retry");
}

#[test]
fn a_service_that_is_down_is_undecided_not_wrong() {
    let report = check(Toy::with(Fault::AlwaysUnavailable));
    let verdict = &finding(&report, "v2-is-an-envelope").verdict;
    assert!(matches!(verdict, Verdict::CannotTell(why) if why.contains("kept answering 503")), "{verdict:?}");
    assert_eq!(report.failed(), 1, "{}", report.text(true, false)); // Retry-After: 0, for this test's sake
    assert!(!report.conforms(false), "nothing was seen that speaks for it");
}

#[test]
fn the_terminal_is_not_steered() {
    let report = check(Toy::with(Fault::SteersTheTerminal));
    assert_fails(&report, "field-warnings");
    let text = report.text(true, false);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n') && !text.contains('\u{202e}'));
}

#[test]
fn a_bomb_is_not_unpacked() {
    let limits = Limits { body_bytes: 1 << 20, ..limits() };
    let report = check_within(&Toy::with(Fault::GzipBomb).serve(), &limits).unwrap();
    let verdict = &finding(&report, "v2-is-an-envelope").verdict;
    assert!(
        matches!(verdict, Verdict::CannotTell(why) if why.contains("more than 1048576 bytes")),
        "{verdict:?}"
    );
}

#[test]
fn a_service_that_falls_silent_does_not_hold_the_run() {
    let limits = Limits { answer: Duration::from_millis(200), ..limits() };
    let begun = Instant::now();
    let report = check_within(&Toy::with(Fault::FallsSilent).serve(), &limits).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let failed = report.findings.iter().find_map(|finding| match &finding.verdict {
        Verdict::Fail { came, .. } if came.starts_with("no answer within 0.2 s") => Some(finding.id),
        _ => None,
    });
    assert!(failed.is_some(), "{}", report.text(false, false));
    assert!(report.text(false, false).contains("requests in a row had stayed without an answer"));
}

#[test]
fn a_socket_that_never_answers_is_unreachable() {
    let limits = Limits { answer: Duration::from_millis(200), ..limits() };
    let url = wire::serve(|_| None);
    let error = check_within(&url, &limits).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the service at {url} could not be reached (no answer within 0.2 s): is it running, and is this its address?"
        )
    );
}

#[test]
fn a_closed_port_and_a_bad_url_are_unreachable_in_one_line() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for url in [format!("http://{port}"), "nursery".to_owned(), "file:///etc".to_owned()] {
        let error = check_within(&url, &limits()).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn something_that_is_no_service_at_all_fails_and_ends() {
    let url =
        wire::serve(|_| Some(wire::Reply::new(200, "<html>hello</html>").with("Content-Type", "text/html")));
    let report = check_url(&url);
    assert_fails(&report, "auth-v1-gives-a-token");
    assert_fails(&report, "batches-v1-need-a-token");
    assert!(!report.conforms(false));
}

#[test]
fn a_redirect_is_an_answer_and_is_not_followed() {
    let url = wire::serve(|_| Some(wire::Reply::new(307, "").with("Location", "http://127.0.0.1:1/")));
    let report = check_url(&url);
    let Verdict::Fail { came, .. } = assert_fails(&report, "auth-v2-gives-a-token") else { return };
    assert!(came.starts_with("307"), "{came}");
}

#[test]
fn the_limit_on_requests_holds() {
    let limits = Limits { requests: 40, ..limits() };
    let report = check_within(&Toy::with(Fault::None).serve(), &limits).unwrap();
    assert!(report.requests <= 40);
    assert_eq!(failures(&report), [""; 0]);
    assert!(report.text(false, false).contains("the run's limit of 40 requests was reached"));
}

#[test]
fn no_output_ever_holds_the_secret_or_a_token() {
    for fault in [
        Fault::SecretEchoed,
        Fault::HtmlErrors,
        Fault::Bare,
        Fault::WrongSecretAccepted,
        Fault::TokenNotChecked,
    ] {
        let report = check(Toy::with(fault));
        let outputs =
            [report.text(true, false), serde_json::to_string(&report).unwrap(), format!("{report:?}")];
        for output in outputs {
            assert!(!output.contains(SECRET) && !output.contains(TOKEN), "{output}");
        }
    }
}

#[test]
fn findings_are_told_as_they_come() {
    let url = Toy::holding(0).serve();
    let mut told = Vec::new();
    let report =
        run_within(&target(&url), &limits(), &mut |finding: &Finding| told.push(finding.id)).unwrap();
    assert_eq!(told, report.findings.iter().map(|finding| finding.id).collect::<Vec<_>>());
    assert!(report.findings.iter().any(|finding| finding.demand == Demand::Decision(13)));
}

fn limits() -> Limits {
    Limits { pause: Duration::from_millis(1), ..Limits::default() }
}

fn target(url: &str) -> Target {
    Target {
        base_url: url.to_owned(),
        client_id: CLIENT.to_owned(),
        client_secret: Secret::new(SECRET.to_owned()),
    }
}

fn check_within(url: &str, limits: &Limits) -> Result<Report, Unreachable> {
    run_within(&target(url), limits, &mut |_| {})
}

fn check_url(url: &str) -> Report {
    check_within(url, &limits()).unwrap()
}

fn check(toy: Toy) -> Report {
    check_url(&toy.serve())
}

fn finding<'a>(report: &'a Report, id: &str) -> &'a Finding {
    report.findings.iter().find(|finding| finding.id == id).unwrap_or_else(|| panic!("no rule {id}"))
}

fn assert_fails<'a>(report: &'a Report, id: &str) -> &'a Verdict {
    let verdict = &finding(report, id).verdict;
    assert!(matches!(verdict, Verdict::Fail { .. }), "{id}: {verdict:?}\n{}", report.text(true, false));
    verdict
}

fn failures(report: &Report) -> Vec<&'static str> {
    ids(report, |verdict| matches!(verdict, Verdict::Fail { .. }))
}

fn ids(report: &Report, which: impl Fn(&Verdict) -> bool) -> Vec<&'static str> {
    report.findings.iter().filter(|finding| which(&finding.verdict)).map(|finding| finding.id).collect()
}

#[test]
fn a_wrong_secret_and_a_wrong_address_are_said_in_one_line() {
    let refuses = wire::serve(|_| Some(wire::Reply::new(401, "")));
    let error = check_within(&refuses, &limits()).unwrap_err().to_string();
    assert!(error.contains("refused the client id and secret"), "{error}");
    let elsewhere = wire::serve(|_| Some(wire::Reply::new(404, "")));
    let error = check_within(&elsewhere, &limits()).unwrap_err().to_string();
    assert!(error.contains("give the base URL"), "{error}");
}
