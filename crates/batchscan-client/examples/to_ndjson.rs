//! Writes every batch to standard output, one JSON text a line, and tells how to go on where it fails.
//!
//! Wants `BATCHSCAN_URL`, `BATCHSCAN_CLIENT_ID` and `BATCHSCAN_CLIENT_SECRET` in the environment. An argument is the
//! cursor to go on from: `to_ndjson CURSOR >> batches.ndjson`.

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

/// Every batch after the cursor.
pub(crate) async fn write(client: &Client, mut cursor: Option<String>, out: &mut impl Write) -> Result<()> {
    let mut pages = match &cursor {
        Some(cursor) => client.pages_after(DateRange::default(), cursor),
        None => client.pages(DateRange::default()),
    };
    loop {
        let how_to_go_on = || match &cursor {
            Some(cursor) => format!("what is written is whole; go on with: to_ndjson {cursor}"),
            None => "nothing is written yet".to_owned(),
        };
        let Some(page) = pages.try_next().await.with_context(how_to_go_on)? else { return Ok(()) };
        // A page with something in it that is no batch is not begun.
        let texts = page.texts().collect::<Result<Vec<_>, _>>().with_context(how_to_go_on)?;
        for text in texts {
            // Some services print JSON over many lines. Inside of its strings there are no line ends.
            writeln!(out, "{}", text.replace(['\n', '\r'], " "))?;
        }
        // A cursor is good once all that stands before it is out.
        out.flush()?;
        cursor = page.next_token().map(str::to_owned);
    }
}
