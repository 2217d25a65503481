//! Runs a hot path of the service in one process, for counting its instructions.
//!
//! `hot-path MODE COUNT`: the preparation does not depend on COUNT, so the difference between two runs is the cost of the
//! additional turns. Every response is checked, so that a wrong one is not counted.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;

use axum::http::StatusCode;
use batchscan_formats::Format;
use batchscan_model::UtcInstant;
use batchscan_server::config::Config;
use batchscan_store::{ImportOptions, import_file};

use site::{BATCHES, ORG, Reply, Site};

mod sample;
mod site;

/// The allocator of the executable.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Turns that are not counted: by then each reader thread has prepared its statements.
const WARM_UPS: usize = 16;
/// Batches of one turn of `import`. A larger file would only take longer.
const IMPORT_BATCHES: usize = 2_000;
/// Empty stores prepared for `import`. One is for warming up.
const IMPORT_STORES: usize = 5;
/// Batches of one turn of `render`.
const RENDER_BATCHES: usize = 1_000;
/// Batches of one small date range.
const RANGE_BATCHES: usize = 20;
const PAGE: &str = "/v2/batches";
const CHANGES: &str = "/v2/changes";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, count] = arguments.as_slice() else { return Err("usage: hot-path MODE COUNT".into()) };
    let count = count.parse()?;
    match mode.as_str() {
        "uncached-page" => pages(uncached(), None, count).await,
        "uncached-gzip-page" => pages(uncached(), Some("gzip"), count).await,
        "cached-page" => pages(Config::default(), None, count).await,
        "unchanged-page" => unchanged_pages(count).await,
        "poll" => polls(count).await,
        "small-window" => small_ranges(count).await,
        "auth" => auths(count).await,
        "import" => imports(count).await,
        "render" => renders(count),
        other => Err(format!("unknown mode {other}").into()),
    }
}

fn uncached() -> Config {
    Config { cache_bytes: 0, ..Config::default() }
}

/// The first page.
async fn pages(config: Config, encoding: Option<&str>, count: usize) -> Result<(), Failure> {
    let site = Site::open(config).await?;
    let field = encoding.map(|encoding| ("accept-encoding", encoding));
    for _ in 0..WARM_UPS + count {
        let page = site.get(PAGE, field).await?;
        let encoded = page.headers.get("content-encoding").map(|value| value.to_str()).transpose()?;
        // A thousand batches have about 680,000 bytes, and too much random data to shrink to 50 bytes each.
        let least = if encoding.is_some() { 50_000 } else { 600_000 };
        if !page.is(StatusCode::OK) || encoded != encoding || page.body.len() < least {
            return Err(page.unexpected("a page of 1000 batches in the requested encoding"));
        }
    }
    Ok(())
}

/// The first page, for a client that has it.
async fn unchanged_pages(count: usize) -> Result<(), Failure> {
    let site = Site::open(Config::default()).await?;
    let first = site.get(PAGE, None).await?;
    let etag = first.headers.get("etag").ok_or_else(|| first.unexpected("an ETag"))?.to_str()?;
    for _ in 0..WARM_UPS + count {
        let reply = site.get(PAGE, Some(("if-none-match", etag))).await?;
        if !reply.is(StatusCode::NOT_MODIFIED) {
            return Err(reply.unexpected("304"));
        }
    }
    Ok(())
}

/// A poll for changes without news.
async fn polls(count: usize) -> Result<(), Failure> {
    let site = Site::open(Config::default()).await?;
    let mut since = String::new();
    while {
        let reply = site.get(&format!("{CHANGES}{since}"), None).await?;
        let changes: serde_json::Value = serde_json::from_slice(&reply.body)?;
        since = format!("?since={}", changes["since"].as_str().ok_or_else(|| reply.unexpected("since"))?);
        changes["more"] == true
    } {}
    let target = format!("{CHANGES}{since}");
    for _ in 0..WARM_UPS + count {
        let reply = site.get(&target, None).await?;
        if !reply.is(StatusCode::OK) || !reply.body.starts_with(b"{\"data\":[],\"removed\":[],\"since\":") {
            return Err(reply.unexpected("no changes"));
        }
    }
    Ok(())
}

/// Another date range in every turn, which is never cached.
async fn small_ranges(count: usize) -> Result<(), Failure> {
    let site = Site::open(Config::default()).await?;
    let target = |first| {
        let (start, end) = (sample::created(first), sample::created(first + RANGE_BATCHES - 1));
        format!("{PAGE}?start_date={start}&end_date={end}")
    };
    // All of them, so that making them is not counted.
    let targets: Vec<String> = (0..=BATCHES - RANGE_BATCHES).map(target).collect();
    if targets.len() < WARM_UPS + count {
        return Err(format!("not enough date ranges: {count}").into());
    }
    for (turn, target) in targets[..WARM_UPS + count].iter().enumerate() {
        let reply = site.get(target, None).await?;
        // Parsing costs more than the request, so only the warm-up does it.
        let is_complete = turn >= WARM_UPS || reply.batches()? == RANGE_BATCHES;
        if !reply.is(StatusCode::OK) || reply.body.len() < RANGE_BATCHES * 600 || !is_complete {
            return Err(reply.unexpected("20 batches"));
        }
    }
    Ok(())
}

async fn auths(count: usize) -> Result<(), Failure> {
    let site = Site::open(Config::default()).await?;
    for _ in 0..WARM_UPS + count {
        let reply = site.auth().await?;
        if !reply.is(StatusCode::OK) {
            return Err(reply.unexpected("a token"));
        }
    }
    Ok(())
}

/// Imports a file into an empty store, like the command does, and closes the store.
async fn imports(count: usize) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let mut stores = Vec::with_capacity(IMPORT_STORES);
    for number in 0..IMPORT_STORES {
        stores.push(site::fresh_store(&folder, &format!("{number}.db")).await?);
    }
    if count >= IMPORT_STORES {
        return Err(format!("not enough stores: {count}").into());
    }
    let path = folder.path().join("batches.ndjson");
    let mut lines = File::create(&path)?;
    for batch in sample::batches(IMPORT_BATCHES)? {
        writeln!(lines, "{}", batch.to_json())?;
    }
    for store in stores.drain(..=count) {
        let input = (Format::Ndjson, File::open(&path)?);
        let counts = import_file(&store, ORG, input, ImportOptions::new(UtcInstant::EPOCH), Arc::default())
            .await?
            .counts;
        if counts.new != IMPORT_BATCHES as u64 {
            return Err(format!("{} of {IMPORT_BATCHES} batches are new", counts.new).into());
        }
    }
    Ok(())
}

fn renders(count: usize) -> Result<(), Failure> {
    let batches = sample::batches(RENDER_BATCHES)?;
    for _ in 0..count {
        for batch in &batches {
            black_box(black_box(batch).to_json());
        }
    }
    Ok(())
}

impl Reply {
    fn is(&self, status: StatusCode) -> bool {
        self.status == status
    }

    fn batches(&self) -> Result<usize, Failure> {
        let page: serde_json::Value = serde_json::from_slice(&self.body)?;
        Ok(page["data"].as_array().map_or(0, Vec::len))
    }

    fn unexpected(&self, expected: &str) -> Failure {
        format!("got {} and {} bytes, expected {expected}", self.status, self.body.len()).into()
    }
}
