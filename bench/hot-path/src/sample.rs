//! Realistic batches of about 680 bytes with random ids and values that fit each other. The same in every run.

use batchscan_model::{Batch, FieldErrors};

const CROPS: [&str; 8] = [
    "Tomato 'Roma'",
    "Lettuce 'Salanova'",
    "Basil 'Genovese'",
    "Pepper 'Corno di Toro'",
    "Cucumber 'Marketmore'",
    "Cabbage 'Filderkraut'",
    "Leek 'Bandit'",
    "Broccoli 'Marathon'",
];
const STAFF: [&str; 5] = ["ines.moreau", "jan.de.vries", "petra.novak", "luca.rossi", "amina.diallo"];

/// The cells of every tray.
const CELLS: u64 = 128;

/// Batches, one per second from the start of 2026.
pub(crate) fn batches(count: usize) -> Result<Vec<Batch>, FieldErrors> {
    (0..count).map(|number| Batch::from_json(&text(number))).collect()
}

/// When a batch was created.
pub(crate) fn created(number: usize) -> String {
    let (hours, minutes, seconds) = (number / 3_600, number / 60 % 60, number % 60);
    format!("2026-01-01T{hours:02}:{minutes:02}:{seconds:02}Z")
}

fn text(number: usize) -> String {
    let mut random = Random(number as u64);
    let id = format!("{:08x}-9f6a-4c3e-8a55-{:012x}", random.below(1 << 32), random.below(1 << 48));
    let crop = CROPS[number % CROPS.len()];
    let name = format!("{crop} W{} bench {}", number % 52, random.below(40));
    let created = created(number);
    let images = 4 + random.below(28);
    let (germinated, missing, rate) = counted(10_000 - random.below(4_000));
    let (usable, unusable, usable_rate) = counted(9_500 - random.below(6_000));
    let (variation, size) = (decimal(random.below(4_000)), decimal(random.below(40_000)));
    let email = format!("{}@example.org", STAFF[number % STAFF.len()]);
    let comment = if number.is_multiple_of(9) { "\"north bench, second sowing\"" } else { "null" };
    let warnings = number.is_multiple_of(14);
    format!(
        r#"{{"batch_id":"{id}","batch_name":"{name}","batch_creation_date":"{created}","crop_type":"{crop}","number_of_images":{images},"total_cells_per_tray":{CELLS},"avg_germinated_seedlings":"{germinated}","avg_non_germinated_seedlings":"{missing}","avg_germination_rate":"{rate}","avg_usable_seedlings":"{usable}","avg_non_usable_cells":"{unusable}","avg_usable_seedling_rate":"{usable_rate}","avg_coefficient_of_variation":"{variation}","avg_median_seedling_size_mm2":"{size}","scanned_by_email":"{email}","analysis_link":"https://scans.example.org/batches/{id}","comment":{comment},"warnings":{warnings}}}"#
    )
}

/// A count of cells, the rest, and the rate that belongs to them, which is given in hundredths.
fn counted(rate: u64) -> (String, String, String) {
    let count = rate * CELLS / 100;
    (decimal(count), decimal(CELLS * 100 - count), decimal(rate))
}

fn decimal(hundredths: u64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Pseudo-random numbers: a Weyl sequence and two xor-shift-multiply steps.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }
}
