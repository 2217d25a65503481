//! The command line. Connection settings, and the settings of processes that run for long, have a `BATCHSCAN_*`
//! variable; what belongs to one call does not.

mod database;
mod defaults;
mod operator;
pub(crate) mod settings;
mod user;
mod values;
mod variables;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::error::ContextKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use crate::terminal::{exit_with_usage_error, set_json_errors};

pub(crate) use database::{DatabaseArg, MirrorOutput};
pub(crate) use operator::{
    Audit, Backup, Batch, BatchCommand, CopyDatabase, Credential, CredentialCommand, Demo, Doctor, Import,
    Imports, Key, KeyCommand, LinkOptions, LogFormat, Operator, OperatorCommand, Org, OrgCommand, Restore,
    Serve, Session, SessionCommand, Status, TokenCommand, Watch,
};
pub(crate) use user::{
    Check, ColumnsArgs, Connection, DateRangeArgs, List, Login, Logout, Mirror, Openapi, Pull, SUMMARY_START,
    Summary,
};
pub(crate) use values::{ZoneOrNone, parse_url};
pub(crate) use variables::unknown_variables;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default());

/// Serve tray scan results over an HTTP API, operate the service, and download the data.
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

Exit status: 0 success, 1 failure, 2 usage error.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses the command line. Exits with a message if it is wrong.
    pub(crate) fn from_command_line() -> Self {
        set_json_errors(logs_json(std::env::args_os()));
        let matches = settings::apply(Cli::command()).try_get_matches();
        let matches = matches.unwrap_or_else(|error| exit_with_usage_error(&suggest_command(error)));
        if has_unused_link_option(&matches) {
            let error = usage_error("credential", "--link-valid and --public-url require --link");
            exit_with_usage_error(&error);
        }
        let cli = Self::from_arg_matches(&matches);
        let mut cli = cli.unwrap_or_else(|error| exit_with_usage_error(&error));
        if let Some((_, matches)) = matches.subcommand()
            && let Some(connection) = cli.command.connection()
        {
            connection.prefer_named_profile(matches);
        }
        cli
    }
}

/// Names `pull` for what other programs call export or download.
fn suggest_command(error: clap::Error) -> clap::Error {
    let invalid = error.get(ContextKind::InvalidSubcommand).map(ToString::to_string);
    match invalid.as_deref() {
        Some(name @ ("export" | "download" | "get" | "fetch")) => {
            let text = format!("unrecognized subcommand '{name}'; `batchscan pull` writes batches to a file");
            Cli::command().error(clap::error::ErrorKind::InvalidSubcommand, text)
        }
        _ => error,
    }
}

/// Whether `credential issue` has options of links without `--link`. BATCHSCAN_PUBLIC_URL may be set for other commands,
/// so clap's `requires` would reject too much.
fn has_unused_link_option(matches: &ArgMatches) -> bool {
    let credential = matches.subcommand_matches("credential");
    let Some(issue) = credential.and_then(|matches| matches.subcommand_matches("issue")) else {
        return false;
    };
    let is_given = |id: &str| issue.value_source(id) == Some(ValueSource::CommandLine);
    !issue.get_flag("link") && (is_given("link_valid") || is_given("public_url"))
}

/// Whether the command line is that of a `serve` or `watch` with JSON log lines, even if the rest of it is wrong.
fn logs_json(args: impl Iterator<Item = OsString>) -> bool {
    let mut args = args.skip(1);
    if args.next().is_none_or(|command| command != "serve" && command != "watch") {
        return false;
    }
    let mut format = std::env::var_os("BATCHSCAN_LOG_FORMAT");
    while let Some(arg) = args.next() {
        if arg == "--log-format" {
            format = args.next();
        } else if let Some(value) = arg.to_str().and_then(|arg| arg.strip_prefix("--log-format=")) {
            format = Some(value.into());
        }
    }
    format.is_some_and(|format| format == "json")
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
    Status(Status),
    Org(Org),
    Credential(Credential),
    Session(Session),
    Import(Import),
    Imports(Imports),
    Watch(Watch),
    Batch(Batch),
    Backup(Backup),
    Restore(Restore),
    Copy(CopyDatabase),
    Doctor(Doctor),
    Key(Key),
    Operator(Operator),
    Audit(Audit),
    Pull(Box<Pull>),
    Mirror(Mirror),
    List(List),
    Summary(Summary),
    Login(Login),
    Logout(Logout),
    Check(Check),
    Openapi(Openapi),
    Completions(Completions),
    #[command(hide = true)]
    ManPages(ManPages),
}

impl Command {
    /// The connection of a command that can use a saved profile.
    fn connection(&mut self) -> Option<&mut Connection> {
        match self {
            Command::Pull(pull) => Some(&mut pull.connection),
            Command::Mirror(mirror) => Some(&mut mirror.connection),
            Command::List(list) => Some(&mut list.connection),
            Command::Summary(summary) => Some(&mut summary.connection),
            Command::Check(check) => Some(&mut check.connection),
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

/// Write the manual pages, for packages
#[derive(Debug, Args)]
pub(crate) struct ManPages {
    /// An existing folder
    pub(crate) folder: PathBuf,
}
