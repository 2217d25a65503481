//! Arguments of the operator's commands: run the service, manage its data and credentials.

use std::path::PathBuf;
use std::time::Duration;

use batchscan_formats::Format;
use batchscan_model::{BatchId, UtcInstant, Zone};
use batchscan_server::config::{Network, Rate};
use batchscan_store::{DatabaseUrl, OperatorRole, OrgName, ReadFrom};
use clap::builder::{BoolishValueParser, NonEmptyStringValueParser};
use clap::{Args, Subcommand};

use super::database::{DatabaseArg, DatabaseUrlParser};
use super::defaults;
use super::values::ZoneOrNone;
use super::values::{
    format_parser, parse_address, parse_batch_id, parse_date, parse_duration, parse_expiry,
    parse_expiry_date, parse_label, parse_link_time, parse_org_name, parse_origin, parse_public_url,
    parse_rate, parse_share, parse_size, parse_start_date, parse_ttl, parse_url, parse_zone,
    parse_zone_or_none, read_from_parser, role_parser, whole_number,
};
use crate::date_range::DateArg;

/// Start a service with generated data, to try it out
///
/// Generates one year of plausible batches of several crops in a temporary database. Prints the address, credentials,
/// a link that opens the dashboard signed in, and curl commands to paste. Ctrl-C stops it and removes the data.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan demo
  batchscan demo --batches 200000 --fail-rate 0.3     test a client's paging and retries")]
pub(crate) struct Demo {
    /// Address to listen on; port 0 picks a free port
    #[arg(long, env = "BATCHSCAN_LISTEN", value_name = "HOST:PORT", default_value = defaults::LISTEN, value_parser = parse_address)]
    pub(crate) listen: String,
    /// Number of batches to generate
    #[arg(long, env = "BATCHSCAN_BATCHES", value_name = "N", default_value = "3000", value_parser = whole_number(0..=10_000_000_u64))]
    pub(crate) batches: u64,
    /// Seed of the random numbers: the same seed generates the same batches on the same day
    #[arg(long, env = "BATCHSCAN_SEED", value_name = "N", default_value_t = 1, value_parser = whole_number(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Share of batch requests that fail with 503, from 0 to 1
    #[arg(long, env = "BATCHSCAN_FAIL_RATE", value_name = "SHARE", default_value = "0", value_parser = parse_share)]
    pub(crate) fail_rate: f64,
}

