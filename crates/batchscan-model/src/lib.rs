//! What a batch is, and the values it is made of. No I/O, no async, no clock.
//!
//! | module | owns |
//! |---|---|
//! | [`field`] | the table of the eighteen fields, [`Field`] and [`Kind`] |
//! | [`batch`] | [`Batch`] and its JSON text |
//! | [`raw_batch`] | [`RawBatch`]: the values of a batch before validation |
//! | `json_parse`, `json_fast_path` | reading a [`RawBatch`] from JSON |
//! | `validate` | [`Batch::from_raw`], [`Batch::from_wire`], [`Batch::from_json`] |
//! | `plausibility` | [`Batch::implausible_values`] |
//! | [`json_scan`] | where JSON values begin and end |
//! | [`instant`], [`hundredths`], [`digits`] | dates, decimals, and writing numbers fast |
//! | [`zone`] | [`Zone`]: local times to instants |
//! | [`range`] | [`DateRange`] and [`Position`] |
//! | [`ids`] | [`OrgId`], [`ClientId`], [`BatchId`], [`ClientSecret`] |
//! | [`error`], [`printable`] | [`FieldError`]; making foreign text safe to print |
//! | [`invalid`] | [`Invalid`]: the body of a 422 response |
//!
//! Values are checked when they are constructed and never again.

pub mod batch;
pub mod digits;
pub mod error;
pub mod field;
#[cfg(test)]
mod fuzz;
pub mod hundredths;
pub mod ids;
pub mod instant;
pub mod invalid;
mod json_fast_path;
mod json_parse;
pub mod json_scan;
mod plausibility;
pub mod printable;
pub mod range;
pub mod raw_batch;
mod validate;
pub mod zone;

pub use batch::{Batch, FieldValue};
pub use error::{FieldError, FieldErrors};
pub use field::{Field, Kind};
pub use hundredths::Hundredths;
pub use ids::{BatchId, ClientId, ClientSecret, OrgId};
pub use instant::UtcInstant;
pub use invalid::{Invalid, Part, Reason};
pub use json_parse::UnknownFields;
pub use range::{DateRange, Position};
pub use raw_batch::{RawBatch, Value};
pub use zone::{LocalTimeError, Zone};
