//! The operator's commands as typed: run the service, look after its data and credentials.

use std::path::PathBuf;
use std::time::Duration;

use batchscan_formats::Format;
use batchscan_model::UtcInstant;
use batchscan_server::config::Rate;
use batchscan_store::OrgName;
use clap::builder::BoolishValueParser;
use clap::{Args, Subcommand};

use super::DatabaseText;
use crate::units::{
    format_parser, parse_count, parse_date, parse_duration, parse_expiry, parse_label, parse_org_name,
    parse_origin, parse_public_url, parse_rate, parse_share, parse_ttl,
};

/// Serve a demo nursery on a temporary database.
///
/// A year of plausible batches of several crops. Prints the address, credentials, a link that opens the dashboard
/// signed in, and curl lines to paste. Ctrl-C stops it and removes the data.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan demo
  batchscan demo --batches 200000 --fail-rate 0.3     try a client's paging and retries")]
pub(crate) struct Demo {
    /// The address to listen on; port 0 picks one
    #[arg(long, env = "BATCHSCAN_LISTEN", value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: String,
    /// How many batches to make
    #[arg(long, env = "BATCHSCAN_BATCHES", value_name = "N", default_value = "3000", value_parser = parse_count)]
    pub(crate) batches: u64,
    /// Which batches to make: the same seed makes the same ones on the same day
    #[arg(long, env = "BATCHSCAN_SEED", value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The share of batch requests to answer with 503, from 0 to 1
    #[arg(long, env = "BATCHSCAN_FAIL_RATE", value_name = "SHARE", default_value = "0", value_parser = parse_share)]
    pub(crate) fail_rate: f64,
}

/// Serve the interface.
///
/// Prints `listening on URL` on standard output once it serves, and one log line for each request on standard
/// error; BATCHSCAN_LOG=debug says more. SIGTERM or Ctrl-C: stops accepting, lets the answers under way finish,
/// exits 0.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan serve
  batchscan serve --listen 0.0.0.0:443 --tls-cert chain.pem --tls-key key.pem
  batchscan serve --operator-listen 10.0.0.5:9090 --rate-limit 600/m --log-format json")]
