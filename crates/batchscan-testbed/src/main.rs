//! A PostgreSQL server for a developer: prints where it is, and runs until standard input ends.

use std::io::Read;

use batchscan_testbed::{Postgres, Settings};

fn main() -> anyhow::Result<()> {
    let postgres = Postgres::start(&Settings::default())?;
    println!("url {}", postgres.url("postgres"));
    println!("folder {}", postgres.folder().display());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
