//! What the tests of every format share: batches, and short ways to write and to read a file.

use std::io::Cursor;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;

use crate::read as import;
use batchscan_model::batch::COUNT_MAX;
use batchscan_model::{Batch, BatchId, Hundredths, UtcInstant};
use proptest::prelude::*;

use super::text::TextForm;

/// A batch with every field.
pub(super) fn full() -> Batch {
    Batch::from_json(
        r#"{"batch_id":"b-1","batch_name":"Tray 7 \"early\"","batch_creation_date":"2026-01-31T08:00:00.5Z","crop_type":"Fußball-Salat","number_of_images":12,"total_cells_per_tray":128,"avg_germinated_seedlings":"118.40","avg_non_germinated_seedlings":"9.60","avg_germination_rate":"92.50","avg_usable_seedlings":"110.00","avg_non_usable_cells":"18.00","avg_usable_seedling_rate":"85.94","avg_coefficient_of_variation":"0.07","avg_median_seedling_size_mm2":"-0.50","scanned_by_email":"ann@example.org","analysis_link":"https://example.org/a?b=1","comment":"a, b; c\r\nd","warnings":false}"#,
    )
    .unwrap()
}

/// A batch with its required fields alone.
pub(super) fn bare(id: &str) -> Batch {
    Batch::from_json(&format!(
        r#"{{"batch_id":"{id}","batch_name":"n","batch_creation_date":"2026-01-31T08:00:00Z","number_of_images":1,"warnings":true}}"#
    ))
    .unwrap()
}

/// A whole file of these batches.
pub(super) fn whole(form: TextForm, batches: &[Batch]) -> String {
    let mut out = String::new();
    form.head(&mut out);
    for (place, batch) in batches.iter().enumerate() {
        out.push_str(if place == 0 { "" } else { form.between() });
        form.row(&mut out, batch, &batch.to_json());
    }
    form.tail(&mut out);
    out
}

/// The batches that our own import finds in a file.
pub(super) fn imported(format: import::Format, bytes: Vec<u8>) -> Vec<Batch> {
    let mut batches = Vec::new();
    let input = import::Input::Stream(Box::new(Cursor::new(bytes)));
    import::read(format, input, &AtomicU64::new(0), &mut |batch, _| {
        batches.push(batch);
        ControlFlow::Continue(())
    })
    .unwrap();
    batches
}

/// Texts that formats stumble over, and others.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[-=+@\t\r\n\"';, a_x0]{0,8}", "(?s).{0,40}"]
}

prop_compose! {
    /// Any batch that the service can hold.
    pub(super) fn any_batch()(
        id in "[^\\p{Cc}]{1,32}", name in any_text(), crop_type in prop::option::of(any_text()),
        comment in prop::option::of(any_text()), email in prop::option::of(any_text()),
        micros in -62_135_596_800_000_000i64..253_402_300_800_000_000,
        unit in prop::sample::select(vec![1i64, 1_000, 1_000_000]),
        images in 0..=COUNT_MAX, cells in prop::option::of(0..=COUNT_MAX),
        decimals in prop::array::uniform8(prop::option::of(-99_999_999_999_999i64..=99_999_999_999_999)),
        warnings: bool,
    ) -> Batch {
        let [a, b, c, d, e, f, g, h] = decimals.map(|count| count.and_then(Hundredths::from_hundredths));
        Batch {
            batch_id: BatchId::new(id).unwrap(),
            batch_name: if name.is_empty() { "n".into() } else { name },
            batch_creation_date: UtcInstant::from_micros(micros - micros.rem_euclid(unit)).unwrap(),
            crop_type,
            number_of_images: images,
            total_cells_per_tray: cells,
            avg_germinated_seedlings: a,
            avg_non_germinated_seedlings: b,
            avg_germination_rate: c,
            avg_usable_seedlings: d,
            avg_non_usable_cells: e,
            avg_usable_seedling_rate: f,
            avg_coefficient_of_variation: g,
            avg_median_seedling_size_mm2: h,
            scanned_by_email: email,
            comment,
            warnings,
            ..full()
        }
    }
}
