//! Reads the batches of a date range, from the first page to the last or to the run's limit, and caches them.

use std::rc::Rc;

use crate::listing::{DateRange, End, LONG_AGO, Listing, Page, parse_array, parse_page, sorted_dates};
use crate::probe::Probe;
use crate::request::{Request, Version};
use crate::verdict::{CheckResult, Verdict, undecided};

/// Batches of the first page that a small range spans, well below the 1000 up to which both versions must agree.
const SMALL_RANGE: usize = 200;

impl Probe {
    /// All batches of a date range. An error leaves a rule undecided: other rules check the shape of responses.
    pub(crate) fn list(&mut self, version: Version, range: &DateRange) -> CheckResult<Rc<Listing>> {
        let key = (version, range.clone());
        if let Some(listing) = self.listings.get(&key) {
            return listing.clone();
        }
        let listing = match version {
            Version::V1 => self.read_array(range),
            Version::V2 => self.walk(range),
        };
        let listing = listing.map(Rc::new).map_err(Verdict::into_undecided);
        self.listings.insert(key, listing.clone());
        listing
    }

    fn read_array(&mut self, range: &DateRange) -> CheckResult<Listing> {
        let page = parse_array(&*self.fetch_batches(Version::V1, &range.query())?)?;
        Ok(Listing { pages: vec![page], end: End::Complete })
    }

    fn walk(&mut self, range: &DateRange) -> CheckResult<Listing> {
        let mut pages = vec![self.fetch_page(range, None)?];
        let end = loop {
            let Some(cursor) = pages.last().and_then(|page| page.next.clone()) else { break End::Complete };
            let earlier = &pages[..pages.len() - 1];
            if earlier.iter().any(|page| page.next.as_deref() == Some(&cursor)) {
                break End::Loop(pages.len());
            }
            let batches: usize = pages.iter().map(|page| page.batches.len()).sum();
            if pages.len() >= self.limits.pages || batches >= self.limits.batches {
                break End::Cut;
            }
            match self.fetch_page(range, Some(&cursor)) {
                Ok(page) => pages.push(page),
                Err(verdict) => break End::Broken(verdict),
            }
        };
        Ok(Listing { pages, end })
    }

    /// One page, not from the cache. The dates are sent together with the cursor, since the API does not state that
    /// they may be left out.
    pub(crate) fn fetch_page(&mut self, range: &DateRange, cursor: Option<&str>) -> CheckResult<Page> {
        let mut query = range.query();
        query.extend(cursor.map(|cursor| ("next_token", cursor)));
        let token = self.token(Version::V2)?;
        parse_page(&self.send(&Request::batches(Version::V2).query(&query).bearer(&token))?)
    }

    /// All batches of the organisation, up to the limit of a walk.
    pub(crate) fn list_all(&mut self) -> CheckResult<Rc<Listing>> {
        self.list(Version::V2, &DateRange::default())
    }

    /// The same, with at least one batch.
    pub(crate) fn sample(&mut self) -> CheckResult<Rc<Listing>> {
        let listing = self.list_all()?;
        if listing.batches().next().is_none() {
            return Err(undecided("the organisation has no batches"));
        }
        Ok(listing)
    }

    /// A range of whole seconds with some batches, but not many.
    pub(crate) fn small_range(&mut self) -> CheckResult<DateRange> {
        let sample = self.sample()?;
        let dates = sorted_dates(&sample.pages[0].batches);
        DateRange::around(&dates[..dates.len().min(SMALL_RANGE)])
    }

    /// A small range, or a range before all data where there are no batches.
    pub(crate) fn small_or_empty_range(&mut self) -> DateRange {
        self.small_range().unwrap_or_else(|_| DateRange::new(LONG_AGO, LONG_AGO))
    }

    /// A range of more than one page: that of the first two pages.
    pub(crate) fn wide_range(&mut self) -> CheckResult<DateRange> {
        let sample = self.sample()?;
        let Some(pages) = sample.pages.get(..2) else { return Err(undecided("all batches fit on one page")) };
        DateRange::around(&sorted_dates(pages.iter().flat_map(|page| &page.batches)))
    }
}
