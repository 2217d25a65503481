//! What HTTP offers in addition to the API: HEAD, OPTIONS, CORS, conditional requests, compression.

use reqwest::Method;

use super::rule::{Rule, both, decision};
use crate::probe::Probe;
use crate::request::{Request, Version};
use crate::response::Response;
use crate::verdict::{CheckResult, Verdict, undecided};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    Rule(decision(30), "head-is-get-without-body", "HEAD on batches returns the status and Content-Type of GET.", head),
    Rule(decision(30), "head-needs-a-token", "HEAD on batches without a token is a 401.", |p| both(p, |p, version| p.fetch(&Request::new(Method::HEAD, version.batches_path()))?.require_status(401))),
    Rule(decision(30), "options-answers-with-allow", "OPTIONS returns an Allow that lists the endpoint's method.", options),
    Rule(decision(30), "cors-only-for-named-origins", "Access-Control-Allow-Origin does not allow an origin that no operator can have configured.", cors),
    Rule(decision(31), "batches-have-an-etag", "Responses with batches have an ETag, the same for the same request.", has_etag),
    Rule(decision(31), "etag-match-is-304", "If-None-Match with that ETag is a 304 without a body.", not_modified),
    Rule(decision(31), "etag-mismatch-is-200", "If-None-Match with another ETag is a 200.", |p| each(p, |p, request| p.fetch(&request.header("If-None-Match", "\"conformance-run-invented-this\""))?.require_status(200))),
    Rule(decision(31), "etag-needs-a-token", "If-None-Match without a token is a 401.", etag_without_token),
    Rule(decision(31), "batches-cache-control", "Responses with batches have Cache-Control: private, no-cache.", |p| each(p, |p, request| p.fetch(&request)?.require_listed("Cache-Control", &["private", "no-cache"]))),
    Rule(decision(31), "batches-vary", "Responses with batches have Vary: Authorization, Accept-Encoding.", |p| each(p, |p, request| p.fetch(&request)?.require_listed("Vary", &["Authorization", "Accept-Encoding"]))),
    Rule(decision(32), "gzip-on-demand", "Accept-Encoding: gzip returns the same batches, compressed with gzip.", compressed),
    Rule(decision(32), "plain-without-accept-encoding", "A response without Accept-Encoding in the request is not compressed.", |p| each(p, |p, request| require_uncompressed(&*p.fetch(&request)?))),
];

/// Smaller bodies may be sent uncompressed: compression gains nothing.
const MIN_COMPRESSED_BYTES: usize = 4096;

/// An origin in a domain that cannot exist.
const FOREIGN_ORIGIN: &str = "https://foreign.invalid";

fn head(probe: &mut Probe) -> CheckResult {
    each(probe, |probe, request| {
        let get = probe.fetch(&request)?;
        let head = probe.fetch(&Request { method: Method::HEAD, ..request })?;
        head.require_status(get.status)?;
        let same_type = head.header("Content-Type") == get.header("Content-Type");
        head.require_header("Content-Type", same_type, "the Content-Type of GET")
    })
}

fn options(probe: &mut Probe) -> CheckResult {
    both(probe, |probe, version| {
        for (path, method) in [(version.batches_path(), "GET"), (version.auth_path(), "POST")] {
            let response = probe.fetch(&Request::new(Method::OPTIONS, path))?;
            response.require((200..300).contains(&response.status), "a status from 200 to 299")?;
            response.require_listed("Allow", &[method])?;
        }
        Ok(())
    })
}

fn cors(probe: &mut Probe) -> CheckResult {
    each(probe, |probe, request| {
        let response = probe.fetch(&request.header("Origin", FOREIGN_ORIGIN))?;
        let allowed = response.header("Access-Control-Allow-Origin").unwrap_or_default();
        let closed = allowed != "*" && allowed != FOREIGN_ORIGIN;
        response.require_header(
            "Access-Control-Allow-Origin",
            closed,
            "a response that does not allow that origin",
        )
    })
}

fn has_etag(probe: &mut Probe) -> CheckResult {
    each(probe, |probe, request| {
        let first = parse_etag(&*probe.fetch(&request)?)?;
        let again = probe.send(&request)?;
        again.require_header("ETag", parse_etag(&again)? == first, format!("the previous ETag, {first}"))
    })
}

fn not_modified(probe: &mut Probe) -> CheckResult {
    each(probe, |probe, request| {
        let etag = known_etag(probe, &request)?;
        let response = probe.fetch(&request.header("If-None-Match", &etag))?;
        response.require_status(304)?;
        response.require(response.body.is_empty(), "no body")
    })
}

fn etag_without_token(probe: &mut Probe) -> CheckResult {
    each(probe, |probe, request| {
        let etag = known_etag(probe, &request)?;
        let without_token = Request { headers: Vec::new(), ..request };
        probe.fetch(&without_token.header("If-None-Match", &etag))?.require_status(401)
    })
}

fn compressed(probe: &mut Probe) -> CheckResult {
    each(probe, |probe, request| {
        let plain = probe.fetch(&request)?;
        if plain.body.len() < MIN_COMPRESSED_BYTES {
            return Err(undecided("no response is large enough to be compressed"));
        }
        let response = probe.fetch(&request.header("Accept-Encoding", "gzip"))?;
        response.require_listed("Content-Encoding", &["gzip"])?;
        // Cursors may differ between responses, batches may not.
        response.require(
            batches_in(&response)? == batches_in(&plain)?,
            "the batches of the uncompressed response",
        )
    })
}

fn require_uncompressed(response: &Response) -> CheckResult {
    let plain = response.header("Content-Encoding").is_none_or(|encoding| encoding == "identity");
    response.require_header("Content-Encoding", plain, "no Content-Encoding")
}

/// Runs a check on both versions, with a valid request for a few batches, or for none where there are none.
fn each(probe: &mut Probe, check: impl Fn(&mut Probe, Request) -> CheckResult) -> CheckResult {
    let range = probe.small_or_empty_range();
    both(probe, |probe, version: Version| {
        let token = probe.token(version)?;
        check(probe, Request::batches(version).query(&range.query()).bearer(&token))
    })
}

/// The ETag of a response. Without one a rule is undecided.
fn known_etag(probe: &mut Probe, request: &Request) -> CheckResult<String> {
    parse_etag(&*probe.fetch(request)?).map_err(Verdict::into_undecided)
}

fn parse_etag(response: &Response) -> CheckResult<String> {
    let etag = response.header("ETag").unwrap_or_default();
    let opaque = etag.strip_prefix("W/").unwrap_or(&etag);
    let quoted = opaque.len() >= 2 && opaque.starts_with('"') && opaque.ends_with('"');
    response.require_header("ETag", quoted, "an ETag in double quotes, with or without W/")?;
    Ok(etag)
}

fn batches_in(response: &Response) -> CheckResult<&serde_json::Value> {
    let body = response.json()?;
    Ok(body.get("data").unwrap_or(body))
}
