//! What this project adds to the API: changes, and one batch by its id. A service need not have them.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use super::rule::{Rule, confirm, decision};
use crate::listing::batch_id;
use crate::probe::Probe;
use crate::request::{Request, Version};
use crate::response::Response;
use crate::verdict::{CheckResult, Verdict, require, undecided};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    Rule(decision(52), "changes-are-an-envelope", "GET /v2/changes, if it exists, returns 200 and an object with data, removed, since and more.", |p| parse_changes(&*fetch_changes(p, &[])?).map(drop)),
    Rule(decision(52), "changes-give-all-batches", "The responses of GET /v2/changes, until more is false, are the batches of v2.", |p| confirm(p, all_batches)),
    Rule(decision(52), "changes-without-news-are-empty", "The last since returns nothing while nothing changes.", |p| confirm(p, no_news)),
    Rule(decision(52), "changes-need-a-token", "GET /v2/changes without a token is a 401.", without_token),
    Rule(decision(52), "changes-since-invalid-is-422", "A since that was never issued is a 422 of type value_error on since.", |p| rejected(p, "since", "conformance-run-invented-this-position")),
    Rule(decision(52), "changes-wait-above-60-is-422", "A wait above 60 is a 422 of type value_error on wait.", |p| rejected(p, "wait", "61")),
    Rule(decision(52), "batch-by-id-is-the-same-object", "GET /v2/batches/{batch_id}, if it exists, returns the object of v2.", |p| confirm(p, same_object)),
    Rule(decision(52), "batch-by-unknown-id-is-404", "GET /v2/batches/{batch_id} of an unknown id is a 404.", unknown_id),
];

const CHANGES: &str = "/v2/changes";

/// One response of `GET /v2/changes`.
struct Changes {
    data: Vec<Value>,
    removed: Vec<Value>,
    since: String,
    more: bool,
}

/// The batches of all responses, by id, and the last position.
struct BatchCopy {
    batches: BTreeMap<String, Value>,
    since: String,
}

fn all_batches(probe: &mut Probe) -> CheckResult {
    let copy = read_copy(probe)?;
    let listing = probe.list_all()?;
    listing.require_complete()?;
    let fail = |found: String, expected| {
        Err(Verdict::fail(format!("GET {CHANGES}, until more is false"), found, expected))
    };
    for batch in listing.batches() {
        let Some(id) = batch_id(batch) else { continue };
        match copy.batches.get(id) {
            Some(copied) if copied == batch => {}
            Some(_) => return fail(format!("another batch {}", probe.show(id)), "the batch as in v2"),
            None => return fail(format!("without batch {}", probe.show(id)), "the batches of v2"),
        }
    }
    match copy.batches.keys().find(|id| !listing.contains(id)) {
        Some(id) => fail(format!("with batch {}", probe.show(id)), "only the batches of v2"),
        None => Ok(()),
    }
}

fn no_news(probe: &mut Probe) -> CheckResult {
    let copy = read_copy(probe)?;
    let response = fetch_changes(probe, &[("since", &copy.since)])?;
    let changes = parse_changes(&response)?;
    let is_empty = changes.data.is_empty() && changes.removed.is_empty() && !changes.more;
    response.require(is_empty, "empty data and removed, and more: false")
}

fn without_token(probe: &mut Probe) -> CheckResult {
    fetch_changes(probe, &[])?;
    probe.fetch(&Request::get(CHANGES))?.require_unauthorized()
}

fn rejected(probe: &mut Probe, field: &str, value: &str) -> CheckResult {
    fetch_changes(probe, &[(field, value)])?.require_errors("query", &[field], "value_error")
}

/// Applies responses until there are no more.
fn read_copy(probe: &mut Probe) -> CheckResult<BatchCopy> {
    let mut copy = BatchCopy { batches: BTreeMap::new(), since: String::new() };
    let mut response = fetch_changes(probe, &[])?;
    for _ in 0..=probe.limits.pages {
        let changes = parse_changes(&response)?;
        copy.batches
            .extend(changes.data.into_iter().filter_map(|batch| Some((batch_id(&batch)?.to_owned(), batch))));
        copy.batches.retain(|id, _| !changes.removed.iter().any(|removed| removed == id.as_str()));
        copy.since = changes.since;
        if !changes.more {
            return Ok(copy);
        }
        response = fetch_changes(probe, &[("since", &copy.since)])?;
    }
    Err(undecided(format!("the run's limit was reached after {} responses", probe.limits.pages + 1)))
}

fn fetch_changes(probe: &mut Probe, query: &[(&str, &str)]) -> CheckResult<Rc<Response>> {
    let token = probe.token(Version::V2)?;
    let response = probe.fetch(&Request::get(CHANGES).query(query).bearer(&token))?;
    require(response.status != 404, || undecided(format!("the service has no {CHANGES}")))?;
    Ok(response)
}

fn parse_changes(response: &Response) -> CheckResult<Changes> {
    response.require_status(200)?;
    let body = response.json()?;
    let array = |name: &str| body.get(name).and_then(Value::as_array).cloned();
    let changes = || {
        Some(Changes {
            data: array("data").filter(|data| data.iter().all(Value::is_object))?,
            removed: array("removed").filter(|removed| removed.iter().all(Value::is_string))?,
            since: body.get("since")?.as_str()?.to_owned(),
            more: body.get("more")?.as_bool()?,
        })
    };
    changes().ok_or_else(|| {
        response
            .fail("data (array of objects), removed (array of strings), since (string) and more (boolean)")
    })
}

fn same_object(probe: &mut Probe) -> CheckResult {
    let (response, batch) = known_batch(probe)?;
    response
        .require(response.json()? == &batch, format!("the object of v2: {}", probe.show(batch.to_string())))
}

fn unknown_id(probe: &mut Probe) -> CheckResult {
    known_batch(probe)?;
    fetch_batch(probe, "conformance-run-invented-this-id")?.require_status(404)
}

/// A batch by its id, and as v2 returns it.
fn known_batch(probe: &mut Probe) -> CheckResult<(Rc<Response>, Value)> {
    let sample = probe.sample()?;
    let known = sample.batches().find_map(|batch| Some((batch_id(batch)?, batch)));
    let (id, batch) = known.ok_or_else(|| undecided("no batch has a batch_id"))?;
    let response = fetch_batch(probe, id)?;
    require(response.status != 404, || undecided("the service has no /v2/batches/{batch_id}"))?;
    response.require_status(200)?;
    Ok((response, batch.clone()))
}

fn fetch_batch(probe: &mut Probe, id: &str) -> CheckResult<Rc<Response>> {
    let path = id.bytes().fold("/v2/batches/".to_owned(), |path, byte| format!("{path}%{byte:02X}"));
    let token = probe.token(Version::V2)?;
    probe.fetch(&Request::get(&path).bearer(&token))
}
