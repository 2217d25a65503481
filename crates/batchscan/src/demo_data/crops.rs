//! The crops of the nursery and their seed lots.

use super::random::{Bell, Random, Subject};

pub(super) const CROPS: usize = TABLE.len();

/// A crop. Shares are in hundredths of a percent.
#[derive(Debug)]
pub(super) struct Crop {
    /// Name in the data.
    pub(super) name: &'static str,
    /// Name in batch names.
    pub(super) short: &'static str,
    /// Cells of the trays in use.
    pub(super) trays: &'static [u64],
    pub(super) germination: Bell,
    /// Usable share of the germinated seedlings.
    pub(super) usable: Bell,
    /// Median seedling size in hundredths of a square millimetre.
    pub(super) size: Bell,
    /// Coefficient of variation of the size.
    pub(super) variation: Bell,
    /// Change of germination over the year.
    pub(super) germination_drift: i64,
    /// Relative change of size over the year.
    pub(super) size_drift: i64,
    /// Sowing in each four weeks of the calendar year.
    sowing: [u64; 13],
}

impl Crop {
    /// Scans in a week of the calendar year, 1 to 53, interpolated so that charts are smooth.
    pub(super) fn demand(&self, week: u64) -> u64 {
        let (month, weeks_in) = ((week - 1) / 4 % 13, (week - 1) % 4);
        let (here, next) = (self.sowing[month as usize], self.sowing[((month + 1) % 13) as usize]);
        here * (4 - weeks_in) + next * weeks_in
    }
}

/// A seed lot. A bad one lowers the rates of all its batches for some weeks.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeedLot {
    pub(super) number: u64,
    /// Difference to the germination of the crop.
    pub(super) germination: i64,
    pub(super) is_bad: bool,
}

impl SeedLot {
    /// One of the two lots of a crop in use on a day.
    pub(super) fn open(seed: u64, crop: usize, day: i64, is_second: bool) -> Self {
        const DAYS_OPEN: i64 = 20;
        // Shifted per crop, so that lots do not all change on the same day.
        let turn = (day + 7 * crop as i64).div_euclid(DAYS_OPEN) as u64;
        // Seven bits are enough for the crops.
        let serial = turn << 8 | (crop as u64) << 1 | u64::from(is_second);
        let mut random = Random::about(seed, Subject::SeedLot, serial);
        let is_bad = random.one_in(30);
        let usual = Bell { level: 0, spread: 80 };
        let poor = Bell { level: -3_200, spread: 700 };
        let germination = random.around(if is_bad { poor } else { usual });
        Self { number: 1_000 + random.below(9_000), germination, is_bad }
    }
}

pub(super) fn crop(index: usize) -> &'static Crop {
    &TABLE[index]
}

pub(super) fn demand(week: u64) -> [u64; CROPS] {
    std::array::from_fn(|index| TABLE[index].demand(week))
}

const fn bell(level: i64, spread: i64) -> Bell {
    Bell { level, spread }
}

