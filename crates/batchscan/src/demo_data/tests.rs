//! Properties of the generated year.

use std::collections::{HashMap, HashSet};

use super::*;

const LINK_BASE: &str = "http://127.0.0.1:8080";

fn end() -> UtcInstant {
    UtcInstant::parse_any_offset("2026-06-30T14:20:00Z").unwrap()
}

fn year(count: u64) -> Vec<Batch> {
    batches(count, 1, end(), LINK_BASE).collect()
}

fn count(value: Option<Hundredths>) -> i64 {
    value.unwrap().count()
}

fn share_of(batches: &[Batch], claim: impl Fn(&Batch) -> bool) -> usize {
    batches.iter().filter(|batch| claim(batch)).count() * 1_000 / batches.len()
}

#[test]
fn exactly_as_many_batches_as_asked_for_are_generated_lazily() {
    for count in [0, 1, 2, 10, 365, 5_003] {
        assert_eq!(year(count as u64).len(), count);
    }
    assert_eq!(batches(u64::MAX, 1, end(), LINK_BASE).take(10).count(), 10);
}

/// FNV-1a over the JSON text. If it changes, the demo data changes: mention it in the commit.
#[test]
fn the_same_arguments_give_the_same_batches() {
    let text: String = batches(1_000, 1, end(), LINK_BASE).map(|batch| batch.to_json()).collect();
    let digest = text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    assert_eq!(format!("{digest:016x}"), "f85a3996badbe901");
}

#[test]
fn ids_are_unique_uuids() {
    let batches = year(100_000);
    let ids: HashSet<_> = batches.iter().map(|batch| batch.batch_id.as_str()).collect();
    assert_eq!(ids.len(), batches.len());
    for id in ids {
        let parts: Vec<_> = id.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
        assert_eq!(&id[14..15], "4", "{id}");
        assert!("89ab".contains(&id[19..20]), "{id}");
    }
}

#[test]
fn every_batch_survives_json() {
    for batch in year(20_000) {
        assert_eq!(Batch::from_json(&batch.to_json()), Ok(batch));
    }
}

#[test]
fn the_fields_of_a_batch_are_consistent() {
    for batch in year(20_000) {
        let (Some(cells), Some(germinated)) = (batch.total_cells_per_tray, batch.avg_germinated_seedlings)
        else {
            continue;
        };
        let (cells, germinated, usable) =
            (cells as i64, germinated.count(), count(batch.avg_usable_seedlings));
        assert!((0..=germinated).contains(&usable), "{batch:?}");
        assert_eq!(germinated + count(batch.avg_non_germinated_seedlings), cells * 100, "{batch:?}");
        assert_eq!(usable + count(batch.avg_non_usable_cells), cells * 100, "{batch:?}");
        let percent = |seedlings: i64| (seedlings * 100 * 2 + cells) / (cells * 2);
        assert_eq!(count(batch.avg_germination_rate), percent(germinated), "{batch:?}");
        assert_eq!(count(batch.avg_usable_seedling_rate), percent(usable), "{batch:?}");
        let (variation, size) = (batch.avg_coefficient_of_variation, batch.avg_median_seedling_size_mm2);
        assert_eq!(variation.is_some() && size.is_some(), germinated > 0, "{batch:?}");
        assert!(variation.is_none_or(|variation| (300..9_000).contains(&variation.count())), "{batch:?}");
        assert!(size.is_none_or(|size| size.count() > 1_000), "{batch:?}");
    }
}

#[test]
fn unknown_values_are_null() {
    for batch in year(20_000) {
        let has_cells = batch.total_cells_per_tray.is_some();
        let has_figures = batch.avg_germinated_seedlings.is_some();
        assert!(has_figures || batch.warnings, "{batch:?}");
        assert_eq!(batch.avg_usable_seedlings.is_some(), has_figures, "{batch:?}");
        for derived in [
            batch.avg_non_germinated_seedlings,
            batch.avg_germination_rate,
            batch.avg_non_usable_cells,
            batch.avg_usable_seedling_rate,
        ] {
            assert_eq!(derived.is_some(), has_cells && has_figures, "{batch:?}");
        }
    }
}

#[test]
fn every_nullable_field_is_sometimes_null() {
    let batches = year(20_000);
    let nulls: [(usize, std::ops::Range<usize>); 6] = [
        (share_of(&batches, |batch| batch.crop_type.is_none()), 10..40),
        (share_of(&batches, |batch| batch.total_cells_per_tray.is_none()), 3..20),
        (share_of(&batches, |batch| batch.avg_germinated_seedlings.is_none()), 3..15),
        (share_of(&batches, |batch| batch.scanned_by_email.is_none()), 20..80),
        (share_of(&batches, |batch| batch.analysis_link.is_none()), 3..30),
        (share_of(&batches, |batch| batch.comment.is_some()), 40..200),
    ];
    for (permille, expected) in nulls {
        assert!(expected.contains(&permille), "{permille} not in {expected:?}");
    }
}