pub(crate) struct Serve {
    /// The address to listen on; port 0 picks one
    #[arg(long, env = "BATCHSCAN_LISTEN", value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: String,
    /// How long a token lives, from 1s to 24h
    #[arg(long, env = "BATCHSCAN_TOKEN_TTL", value_name = "TIME", default_value = "1h", value_parser = parse_ttl)]
    pub(crate) token_ttl: Duration,
    /// Batches on a page of v2, from 1 to 10000
    #[arg(long, env = "BATCHSCAN_PAGE_SIZE", value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) page_size: u16,
    /// The address clients use, where it is not the one listened on
    #[arg(long, env = "BATCHSCAN_PUBLIC_URL", value_name = "URL", value_parser = parse_public_url)]
    pub(crate) public_url: Option<String>,
    /// A certificate chain in PEM form: serve HTTPS. Changed files are taken over without a restart
    #[arg(long, env = "BATCHSCAN_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's private key in PEM form
    #[arg(long, env = "BATCHSCAN_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// An origin whose web pages may read answers, or * for all; may be repeated
    #[arg(long, env = "BATCHSCAN_CORS_ORIGIN", value_name = "ORIGIN", value_delimiter = ',', value_parser = parse_origin)]
    pub(crate) cors_origin: Vec<String>,
    /// Requests a credential may make, such as 50/s, 600/m or 10000/h; more get 429
    #[arg(long, env = "BATCHSCAN_RATE_LIMIT", value_name = "N/UNIT", value_parser = parse_rate)]
    pub(crate) rate_limit: Option<Rate>,
    /// The form of log lines
    #[arg(long, env = "BATCHSCAN_LOG_FORMAT", value_name = "FORM", default_value = "text")]
    pub(crate) log_format: LogFormat,
    /// An address of its own for /healthz, /readyz and /metrics; /metrics is then served there alone
    #[arg(long, env = "BATCHSCAN_OPERATOR_LISTEN", value_name = "HOST:PORT")]
    pub(crate) operator_listen: Option<String>,
    /// How long answers may take to finish after SIGTERM
    #[arg(long, env = "BATCHSCAN_DRAIN", value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub(crate) drain: Duration,
    /// Memory for pages that were sent before, in MiB
    #[arg(long, env = "BATCHSCAN_CACHE_MIB", value_name = "N", default_value_t = 64)]
    pub(crate) cache_mib: u32,
    /// Which hosts of a PostgreSQL database to read from: all in turn, or standbys as long as one is up to date
    #[arg(long, env = "BATCHSCAN_READ_FROM", value_name = "HOSTS", default_value = "any")]
    pub(crate) read_from: ReadFromArg,
    /// Connections to each host of a PostgreSQL database, at most
    #[arg(long, env = "BATCHSCAN_DATABASE_CONNECTIONS", value_name = "N", default_value_t = 16,
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) database_connections: u16,
    /// The day v1 ends: adds Deprecation and Sunset headers to its answers
    #[arg(long, env = "BATCHSCAN_V1_SUNSET", value_name = "DATE", value_parser = parse_date)]
    pub(crate) v1_sunset: Option<UtcInstant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ReadFromArg {
    Any,
    Standby,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Org {
    /// Add an organisation
    Add {
        /// Its name
        #[arg(value_parser = parse_org_name)]
        name: OrgName,
    },
    /// List the organisations
    List {
        /// Print JSON
        #[arg(long, env = "BATCHSCAN_JSON", value_parser = BoolishValueParser::new())]
        json: bool,
    },
    /// Give an organisation another name
    Rename {
        /// Its name
        name: String,
        /// Its new name
        #[arg(value_parser = parse_org_name)]
        new_name: OrgName,
    },
    /// Remove an organisation with its credentials and batches
    Remove {
        /// Its name
        name: String,
        /// Do not ask
        #[arg(long, env = "BATCHSCAN_YES", value_parser = BoolishValueParser::new())]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Credential {
    /// Issue a client id and secret; the secret is shown this once
    Issue {
        /// The organisation whose batches it opens
        #[arg(long, env = "BATCHSCAN_ORG", value_name = "NAME")]
        org: String,
        /// What it is for, for your own eyes
        #[arg(long, env = "BATCHSCAN_LABEL", value_name = "TEXT", default_value = "", value_parser = parse_label)]
        label: String,
        /// End it by itself after this time, such as 365d
        #[arg(long, env = "BATCHSCAN_EXPIRES", value_name = "TIME", value_parser = parse_expiry)]
        expires: Option<Duration>,
        /// Print JSON
        #[arg(long, env = "BATCHSCAN_JSON", value_parser = BoolishValueParser::new())]
        json: bool,
    },
    /// List an organisation's credentials, never their secrets
    List {
        /// The organisation
        #[arg(long, env = "BATCHSCAN_ORG", value_name = "NAME")]
        org: String,
        /// Print JSON
        #[arg(long, env = "BATCHSCAN_JSON", value_parser = BoolishValueParser::new())]
        json: bool,
    },
    /// Issue a second secret; the first one goes on working for a while
    Rotate {
        /// The credential
        client_id: String,
        /// How long the first secret goes on working; 0s ends it now
        #[arg(long, env = "BATCHSCAN_RETIRE_AFTER", value_name = "TIME", default_value = "7d", value_parser = parse_duration)]
        retire_after: Duration,
        /// Print JSON
        #[arg(long, env = "BATCHSCAN_JSON", value_parser = BoolishValueParser::new())]
        json: bool,
    },
    /// End a credential: no new tokens, and those that are out stop working within 5 s
    Revoke {
        /// The credential
        client_id: String,
    },
}

/// Import batches from NDJSON, JSON, CSV or Parquet files.
///
/// A batch whose id is known is corrected. One file is one transaction: all of it is kept, or nothing. A refusal names
/// up to 20 faults with their lines.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Fields, as JSON members or column names in any order (* must be there):
  batch_id *                      text of at most 128 bytes
  batch_name *                    text
  batch_creation_date *           date and time with an offset: 2026-01-31T08:00:00Z
  number_of_images *              whole number
  warnings *                      true or false (CSV also 1 or 0)
  crop_type, scanned_by_email, comment
                                  text
  analysis_link                   http or https URL
  total_cells_per_tray            whole number
  avg_germinated_seedlings, avg_non_germinated_seedlings, avg_germination_rate,
  avg_usable_seedlings, avg_non_usable_cells, avg_usable_seedling_rate,
  avg_coefficient_of_variation, avg_median_seedling_size_mm2
                                  decimal with a point: 92.5; rounded to two digits

In CSV an empty cell is no value; the separator is a comma, a semicolon or a tab.
Endings: .ndjson .jsonl .json .csv .tsv .parquet

A CSV to begin with:
  batch_id,batch_name,batch_creation_date,number_of_images,warnings,avg_germination_rate
  b-1,Roma W5 bench 3,2026-01-31T08:00:00Z,12,false,92.5

Examples:
  batchscan import --org \"Green Valley\" scans.csv
  batchscan import --org \"Green Valley\" --dry-run january.parquet february.parquet
  zcat scans.ndjson.gz | batchscan import --org \"Green Valley\" --format ndjson -")]
