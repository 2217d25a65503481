//! `FILE.part.json`: what a partial file contains and up to where it is valid.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use batchscan_model::instant::DateInput;
use batchscan_model::{DateRange, UtcInstant};
use serde::{Deserialize, Serialize};

use super::target;
use crate::atomic_file::{self, with_suffix};
use crate::date_range::{TypedDate, TypedDateRange};

/// The arguments of a pull, as typed. A pull can resume another one with the same settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) url: String,
    pub(crate) client_id: String,
    pub(crate) start_date: Option<String>,
    pub(crate) end_date: Option<String>,
    pub(crate) format: String,
    /// The selected batches; `None` for all.
    pub(crate) selection: Option<String>,
    /// The chosen fields; `None` for all.
    pub(crate) columns: Option<String>,
}

impl Settings {
    /// The first difference, for an error message.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let or = |value: &Option<String>, none: &str| value.clone().unwrap_or_else(|| none.into());
        let text = |value| or(value, "none");
        let all = |value| or(value, "all");
        let pairs = [
            ("url", self.url.clone(), other.url.clone()),
            ("client id", self.client_id.clone(), other.client_id.clone()),
            ("start date", text(&self.start_date), text(&other.start_date)),
            ("end date", text(&self.end_date), text(&other.end_date)),
            ("format", self.format.clone(), other.format.clone()),
            ("selection", all(&self.selection), all(&other.selection)),
            ("list of columns", all(&self.columns), all(&other.columns)),
        ];
        let (what, mine, theirs) = pairs.into_iter().find(|(_, mine, theirs)| mine != theirs)?;
        Some(format!("its {what} is {mine}, not {theirs}"))
    }
}

/// Where to continue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Next {
    /// At the first page.
    Begin,
    /// After the page with this cursor.
    After(String),
    /// All pages are written.
    End,
}

/// The state of a partial file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Journal {
    pub(crate) settings: Settings,
    /// The instants of the date range when the pull began: `30d` is another day tomorrow.
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    /// The ETag when the pull began.
    pub(crate) etag: Option<String>,
    pub(crate) next: Next,
    pub(crate) batches: u64,
    pub(super) bytes: u64,
    pub(super) crc32: u32,
}

impl Journal {
    pub(crate) fn new(settings: Settings, range: DateRange, etag: Option<String>) -> Self {
        let (from, to) = instants(range);
        Self { settings, from, to, etag, next: Next::Begin, batches: 0, bytes: 0, crc32: 0 }
    }

    /// The date range with which the pull began.
    pub(crate) fn dates(&self) -> anyhow::Result<TypedDateRange> {
        let start = typed_date(&self.settings.start_date, &self.from)?;
        let end = typed_date(&self.settings.end_date, &self.to)?;
        TypedDateRange::new(start, end).map_err(anyhow::Error::msg)
    }

    /// Reads the journal of a partial file; `None` if there is none.
    pub(super) fn read(part: &Path) -> anyhow::Result<Option<Self>> {
        let path = Self::path(part);
        let text = target::read_small(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let Some(text) = text else { return Ok(None) };
        let journal = serde_json::from_slice(&text).with_context(|| {
            format!("{} is damaged; use --force instead of --resume to start over", path.display())
        })?;
        Ok(Some(journal))
    }

    pub(super) fn write(&self, part: &Path) -> anyhow::Result<()> {
        Ok(atomic_file::write(&Self::path(part), &serde_json::to_vec(self)?)?)
    }

    pub(super) fn path(part: &Path) -> PathBuf {
        with_suffix(part, ".json")
    }
}

/// The instants of a range, as text.
pub(crate) fn instants(range: DateRange) -> (Option<String>, Option<String>) {
    let text = |end: Option<UtcInstant>| end.map(|instant| instant.to_string());
    (text(range.start), text(range.end))
}

fn typed_date(text: &Option<String>, instant: &Option<String>) -> anyhow::Result<Option<TypedDate>> {
    match (text, instant) {
        (None, None) => Ok(None),
        (Some(text), Some(instant)) => {
            let parsed = DateInput::parse(instant).map(DateInput::as_end);
            let instant =
                parsed.map_err(|_| anyhow!("the journal is damaged: {instant:?} is not a valid date"))?;
            Ok(Some(TypedDate { text: text.clone(), instant }))
        }
        _ => Err(anyhow!("the journal is damaged: a date without its instant")),
    }
}
