//! Which batches of the date range a command uses: `--crop` and `--warnings`. Each batch is checked on its own.

use std::collections::BTreeSet;

use batchscan_model::Batch;

/// The selected batches. By default all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Parts of crop names, in lower case; empty for every crop.
    crops: BTreeSet<String>,
    only_warnings: bool,
}

impl Selection {
    pub(crate) fn new(crops: &[String], only_warnings: bool) -> Self {
        Self { crops: crops.iter().map(|crop| crop.trim().to_lowercase()).collect(), only_warnings }
    }

    pub(crate) fn includes(&self, batch: &Batch) -> bool {
        let has_name = |crop: String| self.crops.iter().any(|name| crop.contains(name));
        let has_crop = || batch.crop_type.as_deref().map(str::to_lowercase).is_some_and(has_name);
        (batch.warnings || !self.only_warnings) && (self.crops.is_empty() || has_crop())
    }

    /// A text that is the same for the same selection; `None` for all batches.
    pub(crate) fn description(&self) -> Option<String> {
        let crops = self.crops.iter().map(|crop| format!("crop {crop:?}"));
        let parts: Vec<String> = crops.chain(self.only_warnings.then(|| "warnings".into())).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// The text for a result without batches.
    pub(crate) fn no_match(&self, dates: &str) -> String {
        let filter = self.description().map(|filter| format!("{filter}, ")).unwrap_or_default();
        format!("no batches match: {filter}{dates}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reports::cells::tests::batch;

    fn selection(crops: &[&str], only_warnings: bool) -> Selection {
        Selection::new(&crops.iter().map(|crop| (*crop).to_owned()).collect::<Vec<_>>(), only_warnings)
    }

    /// Batches of even days have warnings.
    #[test]
    fn a_crop_contains_the_name_in_any_case_and_both_filters_apply() {
        let leeks = selection(&["LEEK ", "Möhre"], false);
        for (crop, is_included) in [
            (Some("Leek"), true),
            (Some(" leek"), true),
            (Some("MÖHRE"), true),
            (Some("Leek 'Bleu de Solaise'"), true),
            (Some("Lee k"), false),
            (Some(""), false),
            (None, false),
        ] {
            assert_eq!(leeks.includes(&batch(1, crop, None)), is_included, "{crop:?}");
        }
        let warned = selection(&["leek"], true);
        assert!(warned.includes(&batch(2, Some("Leek"), None)));
        assert!(!warned.includes(&batch(1, Some("Leek"), None)));
        assert!(!warned.includes(&batch(2, Some("Kale"), None)));
        assert!(selection(&[], false).includes(&batch(1, None, None)));
    }

    #[test]
    fn the_same_selection_has_the_same_description() {
        let description = selection(&["Leek", "Kale"], true).description();
        assert_eq!(description.as_deref(), Some("crop \"kale\", crop \"leek\", warnings"));
        assert_eq!(selection(&["kale ", "LEEK", "kale"], true).description(), description);
        assert_eq!(selection(&[], false).description(), None);
        assert_eq!(selection(&[], false).no_match("all dates"), "no batches match: all dates");
    }
}
