//! Runs the programs in `examples/`. Their sources are included here, so that they cannot become outdated.

use batchscan_client::{Batch, Client, Hundredths, TryStreamExt, UtcInstant};

use crate::mock_server::{ApiResponse as _, MockServer, Response, SECRET};
use crate::{ALL, Service, paged};

#[path = "../../examples/germination_by_crop.rs"]
#[expect(dead_code, reason = "the test does not call `main`")]
mod germination_by_crop;
#[path = "../../examples/last_month.rs"]
#[expect(dead_code, reason = "the test does not call `main`")]
mod last_month;
#[path = "../../examples/to_ndjson.rs"]
#[expect(dead_code, reason = "the test does not call `main`")]
mod to_ndjson;

fn lines(numbers: std::ops::Range<u32>) -> String {
    numbers.map(|number| Service::batch(number).to_json() + "\n").collect()
}

fn page_of(batches: &str) -> Response {
    Response::new(200, format!(r#"{{"data":[{batches}],"next_token":null}}"#))
}

/// What the example wrote, and its result.
async fn run_to_ndjson(client: &Client, cursor: Option<&str>) -> (String, anyhow::Result<()>) {
    let mut out = Vec::new();
    let result = to_ndjson::write(client, cursor.map(str::to_owned), &mut out).await;
    (String::from_utf8(out).unwrap(), result)
}

#[tokio::test]
async fn to_ndjson_writes_one_batch_per_line() {
    let service = paged(25, 10).await;
    let client = service.client().build().unwrap();
    let (text, result) = run_to_ndjson(&client, None).await;
    result.unwrap();
    assert_eq!(text, lines(0..25));
    let page = client.pages(ALL).try_next().await.unwrap().unwrap();
    let (text, result) = run_to_ndjson(&client, page.next_token()).await;
    result.unwrap();
    assert_eq!(text, lines(10..25));
    let formatted = Service::batch(0).to_json().replace(",\"", ",\r\n\"");
    let server = MockServer::with_tokens([page_of(&format!("{formatted},{formatted}"))]);
    let (text, result) = run_to_ndjson(&server.client().build().unwrap(), None).await;
    result.unwrap();
    assert_eq!(text.lines().collect::<Vec<_>>(), [formatted.replace(['\r', '\n'], " ").as_str(); 2]);
}

#[tokio::test]
async fn to_ndjson_prints_how_to_continue_after_a_failure() {
    let first = || Response::page(0..2, Some("c-1"));
    let invalid = page_of(&format!("{},{{}}", Service::batch(2).to_json()));
    let how = "the output is complete up to a cursor; continue with: to_ndjson c-1\n";
    for (responses, written, expected, cause) in [
        (vec![first(), Response::error(500, "oh no")], lines(0..2), how, "(oh no)"),
        (vec![first(), invalid], lines(0..2), how, "invalid batch"),
        (vec![Response::error(500, "oh no")], String::new(), "nothing was written\n", "(oh no)"),
    ] {
        let server = MockServer::with_tokens(responses);
        let (text, result) = run_to_ndjson(&server.client().build().unwrap(), None).await;
        assert_eq!(text, written);
        // As `main` prints it.
        let message = format!("{:?}", result.unwrap_err());
        assert!(message.starts_with(expected) && message.contains(cause), "{message}");
        assert!(!message.contains(SECRET), "{message}");
    }
}

#[tokio::test]
async fn last_month_prints_only_the_last_30_days() {
    let service = paged(0, 2).await;
    let now = UtcInstant::parse_any_offset("2026-03-31T12:00:00Z").unwrap();
    let batches = [-2, 0, 10, 30, 31].map(|days| Batch {
        batch_creation_date: now.plus_secs(-days * 86_400),
        ..Service::batch(u32::try_from(days + 2).unwrap())
    });
    service.import_batches(&batches).await;
    let mut table = Vec::new();
    last_month::print(&service.client().build().unwrap(), now, &mut table).await.unwrap();
    assert_eq!(
        String::from_utf8(table).unwrap(),
        "created               crop        germinated  batch\n\
         2026-03-01T12:00:00Z  Lettuce        93.50 %  Tray 32\n\
         2026-03-21T12:00:00Z  Tomato         92.50 %  Tray 12\n\
         2026-03-31T12:00:00Z  Lettuce        82.50 %  Tray 2\n\
         3 batches\n"
    );
}

#[tokio::test]
async fn germination_by_crop_is_exact_to_the_hundredth() {
    let service = paged(0, 3).await;
    let rates = [
        ("Tomato", "92.50"),
        ("Tomato", "92.51"),
        ("Pepper", "0.01"),
        ("Pepper", "0.02"),
        ("Pepper", "0.01"),
    ];
    let mut batches: Vec<Batch> = (0..)
        .zip(rates)
        .map(|(number, (crop, rate))| Batch {
            crop_type: Some(crop.to_owned()),
            avg_germination_rate: Some(Hundredths::parse(rate).unwrap()),
            ..Service::batch(number)
        })
        .collect();
    batches.push(Batch { avg_germination_rate: None, ..Service::batch(6) });
    batches.push(Batch { crop_type: None, ..Service::batch(7) });
    service.import_batches(&batches).await;
    let mut table = Vec::new();
    germination_by_crop::print(&service.client().build().unwrap(), &mut table).await.unwrap();
    let expected = "Pepper        0.01 %       3 batches\nTomato       92.51 %       2 batches\n";
    assert_eq!(String::from_utf8(table).unwrap(), expected);
}