pub(crate) struct Import {
    /// The organisation the batches belong to
    #[arg(long, env = "BATCHSCAN_ORG", value_name = "NAME")]
    pub(crate) org: String,
    /// The files; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// What the files hold: ndjson, json, csv or parquet [default: by their endings]
    #[arg(long, env = "BATCHSCAN_FORMAT", value_name = "FORMAT", value_parser = format_parser(&Format::READABLE))]
    pub(crate) format: Option<Format>,
    /// Check everything, keep nothing
    #[arg(long, env = "BATCHSCAN_DRY_RUN", value_parser = BoolishValueParser::new())]
    pub(crate) dry_run: bool,
    /// Print the summary as JSON
    #[arg(long, env = "BATCHSCAN_JSON", value_parser = BoolishValueParser::new())]
    pub(crate) json: bool,
}

/// Copy the whole database to a file, also while it is in use.
///
/// The copy is one consistent moment, as an SQLite file, whatever the database is. It holds the keys that sign tokens: keep it as safe as the database.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to make; it must not exist
    pub(crate) file: PathBuf,
}

/// Copy everything from one database into another, of either kind.
///
/// Organisations, credentials, keys and batches: tokens, secrets and cursors go on working on the copy. Every
/// organisation is verified afterwards by a digest of all that is its own. The target must be empty, or a copy of the
/// same database that was interrupted: run it again, and it goes on. Stop importing into the source meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  batchscan copy --from sqlite:batchscan.db --to postgres://batchscan@db1,db2,db3/batchscan
  batchscan copy --from postgres://batchscan@db1/batchscan --to sqlite:batchscan.db")]
pub(crate) struct CopyDatabase {
    /// The database to read
    #[arg(long, env = "BATCHSCAN_FROM", hide_env_values = true, value_name = "URL")]
    pub(crate) from: DatabaseText,
    /// The database to fill
    #[arg(long, env = "BATCHSCAN_TO", hide_env_values = true, value_name = "URL")]
    pub(crate) to: DatabaseText,
    /// Print JSON
    #[arg(long, env = "BATCHSCAN_JSON", value_parser = BoolishValueParser::new())]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// List the keys, never their bytes
    List {
        /// Print JSON
        #[arg(long, env = "BATCHSCAN_JSON", value_parser = BoolishValueParser::new())]
        json: bool,
    },
    /// Make new keys; the old ones go on verifying what is out
    ///
    /// A new key signs from a minute after it was made, when every process has read it. Old keys are removed at the
    /// next rotation, if they were followed by another more than 30 days before. The key that hashes client secrets
    /// is not rotated.
    Rotate {
        /// Remove the old keys at once: every token and cursor that is out stops working within 5 s
        #[arg(long, env = "BATCHSCAN_NOW", value_parser = BoolishValueParser::new())]
        now: bool,
    },
}

/// Examine the database for damage.
///
/// Checks SQLite's own structures (PostgreSQL looks after its own), and that every stored batch is exactly the text of the batch it holds. Exit
/// status 1 if anything is wrong.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long, env = "BATCHSCAN_JSON", value_parser = BoolishValueParser::new())]
    pub(crate) json: bool,
}
