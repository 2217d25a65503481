//! The shape of both responses, and that both versions return the same batches.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::rule::{ENDPOINTS, LIMITS, RESOURCES, Rule, VERSIONING, confirm, decision};
use crate::listing::{DateRange, Listing, batch_id, creation_date, parse_array, parse_page};
use crate::probe::Probe;
use crate::request::Version;
use crate::verdict::{CheckResult, Verdict, require, undecided};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    Rule(ENDPOINTS, "v1-is-a-flat-array", "GET /v1/batches returns 200 and one flat JSON array of objects.", flat_array),
    Rule(RESOURCES, "v2-is-an-envelope", "GET /v2/batches returns 200 and an object with data, an array of objects, and next_token, a string or null.", envelope),
    Rule(RESOURCES, "v2-envelope-has-two-fields", "A page has exactly the fields data and next_token.", two_fields),
    Rule(RESOURCES, "batch-id-is-unique", "Every batch_id is unique.", unique_ids),
    Rule(ENDPOINTS, "v1-without-dates-gives-all", "GET /v1/batches without parameters returns all batches: the same as all pages of v2.", |p| confirm(p, v1_returns_all)),
    Rule(LIMITS, "versions-give-the-same-batches", "For a date range of up to 1000 batches both versions return the same batches.", |p| confirm(p, same_batches)),
    Rule(VERSIONING, "versions-give-the-same-objects", "A batch is the same object in both versions, field by field.", |p| confirm(p, same_objects)),
    Rule(decision(18), "v1-is-in-order", "v1 returns batches by batch_creation_date, then batch_id, ascending.", |p| { let range = p.small_range()?; is_sorted(p, Version::V1, &range) }),
    Rule(decision(18), "v2-is-in-order", "v2 returns batches by batch_creation_date, then batch_id, ascending, across all pages.", |p| is_sorted(p, Version::V2, &DateRange::default())),
    Rule(decision(20), "v1-above-1000-is-whole", "v1 neither truncates nor rejects a date range of more than 1000 batches.", |p| confirm(p, above_1000)),
];

/// Up to this number the API guarantees the same batches from both versions.
const SAME_UP_TO: usize = 1000;

fn flat_array(probe: &mut Probe) -> CheckResult {
    // With dates: without, a large organisation would return all its batches.
    let range = probe.small_or_empty_range();
    let response = probe.fetch_batches(Version::V1, &range.query())?;
    response.require(parse_array(&response)?.batches.iter().all(Value::is_object), "an array of objects")
}

fn envelope(probe: &mut Probe) -> CheckResult {
    let response = probe.fetch_batches(Version::V2, &[])?;
    response
        .require(parse_page(&response)?.batches.iter().all(Value::is_object), "data as an array of objects")
}

fn two_fields(probe: &mut Probe) -> CheckResult {
    let response = probe.fetch_batches(Version::V2, &[])?;
    parse_page(&response).map_err(Verdict::into_undecided)?;
    let fields = response.json()?.as_object().map_or(0, serde_json::Map::len);
    response.require(fields == 2, "only the fields data and next_token")
}

fn unique_ids(probe: &mut Probe) -> CheckResult {
    let sample = probe.sample()?;
    let mut seen = HashSet::new();
    for (number, page) in (1..).zip(&sample.pages) {
        if let Some(id) = page.batches.iter().filter_map(batch_id).find(|id| !seen.insert(*id)) {
            let found = format!("batch_id {} again on page {number}", probe.show(id));
            return Err(sample.fail(found, "every batch_id once"));
        }
    }
    // A part is enough to fail, but not to pass.
    sample.require_complete()
}

fn v1_returns_all(probe: &mut Probe) -> CheckResult {
    compare_versions(probe, &DateRange::default(), |_| Ok(()))
}

fn same_batches(probe: &mut Probe) -> CheckResult {
    let range = probe.small_range()?;
    compare_versions(probe, &range, |count| {
        require(count <= SAME_UP_TO, || undecided(format!("{range} has more than {SAME_UP_TO} batches")))
    })
}

