//! Pages and cursors of v2.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{ENDPOINTS, ERRORS, RESOURCES, Rule, decided, rule, twice};
use crate::ask::Version;
use crate::batches::{End, Listing, Page, Window, id_of};
use crate::probe::Probe;
use crate::verdict::{Checked, Verdict};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    rule(ENDPOINTS, "page-first-without-cursor", "A request without next_token gives the first page, however often it is sent.", |p| twice(p, first_again)),
    rule(ENDPOINTS, "page-cursor-leads-on", "The next_token of a page leads to batches that were not on it.", leads_on),
    rule(RESOURCES, "page-each-is-an-envelope", "Every page of a walk is an envelope.", each_readable),
    rule(ENDPOINTS, "page-walk-ends-with-null", "A walk comes to a page whose next_token is null.", |p| ends(p, &Window::default())),
    rule(ENDPOINTS, "page-walk-of-a-window-ends-with-null", "A walk over a window comes to a page whose next_token is null.", window_ends),
    rule(ERRORS, "page-cursor-is-safe-to-retry", "The same next_token sent again gives the same page.", |p| twice(p, again)),
    rule(decided(19), "page-size-is-bounded", "No page holds more than 10,000 batches.", bounded),
    rule(decided(21), "cursor-remembers-the-dates", "The dates may be left out beside next_token: the cursor remembers them.", remembers),
    rule(decided(21), "cursor-with-other-dates-is-422", "Dates that differ from the cursor's are a 422 of type value_error.", other_dates),
    rule(decided(22), "cursor-is-url-safe-and-short", "A cursor is URL-safe without padding and under 512 bytes.", url_safe),
    rule(decided(22), "cursor-tells-nothing", "A cursor does not show the batches it stands between.", opaque),
    rule(decided(23), "cursor-invalid-is-422", "A next_token nobody issued is a 422 of type value_error on next_token.", |p| refused(p, "conformance-run-invented-this-cursor")),
    rule(decided(23), "cursor-empty-is-422", "An empty next_token is a 422 of type value_error on next_token.", |p| refused(p, "")),
    rule(decided(23), "cursor-altered-is-422", "A cursor with one character changed is a 422 of type value_error on next_token.", altered),
    rule(decided(24), "cursor-on-v1-is-ignored", "next_token on v1 is ignored like any unknown parameter.", on_v1),
    rule(decided(17), "cursor-misnamed-is-422", "cursor, page_token, nextToken, page, offset and after are a 422 that names next_token.", misnamed),
];

/// A window before all data.
const NOTHING: [(&str, &str); 2] =
    [("start_date", "1970-01-01T00:00:00Z"), ("end_date", "1970-01-01T00:00:00Z")];

fn first_again(probe: &mut Probe) -> Checked {
    let known = probe.sample()?;
    let page = probe.fetch_page(&Window::default(), None)?;
    match known.pages.first() {
        Some(first) if first.batches != page.batches => Err(page.fail("the batches of the first answer")),
        _ => Ok(()),
    }
}

fn leads_on(probe: &mut Probe) -> Checked {
    let sample = probe.everything()?;
    let [first, second, ..] = sample.pages.as_slice() else {
        return match &sample.end {
            End::Broken(verdict) => Err(verdict.clone()),
            _ => Err(one_page()),
        };
    };
    let known: Vec<&str> = first.batches.iter().filter_map(id_of).collect();
    match second.batches.iter().filter_map(id_of).find(|id| known.contains(id)) {
        Some(id) => {
            let id = probe.redactor.show(id.as_bytes());
            Err(second.fail(format!("batches other than those of the first page; {id} is on both")))
        }
        None => Ok(()),
    }
}

fn each_readable(probe: &mut Probe) -> Checked {
    match &probe.everything()?.end {
        End::Broken(verdict) => Err(verdict.clone()),
        _ => Ok(()),
    }
}

fn window_ends(probe: &mut Probe) -> Checked {
    let window = probe.wide_window()?;
    ends(probe, &window)
}

fn ends(probe: &mut Probe, window: &Window) -> Checked {
    let listing = probe.list(Version::V2, window)?;
    match &listing.end {
        End::Circle(pages) => Err(circle(&listing, *pages)),
        _ => listing.must_be_whole(),
    }
}

fn circle(listing: &Listing, pages: usize) -> Verdict {
    listing.fail(
        format!("on page {pages} a next_token that had come before: the walk never ends"),
        "a new next_token on every page, and null on the last",
    )
}

fn again(probe: &mut Probe) -> Checked {
    let (window, listing) = two_pages(probe)?;
    let page = probe.fetch_page(&window, listing.pages[0].next.as_deref())?;
    if page.batches == listing.pages[1].batches { Ok(()) } else { Err(page.fail("the page that came first")) }
}

