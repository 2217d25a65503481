//! `batchscan list` and `batchscan summary`: the right figures, in an order that people expect.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

use crate::program::Outcome;
use crate::scans;
use crate::service::Service;
use crate::site::Site;
use crate::user::User;

/// A batch of 08:00 on a day: crop, germination and usable rates, warnings.
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

/// A small nursery: two crops over the turn of a year, and a batch without any of it.
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
fn the_latest_batches_stand_first_with_rates_warnings_and_trend() {
    let site = Site::new();
    let service = nursery(&site);
    let user = User::of(&site, &service);
    let all = "CREATED (UTC)     BATCH   CROP    GERMINATION   USABLE  WARN  TREND\n\
        2026-01-05 08:00  Tray 6  -                 -        -\n\
        2026-01-04 08:00  Tray 5  Tomato            -        -  !\n\
        2025-12-30 08:00  Tray 4  Leek       100.00 %  99.99 %  !         █\n\
        2025-12-29 08:00  Tray 3  Tomato      91.00 %  88.00 %          ▁██\n\
        2025-12-28 08:00  Tray 2  Tomato      90.00 %  70.01 %  !        ▁█\n\
        2025-12-27 08:00  Tray 1  Tomato      80.00 %  70.00 %            ▁\n";
    assert_eq!(user.run(&["list"]).done(), all);
    let two = "CREATED (UTC)     BATCH   CROP  GERMINATION   USABLE  WARN  TREND\n\
        2025-12-30 08:00  Tray 4  Leek     100.00 %  99.99 %  !         █\n";
    assert_eq!(user.run(&["list", "-n", "1", "--end-date", "2025"]).done(), two);
    let window = ["list", "--start-date", "2025-12-28", "--end-date", "2025-12-29", "--json"];
    let names = |words: &[&str]| -> Vec<String> {
        let all: Value = serde_json::from_str(&user.run(words).done()).unwrap();
        all.as_array().unwrap().iter().map(|batch| batch["batch_name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&window), ["Tray 3", "Tray 2"]);
    assert_eq!(names(&["list", "--json", "--limit", "3"]), ["Tray 6", "Tray 5", "Tray 4"]);
}

#[test]
fn the_latest_as_json_are_the_services_own_objects() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..30, "x")));
    let service = site.serve(&[]);
    let listed = User::of(&site, &service).run(&["list", "--json"]).done();
    let newest: Vec<String> = (10..30).rev().map(|number| scans::line(number, "x")).collect();
    assert_eq!(listed, format!("[{}]\n", newest.join(",")));
}

/// The newest ones are looked for further and further back; these are of all distances.
#[test]
fn the_latest_are_found_however_old_they_are() {
    let site = Site::new();
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let days = [0, 3, 20, 100, 400, 2_000].map(|ago: i64| (today - ago.days()).to_string());
    let batches: Vec<Value> = days.iter().map(|day| batch(day, day, None, None, false)).collect();
    let service = serve(&site, &batches);
    let user = User::of(&site, &service);
    for limit in 1..=6 {
        let all: Value =
            serde_json::from_str(&user.run(&["list", "--json", "-n", &limit.to_string()]).done()).unwrap();
        let names: Vec<&str> =
            all.as_array().unwrap().iter().map(|b| b["batch_name"].as_str().unwrap()).collect();
        assert_eq!(names, days[..limit]);
    }
    // A summary is of the last twelve weeks.
    let sums: Value = serde_json::from_str(&user.run(&["summary", "--json"]).done()).unwrap();
    let batches = sums.as_array().unwrap().iter().map(|group| group["batches"].as_u64().unwrap());
    assert_eq!(batches.sum::<u64>(), 3);
}

