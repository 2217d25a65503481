//! `cargo xtask bench`: how fast the service is, beside others that serve the same data on the same machine.
//!
//! | module | what it owns |
//! |---|---|
//! | [`works`], [`contenders`] | what is measured, and who |
//! | [`data`], [`databases`], [`peers`], [`stock`] | what stands ready before the first timing |
//! | [`cores`], [`load`], [`exchange`], [`gauge`] | who runs where; sending requests; what they cost |
//! | [`check`] | whether an answer is right |
//! | [`rounds`], [`scale`], [`streams`], [`mixed`], [`bulk`] | the timings |
//! | [`figures`], [`targets`] | the arithmetic, and what the figures must show |
//! | [`machine`], [`report`], [`charts`] | what is written down |
//!
//! Measures what is there and says what came out: a target that is missed is a row in the results, not a failure. What
//! fails is an answer that is wrong.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::cluster::Built;
use crate::install;
use crate::workspace::Workspace;
use contenders::Contender;
use machine::Machine;
use stock::Stock;
use targets::Results;
use works::Work;

mod bulk;
mod charts;
mod check;
mod contenders;
mod cores;
mod data;
mod databases;
mod exchange;
mod figures;
mod gauge;
mod instants;
mod load;
mod machine;
mod mixed;
mod peers;
mod report;
mod rounds;
mod scale;
mod stock;
mod streams;
mod targets;
mod works;

/// What a developer asks for.
#[derive(Args, Clone, Debug)]
pub(crate) struct Wish {
    /// A short run, under three minutes once all is built and installed: a round or two, and no timing of a million batches
    #[arg(long)]
    quick: bool,
    /// Only these contenders. Targets are ratios to batchscan, so name that too
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<Contender>,
    /// Only these works
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    work: Vec<Work>,
    /// The folder for RESULTS.md and the charts; without it bench/ for a whole run of this tree, else target/xtask/bench/
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    built: Built,
}

/// What is measured in a run, and for how long.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    contenders: Vec<Contender>,
    works: Vec<Work>,
    pace: Pace,
}

/// How often and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    is_quick: bool,
    rounds: usize,
    /// A timing by wrk, if it brings enough answers.
    secs: u32,
    /// What is in flight at the end is not counted, so a slow contender is timed until that is a small part.
    answers: f64,
    secs_most: u32,
    warm_up: Duration,
    connection_rounds: usize,
    connections: &'static [u32],
    scale_rounds: usize,
    stream_rounds: usize,
    mixed_rounds: usize,
    mixed_secs: u32,
    /// Organisations where there are many.
    organisations: usize,
}

const WHOLE: Pace = Pace {
    is_quick: false,
    rounds: 3,
    secs: 3,
    answers: 256.0,
    secs_most: 8,
    warm_up: Duration::from_millis(400),
    connection_rounds: 2,
    connections: &[1, 16, 64, 512],
    scale_rounds: 6,
    stream_rounds: 4,
    mixed_rounds: 5,
    mixed_secs: 5,
    organisations: databases::ORGANISATIONS,
};

const QUICK: Pace = Pace {
    is_quick: true,
    rounds: 1,
    secs: 1,
    answers: 80.0,
    secs_most: 2,
    warm_up: Duration::from_millis(150),
    connection_rounds: 1,
    connections: &[1, 64],
    scale_rounds: 2,
    stream_rounds: 1,
    mixed_rounds: 2,
    mixed_secs: 2,
    organisations: databases::ORGANISATIONS_QUICK,
};

impl Pace {
    /// How long a timing lasts at a rate.
    fn secs_at(&self, rate: f64) -> u32 {
        ((self.answers / rate).ceil() as u32).clamp(self.secs, self.secs_most)
    }
}

impl Plan {
    fn new(wish: &Wish) -> Self {
        let all =
            |given: &[Contender]| if given.is_empty() { Contender::value_variants() } else { given }.to_vec();
        let works = if wish.work.is_empty() { Work::value_variants() } else { &wish.work }.to_vec();
        let mut contenders = all(&wish.only);
        contenders.sort_unstable();
        contenders.dedup();
        Self { contenders, works, pace: if wish.quick { QUICK } else { WHOLE } }
    }

    fn has(&self, contender: Contender) -> bool {
        self.contenders.contains(&contender)
    }

    fn wants(&self, work: Work) -> bool {
        self.works.contains(&work)
    }

    /// Refuses a plan of which nobody does anything, before anything is made for it.
    fn require_something(&self) -> Result<()> {
        let does = |contender: &Contender| self.works.iter().any(|work| contender.can(*work));
        let is_ours = |work: &Work| matches!(work, Work::Scale | Work::Mixed | Work::Pull);
        let has_some = self.has(Contender::Batchscan) || self.works.iter().any(|work| !is_ours(work));
        if has_some && self.contenders.iter().any(does) {
            return Ok(());
        }
        bail!("none of these contenders does any of these works");
    }

    /// Whether a million batches of one organisation are needed.
    fn needs_large(&self) -> bool {
        !self.pace.is_quick && [Work::Scale, Work::V1, Work::Pull].iter().any(|work| self.wants(*work))
    }

    /// Whether many organisations are needed.
    fn needs_many(&self) -> bool {
        [Work::Scale, Work::Mixed].iter().any(|work| self.wants(*work))
    }
}

