//! The command line as typed. Every flag has its `BATCHSCAN_*` variable.

mod operator;
mod user;

use batchscan_store::{DatabaseUrl, DatabaseUrlError};
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use operator::{
    Backup, CopyDatabase, Credential, Demo, Doctor, Import, Key, LogFormat, Org, ReadFromArg, Serve,
};
pub(crate) use user::{Check, Connection, List, Login, Logout, Openapi, Pull, Separator, Summary};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default());

/// Serves what tray scanners measured, lets an operator run that service and a user pull the data out.
///
/// Try it: `batchscan demo` starts a service with a year of made-up data and prints how to use it.
#[derive(Debug, Parser)]
#[command(name = "batchscan", version, styles = STYLES, max_term_width = 100, after_help = "\
For users:
  batchscan login --url https://scans.example.org     keep the credentials you were given,
  batchscan pull --start-date 30d -o batches.xlsx     and have the last month in Excel

For operators:
  batchscan demo                                      a service with demo data
  batchscan org add \"Green Valley\"                    begin with an organisation,
  batchscan import --org \"Green Valley\" scans.csv     its batches,
  batchscan credential issue --org \"Green Valley\"     a client's credentials,
  batchscan serve                                     and serve them

Exit status: 0 done, 1 failed, 2 wrong usage.")]
pub(crate) struct Cli {
    /// The database: sqlite:PATH or postgres://USER@HOST:PORT,HOST:PORT/DATABASE
    #[arg(
        long,
        global = true,
        env = "BATCHSCAN_DATABASE",
        hide_env_values = true,
        value_name = "URL",
        default_value = "sqlite:batchscan.db"
    )]
    pub(crate) database: DatabaseText,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Reads the command line, or says what is wrong with it and ends.
    pub(crate) fn read() -> Self {
        let typed = Cli::command().get_matches();
        let mut cli = Self::from_arg_matches(&typed).unwrap_or_else(|error| error.exit());
        if let Some((_, typed)) = typed.subcommand()
            && let Some(connection) = cli.command.connection()
        {
            connection.prefer_named_profile(typed);
        }
        cli
    }
}

/// A usage error of a command that only shows once its arguments are put together.
pub(crate) fn misuse(command: &str, text: impl std::fmt::Display) -> clap::Error {
    let mut cli = Cli::command();
    // Only then do commands know their own usage lines.
    cli.build();
    let kind = clap::error::ErrorKind::ValueValidation;
    match cli.find_subcommand_mut(command) {
        Some(command) => command.error(kind, text),
        None => Cli::command().error(kind, text),
    }
}

/// A database URL as typed. Read only after the arguments were: a message of clap's would repeat it, password and all.
#[derive(Clone)]
pub(crate) struct DatabaseText(String);

impl DatabaseText {
    /// What it names; a usage error of that flag if it names nothing.
    pub(crate) fn read(&self, flag: &str) -> Result<DatabaseUrl, clap::Error> {
        self.0.parse().map_err(|error: DatabaseUrlError| {
            misuse("", format!("invalid value for '{flag} <URL>': {error}"))
        })
    }
}

impl From<&str> for DatabaseText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl std::fmt::Debug for DatabaseText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DatabaseText")
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a demo nursery on a temporary database
    Demo(Demo),
    /// Serve the interface
    Serve(Box<Serve>),
    /// Add, list, rename and remove organisations
    #[command(subcommand)]
    Org(Org),
    /// Issue, list, rotate and revoke credentials
    #[command(subcommand)]
    Credential(Credential),
    /// Import batches from NDJSON, JSON, CSV or Parquet files
    Import(Import),
    /// Copy the whole database to a file, also while it is in use
    Backup(Backup),
    /// Copy everything from one database into another, of either kind
    Copy(CopyDatabase),
    /// Examine the database for damage
    Doctor(Doctor),
    /// List and rotate the keys that sign tokens and seal cursors
    #[command(subcommand)]
    Key(Key),
    /// Pull batches out of a service into a file: CSV, Excel, Parquet, JSON
    Pull(Box<Pull>),
    /// List the latest batches of a service
    List(List),
    /// Sum up a service's batches by crop and week
    Summary(Summary),
    /// Keep the address and credentials of a service under a name
    Login(Login),
    /// Forget what `login` kept
    Logout(Logout),
    /// Check any deployment of the interface for conformance
    Check(Check),
    /// Print the interface as an OpenAPI document
    Openapi(Openapi),
    /// Print completions for a shell
    Completions(Completions),
}

impl Command {
    /// The connection of a command that asks a service by what `login` may have kept.
    fn connection(&mut self) -> Option<&mut Connection> {
        match self {
            Command::Pull(pull) => Some(&mut pull.connection),
            Command::List(list) => Some(&mut list.connection),
            Command::Summary(summary) => Some(&mut summary.connection),
            _ => None,
        }
    }
}

/// Print completions for a shell.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  batchscan completions bash > ~/.local/share/bash-completion/completions/batchscan")]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}
