//! Arguments of the user's commands: get batches from a service.

use std::path::PathBuf;
use std::time::Duration;

use batchscan_formats::Format;
use batchscan_formats::write::CsvStyle;
use batchscan_model::Field;
use clap::builder::BoolishValueParser;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args};

use super::database::{FileParser, MirrorOutput, MirrorOutputParser};
use super::values::{
    excel_parser, field_parser, format_parser, parse_crop, parse_duration, parse_end_date, parse_public_url,
    parse_start_date, parse_url, whole_number,
};
use crate::date_range::DateArg;
use crate::profiles::{DEFAULT_NAME, ProfileName};
use crate::selection::Selection;

/// The service and the credentials. Missing values come from the profile.
#[derive(Clone, Debug, Args)]
pub(crate) struct Connection {
    /// Address of the service [default: from the profile]
    #[arg(long, env = "BATCHSCAN_URL", value_name = "URL", value_parser = parse_url)]
    pub(crate) url: Option<String>,
    /// Client id [default: from the profile]
    #[arg(long, env = "BATCHSCAN_CLIENT_ID", value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// File with the client secret; - is standard input [default: BATCHSCAN_CLIENT_SECRET, the profile, or a prompt]
    #[arg(long, env = "BATCHSCAN_CLIENT_SECRET_FILE", value_name = "FILE")]
    pub(crate) client_secret_file: Option<PathBuf>,
    /// Profile saved by `batchscan login`
    #[arg(long, env = "BATCHSCAN_PROFILE", value_name = "NAME", default_value = DEFAULT_NAME, value_parser = ProfileName::parse)]
    pub(crate) profile: ProfileName,
    /// Certificates (PEM) to trust in addition to the system's [default: from the profile]
    #[arg(long, env = "BATCHSCAN_CA_CERT", value_name = "FILE")]
    pub(crate) ca_cert: Option<PathBuf>,
    /// How long to retry each page while the service is unreachable [default: 2m]
    #[arg(long, env = "BATCHSCAN_RETRY_FOR", value_name = "TIME", value_parser = parse_duration)]
    pub(crate) retry_for: Option<Duration>,
    /// Whether `--profile` is on the command line. Then it overrides the environment.
    #[arg(skip)]
    pub(crate) is_profile_named: bool,
}

impl Connection {
    /// A profile on the command line overrides an address and credentials in the environment.
    pub(super) fn prefer_named_profile(&mut self, matches: &ArgMatches) {
        let is_from = |name: &str, source| matches.value_source(name) == Some(source);
        self.is_profile_named = is_from("profile", ValueSource::CommandLine);
        let is_overridden = |name: &str| self.is_profile_named && is_from(name, ValueSource::EnvVariable);
        if is_overridden("url") {
            self.url = None;
        }
        if is_overridden("client_id") {
            self.client_id = None;
        }
        if is_overridden("client_secret_file") {
            self.client_secret_file = None;
        }
    }
}

/// Which batches, by creation date, both ends inclusive.
#[derive(Clone, Debug, Args)]
pub(crate) struct DateRangeArgs {
    /// First date (UTC): 2026-01-31, 2026-01, 2026, today, yesterday, 30d, 12w, 6m, 1y, now or 2026-01-31T08:00:00Z
    #[arg(long, value_name = "DATE", allow_hyphen_values = true, value_parser = parse_start_date)]
    pub(crate) start_date: Option<DateArg>,
    /// Last date (UTC), in the same formats; includes the whole day, month or year
    #[arg(long, value_name = "DATE", allow_hyphen_values = true, value_parser = parse_end_date)]
    pub(crate) end_date: Option<DateArg>,
}

/// Which of these batches.
#[derive(Clone, Debug, Args)]
pub(crate) struct SelectionArgs {
    /// Only batches whose crop contains this name, ignoring case; can be repeated
    #[arg(long = "crop", value_name = "NAME", value_parser = parse_crop)]
    crops: Vec<String>,
    /// Only batches with warnings
    #[arg(long)]
    warnings: bool,
}