/// `cargo xtask bench`.
pub(crate) fn run(workspace: &Workspace, wish: &Wish) -> Result<()> {
    let plan = Plan::new(wish);
    plan.require_something()?;
    // What would be lost at the end of a long run is looked at before its beginning.
    let folder = wish.folder(workspace)?;
    make_room(&folder)?;
    let _alone = alone(workspace)?;
    cores::Cores::choose()?;
    install::run_for_bench()?;
    let executable = wish.built.executable(workspace)?;
    let stock = Stock::make(workspace, &plan, executable)?;
    let clock = Clock(Instant::now());
    println!("== everything stands ready");
    let results = measure(&stock, &plan, &clock)?;
    let charts = charts::all(&results);
    let machine = Machine::describe(&stock);
    let document = report::document(&results, &machine, &plan, &wish.command(), &charts);
    if plan.pace.is_quick {
        println!("\n{document}");
    }
    write(&folder, &document, &charts)?;
    stock.clear()?;
    clock.tell(&format!("{} is written", folder.join("RESULTS.md").display()));
    Ok(())
}

/// All timings, on cores of their own.
fn measure(stock: &Stock, plan: &Plan, clock: &Clock) -> Result<Results> {
    let mut results = Results::default();
    stock.cores.load_side(std::process::id())?;
    if let Some(pid) = stock.postgres.as_ref().and_then(batchscan_testbed::Postgres::pid) {
        stock.cores.load_side(pid)?;
    }
    rounds::requests(stock, plan, &mut results.figures)?;
    clock.tell("requests are timed");
    if plan.wants(Work::Connections) {
        rounds::connections(stock, plan, &mut results.by_connections)?;
        clock.tell("connections are timed");
    }
    if plan.has(Contender::Batchscan) && plan.wants(Work::Scale) {
        scale::run(stock, plan, &mut results.figures)?;
        clock.tell("scale is timed");
    }
    if plan.wants(Work::V1) {
        streams::run(stock, plan, &mut results.streams)?;
        clock.tell("v1 is timed");
    }
    if plan.has(Contender::Batchscan) && plan.wants(Work::Mixed) {
        results.mixed = mixed::run(stock, plan)?;
        clock.tell("the mixed load is timed");
    }
    if plan.wants(Work::Import) || plan.wants(Work::Pull) {
        results.bulk = bulk::run(stock, plan)?;
        clock.tell("imports and pulls are timed");
    }
    Ok(results)
}

/// Sees to it that no other benchmark of this tree runs, for as long as the file is held: two would time each other.
fn alone(workspace: &Workspace) -> Result<File> {
    let path = workspace.scratch_file("bench.lock")?;
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!("another benchmark is running: wait for its end, or stop it"),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

/// Makes the folder, and shows that it can be written to.
fn make_room(folder: &Path) -> Result<()> {
    let (pictures, probe) = (folder.join("charts"), folder.join("charts/probe"));
    fs::create_dir_all(&pictures)
        .and_then(|()| fs::write(&probe, ""))
        .and_then(|()| fs::remove_file(&probe))
        .with_context(|| format!("cannot write to {}", pictures.display()))
}

/// Writes the results in the place of those before.
fn write(folder: &Path, document: &str, charts: &[(&str, String)]) -> Result<()> {
    let pictures = folder.join("charts");
    for old in fs::read_dir(&pictures)?.filter_map(Result::ok).map(|entry| entry.path()) {
        if old.extension().is_some_and(|ending| ending == "svg") {
            fs::remove_file(old)?;
        }
    }
    fs::write(folder.join("RESULTS.md"), document).context("cannot write the results")?;
    for (name, chart) in charts {
        fs::write(pictures.join(name), chart).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}

/// How long a run has taken so far, without builds and installations.
struct Clock(Instant);

impl Clock {
    fn tell(&self, what: &str) {
        println!("== {what} after {:.0} s", self.0.elapsed().as_secs_f64());
    }
}

impl Wish {
    /// Where the results go. Part of a run is no result for the tree.
    fn folder(&self, workspace: &Workspace) -> Result<PathBuf> {
        let is_of_tree = self.built == Built::default();
        let is_whole = is_of_tree && !self.quick && self.only.is_empty() && self.work.is_empty();
        match &self.out {
            Some(folder) => Ok(folder.clone()),
            None if is_whole => Ok(workspace.root.join("bench")),
            None => workspace.scratch_file("bench"),
        }
    }

    /// The command as it was given, without what only says where files are.
    fn command(&self) -> String {
        let list = |flag: &str, names: Vec<String>| {
            if names.is_empty() { String::new() } else { format!(" {flag} {}", names.join(",")) }
        };
        format!(
            "cargo xtask bench{}{}{}",
            if self.quick { " --quick" } else { "" },
            list("--only", self.only.iter().map(|contender| contender.name()).collect()),
            list("--work", self.work.iter().map(|work| work.name()).collect()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_contender_is_timed_longer_but_not_for_ever() {
        assert_eq!([10_000.0, 60.0, 40.0, 1.0].map(|rate| WHOLE.secs_at(rate)), [3, 5, 7, 8]);
        assert_eq!([10_000.0, 60.0, 1.0].map(|rate| QUICK.secs_at(rate)), [1, 2, 2]);
    }

    #[test]
    fn part_of_a_run_says_so_and_is_no_result_for_the_tree() {
        let whole = Wish { quick: false, only: vec![], work: vec![], out: None, built: Built::default() };
        assert_eq!(whole.command(), "cargo xtask bench");
        let part = Wish { only: vec![Contender::Nginx], work: vec![Work::V1], quick: true, ..whole };
        assert_eq!(part.command(), "cargo xtask bench --quick --only nginx --work v1");
        let plan = Plan::new(&part);
        assert!(plan.has(Contender::Nginx) && !plan.has(Contender::Batchscan) && !plan.needs_large());
    }
}
