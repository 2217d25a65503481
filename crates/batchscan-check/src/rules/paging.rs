//! Pages and cursors of v2.

use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::rule::{ENDPOINTS, ERRORS, RESOURCES, Rule, alter, confirm, decision};
use crate::listing::{DateRange, End, LONG_AGO, Listing, batch_id};
use crate::probe::Probe;
use crate::request::Version;
use crate::verdict::{CheckResult, Verdict, require, undecided};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    Rule(ENDPOINTS, "page-first-without-cursor", "A request without next_token returns the first page, every time.", |p| confirm(p, same_first_page)),
    Rule(ENDPOINTS, "page-cursor-leads-on", "The next_token of a page returns batches that were not on it.", next_page_differs),
    Rule(RESOURCES, "page-each-is-an-envelope", "Every page has the fields data and next_token.", every_page_is_valid),
    Rule(ENDPOINTS, "page-walk-ends-with-null", "The last page has the next_token null.", |p| ends(p, &DateRange::default())),
    Rule(ENDPOINTS, "page-walk-of-a-window-ends-with-null", "The last page of a date range has the next_token null.", |p| { let range = p.wide_range()?; ends(p, &range) }),
    Rule(ERRORS, "page-cursor-is-safe-to-retry", "The same next_token sent again returns the same page.", |p| confirm(p, |p| second_page_again(p, true))),
    Rule(decision(19), "page-size-is-bounded", "No page has more than 10,000 batches.", page_size),
    Rule(decision(21), "cursor-remembers-the-dates", "The dates may be left out with next_token: the cursor contains them.", |p| second_page_again(p, false)),
    Rule(decision(21), "cursor-with-other-dates-is-422", "Dates that differ from the cursor's are a 422 of type value_error.", other_dates),
    Rule(decision(22), "cursor-is-url-safe-and-short", "A cursor is URL-safe without padding and under 512 bytes.", url_safe),
    Rule(decision(22), "cursor-is-opaque", "A cursor does not reveal the batches around it.", opaque),
    Rule(decision(23), "cursor-invalid-is-422", "A next_token that was never issued is a 422 of type value_error on next_token.", |p| rejected(p, "conformance-run-invented-this-cursor")),
    Rule(decision(23), "cursor-empty-is-422", "An empty next_token is a 422 of type value_error on next_token.", |p| rejected(p, "")),
    Rule(decision(23), "cursor-altered-is-422", "A cursor with one character changed is a 422 of type value_error on next_token.", altered),
    Rule(decision(24), "cursor-on-v1-is-ignored", "next_token on v1 is ignored like any unknown parameter.", |p| p.fetch_batches(Version::V1, &[NO_DATA[0], NO_DATA[1], ("next_token", "any")])?.require_status(200)),
    Rule(decision(17), "cursor-misnamed-is-422", "cursor, page_token, nextToken, page, offset and after are a 422 that names next_token.", misnamed),
];

/// A date range before all data.
const NO_DATA: [(&str, &str); 2] = [("start_date", LONG_AGO), ("end_date", LONG_AGO)];

/// A shorter batch id may occur in a cursor by chance.
const MIN_REVEALING_ID_BYTES: usize = 6;

fn same_first_page(probe: &mut Probe) -> CheckResult {
    let sample = probe.sample()?;
    let page = probe.fetch_page(&DateRange::default(), None)?;
    require(page.batches == sample.pages[0].batches, || page.fail("the batches of the first response"))
}

fn next_page_differs(probe: &mut Probe) -> CheckResult {
    let listing = probe.list_all()?;
    let [first, second, ..] = listing.pages.as_slice() else {
        return Err(match &listing.end {
            End::Broken(verdict) => verdict.clone(),
            _ => one_page(),
        });
    };
    let first_ids: Vec<&str> = first.batches.iter().filter_map(batch_id).collect();
    let mut second_ids = second.batches.iter().filter_map(batch_id);
    second_ids.find(|id| first_ids.contains(id)).map_or(Ok(()), |id| {
        let id = probe.show(id);
        Err(second.fail(format!("batches other than those of the first page; {id} is on both")))
    })
}

fn every_page_is_valid(probe: &mut Probe) -> CheckResult {
    match &probe.list_all()?.end {
        End::Broken(verdict) => Err(verdict.clone()),
        _ => Ok(()),
    }
}

