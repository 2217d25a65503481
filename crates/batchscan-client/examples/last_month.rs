//! Prints a table of the batches of the last 30 days.
//!
//! Set `BATCHSCAN_URL`, `BATCHSCAN_CLIENT_ID` and `BATCHSCAN_CLIENT_SECRET` in the environment.

use std::env::var;
use std::io::{Write, stdout};
use std::time::SystemTime;

use anyhow::{Context, Result};
use batchscan_client::{Client, DateRange, TryStreamExt, UtcInstant};

#[tokio::main]
async fn main() -> Result<()> {
    let client = Client::builder(var("BATCHSCAN_URL").context("BATCHSCAN_URL")?)
        .credentials(
            var("BATCHSCAN_CLIENT_ID").context("BATCHSCAN_CLIENT_ID")?,
            var("BATCHSCAN_CLIENT_SECRET").context("BATCHSCAN_CLIENT_SECRET")?,
        )
        .build()?;
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let now = UtcInstant::EPOCH.plus_secs(i64::try_from(since_1970.as_secs())?);
    print(&client, now, &mut stdout()).await
}

/// Prints the table.
pub(crate) async fn print(client: &Client, now: UtcInstant, out: &mut impl Write) -> Result<()> {
    let last_month = DateRange { start: Some(now.plus_secs(-30 * 86_400)), end: Some(now) };
    let mut batches = client.batches(last_month);
    let mut count = 0;
    writeln!(out, "{:<20}  {:<10}  {:>10}  batch", "created", "crop", "germinated")?;
    while let Some(batch) = batches.try_next().await? {
        let created = batch.batch_creation_date.to_whole_secs().to_string();
        let crop = batch.crop_type.as_deref().unwrap_or("-");
        let rate = batch.avg_germination_rate.map_or("-".to_owned(), |rate| format!("{rate} %"));
        writeln!(out, "{created}  {crop:<10}  {rate:>10}  {}", batch.batch_name)?;
        count += 1;
    }
    writeln!(out, "{count} batches")?;
    Ok(())
}
