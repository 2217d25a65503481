//! The settings of the installed service. Commands on its machine use its database and address without further options.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

use clap::{Arg, Command};

use super::defaults::LISTEN;
use crate::platform::SETTINGS_FILE;

/// Another file.
pub(super) const VARIABLE: &str = "BATCHSCAN_SETTINGS";
/// What commands and the service have in common. The other settings are those of `serve`.
const SHARED: [&str; 2] = ["BATCHSCAN_DATABASE", "BATCHSCAN_PUBLIC_URL"];

pub(crate) fn path() -> PathBuf {
    std::env::var_os(VARIABLE).unwrap_or_else(|| SETTINGS_FILE.into()).into()
}

/// Whether there are settings that this user cannot read.
pub(crate) fn are_unreadable() -> bool {
    std::fs::read(path()).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// The address at which the service listens, if its settings or a variable state it.
pub(crate) fn service_url() -> Option<String> {
    let settings = std::fs::read_to_string(path()).map_or_else(|_| BTreeMap::new(), |text| parse(&text));
    let setting = |name: &str| std::env::var(name).ok().or_else(|| settings.get(name).cloned());
    let is_set = |name: &str| setting(name).is_some_and(|value| !value.is_empty());
    let scheme = match is_set("BATCHSCAN_TLS_CERT") || is_set("BATCHSCAN_SELF_SIGNED") {
        true => "https",
        false => "http",
    };
    let default = (scheme == "https").then(|| LISTEN.to_owned());
    let listen = setting("BATCHSCAN_LISTEN").or(default)?;
    let (host, port) = listen.rsplit_once(':').filter(|(_, port)| *port != "0")?;
    // All addresses of the machine.
    let host = if matches!(host, "0.0.0.0" | "[::]") { "127.0.0.1" } else { host };
    Some(format!("{scheme}://{host}:{port}"))
}

/// Makes the settings the defaults of options. Variables and options of the command line come first.
pub(super) fn apply(command: Command) -> Command {
    match std::fs::read_to_string(path()) {
        Ok(text) => set_defaults(command, &parse(&text)),
        Err(_) => command,
    }
}

fn set_defaults(command: Command, settings: &BTreeMap<String, String>) -> Command {
    let set_default = |arg: Arg| {
        let name = arg.get_env().and_then(|name| name.to_str()).filter(|name| SHARED.contains(name));
        match name.and_then(|name| settings.get(name)) {
            // Kept for the life of the process. It may contain a password.
            Some(value) => arg.default_value(&*value.clone().leak()).hide_default_value(true),
            None => arg,
        }
    };
    command.mut_args(set_default).mut_subcommands(|command| set_defaults(command, settings))
}

/// Lines of `NAME=value`, with or without quotes.
fn parse(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    let settings = lines.filter_map(|line| line.split_once('='));
    settings.map(|(name, value)| (name.trim().to_owned(), unquote(value.trim()).to_owned())).collect()
}

fn unquote(value: &str) -> &str {
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    quoted('\'').or_else(|| quoted('"')).unwrap_or(value)
}