fn ends(probe: &mut Probe, range: &DateRange) -> CheckResult {
    let listing = probe.list(Version::V2, range)?;
    match &listing.end {
        End::Loop(page) => Err(listing.fail(
            format!("page {page} with the next_token of an earlier page: the pagination loops"),
            "a new next_token on every page, and null on the last",
        )),
        _ => listing.require_complete(),
    }
}

fn second_page_again(probe: &mut Probe, with_dates: bool) -> CheckResult {
    let (range, listing, cursor) = two_pages(probe)?;
    let range = if with_dates { range } else { DateRange::default() };
    let page = probe.fetch_page(&range, Some(&cursor))?;
    require(page.batches == listing.pages[1].batches, || page.fail("the same page as before"))
}

fn page_size(probe: &mut Probe) -> CheckResult {
    let sample = probe.sample()?;
    let largest = sample.pages.iter().map(|page| page.batches.len()).max().unwrap_or_default();
    require(largest <= 10_000, || sample.fail(format!("{largest} batches on a page"), "at most 10,000"))
}

fn other_dates(probe: &mut Probe) -> CheckResult {
    let (range, _, cursor) = two_pages(probe)?;
    let end = range.end.unwrap_or_default();
    let query = [NO_DATA[0], ("end_date", &end), ("next_token", &cursor)];
    probe.fetch_batches(Version::V2, &query)?.require_errors("query", &["start_date"], "value_error")
}

fn url_safe(probe: &mut Probe) -> CheckResult {
    let listing = probe.list_all()?;
    let cursors: Vec<&String> = listing.pages.iter().filter_map(|page| page.next.as_ref()).collect();
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    require(!cursors.is_empty(), one_page)?;
    let is_valid = |cursor: &str| (1..512).contains(&cursor.len()) && cursor.bytes().all(is_safe);
    cursors.into_iter().find(|cursor| !is_valid(cursor)).map_or(Ok(()), |cursor| {
        let found = format!("next_token {:?}", probe.show(cursor));
        Err(listing.fail(found, "A-Z a-z 0-9 - _ . ~, 1 to 511 bytes"))
    })
}

fn opaque(probe: &mut Probe) -> CheckResult {
    let (_, listing, cursor) = two_pages(probe)?;
    let decoded = URL_SAFE_NO_PAD.decode(cursor.trim_end_matches('=')).unwrap_or_default();
    let texts = [cursor, String::from_utf8_lossy(&decoded).into_owned()];
    let mut ids = listing.pages[..2].iter().flat_map(|page| &page.batches).filter_map(batch_id);
    let revealed =
        ids.find(|id| id.len() >= MIN_REVEALING_ID_BYTES && texts.iter().any(|text| text.contains(id)));
    revealed.map_or(Ok(()), |id| {
        let found = format!("a next_token that contains batch_id {}", probe.show(id));
        Err(listing.fail(found, "an opaque cursor"))
    })
}

fn rejected(probe: &mut Probe, cursor: &str) -> CheckResult {
    let response = probe.fetch_batches(Version::V2, &[("next_token", cursor)])?;
    response.require_errors("query", &["next_token"], "value_error")
}

fn altered(probe: &mut Probe) -> CheckResult {
    let (_, _, cursor) = two_pages(probe)?;
    let altered = alter(&cursor).ok_or_else(|| undecided("the cursor is too short to alter"))?;
    rejected(probe, &altered)
}

fn misnamed(probe: &mut Probe) -> CheckResult {
    for name in ["cursor", "page_token", "nextToken", "page", "offset", "after"] {
        let response = probe.fetch_batches(Version::V2, &[NO_DATA[0], NO_DATA[1], (name, "2")])?;
        response.validation_errors()?;
        let names_it = response.json()?.to_string().contains("next_token");
        response.require(names_it, "a 422 that names next_token")?;
    }
    Ok(())
}

/// A date range with at least two pages, its pages, and the cursor of the first.
fn two_pages(probe: &mut Probe) -> CheckResult<(DateRange, Rc<Listing>, String)> {
    let range = probe.wide_range()?;
    let listing = probe.list(Version::V2, &range)?;
    match listing.pages[0].next.clone() {
        Some(cursor) if listing.pages.len() > 1 => Ok((range, listing, cursor)),
        _ => Err(one_page()),
    }
}

fn one_page() -> Verdict {
    undecided("all batches fit on one page")
}