/// Start the service
///
/// Prints `listening on URL` on standard output when it is ready, and one log line per request on standard error
/// (BATCHSCAN_LOG=debug logs more). On SIGTERM or Ctrl-C it stops accepting connections, finishes the responses in
/// progress and exits with 0.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan serve
  batchscan serve --listen 0.0.0.0:443 --tls-cert chain.pem --tls-key key.pem
  batchscan serve --operator-listen 10.0.0.5:9090 --rate-limit 600/m --log-format json")]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) database: DatabaseArg,
    /// Address to listen on; port 0 picks a free port
    #[arg(long, env = "BATCHSCAN_LISTEN", value_name = "HOST:PORT", default_value = defaults::LISTEN, value_parser = parse_address)]
    pub(crate) listen: String,
    /// Lifetime of an access token, from 1s to 24h
    #[arg(long, env = "BATCHSCAN_TOKEN_TTL", value_name = "TIME", default_value = defaults::TOKEN_TTL.as_str(), value_parser = parse_ttl)]
    pub(crate) token_ttl: Duration,
    /// Batches per page of v2, from 1 to 10000
    #[arg(long, env = "BATCHSCAN_PAGE_SIZE", value_name = "N", default_value = defaults::PAGE_SIZE.as_str(),
          value_parser = whole_number(1..=10_000_u16))]
    pub(crate) page_size: u16,
    /// Address that clients use, if it differs from --listen
    #[arg(long, env = "BATCHSCAN_PUBLIC_URL", value_name = "URL", value_parser = parse_public_url)]
    pub(crate) public_url: Option<String>,
    /// Certificate chain (PEM) for HTTPS; reloaded when changed
    #[arg(long, env = "BATCHSCAN_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key (PEM) of the certificate
    #[arg(long, env = "BATCHSCAN_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Try HTTPS with a new self-signed certificate, written to this file for clients (--ca-cert)
    #[arg(long, env = "BATCHSCAN_SELF_SIGNED", value_name = "FILE", conflicts_with_all = ["tls_cert", "tls_key"])]
    pub(crate) self_signed: Option<PathBuf>,
    /// Origin whose web pages may read responses, or * for all; can be repeated
    #[arg(long, env = "BATCHSCAN_CORS_ORIGIN", value_name = "ORIGIN", value_delimiter = ',', value_parser = parse_origin)]
    pub(crate) cors_origin: Vec<String>,
    /// Rate limit per credential, such as 50/s, 600/m or 10000/h; requests above it get 429
    #[arg(long, env = "BATCHSCAN_RATE_LIMIT", value_name = "N/UNIT", value_parser = parse_rate)]
    pub(crate) rate_limit: Option<Rate>,
    /// Format of log lines
    #[arg(long, env = "BATCHSCAN_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    /// Separate address for the operator API, /healthz, /readyz and /metrics
    #[arg(long, env = "BATCHSCAN_OPERATOR_LISTEN", value_name = "HOST:PORT", value_parser = parse_address)]
    pub(crate) operator_listen: Option<String>,
    /// Maximum size of a file that is imported through the operator API, such as 500M or 10G
    #[arg(long, env = "BATCHSCAN_MAX_DELIVERY", value_name = "SIZE", default_value = defaults::MAX_IMPORT.as_str(), value_parser = parse_size)]
    pub(crate) max_delivery: u64,
    /// Also serve /metrics on the public address; it names database hosts and organisations
    #[arg(long, env = "BATCHSCAN_PUBLIC_METRICS", value_parser = BoolishValueParser::new())]
    pub(crate) public_metrics: bool,
    /// Address or network of a proxy whose X-Forwarded-For is the client's address, such as 10.0.0.0/8; can be repeated
    #[arg(long, env = "BATCHSCAN_TRUSTED_PROXY", value_name = "ADDRESS", value_delimiter = ',')]
    pub(crate) trusted_proxy: Vec<Network>,
    /// Time to finish responses after SIGTERM
    #[arg(long, env = "BATCHSCAN_DRAIN", value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub(crate) drain: Duration,
    /// Size of the page cache in MiB
    #[arg(long, env = "BATCHSCAN_CACHE_MIB", value_name = "N", default_value = defaults::CACHE_MIB.as_str(), value_parser = whole_number(0..=u32::MAX))]
    pub(crate) cache_mib: u32,
    /// PostgreSQL hosts to read from: any host, or standbys while one is up to date
    #[arg(long, env = "BATCHSCAN_READ_FROM", value_name = "HOSTS", default_value = "any", value_parser = read_from_parser())]
    pub(crate) read_from: ReadFrom,
    /// Maximum number of connections to each PostgreSQL host
    #[arg(long, env = "BATCHSCAN_DATABASE_CONNECTIONS", value_name = "N", default_value = defaults::DATABASE_CONNECTIONS.as_str(),
          value_parser = whole_number(1..=1_000_u16))]
    pub(crate) database_connections: u16,
    /// Day on which v1 ends: adds Deprecation and Sunset headers to v1 responses
    #[arg(long, env = "BATCHSCAN_V1_SUNSET", value_name = "DATE", value_parser = parse_date)]
    pub(crate) v1_sunset: Option<UtcInstant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Add, list, change and remove organisations
