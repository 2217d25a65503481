//! The programs in `examples/` do what they say. Their sources are part of this test: what they do with a client runs
//! here, and is never older than what a reader finds there.

use batchscan_client::{Batch, Hundredths, TryStreamExt, UtcInstant};

use crate::script::{Answer, SECRET, Script};
use crate::{ALL, Client, Service, paged, to};

#[path = "../../examples/germination_by_crop.rs"]
#[expect(dead_code, reason = "`main` takes the client from the environment; here the test makes it")]
mod germination_by_crop;
#[path = "../../examples/last_month.rs"]
#[expect(dead_code, reason = "`main` takes the client from the environment; here the test makes it")]
mod last_month;
#[path = "../../examples/to_ndjson.rs"]
#[expect(dead_code, reason = "`main` takes the client from the environment; here the test makes it")]
mod to_ndjson;

fn lines(numbers: std::ops::Range<u32>) -> String {
    numbers.map(|number| Service::batch(number).to_json() + "\n").collect()
}

fn page_of(batches: &str) -> Answer {
    Answer::new(200, format!(r#"{{"data":[{batches}],"next_token":null}}"#))
}

/// What it wrote, and how it ended.
async fn written(client: &Client, cursor: Option<&str>) -> (String, anyhow::Result<()>) {
    let mut out = Vec::new();
    let outcome = to_ndjson::write(client, cursor.map(str::to_owned), &mut out).await;
    (String::from_utf8(out).unwrap(), outcome)
}

#[tokio::test]
async fn to_ndjson_writes_every_text_on_a_line_of_its_own() {
    let service = paged(25, 10).await;
    let (text, outcome) = written(&to(&service).build().unwrap(), None).await;
    outcome.unwrap();
    assert_eq!(text, lines(0..25));
    // Some services print a batch over many lines.
    let long = Service::batch(0).to_json().replace(",\"", ",\r\n\"");
    let script = Script::signed_in([page_of(&format!("{long},{long}"))]).await;
    let (text, outcome) = written(&script.client().build().unwrap(), None).await;
    outcome.unwrap();
    assert_eq!(text.lines().collect::<Vec<_>>(), [long.replace(['\r', '\n'], " ").as_str(); 2]);
}

#[tokio::test]
async fn to_ndjson_goes_on_from_a_cursor() {
    let service = paged(25, 10).await;
    let client = to(&service).build().unwrap();
    let page = client.pages(ALL).try_next().await.unwrap().unwrap();
    let (text, outcome) = written(&client, page.next_token()).await;
    outcome.unwrap();
    assert_eq!(text, lines(10..25));
}

#[tokio::test]
async fn to_ndjson_tells_how_to_go_on_where_it_fails() {
    let script = Script::signed_in([Answer::page(0..2, Some("c-1")), Answer::error(500, "oh no")]).await;
    let (text, outcome) = written(&script.client().build().unwrap(), None).await;
    assert_eq!(text, lines(0..2));
    // As `main` shows it.
    let told = format!("{:?}", outcome.unwrap_err());
    assert!(told.starts_with("what is written is whole; go on with: to_ndjson c-1\n"), "{told}");
    assert!(told.contains("(oh no)") && !told.contains(SECRET), "{told}");
    // A page that is not all batches is not begun.
    let not_all = page_of(&format!("{},{{}}", Service::batch(2).to_json()));
    let script = Script::signed_in([Answer::page(0..2, Some("c-1")), not_all]).await;
    let (text, outcome) = written(&script.client().build().unwrap(), None).await;
    assert_eq!(text, lines(0..2));
    assert!(outcome.unwrap_err().to_string().ends_with("go on with: to_ndjson c-1"));
    let script = Script::signed_in([Answer::error(500, "oh no")]).await;
    let (text, outcome) = written(&script.client().build().unwrap(), None).await;
    assert_eq!((text.as_str(), outcome.unwrap_err().to_string().as_str()), ("", "nothing is written yet"));
}

#[tokio::test]
async fn last_month_prints_the_last_30_days_and_no_others() {
    let service = paged(0, 2).await;
    let now = UtcInstant::parse_any_offset("2026-03-31T12:00:00Z").unwrap();
    let batches = [-2, 0, 10, 30, 31].map(|days| Batch {
        batch_creation_date: now.plus_secs(-days * 86_400),
        ..Service::batch(u32::try_from(days + 2).unwrap())
    });
    service.import_batches(&batches).await;
    let mut table = Vec::new();
    last_month::print(&to(&service).build().unwrap(), now, &mut table).await.unwrap();
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
    germination_by_crop::print(&to(&service).build().unwrap(), &mut table).await.unwrap();
    let expected = "Pepper        0.01 %       3 batches\nTomato       92.51 %       2 batches\n";
    assert_eq!(String::from_utf8(table).unwrap(), expected);
}
