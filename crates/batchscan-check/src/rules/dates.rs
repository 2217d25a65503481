//! Which dates are understood and which are refused.

use super::{ENDPOINTS, ERRORS, RESOURCES, Rule, decided, rule, twice};
use crate::answer::Answer;
use crate::ask::Version;
use crate::batches::Window;
use crate::probe::Probe;
use crate::verdict::Checked;

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    rule(RESOURCES, "date-with-z-is-accepted", "A date in the form YYYY-MM-DDTHH:MM:SSZ is accepted.", |p| accepted(p, "1970-01-01T00:00:00Z")),
    rule(RESOURCES, "date-with-utc-offset-is-accepted", "The offset +00:00 is accepted in place of Z.", |p| accepted(p, "1970-01-01T00:00:00+00:00")),
    rule(RESOURCES, "date-with-utc-offset-means-the-same", "A window with +00:00 holds the batches of the window with Z.", |p| twice(p, offset_means_z)),
    rule(ENDPOINTS, "date-start-alone-is-accepted", "start_date may come without end_date.", |p| alone(p, "start_date", FAR_OFF)),
    rule(ENDPOINTS, "date-end-alone-is-accepted", "end_date may come without start_date.", |p| alone(p, "end_date", LONG_AGO)),
    rule(ERRORS, "date-without-timezone-is-422", "A date without a timezone is a 422 that locates it in the query.", |p| refused(p, "2024-05-01T00:00:00")),
    rule(ERRORS, "date-that-is-none-is-422", "A text that is no date is a 422 that locates it in the query.", |p| refused(p, "yesterday")),
    rule(ERRORS, "date-not-in-the-calendar-is-422", "The 30th of February is a 422 that locates it in the query.", |p| refused(p, "2024-02-30T00:00:00Z")),
    rule(ERRORS, "date-with-other-offset-is-422", "An offset other than UTC is a 422 that locates the date in the query.", |p| refused(p, "2024-05-01T00:00:00+02:00")),
    rule(decided(12), "window-reversed-is-empty", "A window that ends before it starts is answered with 200 and no batches.", reversed),
    rule(decided(13), "date-with-fraction-is-accepted", "A date may have a fraction of 1 to 9 digits.", fractions),
    rule(decided(13), "date-with-space-for-plus-is-accepted", "A space where + stood is read as +: what an unescaped + decodes to.", |p| accepted(p, "1970-01-01T00:00:00 00:00")),
    rule(decided(14), "dates-both-bad-are-two-entries", "Two bad dates are two entries, start_date first.", both_bad),
    rule(decided(14), "date-good-beside-bad-is-not-blamed", "A good date beside a bad one gets no entry.", only_the_bad),
    rule(decided(14), "date-parsing-words", "The msg of datetime_from_date_parsing begins with Input should be a valid datetime or date.", |p| words(p, "yesterday", "Input should be a valid datetime or date")),
    rule(decided(14), "date-timezone-words", "The msg of timezone_aware is Input should have timezone info.", |p| words(p, "2024-05-01T00:00:00", "Input should have timezone info")),
    rule(decided(16), "date-repeated-is-422", "A date sent twice is a 422 of type value_error on it.", repeated),
    rule(decided(17), "query-unknown-is-ignored", "A query parameter nobody knows changes nothing.", unknown),
];

/// Dates beyond all data, so that no answer is large.
const LONG_AGO: &str = "1970-01-01T00:00:00Z";
const FAR_OFF: &str = "2999-01-01T00:00:00Z";

fn accepted(probe: &mut Probe, date: &str) -> Checked {
    for version in Version::BOTH {
        // Each in its turn beside a plain one, so that the window is closed on both sides and never reversed.
        probe.get_batches(version, &[("start_date", date), ("end_date", LONG_AGO)])?.must_be(200)?;
        probe.get_batches(version, &[("start_date", LONG_AGO), ("end_date", date)])?.must_be(200)?;
    }
    Ok(())
}

