//! `batchscan mirror` during a run: copies of an organisation whose batches are added, changed and removed all the time.
//! The copies are killed every few seconds. In the end, each equals the service.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use super::lock::lock;
use crate::cluster::Site;
use crate::cluster::cli::Cli;
use crate::cluster::http::{Client, Credential};

const ORGANISATION: &str = "Mirrored Nursery";
const BATCHES: usize = 400;
/// A mirror that follows is killed after this time.
const RUN_SECS: &str = "4";
/// Only to prevent hanging.
const UPDATE_SECS: &str = "300";

/// The batches by id.
type Batches = BTreeMap<String, Value>;

/// The organisation, and what its mirrors have.
#[derive(Debug)]
pub(crate) struct Mirrors {
    cli: Cli,
    url: String,
    credential: Credential,
    changes: AtomicUsize,
    copies: Mutex<Vec<Result<Copy>>>,
}

/// What a reader of the lines of a mirror has.
#[derive(Debug, Default)]
struct Copy {
    since: Option<String>,
    batches: Batches,
}

impl Mirrors {
    pub(crate) fn new(site: &Site) -> Result<Self> {
        let cli = site.cli.clone();
        cli.add_organisation(ORGANISATION)?;
        cli.import(ORGANISATION, "ndjson", batches(0..BATCHES, 0).as_bytes())?;
        let credential = cli.issue_credential(ORGANISATION)?;
        let url = format!("http://127.0.0.1:{}", site.balancer.port);
        Ok(Self { cli, url, credential, changes: AtomicUsize::new(0), copies: Mutex::default() })
    }

    /// Changes batches until the load is over. A command that fails may or may not have changed them.
    pub(crate) fn change(&self, is_over: &AtomicBool) {
        let mut number = 0;
        while !is_over.load(Ordering::Relaxed) {
            number += 1;
            // A prime step, so that batches are removed, added again and moved.
            let first = number * 37 % BATCHES;
            let changed = match number % 3 {
                0 => self.cli.remove_batch(ORGANISATION, &id(first)),
                _ => self.cli.import(ORGANISATION, "ndjson", batches(first..first + 5, number).as_bytes()),
            };
            self.changes.fetch_add(usize::from(changed.is_ok()), Ordering::Relaxed);
        }
    }

    /// Runs a mirror again and again until the load is over.
    pub(crate) fn follow(&self, is_over: &AtomicBool) {
        let mut copy = Copy::default();
        let mut result = Ok(());
        while result.is_ok() && !is_over.load(Ordering::Relaxed) {
            result = self.run(&mut copy, RUN_SECS, &["--follow"]).map(drop);
        }
        lock(&self.copies).push(result.map(|()| copy));
    }

    /// Updates all copies and compares them with the service. Returns what is different.
    pub(crate) fn differences(&self, site: &Site) -> Result<Vec<String>> {
        let mut client = Client::new(site.nodes[0].port);
        let token = client.token(&self.credential)?;
        let response = client.get("/v1/batches", &token, "").map_err(|failure| anyhow!(failure.reason))?;
        let expected: Vec<Value> = serde_json::from_slice(&response.body)?;
        let expected = expected.into_iter().map(by_id).collect::<Result<Batches>>()?;
        let copies = std::mem::take(&mut *lock(&self.copies));
        println!(
            "{} mirrors of {} batches: {} changes",
            copies.len(),
            expected.len(),
            self.changes.load(Ordering::Relaxed)
        );
        let mut differences = Vec::new();
        for copy in copies {
            let updated = copy.and_then(|mut copy| match self.run(&mut copy, UPDATE_SECS, &[])? {
                true => Ok(copy),
                false => bail!("a mirror cannot be updated"),
            });
            match updated {
                Ok(copy) if copy.batches == expected => {}
                Ok(_) => differences.push("a mirror differs from the service".to_owned()),
                Err(error) => differences.push(format!("{error:#}")),
            }
        }
        Ok(differences)
    }

    /// Runs a mirror to its end, or kills it. Returns whether it succeeded: it may fail while no node responds, but never
    /// because of its position.
    fn run(&self, copy: &mut Copy, secs: &str, flags: &[&str]) -> Result<bool> {
        let Credential { client_id, client_secret } = &self.credential;
        let since = copy.since.clone();
        let mut arguments = vec!["mirror", "--output", "-", "--url", &self.url, "--client-id", client_id];
        arguments.extend(since.iter().flat_map(|since| ["--since", since]));
        arguments.extend(flags);
        let mut command = self.cli.killed_after(secs, &arguments);
        let output = command.env("BATCHSCAN_CLIENT_SECRET", client_secret).output()?;
        let error = String::from_utf8_lossy(&output.stderr);
        if error.contains("position") {
            bail!("a mirror cannot continue: {error}");
        }
        copy.apply(&String::from_utf8(output.stdout)?)?;
        Ok(output.status.success())
    }
}

impl Copy {
    /// Applies the lines up to the last position. Later ones come again.
    fn apply(&mut self, lines: &str) -> Result<()> {
        let mut changes = Vec::new();
        for line in lines.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let line: Value = serde_json::from_str(line)?;
            match line["since"].as_str() {
                None => changes.push(line),
                Some(since) => {
                    self.since = Some(since.to_owned());
                    for mut change in changes.drain(..) {
                        match change["removed"].as_str() {
                            Some(id) => self.batches.remove(id),
                            None => by_id(change["batch"].take())
                                .map(|(id, batch)| self.batches.insert(id, batch))?,
                        };
                    }
                }
            }
        }
        Ok(())
    }
}

fn by_id(batch: Value) -> Result<(String, Value)> {
    let id = batch["batch_id"].as_str().context("a batch without an id")?;
    Ok((id.to_owned(), batch))
}

fn id(number: usize) -> String {
    format!("mirrored-{number:04}")
}

/// Batches with a comment and dates that depend on the number of the change.
fn batches(numbers: std::ops::Range<usize>, change: usize) -> String {
    numbers.fold(String::new(), |mut lines, number| {
        let id = id(number);
        let (hour, second) = (change % 24, number % 60);
        let _ = writeln!(
            lines,
            "{{\"batch_id\":\"{id}\",\"batch_name\":\"{id}\",\"batch_creation_date\":\"2026-01-31T{hour:02}:00:{second:02}Z\",\
             \"number_of_images\":1,\"warnings\":false,\"comment\":\"change {change}\"}}"
        );
        lines
    })
}