impl SelectionArgs {
    pub(crate) fn selection(&self) -> Selection {
        Selection::new(&self.crops, self.warnings)
    }
}

/// Which fields of a batch.
#[derive(Clone, Debug, Args)]
pub(crate) struct ColumnsArgs {
    /// Only these fields, in this order [default: all]
    #[arg(long, value_name = "FIELDS", value_delimiter = ',', value_parser = field_parser())]
    pub(crate) columns: Vec<Field>,
}

/// Download batches into a file: CSV, Excel, Parquet or JSON
///
/// Writes all batches of the date range or fails: the file gets its name only when it is complete. Temporary errors of
/// the service are retried.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan pull -o batches.xlsx                               all batches, for Excel
  batchscan pull --start-date 2026-01 --end-date 2026-03 -o spring.parquet
  batchscan pull --crop leek --columns batch_name,avg_germination_rate -o leek.csv
  batchscan pull --start-date 30d --if-changed -o last-month.csv     every hour, from a timer
  batchscan pull --start-date yesterday --format ndjson -o - | jq .batch_name

The secret is never an argument, because other users could see it. Use BATCHSCAN_CLIENT_SECRET,
--client-secret-file, `batchscan login`, or type it when prompted.")]
pub(crate) struct Pull {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    pub(crate) dates: DateRangeArgs,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    #[command(flatten)]
    pub(crate) columns: ColumnsArgs,
    /// File to write; - is standard output
    #[arg(long, short, value_name = "FILE", value_parser = FileParser)]
    pub(crate) output: PathBuf,
    /// File format [default: by file extension]
    #[arg(long, value_name = "FORMAT", value_parser = format_parser(&Format::ALL))]
    pub(crate) format: Option<Format>,
    /// Write CSV that opens directly in Excel: with semicolons and decimal commas, or with commas and decimal points.
    /// Text that looks like a formula is escaped
    #[arg(long, value_name = "SEPARATOR", num_args = 0..=1,
          default_missing_value = "semicolon", value_parser = excel_parser())]
    pub(crate) excel: Option<CsvStyle>,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Do nothing if the data has not changed since the last pull with this flag; otherwise replace that file
    #[arg(long)]
    pub(crate) if_changed: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const MIRROR_RETRY_FOR_HELP: &str =
    "How long to retry each page while the service is unreachable [default: 2m; with --follow until stopped]";

/// Keep a copy of all batches in a database up to date
///
/// Reads everything the first time, and later only what is new, corrected or removed. The table `batches` has the fields
/// of the API. Each part is written in one transaction together with the position in the changes, so the command can be
/// stopped at any moment and continues with the next run. The target must be new, or a mirror of the same service and
/// organisation.
#[derive(Debug, Args)]
#[command(mut_arg("retry_for", |arg| arg.help(MIRROR_RETRY_FOR_HELP)), after_help = "\
Examples:
  batchscan mirror -o batches.db
  batchscan mirror -o postgres://ann@db.example.org/farm --follow
  batchscan mirror -o - --since \"$position\" > changes.ndjson

The lines of -o - are {\"batch\":…}, {\"removed\":\"ID\"} and, after the changes up to a position,
{\"since\":\"…\"}.")]
pub(crate) struct Mirror {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// SQLite file, postgres://USER@HOST:PORT/DATABASE, or - for lines of JSON on standard output
    #[arg(long, short, env = "BATCHSCAN_OUTPUT", hide_env_values = true, value_name = "TARGET", value_parser = MirrorOutputParser)]
    pub(crate) output: MirrorOutput,
    /// Continue after this position; only for -o -
    #[arg(long, value_name = "POSITION", allow_hyphen_values = true)]
    pub(crate) since: Option<String>,
    /// Wait for changes until stopped
    #[arg(long, env = "BATCHSCAN_FOLLOW", value_parser = BoolishValueParser::new())]
    pub(crate) follow: bool,
}

