//! Which dates are accepted and which are rejected.

use super::rule::{ENDPOINTS, ERRORS, RESOURCES, Rule, both, confirm, decision};
use crate::listing::{DateRange, LONG_AGO};
use crate::probe::Probe;
use crate::request::Version;
use crate::response::Response;
use crate::verdict::CheckResult;

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    Rule(RESOURCES, "date-with-z-is-accepted", "A date of the form YYYY-MM-DDTHH:MM:SSZ is accepted.", |p| accepted(p, "1970-01-01T00:00:00Z")),
    Rule(RESOURCES, "date-with-utc-offset-is-accepted", "The offset +00:00 is accepted instead of Z.", |p| accepted(p, "1970-01-01T00:00:00+00:00")),
    Rule(RESOURCES, "date-with-utc-offset-means-the-same", "A date range with +00:00 returns the same batches as with Z.", |p| confirm(p, offset_equals_z)),
    Rule(ENDPOINTS, "date-start-alone-is-accepted", "start_date is accepted without end_date.", |p| both(p, |p, version| p.fetch_batches(version, &[("start_date", FAR_FUTURE)])?.require_status(200))),
    Rule(ENDPOINTS, "date-end-alone-is-accepted", "end_date is accepted without start_date.", |p| both(p, |p, version| p.fetch_batches(version, &[("end_date", LONG_AGO)])?.require_status(200))),
    Rule(ERRORS, "date-without-timezone-is-422", "A date without a timezone is a 422 that locates it in the query.", |p| rejected(p, "2024-05-01T00:00:00")),
    Rule(ERRORS, "date-that-is-none-is-422", "A text that is not a date is a 422 that locates it in the query.", |p| rejected(p, "yesterday")),
    Rule(ERRORS, "date-not-in-the-calendar-is-422", "The 30th of February is a 422 that locates it in the query.", |p| rejected(p, "2024-02-30T00:00:00Z")),
    Rule(ERRORS, "date-with-other-offset-is-422", "An offset other than UTC is a 422 that locates the date in the query.", |p| rejected(p, "2024-05-01T00:00:00+02:00")),
    Rule(decision(12), "window-reversed-is-empty", "A date range that ends before it starts returns 200 and no batches.", reversed),
    Rule(decision(13), "date-with-fraction-is-accepted", "A date may have a fraction of 1 to 9 digits.", fractions),
    Rule(decision(13), "date-with-space-for-plus-is-accepted", "A space before the offset is read as +, since an unescaped + decodes to a space.", |p| accepted(p, "1970-01-01T00:00:00 00:00")),
    Rule(decision(14), "dates-both-bad-are-two-entries", "Two invalid dates are two entries, start_date first.", |p| both(p, |p, version| p.fetch_batches(version, &[("end_date", "tomorrow"), ("start_date", "yesterday")])?.require_errors("query", &["start_date", "end_date"], PARSING))),
    Rule(decision(14), "date-good-beside-bad-is-not-blamed", "A valid date together with an invalid one gets no entry.", |p| both(p, |p, version| p.fetch_batches(version, &[("start_date", LONG_AGO), ("end_date", "tomorrow")])?.require_errors("query", &["end_date"], PARSING))),
    Rule(decision(14), "date-parsing-words", "The msg of datetime_from_date_parsing begins with Input should be a valid datetime or date.", |p| each(p, "yesterday", |r, _| r.require_msg("Input should be a valid datetime or date", false))),
    Rule(decision(14), "date-timezone-words", "The msg of timezone_aware is Input should have timezone info.", |p| each(p, "2024-05-01T00:00:00", |r, _| r.require_msg("Input should have timezone info", false))),
    Rule(decision(16), "date-repeated-is-422", "A repeated date is a 422 of type value_error.", |p| both(p, |p, version| p.fetch_batches(version, &[("end_date", LONG_AGO), ("end_date", LONG_AGO)])?.require_errors("query", &["end_date"], "value_error"))),
    Rule(decision(17), "date-misnamed-is-422", "startDate, from, end and the like are a 422 that names the right parameter.", |p| both(p, misnamed)),
    Rule(decision(17), "field-as-filter-is-422", "A field of batches as a parameter is a 422, since batches cannot be filtered by it.", |p| both(p, |p, version| p.fetch_batches(version, &[("crop_type", "Leek")])?.require_errors("query", &["crop_type"], "value_error"))),
    Rule(decision(17), "query-unknown-is-ignored", "An unknown query parameter is ignored.", unknown_parameter),

    Rule(decision(14), "form-date-alone", "A date without a time is of type timezone_aware.", |p| form(p, "2024-05-01", "timezone_aware")),
    Rule(decision(14), "form-no-offset", "A datetime without an offset is of type timezone_aware.", |p| form(p, "2024-05-01T00:00:00", "timezone_aware")),
    Rule(decision(14), "form-other-offset", "An offset other than UTC is of type timezone_offset.", |p| form(p, "2024-05-01T00:00:00+02:00", "timezone_offset")),
    Rule(decision(14), "form-minus-zero", "The offset -00:00 is of type timezone_offset.", |p| form(p, "2024-05-01T00:00:00-00:00", "timezone_offset")),
    Rule(decision(13), "form-lower-case-t", "A lower-case t is rejected as datetime_from_date_parsing.", |p| form(p, "2024-05-01t00:00:00Z", PARSING)),
    Rule(decision(13), "form-lower-case-z", "A lower-case z is rejected as datetime_from_date_parsing.", |p| form(p, "2024-05-01T00:00:00z", PARSING)),
    Rule(decision(13), "form-unix-number", "A Unix timestamp is rejected as datetime_from_date_parsing.", |p| form(p, "1714521600", PARSING)),
    Rule(decision(13), "form-no-seconds", "A time without seconds is rejected as datetime_from_date_parsing.", |p| form(p, "2024-05-01T00:00Z", PARSING)),
    Rule(decision(13), "form-hour-24", "24:00:00 is rejected as datetime_from_date_parsing.", |p| form(p, "2024-05-01T24:00:00Z", PARSING)),
    Rule(decision(13), "form-second-60", "Second 60 is rejected as datetime_from_date_parsing.", |p| form(p, "2024-05-01T23:59:60Z", PARSING)),
    Rule(decision(13), "form-year-0000", "Year 0000 is rejected as datetime_from_date_parsing.", |p| form(p, "0000-05-01T00:00:00Z", PARSING)),
    Rule(decision(13), "form-ten-digit-fraction", "A fraction of ten digits is rejected as datetime_from_date_parsing.", |p| form(p, "2024-05-01T00:00:00.1234567890Z", PARSING)),
    Rule(decision(13), "form-empty-fraction", "A fraction without digits is rejected as datetime_from_date_parsing.", |p| form(p, "2024-05-01T00:00:00.Z", PARSING)),
    Rule(decision(13), "form-space-for-t", "A space between date and time is rejected as datetime_from_date_parsing.", |p| form(p, "2024-05-01 00:00:00Z", PARSING)),
    Rule(decision(13), "form-empty", "An empty date is rejected as datetime_from_date_parsing.", |p| form(p, "", PARSING)),
    Rule(decision(13), "form-month-13", "Month 13 is rejected as datetime_from_date_parsing.", |p| form(p, "2024-13-01T00:00:00Z", PARSING)),
];

