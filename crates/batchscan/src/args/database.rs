//! Options for databases and files: `--database`, `--output`.

use std::ffi::OsStr;
use std::path::PathBuf;

use batchscan_formats::Format;
use batchscan_store::{DatabaseUrl, DatabaseUrlError};
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Args, Command};

/// The `--database` option of the commands that open a database.
#[derive(Debug, Args)]
pub(crate) struct DatabaseArg {
    /// Database: sqlite:PATH or postgres://USER@HOST:PORT,HOST:PORT/DATABASE
    #[arg(
        long,
        global = true,
        env = "BATCHSCAN_DATABASE",
        hide_env_values = true,
        value_name = "URL",
        default_value = "sqlite:batchscan.db",
        value_parser = DatabaseUrlParser
    )]
    pub(crate) database: DatabaseUrl,
}

/// Parses a database URL. clap's own message would repeat an invalid value, password included.
#[derive(Clone)]
pub(super) struct DatabaseUrlParser;

impl TypedValueParser for DatabaseUrlParser {
    type Value = DatabaseUrl;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<DatabaseUrl, clap::Error> {
        let url = value.to_str().ok_or("not valid UTF-8".to_owned());
        let url = url.and_then(|url| url.parse().map_err(|error: DatabaseUrlError| error.to_string()));
        url.map_err(|error| invalid_value(command, arg, &error))
    }
}

/// Where a mirror is.
#[derive(Clone, Debug)]
pub(crate) enum MirrorOutput {
    Stdout,
    Database(DatabaseUrl),
}

/// Parses `-`, the URL of a PostgreSQL database, or a path. Does not repeat a password either.
#[derive(Clone)]
pub(super) struct MirrorOutputParser;

impl TypedValueParser for MirrorOutputParser {
    type Value = MirrorOutput;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<MirrorOutput, clap::Error> {
        let is_url = |text: &&str| text.contains("://") || text.starts_with("sqlite:");
        match value.to_str() {
            Some("-") => Ok(MirrorOutput::Stdout),
            Some("") => Err(invalid_value(command, arg, "expected a file, postgres://… or -")),
            text => match text.filter(is_url) {
                Some(_) => DatabaseUrlParser.parse_ref(command, arg, value).map(MirrorOutput::Database),
                None if Format::for_writing(value.as_ref()).is_some() => {
                    let error =
                        "a mirror is an SQLite file, such as batches.db; `batchscan pull` writes this format";
                    Err(invalid_value(command, arg, error))
                }
                None => Ok(MirrorOutput::Database(DatabaseUrl::Sqlite(value.into()))),
            },
        }
    }
}

/// Parses the path of a file. Rejects the URL of a database, without repeating its password.
#[derive(Clone)]
pub(super) struct FileParser;

impl TypedValueParser for FileParser {
    type Value = PathBuf;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<PathBuf, clap::Error> {
        if value.is_empty() || value.to_string_lossy().contains("://") {
            let error = "expected a file; `batchscan mirror` keeps a copy in a database";
            return Err(invalid_value(command, arg, error));
        }
        Ok(value.into())
    }
}

fn invalid_value(command: &Command, arg: Option<&Arg>, error: &str) -> clap::Error {
    let option = arg.map(ToString::to_string).unwrap_or_default();
    let text = format!("invalid value for '{option}': {error}");
    command.clone().error(ErrorKind::ValueValidation, text)
}