/// List the latest batches of a service, newest first
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan list
  batchscan list --limit 50 --end-date 2026-01-31
  batchscan list --warnings --columns batch_name,scanned_by_email,comment
  batchscan list --json | jq '.[0].batch_name'")]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    pub(crate) dates: DateRangeArgs,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    #[command(flatten)]
    pub(crate) columns: ColumnsArgs,
    /// Number of batches, from 1 to 10000
    #[arg(long, short = 'n', value_name = "N", default_value = "20", value_parser = whole_number(1..=10_000_usize))]
    pub(crate) limit: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The default start of a summary: a season.
pub(crate) const SUMMARY_START: &str = "12w";

/// Summarise the batches of a service by crop and week
///
/// Covers the last 12 weeks unless --start-date is given. For each crop and ISO week (UTC): number of batches, mean germination and usable rates with their spread (sample
/// standard deviation), and number of batches with warnings.
#[derive(Debug, Args)]
#[command(mut_arg("start_date", |arg| arg.default_value(SUMMARY_START)), after_help = "\
Examples:
  batchscan summary
  batchscan summary --crop leek --start-date 1y -o leek.xlsx
  batchscan summary --start-date 2026-01 --end-date 2026-06 --json")]
pub(crate) struct Summary {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    pub(crate) dates: DateRangeArgs,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// File to write, .xlsx or .csv [default: a table on standard output]
    #[arg(long, short, value_name = "FILE", value_parser = FileParser, conflicts_with = "json")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Save the URL and credentials of a service as a profile
///
/// Prompts for missing values, signs in to check them, and saves them in the user's config folder, in a file that only
/// the user can read. `pull`, `mirror`, `list`, `summary` and `check` then use the profile: the one named with --profile, or `default`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan login --url https://scans.example.org --client-id bs_…
  batchscan login --profile north --url https://north.example.org --client-id bs_… \\
    --client-secret-file secret.txt
  batchscan login --list")]
pub(crate) struct Login {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// List saved profiles (no secrets)
    #[arg(long)]
    pub(crate) list: bool,
}

/// Remove a saved login
#[derive(Debug, Args)]
pub(crate) struct Logout {
    /// Profile to remove
    #[arg(long, env = "BATCHSCAN_PROFILE", value_name = "NAME", default_value = DEFAULT_NAME, value_parser = ProfileName::parse)]
    pub(crate) profile: ProfileName,
}

/// Check any deployment of the API for conformance
///
/// Only reads, needs no special data, and sends a limited number of requests. The secret can also come from standard
/// input. Exit status 1 if a rule is violated.
#[derive(Debug, Args)]
#[command(mut_arg("retry_for", |arg| arg.hide(true)), after_help = "\
Examples:
  batchscan check                          the service of `batchscan login`
  BATCHSCAN_CLIENT_SECRET=… batchscan check https://scans.example.org --client-id bs_…")]
pub(crate) struct Check {
    /// Base URL of the deployment [default: --url]
    #[arg(value_name = "BASE_URL")]
    pub(crate) base_url: Option<String>,
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Also check batchscan's own decisions where the API contract is silent
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print the OpenAPI document of the API
///
/// OpenAPI 3.1 as JSON, for client generators and API tools. Needs no database and no service. A running service has
/// the same document at /openapi.json, and readable pages at /docs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan openapi > openapi.json
  batchscan openapi --operator > operator-openapi.json
  batchscan openapi --public-url https://scans.example.org | jq '.paths | keys'")]
pub(crate) struct Openapi {
    /// Address of the service, for generated clients [default: the address the document is fetched from]
    #[arg(long, env = "BATCHSCAN_PUBLIC_URL", value_name = "URL", value_parser = parse_public_url)]
    pub(crate) public_url: Option<String>,
    /// Print the document of the operator API instead
    #[arg(long)]
    pub(crate) operator: bool,
}
