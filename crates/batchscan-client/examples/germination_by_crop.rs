//! Prints the mean germination rate of each crop, in exact hundredths without floats.
//!
//! Set `BATCHSCAN_URL`, `BATCHSCAN_CLIENT_ID` and `BATCHSCAN_CLIENT_SECRET` in the environment.

use std::collections::BTreeMap;
use std::env::var;
use std::io::{Write, stdout};

use anyhow::{Context, Result};
use batchscan_client::{Client, DateRange, Hundredths, TryStreamExt};

#[tokio::main]
async fn main() -> Result<()> {
    let client = Client::builder(var("BATCHSCAN_URL").context("BATCHSCAN_URL")?)
        .credentials(
            var("BATCHSCAN_CLIENT_ID").context("BATCHSCAN_CLIENT_ID")?,
            var("BATCHSCAN_CLIENT_SECRET").context("BATCHSCAN_CLIENT_SECRET")?,
        )
        .build()?;
    print(&client, &mut stdout()).await
}

/// Prints one line per crop. Batches without a crop or a rate are ignored.
pub(crate) async fn print(client: &Client, out: &mut impl Write) -> Result<()> {
    let mut rates: BTreeMap<String, Vec<Hundredths>> = BTreeMap::new();
    let mut batches = client.batches(DateRange::default());
    while let Some(received) = batches.try_next().await? {
        let batch = received.batch;
        if let (Some(crop), Some(rate)) = (batch.crop_type, batch.avg_germination_rate) {
            rates.entry(crop).or_default().push(rate);
        }
    }
    for (crop, rates) in &rates {
        let mean = mean(rates).context("too many batches")?.to_string();
        writeln!(out, "{crop:<10}  {mean:>6} %  {:>6} batches", rates.len())?;
    }
    Ok(())
}

/// Rounds half away from zero, like the service.
fn mean(rates: &[Hundredths]) -> Option<Hundredths> {
    let count = i64::try_from(rates.len()).ok()?;
    let sum = rates.iter().try_fold(0_i64, |sum, rate| sum.checked_add(rate.count()))?;
    let half = count / 2 * sum.signum();
    Hundredths::from_hundredths(sum.checked_add(half)?.checked_div(count)?)
}
