//! Which batches a date range returns: both ends are inclusive.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::rule::{ENDPOINTS, Rule, both, confirm, decision};
use crate::listing::{DateRange, Listing, add_secs, batch_id, creation_date, is_whole_second, sorted_dates};
use crate::probe::Probe;
use crate::request::Version;
use crate::verdict::{CheckResult, Verdict, require, undecided};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    Rule(ENDPOINTS, "window-v1-start-is-inclusive", "v1: a batch on start_date is returned.", |p| includes(p, Version::V1, 0, 1)),
    Rule(ENDPOINTS, "window-v1-end-is-inclusive", "v1: a batch on end_date is returned.", |p| includes(p, Version::V1, -1, 0)),
    Rule(ENDPOINTS, "window-v2-start-is-inclusive", "v2: a batch on start_date is returned.", |p| includes(p, Version::V2, 0, 1)),
    Rule(ENDPOINTS, "window-v2-end-is-inclusive", "v2: a batch on end_date is returned.", |p| includes(p, Version::V2, -1, 0)),
    Rule(ENDPOINTS, "window-v1-leaves-out-earlier", "v1: a batch before start_date is not returned.", |p| excludes(p, Version::V1, 1, 2)),
    Rule(ENDPOINTS, "window-v1-leaves-out-later", "v1: a batch after end_date is not returned.", |p| excludes(p, Version::V1, -2, -1)),
    Rule(ENDPOINTS, "window-v2-leaves-out-earlier", "v2: a batch before start_date is not returned.", |p| excludes(p, Version::V2, 1, 2)),
    Rule(ENDPOINTS, "window-v2-leaves-out-later", "v2: a batch after end_date is not returned.", |p| excludes(p, Version::V2, -2, -1)),
    Rule(ENDPOINTS, "window-halves-make-the-whole", "Two date ranges that share a date return together what one range over both returns.", |p| confirm(p, halves)),
    Rule(decision(11), "window-compares-creation-date", "The dates are compared with batch_creation_date, and every returned batch is between them.", compares_creation_date),
    Rule(decision(11), "window-is-exact-to-the-microsecond", "A fraction in a date is compared at the stored precision.", microseconds),
];

/// A batch to put at the ends of date ranges.
struct Pivot {
    id: String,
    at: Timestamp,
}

impl Pivot {
    fn new(batch: &Value) -> Option<Self> {
        Some(Self { id: batch_id(batch)?.to_owned(), at: creation_date(batch)? })
    }

    /// The range from and to these seconds relative to the pivot.
    fn range(&self, from_secs: i64, to_secs: i64) -> DateRange {
        DateRange::new(add_secs(self.at, from_secs), add_secs(self.at, to_secs))
    }

    fn require_in(&self, probe: &Probe, listing: &Listing) -> CheckResult {
        require(listing.contains(&self.id), || self.fail(probe, listing, "without", "with"))
    }

    fn require_not_in(&self, probe: &Probe, listing: &Listing) -> CheckResult {
        require(!listing.contains(&self.id), || self.fail(probe, listing, "with", "without"))
    }

    fn fail(&self, probe: &Probe, listing: &Listing, found: &str, expected: &str) -> Verdict {
        let (count, id) = (listing.batches().count(), probe.show(&self.id));
        let found = format!("{count} batches, {found} batch {id} of {}", self.at);
        listing.fail(found, format!("a response {expected} that batch"))
    }
}

fn includes(probe: &mut Probe, version: Version, from_secs: i64, to_secs: i64) -> CheckResult {
    let pivot = pivot_in_range(probe, version)?;
    let listing = probe.list(version, &pivot.range(from_secs, to_secs))?;
    let result = pivot.require_in(probe, &listing);
    if result.is_err() {
        listing.require_complete()?;
    }
    result
}

fn excludes(probe: &mut Probe, version: Version, from_secs: i64, to_secs: i64) -> CheckResult {
    let pivot = pivot_in_range(probe, version)?;
    let listing = probe.list(version, &pivot.range(from_secs, to_secs))?;
    pivot.require_not_in(probe, &listing)?;
    listing.require_complete()
}

