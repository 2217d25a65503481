//! What the organisation must contain, and whether a list of batches matches it. Knows nothing about HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;
use serde_json::value::RawValue;

use super::lock::lock;

/// A standby may be 2 s behind and still be read from (decision 041). With time for a busy machine, a batch must be
/// visible this long after it was acknowledged.
const VISIBLE_AFTER: Duration = Duration::from_secs(20);

/// The place of a batch in the order: creation date without its `Z`, so that text sorts like time, then id.
pub(crate) type Position = (String, String);

/// Start and end, both inclusive.
pub(crate) type DateRange = (String, String);

/// A batch that was there from the start and never changes.
#[derive(Debug)]
struct BaseBatch {
    position: Position,
    /// The text in responses, to the byte.
    text: String,
}

/// A batch that is imported during the run.
#[derive(Debug)]
struct Added {
    sent_at: Instant,
    acknowledged_at: Option<Instant>,
}

impl Added {
    fn must_be_visible(&self, now: Instant) -> bool {
        self.acknowledged_at.is_some_and(|at| at + VISIBLE_AFTER < now)
    }
}

/// The base, and what was added.
#[derive(Debug)]
pub(crate) struct Expected {
    base: Vec<BaseBatch>,
    added: Mutex<BTreeMap<Position, Added>>,
}

impl Expected {
    /// Starts with the JSON array that was imported.
    pub(crate) fn new(imported: &[u8]) -> Result<Self> {
        let texts: Vec<&RawValue> = serde_json::from_slice(imported).context("not an array of batches")?;
        let batch = |text: &&RawValue| {
            let text = text.get().to_owned();
            Ok(BaseBatch { position: position_of(&text).context("a batch without id or date")?, text })
        };
        let mut base = texts.iter().map(batch).collect::<Result<Vec<_>>>()?;
        base.sort_by(|one, other| one.position.cmp(&other.position));
        Ok(Self { base, added: Mutex::default() })
    }

    /// A range that starts at a batch of the base and ends some batches later; `seed` chooses the batch.
    pub(crate) fn range(&self, seed: usize, batches: usize) -> DateRange {
        let first = seed % self.base.len().saturating_sub(batches).max(1);
        let date = |index: usize| self.base[index.min(self.base.len() - 1)].position.0.clone();
        (date(first), date(first + batches))
    }

    /// An import is about to send a batch: from now on it may be visible.
    pub(crate) fn send(&self, position: &Position) {
        let added = Added { sent_at: Instant::now(), acknowledged_at: None };
        lock(&self.added).entry(position.clone()).or_insert(added);
    }

    /// An import was acknowledged: soon its batch must be visible.
    pub(crate) fn acknowledge(&self, position: &Position) {
        if let Some(added) = lock(&self.added).get_mut(position) {
            added.acknowledged_at = Some(Instant::now());
        }
    }

    pub(crate) fn acknowledged(&self) -> Vec<Position> {
        let added = lock(&self.added);
        let acknowledged = added.iter().filter(|(_, added)| added.acknowledged_at.is_some());
        acknowledged.map(|(position, _)| position.clone()).collect()
    }

    /// Whether a batch that was sent after an instant must be visible now.
    pub(crate) fn has_changed_since(&self, then: Instant) -> bool {
        lock(&self.added).values().any(|added| added.sent_at > then && added.must_be_visible(Instant::now()))
    }

    /// Verifies a list that is requested now.
    pub(crate) fn verifier<'a>(&'a self, range: Option<&'a DateRange>) -> Verifier<'a> {
        self.verifier_at(range, Instant::now())
    }

    /// Verifies a list that was requested at that instant.
    pub(crate) fn verifier_at<'a>(&'a self, range: Option<&'a DateRange>, now: Instant) -> Verifier<'a> {
        let added = lock(&self.added);
        let visible =
            added.iter().filter(|(position, added)| in_range(position, range) && added.must_be_visible(now));
        let required = visible.map(|(position, _)| position.clone()).collect();
        let first =
            self.base.partition_point(|batch| range.is_some_and(|(start, _)| batch.position.0 < *start));
        let end = self.base.partition_point(|batch| range.is_none_or(|(_, end)| batch.position.0 <= *end));
        Verifier { expected: self, base: &self.base[first..end], required, range, last: None }
    }

    /// Verifies a list that must contain everything that was ever acknowledged.
    pub(crate) fn final_verifier(&self) -> Verifier<'_> {
        Verifier { required: self.acknowledged().into_iter().collect(), ..self.verifier(None) }
    }
}

/// Verifies batches one after the other: every batch of the base exactly once, in order and to the byte, everything that
/// must be visible, and nothing that was never sent.
pub(crate) struct Verifier<'a> {
    expected: &'a Expected,
    /// The rest of the base.
    base: &'a [BaseBatch],
    /// Added batches that must still come.
    required: BTreeSet<Position>,
    range: Option<&'a DateRange>,
    last: Option<Position>,
}

