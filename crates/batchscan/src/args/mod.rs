//! The command line. Settings have a `BATCHSCAN_*` variable; confirmations (`--yes`, `--force`, `--now`) do not.

mod database;
mod operator;
mod user;
mod values;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use database::DatabaseArg;
pub(crate) use operator::{
    Backup, CopyDatabase, Credential, CredentialCommand, Demo, Doctor, Import, Key, KeyCommand, LogFormat,
    Org, OrgCommand, Serve,
};
pub(crate) use user::{Check, Connection, DateRangeArgs, List, Login, Logout, Openapi, Pull, Summary};
pub(crate) use values::parse_url;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default());

/// Serve batch scan data over an API, operate that service, and get the data out.
///
/// To try it, run `batchscan demo`: it starts a service with one year of generated data and prints how to use it.
#[derive(Debug, Parser)]
#[command(name = "batchscan", version, styles = STYLES, max_term_width = 100, after_help = "\
For users:
  batchscan login --url https://scans.example.org     save your credentials
  batchscan pull --start-date 30d -o batches.xlsx     get the last 30 days as an Excel file

For operators:
  batchscan demo                                      try it with generated data
  batchscan org add \"Green Valley\"                    add an organisation
  batchscan import --org \"Green Valley\" scans.csv     import its batches
  batchscan credential issue --org \"Green Valley\"     issue credentials for a client
  batchscan serve                                     start the service

Exit status: 0 success, 1 failure, 2 wrong usage.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses the command line. Exits with a message if it is wrong.
    pub(crate) fn from_command_line() -> Self {
        let matches = Cli::command().get_matches();
        let mut cli = Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        if let Some((_, matches)) = matches.subcommand()
            && let Some(connection) = cli.command.connection()
        {
            connection.prefer_named_profile(matches);
        }
        cli
    }
}

/// A usage error that clap cannot detect, in clap's format.
pub(crate) fn usage_error(command: &str, text: impl std::fmt::Display) -> clap::Error {
    let mut cli = Cli::command();
    // Builds the subcommands' usage lines.
    cli.build();
    let kind = clap::error::ErrorKind::ValueValidation;
    match cli.find_subcommand_mut(command) {
        Some(command) => command.error(kind, text),
        None => Cli::command().error(kind, text),
    }
}

// The help texts are the doc comments of the structs: one on a variant would replace both the short and the long text.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(Demo),
    Serve(Box<Serve>),
    Org(Org),
    Credential(Credential),
    Import(Import),
    Backup(Backup),
    Copy(CopyDatabase),
    Doctor(Doctor),
    Key(Key),
    Pull(Box<Pull>),
    List(List),
    Summary(Summary),
    Login(Login),
    Logout(Logout),
    Check(Check),
    Openapi(Openapi),
    Completions(Completions),
}

impl Command {
    /// The connection of a command that can use a saved profile.
    fn connection(&mut self) -> Option<&mut Connection> {
        match self {
            Command::Pull(pull) => Some(&mut pull.connection),
            Command::List(list) => Some(&mut list.connection),
            Command::Summary(summary) => Some(&mut summary.connection),
            _ => None,
        }
    }
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  batchscan completions bash > ~/.local/share/bash-completion/completions/batchscan")]
pub(crate) struct Completions {
    /// Shell to generate the script for
    pub(crate) shell: Shell,
}
