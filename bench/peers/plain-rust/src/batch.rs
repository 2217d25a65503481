//! A batch: read from a row, written as JSON. Knows nothing about requests.

use jiff::Timestamp;
use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use serde::{Serialize, Serializer};

/// The columns in the order of the struct's fields.
pub(crate) const COLUMNS: &str = "batch_id, batch_name, batch_creation_date, crop_type, number_of_images, \
     total_cells_per_tray, avg_germinated_seedlings, avg_non_germinated_seedlings, avg_germination_rate, \
     avg_usable_seedlings, avg_non_usable_cells, avg_usable_seedling_rate, avg_coefficient_of_variation, \
     avg_median_seedling_size_mm2, scanned_by_email, analysis_link, comment, warnings";

/// One tray scan session, with the fields of the API.
#[derive(Serialize)]
pub(crate) struct Batch {
    pub(crate) batch_id: String,
    batch_name: String,
    pub(crate) batch_creation_date: Created,
    crop_type: Option<String>,
    number_of_images: i64,
    total_cells_per_tray: Option<i64>,
    avg_germinated_seedlings: Option<Hundredths>,
    avg_non_germinated_seedlings: Option<Hundredths>,
    avg_germination_rate: Option<Hundredths>,
    avg_usable_seedlings: Option<Hundredths>,
    avg_non_usable_cells: Option<Hundredths>,
    avg_usable_seedling_rate: Option<Hundredths>,
    avg_coefficient_of_variation: Option<Hundredths>,
    avg_median_seedling_size_mm2: Option<Hundredths>,
    scanned_by_email: Option<String>,
    analysis_link: Option<String>,
    comment: Option<String>,
    warnings: bool,
}

impl Batch {
    /// Reads a row of [`COLUMNS`].
    pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            batch_id: row.get(0)?,
            batch_name: row.get(1)?,
            batch_creation_date: row.get(2)?,
            crop_type: row.get(3)?,
            number_of_images: row.get(4)?,
            total_cells_per_tray: row.get(5)?,
            avg_germinated_seedlings: row.get(6)?,
            avg_non_germinated_seedlings: row.get(7)?,
            avg_germination_rate: row.get(8)?,
            avg_usable_seedlings: row.get(9)?,
            avg_non_usable_cells: row.get(10)?,
            avg_usable_seedling_rate: row.get(11)?,
            avg_coefficient_of_variation: row.get(12)?,
            avg_median_seedling_size_mm2: row.get(13)?,
            scanned_by_email: row.get(14)?,
            analysis_link: row.get(15)?,
            comment: row.get(16)?,
            warnings: row.get(17)?,
        })
    }
}

/// An instant, stored as microseconds since 1970.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Created(pub(crate) Timestamp);

impl FromSql for Created {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let micros = value.as_i64()?;
        Timestamp::from_microsecond(micros).map(Self).map_err(|_| FromSqlError::OutOfRange(micros))
    }
}

/// A decimal with two fraction digits, stored as a whole number of hundredths.
struct Hundredths(i64);

impl FromSql for Hundredths {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_i64().map(Self)
    }
}

impl Serialize for Hundredths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sign = if self.0 < 0 { "-" } else { "" };
        let size = self.0.unsigned_abs();
        serializer.collect_str(&format_args!("{sign}{}.{:02}", size / 100, size % 100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_strings_with_two_fraction_digits() {
        let text = |hundredths| serde_json::to_string(&Hundredths(hundredths)).unwrap();
        assert_eq!(
            [text(9_250), text(5), text(-5), text(0)],
            ["\"92.50\"", "\"0.05\"", "\"-0.05\"", "\"0.00\""]
        );
    }

    #[test]
    fn instants_end_with_z_and_keep_their_fraction() {
        let text = |micros| {
            serde_json::to_string(&Created::column_result(ValueRef::Integer(micros)).unwrap()).unwrap()
        };
        assert_eq!(text(0), "\"1970-01-01T00:00:00Z\"");
        assert_eq!(text(405_000), "\"1970-01-01T00:00:00.405Z\"");
    }
}
