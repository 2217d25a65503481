//! The vocabulary of batchscan: what a batch is, and the values it is made of. No I/O, no async, no clock.
//!
//! | module | owns |
//! |---|---|
//! | [`batch`] | [`Batch`], its JSON text, and the one door through which a record becomes a batch |
//! | [`record`] | [`Record`]: eighteen values as a file holds them, not yet judged |
//! | [`field`] | [`Field`]: the eighteen names, in the order of the wire |
//! | [`instant`] | [`UtcInstant`]: microseconds, and the two ways to read a date |
//! | [`hundredths`] | [`Hundredths`]: decimals as integers |
//! | [`digits`] | numbers as text, quickly |
//! | [`window`] | [`DateRange`] and [`Position`]: which batches, and from where on |
//! | [`ids`] | [`OrgId`], [`ClientId`], [`BatchId`], [`ClientSecret`] |
//! | [`invalid`] | [`Invalid`]: the body of a 422, as data |
//!
//! After these doors a type is the proof: nobody inside checks again.

pub mod batch;
pub mod digits;
pub mod field;
pub mod hundredths;
pub mod ids;
pub mod instant;
pub mod invalid;
mod judge;
mod plain;
pub mod record;
pub mod window;

pub use batch::{Batch, FieldErrors};
pub use field::Field;
pub use hundredths::Hundredths;
pub use ids::{BatchId, ClientId, ClientSecret, OrgId};
pub use instant::UtcInstant;
pub use invalid::{Invalid, Part, Reason};
pub use record::{FieldError, Record, Value};
pub use window::{DateRange, Position};
