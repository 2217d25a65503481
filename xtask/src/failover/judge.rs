//! The judge of a walk: every batch of the base exactly once and in order, whatever was acknowledged, and nothing that
//! nobody wrote. Sees batches one after the other, from pages or from one array.

use std::collections::BTreeSet;
use std::time::Instant;

use super::known::{BaseBatch, Known, Place, Window, place_of};

/// A walk under way.
pub(crate) struct Walk<'a> {
    known: &'a Known,
    /// What is left of the base.
    base: &'a [BaseBatch],
    /// What was acknowledged before the walk began, and was not met yet.
    awaited: BTreeSet<Place>,
    window: Option<&'a Window>,
    last: Option<Place>,
}

impl<'a> Walk<'a> {
    /// A walk that begins now.
    pub(crate) fn begin(known: &'a Known, window: Option<&'a Window>) -> Self {
        let awaited = known.settled_by(Instant::now(), window).into_iter().collect();
        Self { known, base: known.base_within(window), awaited, window, last: None }
    }

    /// A walk that has to meet everything that was ever acknowledged.
    pub(crate) fn over_everything(known: &'a Known) -> Self {
        Self { awaited: known.acknowledged().into_iter().collect(), ..Self::begin(known, None) }
    }

    /// Meets the next batch; says what is wrong with it.
    pub(crate) fn meet(&mut self, text: &str) -> Result<(), String> {
        let place = match self.base.split_first() {
            Some((next, rest)) if next.text == text => {
                self.base = rest;
                next.place.clone()
            }
            _ => self.meet_added(text)?,
        };
        if self.last.as_ref().is_some_and(|last| *last >= place) {
            return Err(format!("{place:?} came after {:?}", self.last));
        }
        self.last = Some(place);
        Ok(())
    }

    /// The walk is over; says what is missing.
    pub(crate) fn end(self) -> Result<(), String> {
        if let Some(missing) = self.base.first() {
            return Err(format!(
                "{} batches of the base are missing, from {:?} on",
                self.base.len(),
                missing.place
            ));
        }
        self.awaited.first().map_or(Ok(()), |place| Err(format!("{place:?} was acknowledged and is missing")))
    }

    fn meet_added(&mut self, text: &str) -> Result<Place, String> {
        let place = place_of(text).ok_or_else(|| format!("this is no batch: {text}"))?;
        if !self.known.is_offered(&place) {
            let expected = self.base.first().map(|batch| &batch.place);
            return Err(format!("{place:?} came where {expected:?} should have come"));
        }
        if self.window.is_some_and(|(start, end)| place.0 < *start || place.0 > *end) {
            return Err(format!("{place:?} is outside the window"));
        }
        // A batch of the base that this one should have followed would be met too late.
        if self.base.first().is_some_and(|next| next.place < place) {
            return Err(format!("{place:?} came before {:?}", self.base[0].place));
        }
        self.awaited.remove(&place);
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use super::super::known::tests::{known, text};
    use super::*;

    const BASE: &[(&str, &str)] = &[("a", "2026-01"), ("b", "2026-02"), ("c", "2026-03")];

    fn judge(known: &Known, met: &[(&str, &str)]) -> Result<(), String> {
        let mut walk = Walk::over_everything(known);
        for (id, date) in met {
            walk.meet(&text(id, date))?;
        }
        walk.end()
    }

    fn place(id: &str, date: &str) -> Place {
        (date.to_owned(), id.to_owned())
    }

    #[test]
    fn the_whole_base_in_order_is_right() {
        assert_eq!(judge(&known(BASE), BASE), Ok(()));
    }

    #[test]
    fn a_gap_a_repeat_a_swap_and_an_early_end_are_wrong() {
        let known = known(BASE);
        assert!(judge(&known, &[BASE[0], BASE[2]]).is_err());
        assert!(judge(&known, &[BASE[0], BASE[0], BASE[1], BASE[2]]).is_err());
        assert!(judge(&known, &[BASE[1], BASE[0], BASE[2]]).is_err());
        let error = judge(&known, &BASE[..2]).unwrap_err();
        assert!(error.starts_with("1 batches of the base are missing"), "{error}");
    }

    #[test]
    fn a_changed_text_is_wrong() {
        let known = known(BASE);
        let mut walk = Walk::begin(&known, None);
        assert!(walk.meet(r#"{"batch_id":"a","batch_creation_date":"2026-01Z","comment":"x"}"#).is_err());
        assert!(walk.meet("{").is_err());
    }

    #[test]
    fn an_added_batch_may_come_once_where_it_belongs() {
        let known = known(BASE);
        known.offer(&place("x", "2026-02"));
        let (x, [a, b, c]) = (("x", "2026-02"), [BASE[0], BASE[1], BASE[2]]);
        assert_eq!(judge(&known, BASE), Ok(()));
        assert_eq!(judge(&known, &[a, b, x, c]), Ok(()));
        assert!(judge(&known, &[a, x, b, c]).is_err());
        assert!(judge(&known, &[a, b, x, x, c]).is_err());
        assert!(judge(&known, &[a, b, c, x]).is_err());
        assert!(judge(&known, &[a, b, ("y", "2026-02"), c]).is_err());
    }

    #[test]
    fn an_acknowledged_batch_must_come() {
        let known = known(BASE);
        known.offer(&place("x", "2026-02"));
        known.acknowledge(&place("x", "2026-02"));
        let error = judge(&known, BASE).unwrap_err();
        assert!(error.contains("was acknowledged and is missing"), "{error}");
    }

    #[test]
    fn a_window_lets_in_nothing_from_outside() {
        let known = known(BASE);
        known.offer(&place("x", "2026-03"));
        let window = ("2026-01".to_owned(), "2026-02".to_owned());
        let mut walk = Walk::begin(&known, Some(&window));
        walk.meet(&text("a", "2026-01")).unwrap();
        walk.meet(&text("b", "2026-02")).unwrap();
        assert!(walk.meet(&text("x", "2026-03")).is_err());
        assert_eq!(walk.end(), Ok(()));
    }
}
