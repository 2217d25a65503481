//! `batchscan org`.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::bail;
use batchscan_server::clock::Clock;
use batchscan_store::{DatabaseUrl, Organisation};
use serde_json::json;

use super::{open, open_or_make, when};
use crate::args::Org;
use crate::figures::{count, grouped, table};
use crate::output::print;

pub(crate) async fn run(database: &DatabaseUrl, command: Org) -> anyhow::Result<ExitCode> {
    match command {
        Org::Add { name } => {
            let org = open_or_make(database).await?.add_org(&name, Clock::system().now()).await?;
            print(&format!("added organisation \"{}\"\n", org.name))?;
        }
        Org::List { json } => {
            let orgs = open(database).await?.orgs().await?;
            print(&if json { list_json(&orgs) } else { list(&orgs) })?;
        }
        Org::Rename { name, new_name } => {
            open(database).await?.rename_org(&name, &new_name).await?;
            print(&format!("renamed \"{name}\" to \"{}\"\n", new_name.as_str()))?;
        }
        Org::Remove { name, yes } => remove(database, &name, yes).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn remove(database: &DatabaseUrl, name: &str, yes: bool) -> anyhow::Result<()> {
    let store = open(database).await?;
    let org = store.org(name).await?;
    let what = format!(
        "organisation \"{name}\" with {} and {}",
        count(org.batches, "batch", "batches"),
        count(org.credentials, "credential", "credentials")
    );
    if !yes && !confirmed(&format!("Remove {what}? It cannot be undone. Type the name to go on: "), name)? {
        bail!("the name did not match: nothing was removed");
    }
    store.remove_org(name).await?;
    print(&format!("removed {what}\n"))
}

fn confirmed(question: &str, answer: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("removing asks first, and there is no terminal to ask on: add --yes if you are sure");
    }
    print(question)?;
    std::io::stdout().flush()?;
    let mut typed = String::new();
    std::io::stdin().lock().read_line(&mut typed)?;
    Ok(typed.trim_end_matches(['\n', '\r']) == answer)
}

fn list(orgs: &[Organisation]) -> String {
    if orgs.is_empty() {
        return "no organisations yet: add one with `batchscan org add NAME`\n".into();
    }
    let rows: Vec<_> = orgs
        .iter()
        .map(|org| {
            [org.name.clone(), grouped(org.batches), grouped(org.credentials), when(Some(org.created_at))]
        })
        .collect();
    table(["NAME", "BATCHES", "CREDENTIALS", "ADDED"], &rows)
}

fn list_json(orgs: &[Organisation]) -> String {
    let all: Vec<_> = orgs
        .iter()
        .map(|org| {
            json!({
                "name": org.name,
                "batches": org.batches,
                "credentials": org.credentials,
                "created_at": org.created_at.to_string(),
            })
        })
        .collect();
    format!("{}\n", json!(all))
}
