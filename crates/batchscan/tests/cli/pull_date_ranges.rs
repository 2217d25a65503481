//! Date ranges of a pull, its summary, and retries.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};
use snapbox::file;

use crate::demo;
use crate::http::{get, token};
use crate::scans;
use crate::site::Site;
use crate::user::User;

/// A batch whose id is its date.
fn at(instant: &str) -> String {
    let batch = json!({
        "batch_id": instant, "batch_name": "Tray", "batch_creation_date": instant, "number_of_images": 1,
        "warnings": false,
    });
    format!("{batch}\n")
}

/// The first and the last instant of a day.
fn ends(day: &str) -> [String; 2] {
    [format!("{day}T00:00:00Z"), format!("{day}T23:59:59.999999Z")]
}

/// The ids of the pulled batches.
#[track_caller]
fn ids(user: &User<'_>, range: &[&str]) -> Vec<String> {
    let (lines, _) = user.piped(&[range, &["--format", "ndjson"]].concat());
    let id =
        |line: &str| serde_json::from_str::<Value>(line).unwrap()["batch_id"].as_str().unwrap().to_owned();
    String::from_utf8(lines).unwrap().lines().map(id).collect()
}

#[test]
fn both_ends_of_a_date_range_are_inclusive() {
    let site = Site::new();
    let (before, day, after) = (ends("2026-01-30"), ends("2026-01-31"), ends("2026-02-01"));
    let all: Vec<String> = [before, day, after].concat();
    site.import(&site.write("a.ndjson", all.iter().map(|instant| at(instant)).collect::<String>()));
    let service = site.serve(&[]);
    let user = User::of(&site, &service);
    let cases = [
        ("2026-01-31", "2026-01-31", 2..4),
        ("2026-01-31", "2026-02-01", 2..6),
        ("2026-01", "2026-01", 0..4),
        ("2026-02", "2026", 4..6),
        ("2026-01-31T00:00:00Z", "2026-01-31T23:59:59.999999Z", 2..4),
        ("2026-01-31T00:00:00.000001Z", "2026-01-31T23:59:59.999998Z", 3..3),
        ("2026-01-30T23:59:59.999999+00:00", "2026-01-31T00:00:00Z", 1..3),
        ("1970", "2025", 0..0),
    ];
    for (start, end, expected) in cases {
        let range = ["--start-date", start, "--end-date", end];
        assert_eq!(ids(&user, &range), all[expected], "{start} to {end}");
    }
    assert_eq!(ids(&user, &["--start-date", "2026-01-31"]), all[2..]);
    assert_eq!(ids(&user, &["--end-date", "2026-01-31"]), all[..4]);
}

fn today() -> Date {
    Timestamp::now().to_zoned(TimeZone::UTC).date()
}

#[test]
fn relative_dates_are_whole_days_in_utc() {
    let site = Site::new();
    let service = site.serve(&[]);
    let user = User::of(&site, &service);
    // Repeated if the day changes while the test runs.
    let is_done = |today: Date| {
        let days = [31, 30, 2, 1, 0].map(|ago: i64| (today - ago.days()).to_string());
        let all: Vec<String> = days.iter().flat_map(|day| ends(day)).collect();
        site.import(&site.write("a.ndjson", all.iter().map(|instant| at(instant)).collect::<String>()));
        let pulled = [
            ids(&user, &["--start-date", "30d"]),
            ids(&user, &["--start-date", "yesterday", "--end-date", "yesterday"]),
            ids(&user, &["--start-date", "today"]),
            ids(&user, &["--end-date", "2d", "--start-date", "31d"]),
        ];
        let expected = [&all[2..], &all[6..8], &all[8..], &all[..6]];
        today == self::today() && {
            assert_eq!(pulled.each_ref().map(Vec::as_slice), expected);
            true
        }
    };
    assert!(is_done(today()) || is_done(today()));
}

#[test]
fn the_summary_has_count_date_range_size_and_retries() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_500, "x")));
    let service = site.serve(&[]);
    let user = User::of(&site, &service);
    user.transcript(
        &[
            "pull -o a.csv",
            "pull -o b.csv --start-date 2026-01-01T00:00:00Z --end-date 2026-01-01T00:00:00Z",
            "pull -o c.json --start-date 2026",
            "pull -o d.ndjson --end-date 2025",
        ],
        file!["snapshots/the_summary_has_count_date_range_size_and_retries.txt"],
    );
}

/// Four pulls of three pages each in parallel, so that some requests fail.
#[test]
fn failed_requests_are_retried_and_counted() {
    let site = Site::without_org();
    let (demo, _) = demo::start(&site, &["--batches", "2500", "--fail-rate", "0.3"]);
    let user = User::with(&site, &demo.url, demo::credential(&demo));
    let retries: Vec<u64> = std::thread::scope(|scope| {
        let pulling = ["a.csv", "b.ndjson", "c.ndjson", "d.csv"].map(|file| {
            let user = &user;
            scope.spawn(move || user.pull(file, &["--json"]).succeeds())
        });
        let summary = pulling.map(|pull| serde_json::from_str::<Value>(&pull.join().unwrap()).unwrap());
        summary
            .iter()
            .map(|summary| {
                (summary["batches"] == 2_500).then(|| summary["retries"].as_u64().unwrap()).unwrap()
            })
            .collect()
    });
    assert!(retries.iter().sum::<u64>() > 0, "{retries:?}");
    let token = token(&demo, &user.credential);
    let v1 = loop {
        let response = get(&demo, "/v1/batches", &token);
        if response.status == 200 {
            break response;
        }
    };
    let lines = String::from_utf8(user.read("b.ndjson")).unwrap();
    assert_eq!(format!("[{}]", lines.trim_end().replace('\n', ",")), v1.text());
    assert!(user.read("c.ndjson") == user.read("b.ndjson") && user.read("a.csv") == user.read("d.csv"));
}
