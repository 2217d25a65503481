//! Everyone else's clients: real libraries, unmodified and with their defaults, against the real service.
//!
//! | module | owns |
//! |---|---|
//! | [`homes`] | where Python and Node packages live, pinned and made once |
//! | [`matrix`] | running the programs of `clients/matrix`, and what they report |
//! | [`table`] | the table of `docs/CLIENTS.md`: written, or held against what was seen |
//! | [`recipe`] | which blocks of a recipe are saved and run |
//! | [`kitchen`] | saving and running them |
//! | [`openapi`] | the OpenAPI document against the service: made-up requests, a generated client, a browser on `/docs` |
//! | [`package`] | the tests and types of our own Python package |
//! | [`bounded`] | a program that must end within a limit |
//! | [`service`] | the service that all of them ask, and what it holds |
//!
//! Judges by what the programs say and leave behind; knows no library itself.

use std::path::Path;

use anyhow::{Result, anyhow};
use clap::Args;

use crate::cluster::Built;
use crate::demo::Demo;
use crate::workspace::Workspace;

mod bounded;
pub(crate) mod homes;
mod kitchen;
mod matrix;
mod openapi;
mod package;
mod recipe;
mod service;
mod table;

use homes::Homes;
use service::Service;

/// Three full pages of v2.
const BATCHES: u32 = 3_000;

/// The same requests are made up in every run, so that a change is what makes it fail. Others: `--seed`.
const SEED: u64 = 1;

/// What a developer asks for.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Wish {
    #[command(flatten)]
    built: Built,
    /// Write the table of docs/CLIENTS.md anew, instead of failing where it differs
    #[arg(long)]
    write: bool,
    /// Which requests to make up from the OpenAPI document
    #[arg(long, default_value_t = SEED)]
    seed: u64,
}

/// `cargo xtask clients`.
pub(crate) fn run(workspace: &Workspace, wish: &Wish) -> Result<()> {
    judge(workspace, &wish.built.executable(workspace)?, wish.write, wish.seed)
}

/// The step of `cargo xtask test`, which has built the executable.
pub(crate) fn run_step(workspace: &Workspace) -> Result<()> {
    judge(workspace, &workspace.release_executable("batchscan")?, false, SEED)
}

fn judge(workspace: &Workspace, executable: &Path, write: bool, seed: u64) -> Result<()> {
    let homes = Homes::make(workspace)?;
    let mut demo = Demo::of(executable, BATCHES, workspace.scratch_file("clients.log")?)?;
    let outcome = demo.greeting().and_then(|greeting| {
        let service = Service::of(greeting, workspace)?;
        let mut rows = matrix::run(workspace, &homes, &service)?;
        rows.extend(matrix::run_in_rust(workspace, executable)?);
        table::settle(workspace, &rows, write)?;
        kitchen::run(workspace, &homes, &service)?;
        openapi::run(workspace, &homes, &service, seed)?;
        demo.end()
    });
    outcome.map_err(|error| anyhow!("{error:#}\n{}", demo.log_tail()))?;
    package::run(workspace, &homes, executable)
}