fn bounded(probe: &mut Probe) -> Checked {
    let sample = probe.sample()?;
    match sample.pages.iter().find(|page| page.batches.len() > 10_000) {
        Some(page) => Err(sample.fail(format!("{} batches on a page", page.batches.len()), "10,000 at most")),
        None => Ok(()),
    }
}

fn remembers(probe: &mut Probe) -> Checked {
    let (_, listing) = two_pages(probe)?;
    let page = probe.fetch_page(&Window::default(), listing.pages[0].next.as_deref())?;
    if page.batches == listing.pages[1].batches {
        return Ok(());
    }
    Err(page.fail("the page that came when the dates were repeated"))
}

fn other_dates(probe: &mut Probe) -> Checked {
    let (window, listing) = two_pages(probe)?;
    let cursor = cursor_of(&listing.pages[0])?;
    let end = window.end.unwrap_or_default();
    let query = [("start_date", NOTHING[0].1), ("end_date", &end), ("next_token", &cursor)];
    probe.get_batches(Version::V2, &query)?.must_list("query", &["start_date"], "value_error")
}

fn url_safe(probe: &mut Probe) -> Checked {
    let sample = probe.everything()?;
    let mut pages = sample.pages.iter().filter(|page| page.next.is_some()).peekable();
    if pages.peek().is_none() {
        return Err(one_page());
    }
    for page in pages {
        let cursor = cursor_of(page)?;
        let safe = cursor
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~'));
        if !safe || cursor.is_empty() || cursor.len() >= 512 {
            let cursor = probe.redactor.show(cursor.as_bytes());
            return Err(sample.fail(format!("next_token {cursor:?}"), "A-Z a-z 0-9 - _ . ~, 1 to 511 bytes"));
        }
    }
    Ok(())
}

fn opaque(probe: &mut Probe) -> Checked {
    let (_, listing) = two_pages(probe)?;
    let cursor = cursor_of(&listing.pages[0])?;
    let decoded = URL_SAFE_NO_PAD.decode(cursor.trim_end_matches('=')).unwrap_or_default();
    let texts = [cursor.clone(), String::from_utf8_lossy(&decoded).into_owned()];
    let mut ids = listing.pages[..2].iter().flat_map(|page| &page.batches).filter_map(id_of);
    // Short ids stand in any random text.
    let shown = ids.find(|id| id.len() >= 6 && texts.iter().any(|text| text.contains(id)));
    match shown {
        Some(id) => {
            let id = probe.redactor.show(id.as_bytes());
            Err(listing.fail(format!("a next_token that holds batch_id {id}"), "a sealed cursor"))
        }
        None => Ok(()),
    }
}

fn refused(probe: &mut Probe, cursor: &str) -> Checked {
    let answer = probe.get_batches(Version::V2, &[("next_token", cursor)])?;
    answer.must_list("query", &["next_token"], "value_error")
}

fn altered(probe: &mut Probe) -> Checked {
    let (_, listing) = two_pages(probe)?;
    let cursor = cursor_of(&listing.pages[0])?;
    let middle = cursor.len() / 2;
    let (Some(head), Some(old), Some(tail)) =
        (cursor.get(..middle), cursor.get(middle..=middle), cursor.get(middle + 1..))
    else {
        return Err(Verdict::CannotTell("the cursor is too short to be altered".to_owned()));
    };
    refused(probe, &format!("{head}{}{tail}", if old == "A" { "B" } else { "A" }))
}

fn on_v1(probe: &mut Probe) -> Checked {
    let mut query = NOTHING.to_vec();
    query.push(("next_token", "whatever"));
    probe.get_batches(Version::V1, &query)?.must_be(200)
}

fn misnamed(probe: &mut Probe) -> Checked {
    for name in ["cursor", "page_token", "nextToken", "page", "offset", "after"] {
        let answer = probe.get_batches(Version::V2, &[NOTHING[0], NOTHING[1], (name, "2")])?;
        answer.entries()?;
        let named = answer.json()?.to_string().contains("next_token");
        answer.must(named, "a 422 that names next_token")?;
    }
    Ok(())
}

/// A window with at least two pages, and its walk.
fn two_pages(probe: &mut Probe) -> Checked<(Window, std::rc::Rc<Listing>)> {
    let window = probe.wide_window()?;
    let listing = probe.list(Version::V2, &window)?;
    if listing.pages.len() < 2 {
        return Err(one_page());
    }
    Ok((window, listing))
}

fn cursor_of(page: &Page) -> Checked<String> {
    page.next.clone().ok_or_else(one_page)
}

fn one_page() -> Verdict {
    Verdict::CannotTell("all batches fit on one page".to_owned())
}
