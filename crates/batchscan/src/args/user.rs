//! The user's commands as typed: get at a service's batches, from anywhere.

use std::path::PathBuf;
use std::time::Duration;

use batchscan_server::clock::Clock;
use clap::builder::BoolishValueParser;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueEnum};

use super::misuse;
use crate::profiles::{DEFAULT_NAME, ProfileName};
use crate::units::{format_parser, parse_duration, parse_limit, parse_public_url, parse_url};
use crate::window::Window;
use batchscan_formats::Format;

/// Which service, and as whom. What is not given comes from the profile.
#[derive(Clone, Debug, Args)]
pub(crate) struct Connection {
    /// The address of the service [default: the profile's]
    #[arg(long, env = "BATCHSCAN_URL", value_name = "URL", value_parser = parse_url)]
    pub(crate) url: Option<String>,
    /// The client id you were given [default: the profile's]
    #[arg(long, env = "BATCHSCAN_CLIENT_ID", value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// A file with the client secret, - for standard input [default: BATCHSCAN_CLIENT_SECRET, the profile's, or asked for]
    #[arg(long, env = "BATCHSCAN_CLIENT_SECRET_FILE", value_name = "FILE")]
    pub(crate) client_secret_file: Option<PathBuf>,
    /// The profile that `batchscan login` keeps under this name
    #[arg(long, env = "BATCHSCAN_PROFILE", value_name = "NAME", default_value = DEFAULT_NAME, value_parser = ProfileName::parse)]
    pub(crate) profile: ProfileName,
    /// Certificates in PEM form to trust besides the system's
    #[arg(long, env = "BATCHSCAN_CA_CERT", value_name = "FILE")]
    pub(crate) ca_cert: Option<PathBuf>,
    /// How long to go on trying for one page when the service is away
    #[arg(long, env = "BATCHSCAN_RETRY_FOR", value_name = "TIME", default_value = "2m", value_parser = parse_duration)]
    pub(crate) retry_for: Duration,
    /// Whether the profile was named in so many words: then the environment does not speak for another service.
    #[arg(skip)]
    pub(crate) is_by_name: bool,
}

impl Connection {
    /// What the command line says counts before what the environment says, also where the two are different flags.
    pub(super) fn prefer_named_profile(&mut self, typed: &ArgMatches) {
        let is_from = |name: &str, source| typed.value_source(name) == Some(source);
        self.is_by_name = is_from("profile", ValueSource::CommandLine);
        let is_overruled = |name: &str| self.is_by_name && is_from(name, ValueSource::EnvVariable);
        if is_overruled("url") {
            self.url = None;
        }
        if is_overruled("client_id") {
            self.client_id = None;
        }
        if is_overruled("client_secret_file") {
            self.client_secret_file = None;
        }
    }
}

/// Which batches, by their creation date, both ends inclusive.
#[derive(Clone, Debug, Args)]
pub(crate) struct WindowArgs {
    /// From: 2026-01-31, 2026-01, 2026, today, yesterday, 30d, 12w, 6m, 1y, now or 2026-01-31T08:00:00Z, all in UTC
    #[arg(long, env = "BATCHSCAN_START_DATE", value_name = "DATE")]
    pub(crate) start_date: Option<String>,
    /// Up to, in the same forms; a day, month or year counts to its end
    #[arg(long, env = "BATCHSCAN_END_DATE", value_name = "DATE")]
    pub(crate) end_date: Option<String>,
}

impl WindowArgs {
    /// The window that was typed, or the usage error of that command, which ends the program.
    pub(crate) fn read(&self, command: &str) -> Window {
        read_window(command, self.start_date.as_deref(), self.end_date.as_deref())
    }
}

fn read_window(command: &str, start: Option<&str>, end: Option<&str>) -> Window {
    let window = Window::typed(start, end, Clock::system().now());
    window.unwrap_or_else(|error| misuse(command, error).exit())
}

/// Pull batches out of a service into a file.
///
/// All batches of the window, or a failure that says so: the file appears under its name only when it is whole. While
/// it grows it is called FILE.part; if the pull is cut off, the same command with --resume goes on from there. Passing
/// failures of the service are waited out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan pull -o batches.xlsx                               everything, for Excel
  batchscan pull --start-date 2026-01 --end-date 2026-03 -o spring.parquet
  batchscan pull --start-date 30d --if-changed -o last-month.csv     every hour, by a timer
  batchscan pull --start-date yesterday --format ndjson -o - | jq .batch_name

The secret is never an argument, where others could read it: BATCHSCAN_CLIENT_SECRET,
--client-secret-file, `batchscan login`, or typed when asked.")]
pub(crate) struct Pull {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    /// The file to make; - is standard output
    #[arg(long, short, env = "BATCHSCAN_OUTPUT", value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// What to make of the batches [default: by the file's ending]
    #[arg(long, env = "BATCHSCAN_FORMAT", value_name = "FORMAT", value_parser = format_parser(&Format::ALL))]
    pub(crate) format: Option<Format>,
    /// CSV that Excel opens by a double click: with semicolons and decimal commas, or with commas and points. No text
    /// in it can act as a formula
    #[arg(long, env = "BATCHSCAN_EXCEL", value_name = "SEPARATOR", num_args = 0..=1,
          default_missing_value = "semicolon")]
    pub(crate) excel: Option<Separator>,
    /// Go on with a pull that was cut off; begin if there is none
    #[arg(long, env = "BATCHSCAN_RESUME", value_parser = BoolishValueParser::new())]
    pub(crate) resume: bool,
    /// Replace the file if it exists
    #[arg(long, env = "BATCHSCAN_FORCE", value_parser = BoolishValueParser::new())]
    pub(crate) force: bool,
    /// Do nothing if nothing has changed since the last pull with this flag, else replace what that one made
    #[arg(long, env = "BATCHSCAN_IF_CHANGED", value_parser = BoolishValueParser::new())]
    pub(crate) if_changed: bool,
    /// Print the summary as JSON
    #[arg(long, env = "BATCHSCAN_JSON", value_parser = BoolishValueParser::new())]
    pub(crate) json: bool,
}

