//! `batchscan completions`.

use clap::CommandFactory;

use crate::args::{Cli, Completions};
use crate::terminal::print;

pub(crate) fn run(command: &Completions) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut Cli::command(), "batchscan", &mut script);
    print(&String::from_utf8_lossy(&script))
}
