//! `batchscan completions` and `batchscan man-pages`.

use clap::CommandFactory;

use crate::args::{Cli, Completions, ManPages};
use crate::terminal::print;

pub(crate) fn run(command: &Completions) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut Cli::command(), "batchscan", &mut script);
    print(&String::from_utf8_lossy(&script))
}

pub(crate) fn write_man_pages(command: &ManPages) -> anyhow::Result<()> {
    Ok(clap_mangen::generate_to(Cli::command(), &command.folder)?)
}