#[test]
fn a_low_rate_or_a_high_variation_comes_with_a_warning() {
    let batches = year(20_000);
    let is_low = |batch: &Batch| batch.avg_germination_rate.is_some_and(|rate| rate.count() < 6_000);
    let is_uneven = |batch: &Batch| batch.avg_coefficient_of_variation.is_some_and(|cv| cv.count() > 4_200);
    assert!((5..60).contains(&share_of(&batches, is_low)), "{}", share_of(&batches, is_low));
    assert!(share_of(&batches, is_uneven) > 0);
    assert!(batches.iter().filter(|batch| is_low(batch) || is_uneven(batch)).all(|batch| batch.warnings));
    assert!((20..150).contains(&share_of(&batches, |batch| batch.warnings)));
}

#[test]
fn batches_are_within_the_year_and_oldest_first() {
    for end in [
        "2026-06-30T14:20:00.25Z",
        "2025-01-01T00:00:00Z",
        "2024-03-03T11:59:59Z",
        "1969-08-01T09:00:00Z",
        // The first year of the calendar.
        "0001-01-02T12:00:00Z",
    ] {
        let end = UtcInstant::parse_any_offset(end).unwrap();
        let batches: Vec<_> = batches(20_000, 5, end, LINK_BASE).collect();
        let (first, last) = (&batches[0], &batches[19_999]);
        assert!(first.batch_creation_date >= end.plus_secs(-365 * 86_400));
        assert!(last.batch_creation_date <= end);
        assert!(batches.is_sorted_by_key(|batch| batch.batch_creation_date));
    }
}

#[test]
fn weekends_and_nights_have_fewer_batches() {
    let mut by_weekday = [0; 7];
    for batch in year(20_000) {
        let secs = batch.batch_creation_date.secs();
        by_weekday[(secs.div_euclid(86_400) + 3).rem_euclid(7) as usize] += 1;
        assert!((6 * 3_600..16 * 3_600).contains(&secs.rem_euclid(86_400)), "{batch:?}");
    }
    let [working_days @ .., saturday, sunday] = by_weekday;
    assert!(working_days.iter().all(|day| (2_500..5_000).contains(day)), "{by_weekday:?}");
    assert!((200..1_000).contains(&saturday), "{by_weekday:?}");
    assert!((1..100).contains(&sunday), "{by_weekday:?}");
}

#[test]
fn some_instants_have_a_fraction_and_some_repeat() {
    let batches = year(20_000);
    let fractions = share_of(&batches, |batch| batch.batch_creation_date.micros() % 1_000_000 != 0);
    assert!((20..150).contains(&fractions), "{fractions}");
    let instants: HashSet<_> = batches.iter().map(|batch| batch.batch_creation_date).collect();
    assert!((18_000..19_900).contains(&instants.len()), "{}", instants.len());
}

/// Compares the first and the last quarter, without warnings: bad lots would hide the trend.
#[test]
fn crop_rates_change_over_the_year() {
    let mut rates: HashMap<bool, Vec<i64>> = HashMap::new();
    let batches = year(20_000);
    for (index, batch) in batches.iter().enumerate() {
        let is_basil = batch.crop_type.as_deref() == Some("Basil 'Genovese'");
        let quarter = index * 4 / batches.len();
        if let (true, false, 0 | 3, Some(rate)) =
            (is_basil, batch.warnings, quarter, batch.avg_germination_rate)
        {
            rates.entry(quarter == 0).or_default().push(rate.count());
        }
    }
    let mean = |is_first: bool| rates[&is_first].iter().sum::<i64>() / rates[&is_first].len() as i64;
    assert!(mean(true) - mean(false) > 250, "{} {}", mean(true), mean(false));
}

#[test]
fn crops_have_a_season() {
    let batches = year(20_000);
    let petunias = batches.iter().filter(|batch| batch.crop_type.as_deref() == Some("Petunia 'Fire Chief'"));
    // Weeks 22 to 39 of the year, about June to September.
    let in_summer = petunias.clone().filter(|batch| {
        (22..40).contains(&working_hours::week(batch.batch_creation_date.secs().div_euclid(86_400)))
    });
    assert!(petunias.count() > 500);
    assert_eq!(in_summer.count(), 0);
}