#[test]
fn a_summary_has_a_line_for_each_crop_and_week_and_the_totals() {
    let site = Site::new();
    let service = nursery(&site);
    let user = User::of(&site, &service);
    let window = ["summary", "--start-date", "2025-12", "--end-date", "2026-01"];
    assert_eq!(
        user.run(&window).done(),
        "CROP, WEEK  BATCHES  GERMINATION  SPREAD   USABLE  SPREAD  WARNINGS\n\
         Leek\n\
         \x20 2026-W01        1     100.00 %       -  99.99 %       -         1\n\
         \x20 total           1     100.00 %       -  99.99 %       -         1\n\
         Tomato\n\
         \x20 2025-W52        2      85.00 %    7.07  70.01 %    0.01         1\n\
         \x20 2026-W01        2      91.00 %       -  88.00 %       -         1\n\
         \x20 total           4      87.00 %    6.08  76.00 %   10.39         2\n\
         no crop\n\
         \x20 2026-W02        1            -       -        -       -         -\n\
         \x20 total           1            -       -        -       -         -\n\
         all crops\n\
         \x20 total           6      90.25 %    8.18  82.00 %   14.69         3\n"
    );
    let groups: Value = serde_json::from_str(&user.run(&[&window[..], &["--json"]].concat()).done()).unwrap();
    let group = |crop: Option<&str>, week: &str, monday: &str, rates: [Option<&str>; 4], counts: [u64; 3]| {
        json!({
            "crop_type": crop, "week": week, "week_start": monday, "batches": counts[0],
            "with_germination": counts[1], "warnings": counts[2],
            "mean_germination_rate": rates[0], "spread_germination_rate": rates[1],
            "mean_usable_seedling_rate": rates[2], "spread_usable_seedling_rate": rates[3],
        })
    };
    assert_eq!(
        groups,
        json!([
            group(
                Some("Leek"),
                "2026-W01",
                "2025-12-29",
                [Some("100.00"), None, Some("99.99"), None],
                [1, 1, 1]
            ),
            group(
                Some("Tomato"),
                "2025-W52",
                "2025-12-22",
                [Some("85.00"), Some("7.07"), Some("70.01"), Some("0.01")],
                [2, 2, 1]
            ),
            group(
                Some("Tomato"),
                "2026-W01",
                "2025-12-29",
                [Some("91.00"), None, Some("88.00"), None],
                [2, 1, 1]
            ),
            group(None, "2026-W02", "2026-01-05", [None; 4], [1, 0, 0]),
        ])
    );
}

#[test]
fn an_organisation_without_batches_has_none_to_show() {
    let site = Site::new();
    let service = site.serve(&[]);
    let user = User::of(&site, &service);
    for command in ["list", "summary"] {
        assert_eq!(user.run(&[command]).done(), "no batches in this window\n");
        assert_eq!(user.run(&[command, "--json"]).done(), "[]\n");
    }
}

#[test]
fn a_name_in_the_data_cannot_steer_a_terminal() {
    let site = Site::new();
    let (name, crop) = ("\u{1b}[2J\u{1b}]0;owned\u{7}Tray", "Le\u{202e}ek\u{9b}31m\r\n");
    let service = serve(&site, &[batch("2026-01-31", name, Some(crop), Some(("50.00", "40.00")), false)]);
    let user = User::of(&site, &service);
    let list = user.run(&["list"]).done();
    assert!(list.contains("  �[2J�]0;owned�Tray  Le�ek�31m��  "), "{list}");
    assert_eq!(list.lines().count(), 2, "{list}");
    let summary = user.run(&["summary", "--start-date", "2026-01", "--end-date", "2026-01"]).done();
    assert!(summary.contains("\nLe�ek�31m��\n"), "{summary}");
    for text in [list, summary] {
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
    // Programs get the data as they are, in JSON's own escapes.
    let listed = user.run(&["list", "--json"]).done();
    assert!(!listed.trim_end().chars().any(|c| c.is_ascii_control()), "{listed:?}");
    assert_eq!(serde_json::from_str::<Value>(&listed).unwrap()[0]["batch_name"], name);
}

#[test]
fn wrong_dates_and_limits_are_told() {
    let site = Site::new();
    let user = User::with(&site, "http://127.0.0.1:9", site.credential());
    let forms = "write 2026-01-31, 2026-01-31T08:00:00Z, 2026-01, 2026, now, today, yesterday, or a time before \
        today: 30d, 12w, 6m (months), 1y";
    for command in ["list", "summary"] {
        let run = |words: &[&str]| user.run(&[&[command], words].concat());
        run(&["--start-date", "tomorrow"]).misused(&format!("\"tomorrow\" is no date: {forms}"));
        run(&["--start-date", "2026", "--end-date", "2025"]).misused(
            "the window ends before it begins: it is from 2026 (2026-01-01T00:00:00Z) to 2025 \
             (2025-12-31T23:59:59.999999Z)",
        );
        run(&[]).fails(
            "cannot reach 127.0.0.1:9: connection refused; check the address, and that the service is running",
        );
    }
    for limit in ["0", "10001", "-1x", "many"] {
        let message = format!("invalid value '{limit}' for '--limit <N>': a whole number from 1 to 10000");
        user.run(&["list", &format!("--limit={limit}")]).misused(&message);
    }
    let mut wrong = user.command(&["list"]);
    Outcome::of(wrong.env("BATCHSCAN_LIMIT", "0"))
        .misused("invalid value '0' for '--limit <N>': a whole number from 1 to 10000");
}
