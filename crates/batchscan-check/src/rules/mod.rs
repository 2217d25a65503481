//! The rules, one table a file. A rule is a claim, where it comes from, and a function that puts it to the service.

mod auth;
mod batch;
mod bearer;
mod dates;
mod errors;
mod extras;
mod fields;
mod forms;
mod paging;
mod token;
mod windows;

use crate::probe::Probe;
use crate::verdict::{Checked, Demand, Verdict};

/// One rule.
pub(crate) struct Rule {
    pub(crate) demand: Demand,
    pub(crate) id: &'static str,
    pub(crate) claim: &'static str,
    pub(crate) check: fn(&mut Probe) -> Checked,
}

/// Every rule, in the order in which they are put to a service. What is watched over all answers comes last.
pub(crate) fn all() -> impl Iterator<Item = &'static Rule> {
    let tables = [
        auth::RULES,
        token::RULES,
        bearer::RULES,
        batch::RULES,
        fields::RULES,
        dates::RULES,
        forms::RULES,
        windows::RULES,
        paging::RULES,
        extras::RULES,
        errors::RULES,
    ];
    tables.into_iter().flatten()
}

const SERVICE: Demand = Demand::Interface("1. What the service does");
const RESOURCES: Demand = Demand::Interface("2. Resources and their fields");
const ENDPOINTS: Demand = Demand::Interface("4. Endpoints");
const AUTHENTICATION: Demand = Demand::Interface("5. Authentication");
const ERRORS: Demand = Demand::Interface("7. Errors");
const LIMITS: Demand = Demand::Interface("8. Limits");
const VERSIONING: Demand = Demand::Interface("9. Versioning");

const fn decided(number: u16) -> Demand {
    Demand::Decision(number)
}

const fn rule(
    demand: Demand,
    id: &'static str,
    claim: &'static str,
    check: fn(&mut Probe) -> Checked,
) -> Rule {
    Rule { demand, id, claim, check }
}

/// Puts a rule once more, with everything fetched anew, before it counts as broken: between two requests that are
/// compared, a batch may have been imported.
fn twice(probe: &mut Probe, check: fn(&mut Probe) -> Checked) -> Checked {
    let first = check(probe);
    if !matches!(first, Err(Verdict::Fail { .. })) {
        return first;
    }
    probe.forget();
    match check(probe) {
        // The run has come to one of its limits meanwhile; what was seen was seen.
        Err(Verdict::CannotTell(_)) => first,
        second => second,
    }
}
