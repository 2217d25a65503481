//! What the organisation is known to hold: a base that never changes, and what writers add. Knows nothing of HTTP.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A standby may be this far behind and still be read from (2 s, decision 041), and a busy machine takes its time:
/// only what was acknowledged before that has to be seen.
const SETTLED: Duration = Duration::from_secs(5);

/// A place in the order of batches: creation date, then id. The date is without its `Z`: so text sorts as time, with
/// fractions of a second and without.
pub(crate) type Place = (String, String);

/// The start and the end of a window, both inclusive.
pub(crate) type Window = (String, String);

/// A batch of the base.
#[derive(Clone, Debug)]
pub(crate) struct BaseBatch {
    pub(crate) place: Place,
    /// The text in which it goes out, to the byte.
    pub(crate) text: String,
}

/// All that is known.
#[derive(Debug)]
pub(crate) struct Known {
    base: Vec<BaseBatch>,
    added: Mutex<BTreeMap<Place, Added>>,
}

/// What became of a batch that a writer added.
#[derive(Clone, Copy, Debug)]
struct Added {
    offered_at: Instant,
    acknowledged_at: Option<Instant>,
}

/// The two fields that make a place.
#[derive(Deserialize)]
struct Keyed {
    batch_id: String,
    batch_creation_date: String,
}

impl Known {
    /// A base from the JSON array that was imported.
    pub(crate) fn new(imported: &[u8]) -> Result<Self> {
        let texts: Vec<&RawValue> = serde_json::from_slice(imported).context("not an array of batches")?;
        let batch = |text: &&RawValue| {
            let text = text.get().to_owned();
            Ok(BaseBatch { place: place_of(&text).context("a batch without a place")?, text })
        };
        let mut base = texts.iter().map(batch).collect::<Result<Vec<_>>>()?;
        base.sort_by(|one, other| one.place.cmp(&other.place));
        Ok(Self { base, added: Mutex::default() })
    }

    /// The base within a window; all of it without one.
    pub(crate) fn base_within(&self, window: Option<&Window>) -> &[BaseBatch] {
        let Some((start, end)) = window else { return &self.base };
        let first = self.base.partition_point(|batch| batch.place.0 < *start);
        let last = self.base.partition_point(|batch| batch.place.0 <= *end);
        &self.base[first..last]
    }

    /// A window that begins at one batch of the base and ends some batches later; any number names one.
    pub(crate) fn window(&self, number: usize, batches: usize) -> Window {
        let first = number % self.base.len().saturating_sub(batches).max(1);
        let date = |index: usize| self.base[index.min(self.base.len() - 1)].place.0.clone();
        (date(first), date(first + batches))
    }

    /// A creation date for a new batch, somewhere among the base; any number names one.
    pub(crate) fn date(&self, number: usize) -> String {
        self.window(number, 0).0
    }

    /// A writer is about to add a batch: from now on it may be seen.
    pub(crate) fn offer(&self, place: &Place) {
        let added = Added { offered_at: Instant::now(), acknowledged_at: None };
        self.lock().entry(place.clone()).or_insert(added);
    }

    /// A batch that was offered is acknowledged: soon it has to be seen.
    pub(crate) fn acknowledge(&self, place: &Place) {
        if let Some(added) = self.lock().get_mut(place) {
            added.acknowledged_at = Some(Instant::now());
        }
    }

    pub(crate) fn is_offered(&self, place: &Place) -> bool {
        self.lock().contains_key(place)
    }

    /// What was acknowledged long enough before an instant, within a window.
    pub(crate) fn settled_by(&self, now: Instant, window: Option<&Window>) -> Vec<Place> {
        let is_within = |(date, _): &Place| window.is_none_or(|(start, end)| start <= date && date <= end);
        let is_settled = |added: &Added| added.acknowledged_at.is_some_and(|at| at + SETTLED < now);
        let added = self.lock();
        let settled = added.iter().filter(|(place, added)| is_within(place) && is_settled(added));
        settled.map(|(place, _)| place.clone()).collect()
    }

    /// Whether anything that was begun after an instant is settled by now.
    pub(crate) fn changed_since(&self, then: Instant) -> bool {
        let is_settled = |added: &Added| added.acknowledged_at.is_some_and(|at| at.elapsed() > SETTLED);
        self.lock().values().any(|added| added.offered_at > then && is_settled(added))
    }

    /// Everything that was acknowledged.
    pub(crate) fn acknowledged(&self) -> Vec<Place> {
        let added = self.lock();
        let acknowledged = added.iter().filter(|(_, added)| added.acknowledged_at.is_some());
        acknowledged.map(|(place, _)| place.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Place, Added>> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a batch stands, from its text.
pub(crate) fn place_of(text: &str) -> Option<Place> {
    let Keyed { batch_id, batch_creation_date } = serde_json::from_str(text).ok()?;
    Some((batch_creation_date.strip_suffix('Z')?.to_owned(), batch_id))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn text(id: &str, date: &str) -> String {
        format!(r#"{{"batch_id":"{id}","batch_creation_date":"{date}Z"}}"#)
    }

    pub(crate) fn known(batches: &[(&str, &str)]) -> Known {
        let texts: Vec<String> = batches.iter().map(|(id, date)| text(id, date)).collect();
        Known::new(format!("[{}]", texts.join(",")).as_bytes()).unwrap()
    }

    #[test]
    fn a_window_holds_its_borders() {
        let known = known(&[("c", "2026-03"), ("a", "2026-01"), ("b", "2026-02"), ("d", "2026-04")]);
        let window = known.window(1, 1);
        assert_eq!(window, ("2026-02".to_owned(), "2026-03".to_owned()));
        let ids: Vec<&str> =
            known.base_within(Some(&window)).iter().map(|batch| batch.place.1.as_str()).collect();
        assert_eq!(ids, ["b", "c"]);
        assert_eq!(known.base_within(None).len(), 4);
    }

    #[test]
    fn a_fraction_of_a_second_comes_after_the_second() {
        let known = known(&[("a", "2026-01-01T00:00:01.5"), ("b", "2026-01-01T00:00:01")]);
        let ids: Vec<&str> = known.base_within(None).iter().map(|batch| batch.place.1.as_str()).collect();
        assert_eq!(ids, ["b", "a"]);
    }

    #[test]
    fn only_what_was_acknowledged_a_while_ago_is_settled() {
        let known = known(&[("a", "2026-01")]);
        let (one, other) = (("2026-02".to_owned(), "x".to_owned()), ("2026-03".to_owned(), "y".to_owned()));
        known.offer(&one);
        known.offer(&other);
        known.acknowledge(&one);
        let later = Instant::now() + SETTLED + SETTLED;
        assert_eq!(known.settled_by(Instant::now(), None), []);
        assert_eq!(known.settled_by(later, None), std::slice::from_ref(&one));
        assert_eq!(known.settled_by(later, Some(&("2026-03".into(), "2026-09".into()))), []);
        assert_eq!(known.acknowledged(), [one]);
        assert!(known.is_offered(&other));
    }
}