#[derive(Debug, Args)]
pub(crate) struct Org {
    #[command(flatten)]
    pub(crate) database: DatabaseArg,
    #[command(subcommand)]
    pub(crate) command: OrgCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OrgCommand {
    /// Add an organisation
    Add {
        /// Name of the organisation
        #[arg(value_parser = parse_org_name)]
        name: OrgName,
        /// Zone of times without one in its files, such as Europe/Berlin
        #[arg(long, value_name = "ZONE", value_parser = parse_zone)]
        timezone: Option<Zone>,
    },
    /// List the organisations
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Rename an organisation
    Rename {
        /// Current name
        name: String,
        /// New name
        #[arg(value_parser = parse_org_name)]
        new_name: OrgName,
    },
    /// Change the settings of an organisation
    Set {
        /// Name of the organisation
        name: String,
        /// Zone of times without one in its files, such as Europe/Berlin; none removes it
        #[arg(long, value_name = "ZONE", value_parser = parse_zone_or_none)]
        timezone: ZoneOrNone,
    },
    /// Show or change how the files of an organisation are read
    ///
    /// `batchscan import --write-mapping FILE` writes a mapping from what was recognised in a file. Once it is stored here, `import`,
    /// `watch` and the operator API use it.
    #[command(group = clap::ArgGroup::new("action"))]
    Mapping {
        /// Name of the organisation
        name: String,
        /// Store this file (TOML)
        #[arg(long, value_name = "FILE", group = "action")]
        set: Option<PathBuf>,
        /// Print the stored mapping (default)
        #[arg(long, group = "action")]
        show: bool,
        /// Remove the stored mapping
        #[arg(long, group = "action")]
        clear: bool,
    },
    /// Remove stopped and silent watchers from `batchscan status`
    ForgetWatchers {
        /// Name of the organisation
        name: String,
    },
    /// Remove an organisation with its credentials and batches
    Remove {
        /// Name of the organisation
        name: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

/// Issue, list, rotate and revoke credentials, and print sign-in links
#[derive(Debug, Args)]
pub(crate) struct Credential {
    #[command(flatten)]
    pub(crate) database: DatabaseArg,
    #[command(subcommand)]
    pub(crate) command: CredentialCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CredentialCommand {
    /// Issue a client id and secret; the secret is shown only once
    Issue {
        /// Organisation whose batches the client may read
        #[arg(long, value_name = "NAME")]
        org: String,
        /// Program or person that the credential is for, such as "Ann"; users of its organisation's dashboard see it
        #[arg(long, value_name = "TEXT", default_value = "", value_parser = parse_label)]
        label: String,
        /// Expire after a time such as 365d, or at the end of a day such as 2027-12-31 (UTC)
        #[arg(long, value_name = "TIME|DATE", value_parser = parse_expiry_date)]
        expires: Option<UtcInstant>,
        /// Print a sign-in link for the dashboard instead of the secret
        #[arg(long)]
        link: bool,
        #[command(flatten)]
        link_options: LinkOptions,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List credentials (no secrets)
    List {
        /// Organisation [default: all]
        #[arg(long, value_name = "NAME")]
        org: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Issue a new secret; the old one keeps working for a while
    Rotate {
        /// Client id of the credential
        client_id: String,
        /// Time for which the old secret keeps working; 0s ends it now
        #[arg(long, value_name = "TIME", default_value = defaults::RETIRE_AFTER.as_str(), value_parser = parse_duration)]
        retire_after: Duration,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a single-use sign-in link for the dashboard
    Link {
        /// Client id of the credential
        client_id: String,
        #[command(flatten)]
        options: LinkOptions,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a credential: no new tokens; already issued tokens stop working within 5 s
    Revoke {
        /// Client id of the credential
        client_id: String,
    },
}

/// Options of sign-in links
#[derive(Debug, Args)]
pub(crate) struct LinkOptions {
    /// Time for which the link works, 15m to 7d, but never longer than the credential is valid
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_link_time)]
    pub(crate) link_valid: Duration,
    /// URL of the dashboard, for the link [default: the address of the service]
    #[arg(long, env = "BATCHSCAN_PUBLIC_URL", value_name = "URL", value_parser = parse_public_url)]
    pub(crate) public_url: Option<String>,
}

/// List and end dashboard sessions
#[derive(Debug, Args)]
pub(crate) struct Session {
    #[command(flatten)]
    pub(crate) database: DatabaseArg,
    #[command(subcommand)]
    pub(crate) command: SessionCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the browsers that are signed in, and unused sign-in links
    List {
        /// Organisation [default: all]
        #[arg(long, value_name = "NAME")]
        org: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// End a session, or all sessions of a credential
    End {
        /// Session id or client id
        // Session ids can start with a hyphen.
        #[arg(allow_hyphen_values = true)]
        id: String,
    },
}

/// Issue, list and revoke tokens of the operator API
///
/// `serve --operator-listen HOST:PORT` offers the operator API. Its description is at /operator/v1/openapi.json there.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  batchscan operator token issue --role ingest --org \"Green Valley\" --label \"scanner PC, hall 2\"")]
pub(crate) struct Operator {
    #[command(flatten)]
    pub(crate) database: DatabaseArg,
    #[command(subcommand)]
    pub(crate) command: OperatorCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OperatorCommand {
    /// Tokens of the operator API
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Issue a token; it is shown only once
    Issue {
        /// admin: use the whole operator API; ingest: only import batches
        #[arg(long, value_name = "ROLE", value_parser = role_parser())]
        role: OperatorRole,
        /// The only organisation to import into [default: all]
        #[arg(long, value_name = "NAME")]
        org: Option<String>,
        /// Label that says what the token is for
        #[arg(long, value_name = "TEXT", default_value = "", value_parser = parse_label)]
        label: String,
        /// Expire after a time such as 365d, or at the end of a day such as 2027-12-31 (UTC)
        #[arg(long, value_name = "TIME|DATE", value_parser = parse_expiry_date)]
        expires: Option<UtcInstant>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the tokens (not their secrets)
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token
    Revoke {
        /// Id of the token, such as op_a1B2c3D4e5F6g7H8
        id: String,
    },
}

/// List who changed organisations, credentials, tokens, keys and batches
///
/// A change and its entry are one transaction. Entries are never changed or removed, and contain no secrets.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  batchscan audit --since 7d")]
pub(crate) struct Audit {
    #[command(flatten)]
    pub(crate) database: DatabaseArg,
    /// Date of the first entry (UTC): 2026-01-31, 2026-01, today, yesterday, 1h, 30d, 12w or 2026-01-31T08:00:00Z
    /// [default: all entries]
    #[arg(long, value_name = "DATE", allow_hyphen_values = true, value_parser = parse_start_date)]
    pub(crate) since: Option<DateArg>,
    /// Print JSON, one entry per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Import batches from NDJSON, JSON, CSV, Parquet or Excel files
///
/// A batch whose id exists is replaced as a whole: columns missing from the file become null. Each file is one
/// transaction: all of it is imported, or nothing. If a file is rejected, up to 20 errors are listed with their lines.
/// Rates outside 0 to 100, negative counts, more seedlings than cells, ignored columns and values that a correction
/// empties are warnings.
///
/// To import a file from elsewhere, start with --preview: it shows which column has which field, and what is missing. State
/// the rest in a mapping: write it with --write-mapping, edit it, and use it with --mapping.
#[derive(Debug, Args)]
#[command(after_long_help = import_help())]
pub(crate) struct Import {
    #[command(flatten)]
    pub(crate) database: DatabaseArg,
    /// Organisation to import into
    #[arg(long, value_name = "NAME")]
    pub(crate) org: String,
    /// Files to import; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Format of the files [default: by file extension]
    #[arg(long, value_name = "FORMAT", value_parser = format_parser(&Format::ALL))]
    pub(crate) format: Option<Format>,
    /// Maximum size of standard input, such as 500M or 10G
    #[arg(long, value_name = "SIZE", default_value = "10G", value_parser = parse_size)]
    pub(crate) max_input: u64,
    /// Show how each column of the files is understood, and import nothing
    #[arg(long, conflicts_with_all = ["dry_run", "json"])]
    pub(crate) preview: bool,
    /// How to read the files: columns, time zone, numbers (TOML)
    #[arg(long, value_name = "FILE")]
    pub(crate) mapping: Option<PathBuf>,
    /// Use no mapping, although one is stored for the organisation
    #[arg(long, conflicts_with = "mapping")]
    pub(crate) no_mapping: bool,
    /// Write what is recognised as a mapping to be edited, and import nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dry_run", "json"])]
    pub(crate) write_mapping: Option<PathBuf>,
    /// Time zone of times without a UTC offset, such as Europe/Berlin
    #[arg(long, value_name = "ZONE", value_parser = parse_zone)]
    pub(crate) timezone: Option<Zone>,
    /// Reject files with warnings
    #[arg(long)]
    pub(crate) strict: bool,
    /// Import even if stored batches lose values, are replaced by others or differ only in leading zeros
    #[arg(long)]
    pub(crate) force: bool,
    /// Check the files without importing them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Import files from a folder as they arrive
///
/// Imports each NDJSON, JSON, CSV, Parquet or Excel file in the folder once it is complete, and moves it to DIR/done. A file
/// that is rejected goes to DIR/failed, with its errors in a text file next to it. The same content is imported only once,
/// whatever the file name. While the database or the service is unreachable, files wait. DIR/watch-HOST.status contains the
/// current status in one line. On SIGTERM or Ctrl-C it finishes the current file and exits with 0.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan watch /srv/scans --org \"Green Valley\"
  batchscan watch /srv/scans --org \"Green Valley\" --url http://10.0.0.5:9090 --token-file token")]
pub(crate) struct Watch {
    #[command(flatten)]
    pub(crate) database: DatabaseArg,
    /// Folder to watch
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Organisation to import into
    #[arg(long, env = "BATCHSCAN_ORG", value_name = "NAME")]
    pub(crate) org: String,
    /// Import through the operator API at this address (of `serve --operator-listen`) instead of into the database
    #[arg(long, env = "BATCHSCAN_OPERATOR_URL", value_name = "URL", value_parser = parse_url)]
    pub(crate) url: Option<String>,
    /// File that contains only the operator token [default: the token in BATCHSCAN_OPERATOR_TOKEN]
    #[arg(long, env = "BATCHSCAN_TOKEN_FILE", value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// How to read the files of this folder, instead of the stored mapping of the organisation; an empty file uses none
    #[arg(long, env = "BATCHSCAN_MAPPING", value_name = "FILE")]
    pub(crate) mapping: Option<PathBuf>,
    /// Certificates (PEM) to trust in addition to the system's
    #[arg(long, env = "BATCHSCAN_CA_CERT", value_name = "FILE")]
    pub(crate) ca_cert: Option<PathBuf>,
    /// How often to check the folder
    #[arg(long, env = "BATCHSCAN_POLL", value_name = "TIME", default_value = "1s", value_parser = parse_expiry)]
    pub(crate) poll: Duration,
    /// Treat a file as complete when it has not changed for this long
    #[arg(long, env = "BATCHSCAN_STABLE", value_name = "TIME", default_value = "2s", value_parser = parse_duration)]
    pub(crate) stable: Duration,
    /// Format of log lines
    #[arg(long, env = "BATCHSCAN_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
}

/// Show and remove batches
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan batch show --org \"Green Valley\" b-000123 | jq .
  batchscan batch remove --org \"Green Valley\" b-000123 b-000124")]
pub(crate) struct Batch {
    #[command(flatten)]
    pub(crate) database: DatabaseArg,
    #[command(subcommand)]
    pub(crate) command: BatchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BatchCommand {
    /// Print batches as JSON, one per line
    Show {
        /// Organisation
        #[arg(long, value_name = "NAME")]
        org: String,
        /// Ids of the batches
        #[arg(value_name = "ID", required = true, value_parser = parse_batch_id)]
        ids: Vec<BatchId>,
    },
    /// Remove batches by id; if one id does not exist, none is removed
    Remove {
        /// Organisation
        #[arg(long, value_name = "NAME")]
        org: String,
        /// Ids of the batches
        #[arg(value_name = "ID", required = true, value_parser = parse_batch_id)]
        ids: Vec<BatchId>,
        /// Keep the record of removals for this time; a copy that was last updated earlier is read again from the start
        #[arg(long, value_name = "DAYS", default_value = defaults::KEEP_REMOVALS.as_str(),
              value_parser = whole_number(1..=u16::MAX))]
        keep_removals: u16,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

/// Back up the database to a file, even while it is in use
///
/// The backup is a consistent snapshot in an SQLite file, whatever the database is; `serve` can open it directly. It
/// contains the keys that sign tokens: protect it like the database.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan backup backup.db
  batchscan backup --keep 14 /var/backups/batchscan")]
pub(crate) struct Backup {
    #[command(flatten)]
    pub(crate) database: DatabaseArg,
    /// File to create; it must not exist. With --keep, a folder
    #[arg(value_name = "FILE|DIR")]
    pub(crate) path: PathBuf,
    /// Create a file named after the current time in the folder DIR, and remove all but the newest N
    #[arg(long, value_name = "N", value_parser = whole_number(1..=10_000_u16))]
    pub(crate) keep: Option<u16>,
}

/// Replace an SQLite database by a backup
///
/// Stop the service and its watchers first. The backup is checked before the database is replaced, and the old database is kept
/// next to the new one until you remove it. For PostgreSQL, copy the backup into an empty database: `batchscan copy --from
/// sqlite:FILE --to URL`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan restore /var/backups/batchscan/batchscan-2026-01-31T021500Z.db")]
pub(crate) struct Restore {
    #[command(flatten)]
    pub(crate) database: DatabaseArg,
    /// Backup to restore
    #[arg(value_name = "FILE")]
    pub(crate) backup: PathBuf,
}

/// Show the state of the service and of each organisation
///
/// What needs attention comes first: rejected files, credentials that expire within 30 days or that a client still uses
/// although they have ended, old backups, little disk space. Exit status 1 if there is something.
#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) database: DatabaseArg,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List imports, with their warnings and errors
#[derive(Debug, Args)]
pub(crate) struct Imports {
    #[command(flatten)]
    pub(crate) database: DatabaseArg,
    /// Organisation; without it, all of them
    #[arg(long, value_name = "NAME", required_if_eq("acknowledge", "true"))]
    pub(crate) org: Option<String>,
    /// Only imports since this date (UTC): 2026-01-31, today, 1h, 7d or 2026-01-31T08:00:00Z
    #[arg(long, value_name = "DATE", allow_hyphen_values = true, value_parser = parse_start_date)]
    pub(crate) since: Option<DateArg>,
    /// Only files whose name contains this
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) file: Option<String>,
    /// Only rejected files
    #[arg(long)]
    pub(crate) rejected: bool,
    /// Stop reporting the current warnings and rejections in `batchscan status`; with --file, those of these files
    #[arg(long, conflicts_with_all = ["json", "since", "rejected"])]
    pub(crate) acknowledge: bool,
    /// Print JSON, one import per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Copy everything from one database to another
///
/// Copies organisations, credentials, keys, batches and the audit log between SQLite and PostgreSQL, in either direction. Tokens,
/// secrets and cursors keep working on the copy. Sessions of the dashboard and unused sign-in links are not copied:
/// everyone signs in again. Everything is verified afterwards by digests, each organisation by its own. The target must be
/// empty, or an interrupted copy of the same database: then the copy continues. Keys, operator tokens and log entries of
/// an empty target are replaced. Run no other command that writes to the source meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan copy --from sqlite:batchscan.db --to postgres://batchscan@db1,db2,db3/batchscan
  batchscan copy --from postgres://batchscan@db1/batchscan --to sqlite:batchscan.db")]
pub(crate) struct CopyDatabase {
    /// Source database
    #[arg(long, env = "BATCHSCAN_FROM", hide_env_values = true, value_name = "URL", value_parser = DatabaseUrlParser)]
    pub(crate) from: DatabaseUrl,
    /// Target database
    #[arg(long, env = "BATCHSCAN_TO", hide_env_values = true, value_name = "URL", value_parser = DatabaseUrlParser)]
    pub(crate) to: DatabaseUrl,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List and rotate the keys that sign tokens and encrypt cursors
#[derive(Debug, Args)]
pub(crate) struct Key {
    #[command(flatten)]
    pub(crate) database: DatabaseArg,
    #[command(subcommand)]
    pub(crate) command: KeyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// List keys (no key material)
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Create new keys; old keys still verify already issued tokens
    ///
    /// A new key is used one minute after it was created, when every process has read it. An old key is removed by the
    /// next rotation if it was replaced more than 30 days earlier. The key that hashes client secrets is not rotated.
    Rotate {
        /// Remove old keys now: already issued tokens and cursors stop working within 5 s
        #[arg(long)]
        now: bool,
    },
}

/// Check the database for corruption
///
/// Checks SQLite's own structures (PostgreSQL checks its own), and that every stored batch is valid. Exit status 1 if
/// there are problems.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) database: DatabaseArg,
    /// Repair what can be repaired, then check
    #[arg(long)]
    pub(crate) repair: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn import_help() -> String {
    let fields = batchscan_model::field::help();
    format!(
        "\
Fields, as JSON members or column names in any order (* required):
{fields}
Columns are also found by these names in any case, with spaces or hyphens, and by the titles of
the dashboard's exports, with units such as [%]. Unknown columns are ignored with a warning.
The header may be below other rows, and in one of several sheets.
Understood in CSV and Excel: 92,5 and 92.5 %, 1.234,50, yes/no, ja/nein, x, 16.11.2026 08:00 and
Excel's dates. Times without a UTC offset need --timezone. Rates that are all at most 1 are
rejected: a mapping states whether they are fractions. In CSV an empty cell is null, and \"\" is
an empty string.

A mapping (all keys are optional):
  encoding = \"windows-1250\"           # of text that is not UTF-8
  timezone = \"Europe/Berlin\"
  date_format = \"%d/%m/%Y %H:%M\"      # or several: [\"%d/%m/%Y\", \"%d. %b %Y\"]
  decimal = \",\"
  rates = \"fraction\"                  # or \"percent\"
  sheet = \"Scans\"
  header_row = 3
  true = [\"ja\", \"x\"]
  false = [\"nein\", \"\"]
  empty = [\"-\", \"n. b.\"]              # not measured
  ignore = [\"Notizen\"]
  ignore_rows = [\"Summe\"]             # rows that begin with this
  ignore_sheets = [\"Notizen\"]
  strict = true                       # reject files with warnings
  batch_id = \"{{batch_name}} {{batch_creation_date}}\"
  [columns]
  \"Keimquote\" = \"avg_germination_rate\"
  \"Datum (2)\" = \"batch_creation_date\"  # the second column with this title
  [values]                            # of fields that no column has
  warnings = false

File extensions: .ndjson .jsonl .json .csv .tsv .tab .txt .parquet .xlsx .xlsm

A minimal CSV:
  batch_id,batch_name,batch_creation_date,number_of_images,warnings,avg_germination_rate
  b-1,Roma W5 bench 3,2026-01-31T08:00:00Z,12,false,92.5

Examples:
  batchscan import --org \"Green Valley\" scans.csv
  batchscan import --org \"Green Valley\" scans.xlsx --preview --timezone Europe/Berlin
  batchscan import --org \"Green Valley\" --dry-run january.parquet february.parquet
  zcat scans.ndjson.gz | batchscan import --org \"Green Valley\" --format ndjson -"
    )
}