impl Verifier<'_> {
    /// Verifies the next batch.
    pub(crate) fn batch(&mut self, text: &str) -> Result<(), String> {
        let position = match self.base.split_first() {
            Some((next, rest)) if next.text == text => {
                self.base = rest;
                next.position.clone()
            }
            _ => self.added_batch(text)?,
        };
        if self.last.as_ref().is_some_and(|last| *last >= position) {
            return Err(format!("{position:?} came after {:?}", self.last));
        }
        self.last = Some(position);
        Ok(())
    }

    /// Verifies all batches of an array.
    pub(crate) fn array(&mut self, json: &[u8]) -> Result<(), String> {
        let batches: Vec<&RawValue> = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        batches.iter().try_for_each(|batch| self.batch(batch.get()))
    }

    /// The list is complete: nothing may be missing.
    pub(crate) fn end(self) -> Result<(), String> {
        if let Some(missing) = self.base.first() {
            return Err(format!("{} batches are missing, from {:?} on", self.base.len(), missing.position));
        }
        self.required
            .first()
            .map_or(Ok(()), |missing| Err(format!("{missing:?} was acknowledged and is missing")))
    }

    fn added_batch(&mut self, text: &str) -> Result<Position, String> {
        let position = position_of(text).ok_or_else(|| format!("not a batch: {text}"))?;
        let next = self.base.first().map(|batch| &batch.position);
        if !lock(&self.expected.added).contains_key(&position) {
            return Err(format!("{position:?} came instead of {next:?}"));
        }
        if !in_range(&position, self.range) {
            return Err(format!("{position:?} is outside the date range"));
        }
        if next.is_some_and(|next| *next < position) {
            return Err(format!("{position:?} came before {next:?}"));
        }
        self.required.remove(&position);
        Ok(position)
    }
}

/// The position of a batch, from its text.
pub(crate) fn position_of(text: &str) -> Option<Position> {
    let batch: Value = serde_json::from_str(text).ok()?;
    Some((
        batch["batch_creation_date"].as_str()?.strip_suffix('Z')?.to_owned(),
        batch["batch_id"].as_str()?.to_owned(),
    ))
}

fn in_range(position: &Position, range: Option<&DateRange>) -> bool {
    range.is_none_or(|(start, end)| *start <= position.0 && position.0 <= *end)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Batch = (&'static str, &'static str);
    const A: Batch = ("2026-01-01T00:00:01", "a");
    /// Half a second after `A`.
    const B: Batch = ("2026-01-01T00:00:01.5", "b");
    const C: Batch = ("2026-03-01T00:00:00", "c");
    /// Comes after `B`.
    const X: Batch = (B.0, "x");

    fn array(batches: &[Batch]) -> Vec<u8> {
        let text = |(date, id): &Batch| format!(r#"{{"batch_id":"{id}","batch_creation_date":"{date}Z"}}"#);
        format!("[{}]", batches.iter().map(text).collect::<Vec<_>>().join(",")).into_bytes()
    }

    fn position((date, id): Batch) -> Position {
        (date.to_owned(), id.to_owned())
    }

    fn verify(mut verifier: Verifier<'_>, batches: &[Batch]) -> Result<(), String> {
        verifier.array(&array(batches))?;
        verifier.end()
    }

    #[test]
    fn the_base_must_come_whole_once_and_in_order() {
        let expected = Expected::new(&array(&[B, A, C])).unwrap();
        assert_eq!(verify(expected.verifier(None), &[A, B, C]), Ok(()));
        for wrong in [&[A, C][..], &[A, A, B, C], &[B, A, C], &[A, B], &[A, B, (B.0, "y"), C]] {
            assert!(verify(expected.verifier(None), wrong).is_err(), "{wrong:?}");
        }
        let mut verifier = expected.verifier(None);
        assert!(
            verifier
                .batch(r#"{"batch_id":"a","batch_creation_date":"2026-01-01T00:00:01Z","comment":"x"}"#)
                .is_err()
        );
        assert!(verifier.array(b"[{").is_err());
    }

    #[test]
    fn an_added_batch_may_come_once_in_its_place_and_must_come_after_it_was_acknowledged() {
        let expected = Expected::new(&array(&[A, B, C])).unwrap();
        assert!(verify(expected.verifier(None), &[A, B, X, C]).is_err());
        expected.send(&position(X));
        for right in [&[A, B, C][..], &[A, B, X, C]] {
            assert_eq!(verify(expected.final_verifier(), right), Ok(()), "{right:?}");
        }
        for wrong in [&[A, X, B, C][..], &[A, B, X, X, C], &[A, B, C, X]] {
            assert!(verify(expected.final_verifier(), wrong).is_err(), "{wrong:?}");
        }
        expected.acknowledge(&position(X));
        assert!(verify(expected.final_verifier(), &[A, B, C]).is_err());
        assert_eq!(verify(expected.verifier(None), &[A, B, C]), Ok(()), "not visible yet");
        let added = lock(&expected.added);
        assert!(!added[&position(X)].must_be_visible(Instant::now()));
        assert!(added[&position(X)].must_be_visible(Instant::now() + 2 * VISIBLE_AFTER));
    }

    #[test]
    fn a_date_range_includes_its_ends_and_nothing_else() {
        let expected = Expected::new(&array(&[A, B, C])).unwrap();
        expected.send(&position((C.0, "x")));
        let range = expected.range(3, 1);
        assert_eq!(range, (B.0.to_owned(), C.0.to_owned()));
        let first_two = (A.0.to_owned(), B.0.to_owned());
        assert_eq!(verify(expected.verifier(Some(&first_two)), &[A, B]), Ok(()));
        assert!(verify(expected.verifier(Some(&first_two)), &[A, B, (C.0, "x")]).is_err());
    }
}
