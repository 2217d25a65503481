//! The shape of the two answers, and that both versions speak of the same batches.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::fields::FIELDS;
use super::{ENDPOINTS, LIMITS, RESOURCES, Rule, VERSIONING, decided, rule, twice};
use crate::ask::Version;
use crate::batches::{Listing, Window, id_of, instant_of, read_array, read_page};
use crate::probe::Probe;
use crate::verdict::{Checked, Verdict};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    rule(ENDPOINTS, "v1-is-a-flat-array", "GET /v1/batches answers 200 and one flat JSON array of objects.", flat_array),
    rule(RESOURCES, "v2-is-an-envelope", "GET /v2/batches answers 200 and an object with data, an array of objects, and next_token, a string or null.", envelope),
    rule(RESOURCES, "v2-envelope-has-two-fields", "The page envelope has the fields data and next_token and no other.", two_fields),
    rule(RESOURCES, "batch-has-all-fields", "Every batch has all eighteen fields, null where there is no value.", all_fields),
    rule(RESOURCES, "batch-has-no-other-fields", "No batch has a field the interface does not name.", no_others),
    rule(RESOURCES, "batch-id-is-unique", "No batch_id comes twice.", unique),
    rule(ENDPOINTS, "v1-without-dates-gives-all", "GET /v1/batches without parameters gives all batches: those of a walk over v2.", |p| twice(p, all_of_them)),
    rule(LIMITS, "versions-give-the-same-batches", "For a window of up to 1000 batches both versions give the same batches.", |p| twice(p, same_batches)),
    rule(VERSIONING, "versions-give-the-same-objects", "A batch is the same object in both versions, field by field.", |p| twice(p, same_objects)),
    rule(decided(18), "v1-is-in-order", "v1 gives batches by batch_creation_date, then batch_id, ascending.", |p| ordered(p, Version::V1)),
    rule(decided(18), "v2-is-in-order", "v2 gives batches by batch_creation_date, then batch_id, ascending, over all pages.", |p| ordered(p, Version::V2)),
    rule(decided(20), "v1-above-1000-is-whole", "v1 neither truncates nor refuses a window of more than 1000 batches.", |p| twice(p, above_1000)),
];

/// Up to here the interface promises the same batches from both versions.
const SAME_UP_TO: usize = 1000;

fn flat_array(probe: &mut Probe) -> Checked {
    // A window where one is known: without one, a large organisation would answer with all it has.
    let window = probe.small_window().unwrap_or_else(|_| Window::between(EPOCH, EPOCH));
    let answer = probe.get_batches(Version::V1, &window.query())?;
    let objects = read_array(&answer)?.iter().all(Value::is_object);
    answer.must(objects, "an array of objects")
}

const EPOCH: &str = "1970-01-01T00:00:00Z";

fn envelope(probe: &mut Probe) -> Checked {
    let answer = probe.get_batches(Version::V2, &[])?;
    let objects = read_page(&answer)?.batches.iter().all(Value::is_object);
    answer.must(objects, "data as an array of objects")
}

fn two_fields(probe: &mut Probe) -> Checked {
    let answer = probe.get_batches(Version::V2, &[])?;
    read_page(&answer).map_err(|verdict| verdict.as_doubt())?;
    let fields = answer.json()?.as_object().map_or(0, serde_json::Map::len);
    answer.must(fields == 2, "the fields data and next_token, and no other")
}

fn all_fields(probe: &mut Probe) -> Checked {
    each_batch(probe, |batch| {
        let missing = FIELDS.iter().find(|field| batch.get(field.name).is_none())?;
        Some((format!("no {}", missing.name), "all eighteen fields".to_owned()))
    })
}

fn no_others(probe: &mut Probe) -> Checked {
    each_batch(probe, |batch| {
        let mut names = batch.as_object()?.keys();
        let other = names.find(|name| FIELDS.iter().all(|field| field.name != *name))?;
        Some((format!("the field {other:?}"), "the eighteen fields of the interface only".to_owned()))
    })
}

/// Looks at every batch that both versions gave; `fault` says what stands there and what should.
pub(super) fn each_batch(probe: &mut Probe, fault: impl Fn(&Value) -> Option<(String, String)>) -> Checked {
    let second = probe.sample()?;
    let window = probe.small_window().ok();
    // v2 may be right where v1 is not; without a window the rules on v1 itself will tell.
    let first = window.and_then(|window| probe.list(Version::V1, &window).ok());
    for listing in [Some(second), first].into_iter().flatten() {
        for page in &listing.pages {
            for batch in &page.batches {
                if let Some((stands, expected)) = fault(batch) {
                    let id = probe.redactor.show(id_of(batch).unwrap_or("without an id").as_bytes());
                    let stands = probe.redactor.show(stands.as_bytes());
                    let came = format!("batch {id} with {stands}");
                    return Err(Verdict::Fail { sent: page.sent.clone(), came, expected });
                }
            }
        }
    }
    Ok(())
}

