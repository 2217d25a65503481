//! `batchscan man`, which is not shown in the help.

use anyhow::Context;
use clap::CommandFactory;

use crate::args::{Cli, Man};

pub(crate) fn run(command: &Man) -> anyhow::Result<()> {
    let folder = &command.folder;
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("cannot write to {}", folder.display()))
}
