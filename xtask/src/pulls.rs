//! Holds what `batchscan pull` makes against the service's own answer, and its speed against a Python loop.
//!
//! The judges are the programs of `clients/proof`: they read files with libraries that are not ours.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow};
use clap::Args;

use crate::clients::homes;
use crate::cluster::Built;
use crate::demo::Demo;
use crate::process;
use crate::workspace::Workspace;

/// The programs.
const PROOF: &str = "clients/proof";
/// Ten pages, of which some fail once or twice: the waits of 3 to 5 seconds are most of the step's time.
const STEP: Proof = Proof { batches: 10_000, fail_rate: 0.3 };

/// What a developer asks for.
#[derive(Args, Clone, Debug)]
pub(crate) struct Wish {
    #[command(flatten)]
    built: Built,
    /// How many batches the service has
    #[arg(long, default_value_t = 200_000)]
    batches: u32,
    /// The share of batch requests that it answers with 503
    #[arg(long, default_value_t = 0.3)]
    fail_rate: f64,
}

/// What a developer asks for.
#[derive(Args, Clone, Debug)]
pub(crate) struct RaceWish {
    #[command(flatten)]
    built: Built,
    /// How many batches the service has
    #[arg(long, default_value_t = 1_000_000)]
    batches: u32,
    /// How often to run each of the two, in turn
    #[arg(long, default_value_t = 3)]
    rounds: u32,
}

struct Proof {
    batches: u32,
    fail_rate: f64,
}

/// `cargo xtask pulls`.
pub(crate) fn run(workspace: &Workspace, wish: &Wish) -> Result<()> {
    let proof = Proof { batches: wish.batches, fail_rate: wish.fail_rate };
    compare(workspace, &wish.built.executable(workspace)?, &proof)
}

/// The step of `cargo xtask test`, which has built the executable.
pub(crate) fn run_step(workspace: &Workspace) -> Result<()> {
    compare(workspace, &workspace.release_executable("batchscan")?, &STEP)
}

/// `cargo xtask race`.
pub(crate) fn race(workspace: &Workspace, wish: &RaceWish) -> Result<()> {
    let executable = wish.built.executable(workspace)?;
    let proof = Proof { batches: wish.batches, fail_rate: 0.0 };
    judge(workspace, &executable, &proof, "race.py", &["--rounds", &wish.rounds.to_string()])
}

fn compare(workspace: &Workspace, executable: &Path, proof: &Proof) -> Result<()> {
    judge(workspace, executable, proof, "pulls.py", &[])
}

/// Runs a program of the proof against a demo of its own, in an empty folder that goes afterwards.
fn judge(
    workspace: &Workspace,
    executable: &Path,
    proof: &Proof,
    program: &str,
    flags: &[&str],
) -> Result<()> {
    let python = homes::data_python(workspace)?;
    // A folder for each program: one may run beside the other.
    let folder = workspace.scratch_file(&format!("{program}.files"))?;
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let log = workspace.scratch_file(&format!("{program}.log"))?;
    let mut demo = Demo::failing(executable, proof.batches, proof.fail_rate, log)?;
    let outcome = demo.greeting().and_then(|greeting| {
        let mut command = Command::new(&python);
        process::without_settings(&mut command);
        command
            .arg(workspace.root.join(PROOF).join(program))
            .arg("--executable")
            .arg(executable)
            .arg("--folder")
            .arg(&folder)
            .args(flags)
            .env("BATCHSCAN_URL", &greeting.url)
            .env("BATCHSCAN_CLIENT_ID", &greeting.client_id)
            .env("BATCHSCAN_CLIENT_SECRET", &greeting.client_secret)
            .env("NO_PROXY", "127.0.0.1")
            .env("PYTHONDONTWRITEBYTECODE", "1");
        process::run(&mut command)?;
        demo.end()
    });
    outcome.map_err(|error| anyhow!("{error:#}\n{}", demo.log_tail()))?;
    std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}
