//! Finds misspelt `BATCHSCAN_*` variables, which would be ignored.

use std::collections::BTreeSet;

use clap::{Command, CommandFactory};

use super::Cli;
use super::settings::VARIABLE;

/// Variables that belong to no option. The last two are those of tests and builds.
const OTHERS: [&str; 6] = [
    VARIABLE,
    "BATCHSCAN_LOG",
    "BATCHSCAN_CLIENT_SECRET",
    "BATCHSCAN_OPERATOR_TOKEN",
    "BATCHSCAN_EXE",
    "BATCHSCAN_DASHBOARD",
];
/// More is not a typing error.
const EDITS_MAX: usize = 3;

/// A warning for each variable that no command reads.
pub(crate) fn unknown_variables() -> Vec<String> {
    let set = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let set: Vec<String> = set.filter(|name| name.starts_with("BATCHSCAN_")).collect();
    if set.is_empty() {
        return Vec::new();
    }
    let mut known = OTHERS.map(str::to_owned).into();
    add_variables(&Cli::command(), &mut known);
    let unknown = set.iter().filter(|name| !known.contains(*name) && !is_from_kubernetes(name));
    unknown.map(|name| warning(name, &known)).collect()
}

fn add_variables(command: &Command, known: &mut BTreeSet<String>) {
    let variables = command.get_arguments().filter_map(clap::Arg::get_env);
    known.extend(variables.map(|name| name.to_string_lossy().into_owned()));
    command.get_subcommands().for_each(|command| add_variables(command, known));
}

/// Kubernetes sets such variables in every pod for a service named `batchscan` or `batchscan-…`.
fn is_from_kubernetes(name: &str) -> bool {
    name.contains("_SERVICE_") || name.contains("_PORT")
}

fn warning(name: &str, known: &BTreeSet<String>) -> String {
    let edits = |other: &&String| strsim::levenshtein(name, other);
    let nearest = known.iter().min_by_key(edits).filter(|other| edits(other) <= EDITS_MAX);
    let hint = nearest.map_or_else(String::new, |nearest| format!(": did you mean {nearest}?"));
    format!("ignoring unknown environment variable {name}{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG_RUNNING: [&str; 4] = ["demo", "serve", "watch", "mirror"];
    const CONNECTION: [&str; 10] = [
        "CA_CERT",
        "CLIENT_ID",
        "CLIENT_SECRET_FILE",
        "DATABASE",
        "FROM",
        "PROFILE",
        "PUBLIC_URL",
        "RETRY_FOR",
        "TO",
        "URL",
    ];

    #[test]
    fn options_of_one_call_have_no_variable() {
        let mut found = BTreeSet::new();
        for command in Cli::command().get_subcommands() {
            if !LONG_RUNNING.contains(&command.get_name()) {
                add_variables(command, &mut found);
            }
        }
        assert_eq!(found, CONNECTION.map(|name| format!("BATCHSCAN_{name}")).into());
    }
}
