//! What lies in a window: both ends belong to it, and nothing beyond them.

use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{ENDPOINTS, Rule, decided, rule, twice};
use crate::ask::Version;
use crate::batches::{Listing, Window, id_of, instant_of, moved, whole_second};
use crate::probe::Probe;
use crate::verdict::{Checked, Verdict};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    rule(ENDPOINTS, "window-v1-start-is-inclusive", "v1: a batch on start_date is returned.", |p| holds(p, Version::V1, 0, 1)),
    rule(ENDPOINTS, "window-v1-end-is-inclusive", "v1: a batch on end_date is returned.", |p| holds(p, Version::V1, -1, 0)),
    rule(ENDPOINTS, "window-v2-start-is-inclusive", "v2: a batch on start_date is returned.", |p| holds(p, Version::V2, 0, 1)),
    rule(ENDPOINTS, "window-v2-end-is-inclusive", "v2: a batch on end_date is returned.", |p| holds(p, Version::V2, -1, 0)),
    rule(ENDPOINTS, "window-v1-leaves-out-earlier", "v1: a batch before start_date is not returned.", |p| lacks(p, Version::V1, 1, 2)),
    rule(ENDPOINTS, "window-v1-leaves-out-later", "v1: a batch after end_date is not returned.", |p| lacks(p, Version::V1, -2, -1)),
    rule(ENDPOINTS, "window-v2-leaves-out-earlier", "v2: a batch before start_date is not returned.", |p| lacks(p, Version::V2, 1, 2)),
    rule(ENDPOINTS, "window-v2-leaves-out-later", "v2: a batch after end_date is not returned.", |p| lacks(p, Version::V2, -2, -1)),
    rule(ENDPOINTS, "window-halves-make-the-whole", "Two windows that meet on a date hold together what one window over both holds.", |p| twice(p, halves)),
    rule(decided(11), "window-compares-creation-date", "The dates are compared with batch_creation_date, and every batch returned lies between them.", creation_date),
    rule(decided(11), "window-is-exact-to-the-microsecond", "A fraction in a date is compared at the stored precision.", microseconds),
];

/// A batch on a whole second, with few others around it.
struct Pivot {
    id: String,
    at: Timestamp,
}

fn holds(probe: &mut Probe, version: Version, from_secs: i64, to_secs: i64) -> Checked {
    let (pivot, window) = controlled(probe, version, from_secs, to_secs)?;
    let listing = probe.list(version, &window)?;
    if has(&listing, &pivot.id) {
        return Ok(());
    }
    listing.must_be_whole()?;
    Err(unlike(probe, &listing, "without", &pivot))
}

fn lacks(probe: &mut Probe, version: Version, from_secs: i64, to_secs: i64) -> Checked {
    let (pivot, window) = controlled(probe, version, from_secs, to_secs)?;
    let listing = probe.list(version, &window)?;
    if has(&listing, &pivot.id) {
        return Err(unlike(probe, &listing, "with", &pivot));
    }
    listing.must_be_whole()
}

/// The pivot and the window at these distances from it. The interface leaves open which date the filters compare;
/// only where the pivot lies in the second around its creation date can its ends be judged.
fn controlled(probe: &mut Probe, version: Version, from_secs: i64, to_secs: i64) -> Checked<(Pivot, Window)> {
    let pivot = pivot(probe)?;
    let around = Window::spanning(moved(pivot.at, -1), moved(pivot.at, 1));
    if !has(&*probe.list(version, &around)?, &pivot.id) {
        let id = probe.redactor.show(pivot.id.as_bytes());
        return Err(Verdict::CannotTell(format!(
            "batch {id} does not lie in the window {around} around its date"
        )));
    }
    let window = Window::spanning(moved(pivot.at, from_secs), moved(pivot.at, to_secs));
    Ok((pivot, window))
}

fn unlike(probe: &Probe, listing: &Listing, how: &str, pivot: &Pivot) -> Verdict {
    let id = probe.redactor.show(pivot.id.as_bytes());
    let came = format!("{} batches, {how} batch {id} of {}", listing.batches().count(), pivot.at);
    listing
        .fail(came, if how == "with" { "an answer without that batch" } else { "an answer with that batch" })
}

