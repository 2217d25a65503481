//! Runs a hot path of the service a given number of times, in one process, for counting its instructions.
//!
//! `hot_path MODE COUNT`: whatever COUNT is, the preparation is the same; so the difference between two runs is the
//! cost of the difference in COUNT.

use axum::body::Body;
use axum::extract::Request;
use batchscan_model::{Batch, ClientId};
use batchscan_server::auth::{KeyRing, issue};
use batchscan_server::clock::Clock;
use batchscan_server::config::Config;
use batchscan_server::http::{App, InFlight, Service};
use batchscan_server::store::{DatabaseUrl, ImportRow, ImportStep, NewCredential, Opening, OrgName, Store};
use http_body_util::BodyExt;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const ORG: &str = "hot";
const BATCHES: usize = 4_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, count] = arguments.as_slice() else { return Err("usage: hot_path MODE COUNT".into()) };
    let cache_bytes = match mode.as_str() {
        "uncached-page" => 0,
        "cached-page" => Config::default().cache_bytes,
        other => return Err(format!("there is no mode {other}: uncached-page, cached-page").into()),
    };
    let folder = tempfile::tempdir()?;
    let store = Store::open(&DatabaseUrl::Sqlite(folder.path().join("hot.db")), Opening::OR_MAKE).await?;
    fill(&store).await?;
    let (client, secret) = credential(&store).await?;
    let config = Config { cache_bytes, ..Config::default() };
    let service = Service::public(App::new(store, config, Clock::system()).await?);
    let form = format!("grant_type=client_credentials&client_id={client}&client_secret={secret}");
    let token = ask(&service, post("/v2/auth", form)?).await?;
    let token: serde_json::Value = serde_json::from_slice(&token)?;
    let bearer = format!("Bearer {}", token["access_token"].as_str().unwrap_or_default());
    for _ in 0..count.parse::<usize>()? {
        let page = ask(&service, get("/v2/batches", &bearer)?).await?;
        if page.len() < 500_000 {
            return Err(format!("a page of {} bytes is no page of 1000 batches", page.len()).into());
        }
    }
    Ok(())
}

async fn ask(service: &Service, request: Request) -> Result<axum::body::Bytes, Failure> {
    let response = service.answer(request, InFlight::default().begin()).await;
    if !response.status().is_success() {
        return Err(format!("answered {}", response.status()).into());
    }
    Ok(response.into_body().collect().await?.to_bytes())
}

fn get(path: &str, bearer: &str) -> Result<Request, Failure> {
    Ok(Request::get(path).header("authorization", bearer).body(Body::empty())?)
}

fn post(path: &str, form: String) -> Result<Request, Failure> {
    let kind = "application/x-www-form-urlencoded";
    Ok(Request::post(path).header("content-type", kind).body(Body::from(form))?)
}

async fn credential(store: &Store) -> Result<(ClientId, String), Failure> {
    let now = Clock::system().now();
    let issued = issue().ok_or("no random numbers")?;
    let secret_hash = KeyRing::new(&store.keys(now).await?, now)?.hash_secret(&issued.secret);
    let client = issued.client.clone();
    store
        .add_credential(
            ORG,
            NewCredential { client, label: String::new(), expires_at: None, secret_hash, now },
        )
        .await?;
    Ok((issued.client, issued.secret.reveal().to_owned()))
}

async fn fill(store: &Store) -> Result<(), Failure> {
    store.add_org(&OrgName::new(ORG).ok_or("no name")?, Clock::system().now()).await?;
    let rows: Result<Vec<ImportRow>, _> =
        (0..BATCHES).map(|number| batch(number).map(|batch| ImportRow::from(&batch))).collect();
    let (steps, receiver) = tokio::sync::mpsc::channel(2);
    steps.send(ImportStep::Rows(rows?)).await?;
    steps.send(ImportStep::Commit).await?;
    store.import(ORG, receiver).await?;
    Ok(())
}

/// A batch of the usual size: some 680 bytes.
fn batch(number: usize) -> Result<Batch, batchscan_model::BatchFaults> {
    let text = format!(
        r#"{{"batch_id":"0d1f5f0e-9f6a-4c3e-8a55-{number:012}","batch_name":"Tomato Roma W{} bench {}","batch_creation_date":"2026-01-01T{:02}:{:02}:{:02}Z","crop_type":"Tomato 'Roma'","number_of_images":12,"total_cells_per_tray":128,"avg_germinated_seedlings":"118.40","avg_non_germinated_seedlings":"9.60","avg_germination_rate":"92.50","avg_usable_seedlings":"110.00","avg_non_usable_cells":"18.00","avg_usable_seedling_rate":"85.94","avg_coefficient_of_variation":"17.31","avg_median_seedling_size_mm2":"208.46","scanned_by_email":"ines.moreau@example.org","analysis_link":"https://scans.example.org/batches/0d1f5f0e-9f6a-4c3e-8a55-{number:012}","comment":null,"warnings":false}}"#,
        number % 52,
        number % 40,
        number / 3_600,
        number / 60 % 60,
        number % 60,
    );
    Batch::from_json(&text)
}