fn offset_means_z(probe: &mut Probe) -> Checked {
    let window = probe.small_window()?;
    let with_offset = |date: &Option<String>| date.as_ref().map(|date| date.replace('Z', "+00:00"));
    let other = Window { start: with_offset(&window.start), end: with_offset(&window.end) };
    for version in Version::BOTH {
        let (plain, offset) = (probe.list(version, &window)?, probe.list(version, &other)?);
        if plain.is_whole() && offset.is_whole() && plain.ids() != offset.ids() {
            let came = format!("{} batches", offset.ids().len());
            return Err(offset.fail(came, format!("the {} batches of the window with Z", plain.ids().len())));
        }
    }
    Ok(())
}

fn alone(probe: &mut Probe, name: &str, date: &str) -> Checked {
    for version in Version::BOTH {
        probe.get_batches(version, &[(name, date)])?.must_be(200)?;
    }
    Ok(())
}

fn refused(probe: &mut Probe, date: &str) -> Checked {
    each(probe, date, |answer, name| answer.must_blame("query", name))
}

fn reversed(probe: &mut Probe) -> Checked {
    let window = Window::between(FAR_OFF, LONG_AGO);
    for version in Version::BOTH {
        probe.get_batches(version, &window.query())?.must_be(200)?;
        let listing = probe.list(version, &window)?;
        if listing.batches().next().is_some() {
            return Err(listing.fail(format!("{} batches", listing.batches().count()), "no batches"));
        }
    }
    Ok(())
}

fn fractions(probe: &mut Probe) -> Checked {
    for fraction in ["0", "123", "123456", "123456789"] {
        let date = format!("1970-01-01T00:00:00.{fraction}Z");
        for version in Version::BOTH {
            probe.get_batches(version, &[("start_date", LONG_AGO), ("end_date", &date)])?.must_be(200)?;
        }
    }
    Ok(())
}

fn both_bad(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let query = [("end_date", "tomorrow"), ("start_date", "yesterday")];
        let answer = probe.get_batches(version, &query)?;
        answer.must_list("query", &["start_date", "end_date"], "datetime_from_date_parsing")?;
    }
    Ok(())
}

fn only_the_bad(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let answer = probe.get_batches(version, &[("start_date", LONG_AGO), ("end_date", "tomorrow")])?;
        answer.must_list("query", &["end_date"], "datetime_from_date_parsing")?;
    }
    Ok(())
}

fn words(probe: &mut Probe, date: &str, msg: &str) -> Checked {
    each(probe, date, |answer, _| {
        let said = answer.entries()?.iter().all(|entry| entry.msg.starts_with(msg));
        answer.must(said, format!("a msg that begins with {msg:?}"))
    })
}

fn repeated(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let answer = probe.get_batches(version, &[("end_date", LONG_AGO), ("end_date", LONG_AGO)])?;
        answer.must_list("query", &["end_date"], "value_error")?;
    }
    Ok(())
}

fn unknown(probe: &mut Probe) -> Checked {
    let window = probe.small_window().unwrap_or_else(|_| Window::between(LONG_AGO, LONG_AGO));
    for version in Version::BOTH {
        let plain = probe.get_batches(version, &window.query())?;
        let mut query = window.query();
        query.push(("colour", "green"));
        let answer = probe.get_batches(version, &query)?;
        answer.must_be(200)?;
        if version == Version::V1 {
            answer.must(answer.body == plain.body, "the answer without that parameter")?;
        }
    }
    Ok(())
}

/// Puts a date in either place on either version.
fn each(probe: &mut Probe, date: &str, judge: impl Fn(&Answer, &str) -> Checked) -> Checked {
    for version in Version::BOTH {
        for name in ["start_date", "end_date"] {
            let answer = probe.get_batches(version, &[(name, date)])?;
            judge(&answer, name)?;
        }
    }
    Ok(())
}