#[rustfmt::skip] // one crop in three lines
static TABLE: [Crop; 10] = [
    Crop { name: "Tomato 'Roma'", short: "Roma", trays: &[104, 128, 128],
           germination: bell(9_380, 190), usable: bell(9_480, 150), size: bell(31_000, 2_600), variation: bell(1_820, 230),
           germination_drift: 180, size_drift: 900, sowing: [70, 100, 100, 80, 45, 20, 12, 8, 0, 0, 6, 25, 45] },
    Crop { name: "Lettuce 'Batavia'", short: "Batavia", trays: &[216, 288, 288],
           germination: bell(9_650, 130), usable: bell(9_560, 130), size: bell(24_500, 2_100), variation: bell(1_560, 190),
           germination_drift: -150, size_drift: -600, sowing: [25, 45, 80, 100, 100, 95, 90, 85, 75, 45, 25, 18, 18] },
    Crop { name: "Basil 'Genovese'", short: "Genovese", trays: &[104, 128],
           germination: bell(8_950, 320), usable: bell(9_300, 220), size: bell(12_400, 1_500), variation: bell(2_180, 300),
           germination_drift: -650, size_drift: 400, sowing: [30, 35, 45, 55, 60, 60, 55, 50, 45, 40, 35, 35, 30] },
    Crop { name: "Pepper 'Jalapeño'", short: "Jalapeño", trays: &[72, 104, 128],
           germination: bell(8_720, 350), usable: bell(9_250, 220), size: bell(21_800, 2_300), variation: bell(2_240, 290),
           germination_drift: 320, size_drift: 1_500, sowing: [75, 95, 85, 45, 15, 0, 0, 0, 0, 0, 0, 10, 40] },
    Crop { name: "Cucumber 'Marketmore'", short: "Marketmore", trays: &[72],
           germination: bell(9_520, 170), usable: bell(9_400, 180), size: bell(91_000, 7_800), variation: bell(1_690, 220),
           germination_drift: -80, size_drift: -1_100, sowing: [0, 8, 35, 65, 75, 60, 40, 20, 5, 0, 0, 0, 0] },
    Crop { name: "Cabbage 'Filderkraut'", short: "Filderkraut", trays: &[216, 288],
           germination: bell(9_290, 210), usable: bell(9_380, 170), size: bell(33_600, 2_900), variation: bell(1_930, 240),
           germination_drift: -240, size_drift: 700, sowing: [10, 35, 70, 75, 65, 60, 35, 10, 0, 0, 0, 0, 0] },
    Crop { name: "Petunia 'Fire Chief'", short: "Petunia", trays: &[288, 512],
           germination: bell(8_560, 380), usable: bell(9_080, 260), size: bell(4_200, 620), variation: bell(2_720, 360),
           germination_drift: 450, size_drift: 1_300, sowing: [95, 90, 50, 15, 0, 0, 0, 0, 0, 0, 0, 15, 55] },
    Crop { name: "Viola 'Johnny Jump Up'", short: "Viola", trays: &[216, 288],
           germination: bell(8_880, 300), usable: bell(9_180, 230), size: bell(5_900, 740), variation: bell(2_480, 310),
           germination_drift: -380, size_drift: -900, sowing: [0, 0, 0, 0, 0, 20, 70, 100, 90, 60, 25, 5, 0] },
    Crop { name: "Leek 'Bleu de Solaise'", short: "Leek", trays: &[288, 512],
           germination: bell(9_040, 260), usable: bell(9_330, 190), size: bell(6_700, 690), variation: bell(2_090, 260),
           germination_drift: -300, size_drift: 300, sowing: [35, 75, 85, 60, 35, 10, 0, 0, 0, 0, 0, 0, 10] },
    Crop { name: "Celery 'Tall Utah'", short: "Celery", trays: &[288],
           germination: bell(8_180, 430), usable: bell(9_020, 280), size: bell(5_100, 680), variation: bell(2_640, 340),
           germination_drift: 560, size_drift: -500, sowing: [20, 45, 65, 60, 45, 30, 10, 0, 0, 0, 0, 0, 5] },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_crops_are_sown_all_year_and_some_have_a_season() {
        let weeks_sown = |crop: &Crop| (1..=53).filter(|week| crop.demand(*week) > 0).count();
        assert!((1..=53).all(|week| demand(week).iter().filter(|weight| **weight > 0).count() >= 3));
        assert_eq!(TABLE.iter().filter(|crop| weeks_sown(crop) == 53).count(), 2);
        assert!(TABLE.iter().filter(|crop| weeks_sown(crop) < 40).count() >= 5);
    }

    #[test]
    fn a_few_seed_lots_are_bad_whatever_the_seed() {
        for seed in 0..20 {
            let lots = (0..365).step_by(20).flat_map(|day| (0..CROPS).map(move |crop| (day, crop)));
            let bad = lots.filter(|(day, crop)| SeedLot::open(seed, *crop, *day, false).is_bad).count();
            assert!((1..=20).contains(&bad), "{bad} with seed {seed}");
        }
    }
}