fn halves(probe: &mut Probe) -> Checked {
    let window = probe.small_window()?;
    let (Some(start), Some(end)) = (&window.start, &window.end) else { return Ok(()) };
    let middle = pivot(probe)?.at.to_string();
    for version in Version::BOTH {
        let whole = probe.list(version, &window)?;
        let first = probe.list(version, &Window::between(start, &middle))?;
        let second = probe.list(version, &Window::between(&middle, end))?;
        for listing in [&whole, &first, &second] {
            listing.must_be_whole()?;
        }
        let lost = whole.ids().into_iter().find(|id| !has(&first, id) && !has(&second, id));
        if let Some(id) = lost {
            let id = probe.redactor.show(id.as_bytes());
            let came = format!("batch {id}, which lies neither up to {middle} nor from it on");
            return Err(whole.fail(came, "every batch in one of the two windows at least"));
        }
    }
    Ok(())
}

fn creation_date(probe: &mut Probe) -> Checked {
    let pivot = pivot(probe)?;
    let window = Window::spanning(moved(pivot.at, -1), moved(pivot.at, 1));
    let inside = moved(pivot.at, -1)..=moved(pivot.at, 1);
    for version in Version::BOTH {
        let listing = probe.list(version, &window)?;
        if !has(&listing, &pivot.id) {
            listing.must_be_whole()?;
            return Err(unlike(probe, &listing, "without", &pivot));
        }
        let stray = listing.batches().find(|batch| instant_of(batch).is_some_and(|at| !inside.contains(&at)));
        if let Some(batch) = stray {
            let came = probe.redactor.show(batch.to_string().as_bytes());
            return Err(listing.fail(came, format!("batches with batch_creation_date from {window}")));
        }
    }
    Ok(())
}

fn microseconds(probe: &mut Probe) -> Checked {
    let sample = probe.sample()?;
    let fractional = sample.batches().find_map(|batch| {
        let at = instant_of(batch).filter(|at| whole_second(*at) != *at)?;
        Some(Pivot { id: id_of(batch)?.to_owned(), at })
    });
    let pivot =
        fractional.ok_or_else(|| Verdict::CannotTell("no batch has a fraction in its date".to_owned()))?;
    let after = pivot.at.checked_add(SignedDuration::from_micros(1)).unwrap_or(pivot.at);
    for version in Version::BOTH {
        let on = probe.list(version, &Window::spanning(pivot.at, pivot.at))?;
        if !has(&on, &pivot.id) {
            return Err(unlike(probe, &on, "without", &pivot));
        }
        let beyond = probe.list(version, &Window::spanning(after, moved(after, 1)))?;
        if has(&beyond, &pivot.id) {
            return Err(unlike(probe, &beyond, "with", &pivot));
        }
    }
    Ok(())
}

/// The batch of the first page that has the fewest others within a second of it: its windows are small.
fn pivot(probe: &mut Probe) -> Checked<Pivot> {
    let sample: Rc<Listing> = probe.sample()?;
    let first: &[Value] = sample.pages.first().map_or(&[], |page| &page.batches);
    let mut instants: Vec<Timestamp> = first.iter().filter_map(instant_of).collect();
    instants.sort_unstable();
    let crowd = |at: Timestamp| {
        let upto = |limit: Timestamp| instants.partition_point(|instant| *instant <= limit);
        upto(moved(at, 1)) - upto(moved(at, -2))
    };
    let whole = first.iter().filter_map(|batch| {
        let at = instant_of(batch).filter(|at| whole_second(*at) == *at)?;
        Some(Pivot { id: id_of(batch)?.to_owned(), at })
    });
    whole
        .min_by_key(|pivot| crowd(pivot.at))
        .ok_or_else(|| Verdict::CannotTell("no batch was created on a whole second".to_owned()))
}

fn has(listing: &Listing, id: &str) -> bool {
    listing.batches().any(|batch| id_of(batch) == Some(id))
}
