//! Writes every batch to standard output as NDJSON, and prints how to continue after a failure.
//!
//! Set `BATCHSCAN_URL`, `BATCHSCAN_CLIENT_ID` and `BATCHSCAN_CLIENT_SECRET` in the environment. To continue after a
//! failure, give the cursor: `to_ndjson CURSOR >> batches.ndjson`.

use std::env::{args, var};
use std::io::{Write, stdout};

use anyhow::{Context, Result};
use batchscan_client::{Client, DateRange, TryStreamExt};

#[tokio::main]
async fn main() -> Result<()> {
    let client = Client::builder(var("BATCHSCAN_URL").context("BATCHSCAN_URL")?)
        .credentials(
            var("BATCHSCAN_CLIENT_ID").context("BATCHSCAN_CLIENT_ID")?,
            var("BATCHSCAN_CLIENT_SECRET").context("BATCHSCAN_CLIENT_SECRET")?,
        )
        .build()?;
    write(&client, args().nth(1), &mut stdout()).await
}

/// Writes every batch after the cursor.
pub(crate) async fn write(client: &Client, mut cursor: Option<String>, out: &mut impl Write) -> Result<()> {
    let mut pages = match &cursor {
        Some(cursor) => client.pages_after(DateRange::default(), cursor),
        None => client.pages(DateRange::default()),
    };
    loop {
        let how_to_continue = || match &cursor {
            Some(cursor) => {
                format!("the output is complete up to a cursor; continue with: to_ndjson {cursor}")
            }
            None => "nothing was written".to_owned(),
        };
        let Some(page) = pages.try_next().await.with_context(how_to_continue)? else { return Ok(()) };
        // Validate the whole page before writing any of it.
        let texts = page.texts().collect::<Result<Vec<_>, _>>().with_context(how_to_continue)?;
        for text in texts {
            // Some services format JSON over several lines. JSON strings contain no line breaks.
            writeln!(out, "{}", text.replace(['\n', '\r'], " "))?;
        }
        // The cursor is valid once everything before it has been written.
        out.flush()?;
        cursor = page.next_token().map(str::to_owned);
    }
}