/// A pivot that is returned for the seconds around its creation date. The API does not state which date is compared;
/// if it is another one, rules on the ends of a range stay undecided.
fn pivot_in_range(probe: &mut Probe, version: Version) -> CheckResult<Pivot> {
    let pivot = find_pivot(probe)?;
    let range = pivot.range(-1, 1);
    if probe.list(version, &range)?.contains(&pivot.id) {
        return Ok(pivot);
    }
    let id = probe.show(&pivot.id);
    Err(undecided(format!("batch {id} is not in the date range {range} around its creation date")))
}

fn halves(probe: &mut Probe) -> CheckResult {
    let range = probe.small_range()?;
    let middle = find_pivot(probe)?.at.to_string();
    let first = DateRange { end: Some(middle.clone()), ..range.clone() };
    let second = DateRange { start: Some(middle.clone()), ..range.clone() };
    both(probe, |probe, version| {
        let whole = probe.list(version, &range)?;
        let (first, second) = (probe.list(version, &first)?, probe.list(version, &second)?);
        for listing in [&whole, &first, &second] {
            listing.require_complete()?;
        }
        let lost = whole.ids().into_iter().find(|id| !first.contains(id) && !second.contains(id));
        lost.map_or(Ok(()), |id| {
            let found =
                format!("batch {}, which neither the range to {middle} nor from it has", probe.show(id));
            Err(whole.fail(found, "every batch in at least one of the two ranges"))
        })
    })
}

fn compares_creation_date(probe: &mut Probe) -> CheckResult {
    let pivot = find_pivot(probe)?;
    let range = pivot.range(-1, 1);
    let inside = add_secs(pivot.at, -1)..=add_secs(pivot.at, 1);
    both(probe, |probe, version| {
        let listing = probe.list(version, &range)?;
        if !listing.contains(&pivot.id) {
            listing.require_complete()?;
        }
        pivot.require_in(probe, &listing)?;
        let is_outside = |batch: &&Value| creation_date(batch).is_some_and(|at| !inside.contains(&at));
        listing.batches().find(is_outside).map_or(Ok(()), |batch| {
            let expected = format!("only batches with batch_creation_date in {range}");
            Err(listing.fail(probe.show(batch.to_string()), expected))
        })
    })
}

fn microseconds(probe: &mut Probe) -> CheckResult {
    let sample = probe.sample()?;
    let pivot = sample.batches().filter_map(Pivot::new).find(|pivot| !is_whole_second(pivot.at));
    let pivot = pivot.ok_or_else(|| undecided("no batch has a fraction in its date"))?;
    let after = pivot.at.checked_add(SignedDuration::from_micros(1)).unwrap_or(pivot.at);
    both(probe, |probe, version| {
        let on_pivot = probe.list(version, &DateRange::new(pivot.at, pivot.at))?;
        pivot.require_in(probe, &on_pivot)?;
        let later = probe.list(version, &DateRange::new(after, add_secs(after, 1)))?;
        pivot.require_not_in(probe, &later)
    })
}

/// The batch of the first page, on a whole second, with the fewest others around it, so that its ranges are small.
fn find_pivot(probe: &mut Probe) -> CheckResult<Pivot> {
    let sample = probe.sample()?;
    let first = &sample.pages[0].batches;
    let dates = sorted_dates(first);
    let neighbours = |at: Timestamp| {
        let up_to = |limit: Timestamp| dates.partition_point(|date| *date <= limit);
        up_to(add_secs(at, 1)) - up_to(add_secs(at, -2))
    };
    let pivots = first.iter().filter_map(Pivot::new).filter(|pivot| is_whole_second(pivot.at));
    pivots
        .min_by_key(|pivot| neighbours(pivot.at))
        .ok_or_else(|| undecided("no batch was created on a whole second"))
}