fn unique(probe: &mut Probe) -> Checked {
    let sample = probe.sample()?;
    let mut seen = HashSet::new();
    for (number, page) in sample.pages.iter().enumerate() {
        if let Some(id) = page.batches.iter().filter_map(id_of).find(|id| !seen.insert(*id)) {
            let id = probe.redactor.show(id.as_bytes());
            let came = format!("batch_id {id} a second time, on page {}", number + 1);
            return Err(sample.fail(came, "every batch_id once"));
        }
    }
    // Enough to fail on, but a part proves nothing about the whole.
    sample.must_be_whole()
}

fn all_of_them(probe: &mut Probe) -> Checked {
    let second = probe.everything()?;
    second.must_be_whole()?;
    let first = probe.list(Version::V1, &Window::default())?;
    must_hold_same(probe, &first, &second)
}

fn same_batches(probe: &mut Probe) -> Checked {
    let window = probe.small_window()?;
    let second = probe.list(Version::V2, &window)?;
    second.must_be_whole()?;
    if second.ids().len() > SAME_UP_TO {
        return Err(Verdict::CannotTell(format!("more than {SAME_UP_TO} batches lie from {window}")));
    }
    let first = probe.list(Version::V1, &window)?;
    must_hold_same(probe, &first, &second)
}

fn above_1000(probe: &mut Probe) -> Checked {
    let everything = probe.sample()?;
    let window = if everything.is_whole() { Window::default() } else { probe.wide_window()? };
    let second = probe.list(Version::V2, &window)?;
    second.must_be_whole()?;
    if second.ids().len() <= SAME_UP_TO {
        return Err(Verdict::CannotTell(format!("no window with more than {SAME_UP_TO} batches was found")));
    }
    let first = probe.list(Version::V1, &window)?;
    must_hold_same(probe, &first, &second)
}

fn must_hold_same(probe: &Probe, first: &Listing, second: &Listing) -> Checked {
    let (mut ours, mut theirs) = (first.ids(), second.ids());
    ours.sort_unstable();
    theirs.sort_unstable();
    if ours == theirs {
        return Ok(());
    }
    let odd = |from: &[&str], other: &[&str]| {
        from.iter().find(|id| other.binary_search(id).is_err()).map(|id| (*id).to_owned())
    };
    let hint = match (odd(&theirs, &ours), odd(&ours, &theirs)) {
        (Some(id), _) => format!("without batch {}", probe.redactor.show(id.as_bytes())),
        (None, Some(id)) => format!("with batch {}, which v2 lacks", probe.redactor.show(id.as_bytes())),
        (None, None) => "some of them more than once".to_owned(),
    };
    Err(first.fail(
        format!("{} batches, {hint}", ours.len()),
        format!("the {} batches that v2 gives for the same window", theirs.len()),
    ))
}

fn same_objects(probe: &mut Probe) -> Checked {
    let window = probe.small_window()?;
    let second = probe.list(Version::V2, &window)?;
    let first = probe.list(Version::V1, &window)?;
    let theirs: BTreeMap<&str, &Value> =
        second.batches().filter_map(|batch| Some((id_of(batch)?, batch))).collect();
    let mut compared = 0_usize;
    for batch in first.batches() {
        let Some(other) = id_of(batch).and_then(|id| theirs.get(id)) else { continue };
        compared += 1;
        if let Some((stands, expected)) = first_difference(batch, other) {
            let id = probe.redactor.show(id_of(batch).unwrap_or_default().as_bytes());
            let show = |text: String| probe.redactor.show(text.as_bytes());
            return Err(first
                .fail(format!("batch {id} with {}", show(stands)), format!("as on v2: {}", show(expected))));
        }
    }
    if compared == 0 {
        return Err(Verdict::CannotTell("no batch came from both versions".to_owned()));
    }
    Ok(())
}

/// The first field in which two objects differ, as it stands in either.
fn first_difference(batch: &Value, other: &Value) -> Option<(String, String)> {
    let names =
        |value: &Value| value.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect::<Vec<_>>();
    let written = |value: &Value, name: &str| match value.get(name) {
        Some(value) => format!("{name}: {value}"),
        None => format!("no {name}"),
    };
    let mut all = names(batch).into_iter().chain(names(other));
    let name = all.find(|name| batch.get(name) != other.get(name))?;
    Some((written(batch, &name), written(other, &name)))
}

fn ordered(probe: &mut Probe, version: Version) -> Checked {
    let listing = match version {
        Version::V1 => {
            let window = probe.small_window()?;
            probe.list(version, &window)?
        }
        Version::V2 => probe.sample()?,
    };
    let keys: Vec<_> =
        listing.batches().filter_map(|batch| Some((instant_of(batch)?, id_of(batch)?))).collect();
    if keys.len() < 2 {
        return Err(Verdict::CannotTell("fewer than two batches have no order".to_owned()));
    }
    match keys.windows(2).find(|pair| pair[0] > pair[1]) {
        Some(pair) => {
            let show = |at: usize| format!("{} {}", pair[at].0, probe.redactor.show(pair[at].1.as_bytes()));
            Err(listing.fail(format!("{} before {}", show(0), show(1)), "the other way round"))
        }
        None => Ok(()),
    }
}
