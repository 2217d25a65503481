//! `batchscan list` and `batchscan summary`.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};
use snapbox::file;

use crate::scans;
use crate::service::Service;
use crate::site::Site;
use crate::user::User;

/// A batch on a day: crop, germination and usable rates, warnings.
fn batch(day: &str, name: &str, crop: Option<&str>, rates: Option<(&str, &str)>, warnings: bool) -> Value {
    json!({
        "batch_id": format!("b-{day}"), "batch_name": name, "batch_creation_date": format!("{day}T08:00:00Z"),
        "crop_type": crop, "number_of_images": 1, "warnings": warnings,
        "avg_germination_rate": rates.map(|rates| rates.0), "avg_usable_seedling_rate": rates.map(|rates| rates.1),
    })
}

fn serve(site: &Site, batches: &[Value]) -> Service {
    let lines: String = batches.iter().map(|batch| format!("{batch}\n")).collect();
    site.import(&site.write("a.ndjson", lines));
    site.serve(&["--page-size", "2"])
}

/// Two crops in December and January, and a batch without crop.
fn nursery(site: &Site) -> Service {
    let (tomato, leek) = (Some("Tomato"), Some("Leek"));
    serve(
        site,
        &[
            batch("2025-12-27", "Tray 1", tomato, Some(("80.00", "70.00")), false),
            batch("2025-12-28", "Tray 2", tomato, Some(("90.00", "70.01")), true),
            batch("2025-12-29", "Tray 3", tomato, Some(("91.00", "88.00")), false),
            batch("2025-12-30", "Tray 4", leek, Some(("100.00", "99.99")), true),
            batch("2026-01-04", "Tray 5", tomato, None, true),
            batch("2026-01-05", "Tray 6", None, None, false),
        ],
    )
}

#[test]
fn the_latest_batches_come_first() {
    let site = Site::new();
    let service = nursery(&site);
    let user = User::of(&site, &service);
    user.transcript(
        &["list", "list -n 1 --end-date 2025"],
        file!["snapshots/the_latest_batches_come_first.txt"],
    );
    let range = ["list", "--start-date", "2025-12-28", "--end-date", "2025-12-29", "--json"];
    let names = |words: &[&str]| -> Vec<String> {
        let all: Value = serde_json::from_str(&user.run(words).succeeds()).unwrap();
        all.as_array().unwrap().iter().map(|batch| batch["batch_name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&range), ["Tray 3", "Tray 2"]);
    assert_eq!(names(&["list", "--json", "--limit", "3"]), ["Tray 6", "Tray 5", "Tray 4"]);
}

#[test]
fn list_json_has_the_objects_of_the_api() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..30, "x")));
    let service = site.serve(&[]);
    let listed = User::of(&site, &service).run(&["list", "--json"]).succeeds();
    let newest: Vec<String> = (10..30).rev().map(|number| scans::line(number, "x")).collect();
    assert_eq!(listed, format!("[{}]\n", newest.join(",")));
}

#[test]
fn old_batches_are_found_if_there_are_no_newer_ones() {
    let site = Site::new();
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let days = [0, 3, 20, 100, 400, 2_000].map(|ago: i64| (today - ago.days()).to_string());
    let batches: Vec<Value> = days.iter().map(|day| batch(day, day, None, None, false)).collect();
    let service = serve(&site, &batches);
    let user = User::of(&site, &service);
    for limit in 1..=6 {
        let all: Value =
            serde_json::from_str(&user.run(&["list", "--json", "-n", &limit.to_string()]).succeeds())
                .unwrap();
        let names: Vec<&str> =
            all.as_array().unwrap().iter().map(|b| b["batch_name"].as_str().unwrap()).collect();
        assert_eq!(names, days[..limit]);
    }
    let wrote = user.run(&["summary", "-o", "a.csv"]).succeeds();
    let start = today - 12.weeks();
    assert_eq!(
        wrote,
        format!(
            "wrote the summary of 3 batches of the last 12 weeks (from {start}) to a.csv; --start-date selects another period\n"
        )
    );
    // A summary covers the last twelve weeks.
    let sums: Value = serde_json::from_str(&user.run(&["summary", "--json"]).succeeds()).unwrap();
    let batches = sums.as_array().unwrap().iter().map(|group| group["batches"].as_u64().unwrap());
    assert_eq!(batches.sum::<u64>(), 3);
}

#[test]
fn a_summary_has_a_line_per_crop_and_week_and_totals() {
    let site = Site::new();
    let service = nursery(&site);
    let user = User::of(&site, &service);
    let summary = "summary --start-date 2025-12 --end-date 2026-01";
    user.transcript(
        &[summary, &format!("{summary} --json")],
        file!["snapshots/a_summary_has_a_line_per_crop_and_week_and_totals.txt"],
    );
}

#[test]
fn a_summary_can_be_written_to_a_file() {
    let site = Site::new();
    let service = nursery(&site);
    let user = User::of(&site, &service);
    let range = "--start-date 2025-12 --end-date 2026-01";
    user.transcript(
        &[
            &format!("summary {range} -o a.csv"),
            &format!("summary {range} -o a.csv"),
            &format!("summary {range} -o a.csv --crop leek --force"),
            &format!("summary {range} -o a.xlsx"),
            &format!("summary {range} -o a.xls"),
            &format!("summary {range} -o a.json"),
        ],
        file!["snapshots/a_summary_can_be_written_to_a_file.txt"],
    );
    assert_eq!(user.files(), ["a.csv", "a.xlsx"]);
    assert!(user.read("a.xlsx").starts_with(b"PK"));
    assert_eq!(
        String::from_utf8(user.read("a.csv")).unwrap(),
        "crop_type,week,week_start,batches,with_germination,avg_germination_rate,spread_germination_rate,\
         avg_usable_seedling_rate,spread_usable_seedling_rate,warnings\r\n\
         Leek,2026-W01,2025-12-29,1,1,100.00,,99.99,,1\r\n"
    );
}

#[test]
fn reports_can_be_limited_to_crops_warnings_and_columns() {
    let site = Site::new();
    let service = nursery(&site);
    let user = User::of(&site, &service);
    user.transcript(
        &[
            "list --warnings --crop leek --crop ' TOMATO '",
            "list -n 2 --crop tomato --columns 'batch_name, avg_germination_rate,warnings '",
            "list --json -n 1 --columns warnings,batch_id",
            "list --crop toma -n 1",
            "list --crop kale",
            "list --crop Kale --warnings --columns batch_id --start-date 2026-01",
            "summary --crop kale --end-date 2027 --start-date 2025",
            "summary --crop kale -o a.csv",
            "pull --crop kale -o b.csv",
            "summary --start-date 2025-12 --end-date 2026-01 --crop tomato --warnings",
        ],
        file!["snapshots/reports_can_be_limited_to_crops_warnings_and_columns.txt"],
    );
}

#[test]
fn an_organisation_without_batches_has_empty_reports() {
    let site = Site::new();
    let service = site.serve(&[]);
    let user = User::of(&site, &service);
    user.transcript(
        &["list", "summary", "list --json", "summary --json"],
        file!["snapshots/an_organisation_without_batches_has_empty_reports.txt"],
    );
}
