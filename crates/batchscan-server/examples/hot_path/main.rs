//! Runs a hot path of the service a given number of times, in one process, for counting its instructions.
//!
//! `hot_path MODE COUNT`: whatever COUNT is, the preparation is the same; so the difference between two runs is the
//! cost of the difference in COUNT. Every answer is looked at, so that nothing cheap and wrong is counted.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;

use axum::http::StatusCode;
use batchscan_formats::Format;
use batchscan_formats::read::Input;
use batchscan_server::config::Config;
use batchscan_store::import_file;

use site::{Answer, BATCHES, ORG, Site};

mod sample;
mod site;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Turns before those that are counted: each reader thread has prepared its statements and read its pages by then.
const WARM_UPS: usize = 16;
/// Batches of one turn of `import`. A larger file would only take longer.
const IMPORT_BATCHES: usize = 2_000;
/// Empty stores made ready for `import`, used or not. One is for warming up.
const IMPORT_STORES: usize = 5;
/// Batches of one turn of `render`.
const RENDER_BATCHES: usize = 1_000;
/// Batches of one small window.
const WINDOW_BATCHES: usize = 20;
const PAGE: &str = "/v2/batches";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, count] = arguments.as_slice() else { return Err("usage: hot_path MODE COUNT".into()) };
    let count = count.parse()?;
    match mode.as_str() {
        "uncached-page" => pages(uncached(), None, count).await,
        "uncached-gzip-page" => pages(uncached(), Some("gzip"), count).await,
        "cached-page" => pages(Config::default(), None, count).await,
        "unchanged-page" => unchanged_pages(count).await,
        "small-window" => small_windows(count).await,
        "auth" => auths(count).await,
        "import" => imports(count).await,
        "render" => renders(count),
        other => Err(format!("there is no mode {other}").into()),
    }
}

fn uncached() -> Config {
    Config { cache_bytes: 0, ..Config::default() }
}

/// The first page, again and again.
async fn pages(config: Config, encoding: Option<&str>, count: usize) -> Result<(), Failure> {
    let site = Site::open(config).await?;
    let field = encoding.map(|encoding| ("accept-encoding", encoding));
    for _ in 0..WARM_UPS + count {
        let page = site.get(PAGE, field).await?;
        let encoded = page.headers.get("content-encoding").map(|value| value.to_str()).transpose()?;
        // A thousand batches are some 680,000 bytes, and hold too much chance to become 50 bytes each.
        let least = if encoding.is_some() { 50_000 } else { 600_000 };
        if !page.is(StatusCode::OK) || encoded != encoding || page.body.len() < least {
            return Err(page.unexpected("a page of 1000 batches in the encoding asked for"));
        }
    }
    Ok(())
}

/// The first page, by a client that has it already.
async fn unchanged_pages(count: usize) -> Result<(), Failure> {
    let site = Site::open(Config::default()).await?;
    let first = site.get(PAGE, None).await?;
    let etag = first.headers.get("etag").ok_or_else(|| first.unexpected("an ETag"))?.to_str()?;
    for _ in 0..WARM_UPS + count {
        let answer = site.get(PAGE, Some(("if-none-match", etag))).await?;
        if !answer.is(StatusCode::NOT_MODIFIED) {
            return Err(answer.unexpected("304"));
        }
    }
    Ok(())
}

/// Another window in every turn: the cache is on and never holds it.
async fn small_windows(count: usize) -> Result<(), Failure> {
    let site = Site::open(Config::default()).await?;
    for turn in 0..WARM_UPS + count {
        let last = turn + WINDOW_BATCHES - 1;
        if last >= BATCHES {
            return Err(format!("there are not so many windows: {count}").into());
        }
        let (start, end) = (sample::created(turn), sample::created(last));
        let answer = site.get(&format!("{PAGE}?start_date={start}&end_date={end}"), None).await?;
        // Counting them costs more than the answer, so it is done where it does not count.
        let is_whole = turn >= WARM_UPS || answer.batches()? == WINDOW_BATCHES;
        if !answer.is(StatusCode::OK) || answer.body.len() < WINDOW_BATCHES * 600 || !is_whole {
            return Err(answer.unexpected("a window of 20 batches"));
        }
    }
    Ok(())
}

async fn auths(count: usize) -> Result<(), Failure> {
    let site = Site::open(Config::default()).await?;
    for _ in 0..WARM_UPS + count {
        let answer = site.auth().await?;
        if !answer.is(StatusCode::OK) {
            return Err(answer.unexpected("a token"));
        }
    }
    Ok(())
}

/// A file of lines into a store that holds nothing yet, as the command imports it, until the store is closed again.
async fn imports(count: usize) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let mut stores = Vec::with_capacity(IMPORT_STORES);
    for number in 0..IMPORT_STORES {
        stores.push(site::fresh_store(&folder, &format!("{number}.db")).await?);
    }
    if count >= IMPORT_STORES {
        return Err(format!("there are not so many stores: {count}").into());
    }
    let path = folder.path().join("batches.ndjson");
    let mut lines = File::create(&path)?;
    for batch in sample::batches(IMPORT_BATCHES)? {
        writeln!(lines, "{}", batch.to_json())?;
    }
    for store in stores.drain(..=count) {
        let input = (Format::Ndjson, Input::File(File::open(&path)?));
        let counts = import_file(&store, ORG, input, false, Arc::default()).await?;
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

impl Answer {
    fn is(&self, status: StatusCode) -> bool {
        self.status == status
    }

    fn batches(&self) -> Result<usize, Failure> {
        let page: serde_json::Value = serde_json::from_slice(&self.body)?;
        Ok(page["data"].as_array().map_or(0, Vec::len))
    }

    fn unexpected(&self, expected: &str) -> Failure {
        format!("answered {} and {} bytes, expected {expected}", self.status, self.body.len()).into()
    }
}