fn above_1000(probe: &mut Probe) -> CheckResult {
    let range = if probe.sample()?.is_complete() { DateRange::default() } else { probe.wide_range()? };
    compare_versions(probe, &range, |count| {
        require(count > SAME_UP_TO, || undecided(format!("no range has more than {SAME_UP_TO} batches")))
    })
}

/// Requires the same ids from both versions, if `check_count` accepts their number.
fn compare_versions(
    probe: &mut Probe,
    range: &DateRange,
    check_count: impl Fn(usize) -> CheckResult,
) -> CheckResult {
    let v2 = probe.list(Version::V2, range)?;
    v2.require_complete()?;
    check_count(v2.ids().len())?;
    let v1 = probe.list(Version::V1, range)?;
    require_same_ids(probe, &v1, &v2)
}

fn require_same_ids(probe: &Probe, v1: &Listing, v2: &Listing) -> CheckResult {
    let (mut v1_ids, mut v2_ids) = (v1.ids(), v2.ids());
    v1_ids.sort_unstable();
    v2_ids.sort_unstable();
    if v1_ids == v2_ids {
        return Ok(());
    }
    let only_in = |these: &[&str], others: &[&str]| {
        these.iter().find(|id| others.binary_search(id).is_err()).map(|id| probe.show(id))
    };
    let difference = match (only_in(&v2_ids, &v1_ids), only_in(&v1_ids, &v2_ids)) {
        (Some(id), _) => format!("without batch {id}"),
        (None, Some(id)) => format!("with batch {id}, which v2 does not return"),
        (None, None) => "some of them repeated".to_owned(),
    };
    let found = format!("{} batches, {difference}", v1_ids.len());
    Err(v1.fail(found, format!("the {} batches that v2 returns for the same dates", v2_ids.len())))
}

fn same_objects(probe: &mut Probe) -> CheckResult {
    let range = probe.small_range()?;
    let v2 = probe.list(Version::V2, &range)?;
    let v1 = probe.list(Version::V1, &range)?;
    let by_id: BTreeMap<&str, &Value> =
        v2.batches().filter_map(|batch| Some((batch_id(batch)?, batch))).collect();
    let mut compared = 0_usize;
    for batch in v1.batches() {
        let Some((id, other)) = batch_id(batch).and_then(|id| by_id.get_key_value(id)) else { continue };
        compared += 1;
        if let Some((found, expected)) = first_difference(batch, other) {
            let found = format!("batch {} with {}", probe.show(id), probe.show(found));
            return Err(v1.fail(found, format!("as in v2: {}", probe.show(expected))));
        }
    }
    require(compared > 0, || undecided("no batch is in the responses of both versions"))
}

/// The first field in which two objects differ, as it is in each.
fn first_difference(batch: &Value, other: &Value) -> Option<(String, String)> {
    let names =
        |value: &Value| value.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect::<Vec<_>>();
    let shown = |value: &Value, name: &str| match value.get(name) {
        Some(value) => format!("{name}: {value}"),
        None => format!("no {name}"),
    };
    let mut all = names(batch).into_iter().chain(names(other));
    let name = all.find(|name| batch.get(name) != other.get(name))?;
    Some((shown(batch, &name), shown(other, &name)))
}

fn is_sorted(probe: &mut Probe, version: Version, range: &DateRange) -> CheckResult {
    let listing = probe.list(version, range)?;
    let keys: Vec<_> =
        listing.batches().filter_map(|batch| Some((creation_date(batch)?, batch_id(batch)?))).collect();
    require(keys.len() > 1, || undecided("there are fewer than two batches"))?;
    keys.windows(2).find(|pair| pair[0] > pair[1]).map_or(Ok(()), |pair| {
        let [first, second] = [0, 1].map(|at| format!("{} {}", pair[at].0, probe.show(pair[at].1)));
        Err(listing.fail(format!("{first} before {second}"), "the reverse order"))
    })
}