/// What stands between the cells of a CSV for Excel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Separator {
    Semicolon,
    Comma,
}

/// List the latest batches of a service.
///
/// Newest first, with a trend: the germination rates of the crop's last batches up to that one.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan list
  batchscan list --limit 50 --end-date 2026-01-31
  batchscan list --json | jq '.[0].batch_name'")]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    /// How many batches, from 1 to 10000
    #[arg(long, short = 'n', env = "BATCHSCAN_LIMIT", value_name = "N", default_value = "20", value_parser = parse_limit)]
    pub(crate) limit: usize,
    /// Print JSON
    #[arg(long, env = "BATCHSCAN_JSON", value_parser = BoolishValueParser::new())]
    pub(crate) json: bool,
}

/// Sum up a service's batches by crop and week.
///
/// For each crop and ISO week (in UTC): batches, mean germination and usable rates with their spread (the standard
/// deviation of a sample), batches with warnings.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan summary
  batchscan summary --start-date 2026-01 --end-date 2026-06 --json")]
pub(crate) struct Summary {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// From: 2026-01-31, 2026-01, 2026, today, yesterday, 30d, 12w, 6m, 1y, now or 2026-01-31T08:00:00Z, all in UTC
    #[arg(long, env = "BATCHSCAN_START_DATE", value_name = "DATE", default_value = "12w")]
    pub(crate) start_date: String,
    /// Up to, in the same forms; a day, month or year counts to its end
    #[arg(long, env = "BATCHSCAN_END_DATE", value_name = "DATE")]
    pub(crate) end_date: Option<String>,
    /// Print JSON
    #[arg(long, env = "BATCHSCAN_JSON", value_parser = BoolishValueParser::new())]
    pub(crate) json: bool,
}

impl Summary {
    /// The window that was typed, or a usage error, which ends the program.
    pub(crate) fn window(&self) -> Window {
        read_window("summary", Some(&self.start_date), self.end_date.as_deref())
    }
}

/// Keep the address and credentials of a service under a name.
///
/// Asks for what is not given, makes sure that the service takes it, and keeps it in the user's config folder, in a
/// file that nobody else can read. `pull`, `list` and `summary` then need no more than --profile, or nothing for the
/// profile called default.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan login --url https://scans.example.org --client-id bs_…
  batchscan login --profile north --url https://north.example.org --client-id bs_… --client-secret-file secret.txt
  batchscan login --list")]
pub(crate) struct Login {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// List the profiles, never their secrets
    #[arg(long, env = "BATCHSCAN_LIST", value_parser = BoolishValueParser::new())]
    pub(crate) list: bool,
}

/// Forget what `login` kept.
#[derive(Debug, Args)]
pub(crate) struct Logout {
    /// The profile to forget
    #[arg(long, env = "BATCHSCAN_PROFILE", value_name = "NAME", default_value = DEFAULT_NAME, value_parser = ProfileName::parse)]
    pub(crate) profile: ProfileName,
}

/// Check any deployment of the interface for conformance.
///
/// Only reads, needs no special data, and makes a bounded number of requests. The secret comes from
/// BATCHSCAN_CLIENT_SECRET or from standard input. Exit status 1 if a rule is broken.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  BATCHSCAN_CLIENT_SECRET=… batchscan check https://scans.example.org --client-id bs_…")]
pub(crate) struct Check {
    /// The base URL of the deployment
    pub(crate) url: String,
    /// The client id
    #[arg(long, env = "BATCHSCAN_CLIENT_ID", value_name = "ID")]
    pub(crate) client_id: String,
    /// Count what batchscan decided where the interface is silent, too
    #[arg(long, env = "BATCHSCAN_STRICT", value_parser = BoolishValueParser::new())]
    pub(crate) strict: bool,
    /// Print JSON
    #[arg(long, env = "BATCHSCAN_JSON", value_parser = BoolishValueParser::new())]
    pub(crate) json: bool,
}

/// Print the interface as an OpenAPI document.
///
/// OpenAPI 3.1, as JSON: what generators of clients and API tools read. Needs no database and no service; a running
/// service has the same at /openapi.json, and pages for people at /docs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan openapi > openapi.json
  batchscan openapi --public-url https://scans.example.org | jq '.paths | keys'")]
pub(crate) struct Openapi {
    /// The address of the service, for clients that are generated from it [default: where the document came from]
    #[arg(long, env = "BATCHSCAN_PUBLIC_URL", value_name = "URL", value_parser = parse_public_url)]
    pub(crate) public_url: Option<String>,
}
