//! Batches for tests.

use batchscan_model::{Batch, UtcInstant};

use super::app::instant;

/// A batch with few fields.
pub(crate) fn batch(id: &str, date: &str) -> Batch {
    named(id, date, "Tray")
}

/// A batch with this name.
pub(crate) fn named(id: &str, date: &str, name: &str) -> Batch {
    let json = serde_json::json!({
        "batch_id": id, "batch_name": name, "batch_creation_date": date, "number_of_images": 1, "warnings": false,
    });
    Batch::from_json(&json.to_string()).unwrap()
}

/// `count` batches `b00000`, `b00001`, …, one second apart.
pub(crate) fn many(count: usize) -> Vec<Batch> {
    let first = instant("2026-01-01T00:00:00Z");
    (0..count).map(|n| at(&format!("b{n:05}"), first.plus_secs(i64::try_from(n).unwrap()))).collect()
}

pub(crate) fn at(id: &str, created: UtcInstant) -> Batch {
    batch(id, &created.to_string())
}

/// A batch with a value in every field.
pub(crate) const FULL: &str = r#"{"batch_id":"b-1","batch_name":"Tray 7 \"early\"","batch_creation_date":"2026-01-31T08:00:00Z","crop_type":"Tomate Fußball","number_of_images":12,"total_cells_per_tray":128,"avg_germinated_seedlings":"118.40","avg_non_germinated_seedlings":"9.60","avg_germination_rate":"92.50","avg_usable_seedlings":"110.00","avg_non_usable_cells":"18.00","avg_usable_seedling_rate":"85.94","avg_coefficient_of_variation":"24.07","avg_median_seedling_size_mm2":"1234.50","scanned_by_email":"ann@example.org","analysis_link":"https://example.org/a?b=1","comment":"line\nbreak","warnings":true}"#;

/// A batch of about 60 KB that hardly compresses: a few hundred fill every buffer between two sockets.
pub(crate) fn bulky(id: &str, created: UtcInstant) -> Batch {
    let mut state =
        id.bytes().fold(0x9E37_79B9_7F4A_7C15_u64, |state, byte| (state ^ u64::from(byte)).wrapping_mul(31));
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        format!("{state:016x}")
    };
    let comment: String = (0..3_750).map(|_| word()).collect();
    Batch { comment: Some(comment), ..at(id, created) }
}

/// `count` bulky batches, one second apart.
pub(crate) fn many_bulky(count: usize) -> Vec<Batch> {
    many(count).iter().map(|plain| bulky(plain.batch_id.as_str(), plain.batch_creation_date)).collect()
}
