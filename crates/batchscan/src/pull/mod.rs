//! Pulling: pages of a service → rows → a file that is whole, or not there.
//!
//! | module | owns |
//! |---|---|
//! | [`plan`] | what will be done: where to, in which shape, of which window |
//! | [`course`] | the way: pages come on one side while rows are written on the other |
//! | [`finish`] | the end: what has grown becomes the file that was asked for |
//! | [`partial`] | `FILE.part`, the file while it grows, and the journal from which a pull goes on |
//! | [`place`] | the file's own name: who may take it, and when |
//! | [`record`] | what `--if-changed` remembers of the last pull |
//!
//! Text formats grow in place. Parquet and XLSX are made from an NDJSON spool once that is whole, so that they can be
//! resumed just the same.

pub(crate) mod course;
pub(crate) mod finish;
pub(crate) mod partial;
pub(crate) mod place;
pub(crate) mod plan;
pub(crate) mod record;

use serde::{Deserialize, Serialize};

/// What a pull was asked for, as typed. Two pulls of the same settings may go on from one another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) url: String,
    pub(crate) client_id: String,
    pub(crate) start_date: Option<String>,
    pub(crate) end_date: Option<String>,
    pub(crate) format: String,
}

impl Settings {
    /// The first thing that differs, in words; nothing if all is the same.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".into());
        let pairs = [
            ("url", self.url.clone(), other.url.clone()),
            ("client id", self.client_id.clone(), other.client_id.clone()),
            ("start date", text(&self.start_date), text(&other.start_date)),
            ("end date", text(&self.end_date), text(&other.end_date)),
            ("format", self.format.clone(), other.format.clone()),
        ];
        let (what, mine, theirs) = pairs.into_iter().find(|(_, mine, theirs)| mine != theirs)?;
        Some(format!("its {what} is {mine}, not {theirs}"))
    }
}