const PARSING: &str = "datetime_from_date_parsing";

/// A date after all data.
const FAR_FUTURE: &str = "2999-01-01T00:00:00Z";

fn misnamed(probe: &mut Probe, version: Version) -> CheckResult {
    for (wrong, right) in [("startDate", "start_date"), ("from", "start_date"), ("end", "end_date")] {
        let response = probe.fetch_batches(version, &[(wrong, LONG_AGO)])?;
        response.require_errors("query", &[wrong], "value_error")?;
        response.require_msg(&format!("Value error, the parameter is called {right}"), false)?;
    }
    Ok(())
}

fn accepted(probe: &mut Probe, date: &str) -> CheckResult {
    both(probe, |probe, version| {
        // Always with a second date, so that the range is closed and never reversed.
        probe.fetch_batches(version, &[("start_date", date), ("end_date", LONG_AGO)])?.require_status(200)?;
        probe.fetch_batches(version, &[("start_date", LONG_AGO), ("end_date", date)])?.require_status(200)
    })
}

fn offset_equals_z(probe: &mut Probe) -> CheckResult {
    let range = probe.small_range()?;
    let with_offset = |date: &Option<String>| date.as_ref().map(|date| date.replace('Z', "+00:00"));
    let other = DateRange { start: with_offset(&range.start), end: with_offset(&range.end) };
    both(probe, |probe, version| {
        let (plain, offset) = (probe.list(version, &range)?, probe.list(version, &other)?);
        if plain.is_complete() && offset.is_complete() && plain.ids() != offset.ids() {
            let found = format!("{} batches", offset.ids().len());
            return Err(offset.fail(found, format!("the {} batches of the range with Z", plain.ids().len())));
        }
        Ok(())
    })
}

fn rejected(probe: &mut Probe, date: &str) -> CheckResult {
    each(probe, date, |response, name| response.require_error_at("query", name))
}

fn reversed(probe: &mut Probe) -> CheckResult {
    let range = DateRange::new(FAR_FUTURE, LONG_AGO);
    both(probe, |probe, version| {
        probe.fetch_batches(version, &range.query())?.require_status(200)?;
        let listing = probe.list(version, &range)?;
        match listing.batches().count() {
            0 => Ok(()),
            count => Err(listing.fail(format!("{count} batches"), "no batches")),
        }
    })
}

fn fractions(probe: &mut Probe) -> CheckResult {
    for fraction in ["0", "123", "123456", "123456789"] {
        let date = format!("1970-01-01T00:00:00.{fraction}Z");
        both(probe, |probe, version| {
            probe
                .fetch_batches(version, &[("start_date", LONG_AGO), ("end_date", &date)])?
                .require_status(200)
        })?;
    }
    Ok(())
}

fn unknown_parameter(probe: &mut Probe) -> CheckResult {
    let range = probe.small_or_empty_range();
    let mut query = range.query();
    query.push(("colour", "green"));
    both(probe, |probe, version| {
        let plain = probe.fetch_batches(version, &range.query())?;
        let response = probe.fetch_batches(version, &query)?;
        response.require_status(200)?;
        // Cursors of v2 may differ between responses.
        let same = version == Version::V2 || response.body == plain.body;
        response.require(same, "the response without that parameter")
    })
}

/// Sends an invalid date as `start_date` to v1 and as `end_date` to v2. Other rules check that both are validated
/// alike.
fn form(probe: &mut Probe, date: &str, kind: &str) -> CheckResult {
    for (version, name) in [(Version::V1, "start_date"), (Version::V2, "end_date")] {
        probe.fetch_batches(version, &[(name, date)])?.require_errors("query", &[name], kind)?;
    }
    Ok(())
}

/// Sends a date as either parameter to both versions.
fn each(probe: &mut Probe, date: &str, check: fn(&Response, &str) -> CheckResult) -> CheckResult {
    both(probe, |probe, version| {
        check(&*probe.fetch_batches(version, &[("start_date", date)])?, "start_date")?;
        check(&*probe.fetch_batches(version, &[("end_date", date)])?, "end_date")
    })
}
