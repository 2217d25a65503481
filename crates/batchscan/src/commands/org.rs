//! `batchscan org`.

use std::path::PathBuf;

use anyhow::bail;
use batchscan_formats::read::{Mapping, ReadOptions};
use batchscan_server::clock::Clock;
use batchscan_server::operator::json::organisation;
use batchscan_store::{OpenOptions, Organisation};

use super::context::{format_time, is_new, open, open_database};
use super::import_preview::read_mapping;
use crate::args::{DatabaseArg, Org, OrgCommand, ZoneOrNone};
use crate::numbers::{count, grouped};
use crate::platform::shell_quoted;
use crate::table::table;
use crate::terminal::{is_confirmed, note, print, print_hint};

pub(crate) async fn run(Org { database, command }: Org) -> anyhow::Result<()> {
    match command {
        OrgCommand::Add { name, timezone } => {
            let is_new = is_new(&database.database);
            let store = open_database(&database.database, OpenOptions::CREATE).await?;
            if is_new {
                note(&format!("created the database {}", database.database));
            }
            let now = Clock::system().now();
            let org = store.add_org(&name, now).await?;
            if timezone.is_some() {
                store.set_timezone(&org.name, timezone.as_ref(), now).await?;
            }
            print(&format!("added organisation \"{}\"\n", org.name))?;
            print_hint(&format!(
                "Next: batchscan import --org {0} FILE, and batchscan credential issue --org {0}",
                shell_quoted(&org.name)
            ))
        }
        OrgCommand::List { json } => {
            let orgs = open(&database).await?.orgs().await?;
            print(&if json { list_json(&orgs) } else { list(&orgs) })
        }
        OrgCommand::Rename { name, new_name } => {
            open(&database).await?.rename_org(&name, &new_name, Clock::system().now()).await?;
            print(&format!("renamed \"{name}\" to \"{}\"\n", new_name.as_str()))
        }
        OrgCommand::Set { name, timezone: ZoneOrNone(timezone) } => {
            let store = open(&database).await?;
            store.set_timezone(&name, timezone.as_ref(), Clock::system().now()).await?;
            let mapping = store.read_options(&name, None, ReadOptions::default()).await?.mapping;
            if let Some(zone) = mapping.timezone.as_ref().filter(|zone| Some(*zone) != timezone.as_ref()) {
                note(&format!("its stored mapping has timezone = \"{}\", which comes first", zone.name()));
            }
            let zone = timezone.as_ref().map_or("none", |zone| zone.name());
            print(&format!("set the time zone of \"{name}\": {zone}\n"))
        }
        OrgCommand::Mapping { name, set, clear, .. } => mapping(&database, &name, set, clear).await,
        OrgCommand::ForgetWatchers { name } => {
            let forgotten = open(&database).await?.forget_watchers(&name, Clock::system().now()).await?;
            print(&format!("forgot {}\n", count(forgotten, "watcher", "watchers")))
        }
        OrgCommand::Remove { name, yes } => remove(&database, &name, yes).await,
    }
}

/// Stores, clears or shows the mapping of an organisation.
async fn mapping(
    database: &DatabaseArg,
    name: &str,
    set: Option<PathBuf>,
    clear: bool,
) -> anyhow::Result<()> {
    let (store, now) = (open(database).await?, Clock::system().now());
    if let Some(file) = set {
        let (text, mapping) = read_mapping(&file)?;
        if mapping == Mapping::default() {
            bail!("the mapping {} states nothing; --clear removes the stored one", file.display());
        }
        store.set_mapping(name, Some(text), now).await?;
        return print(&format!("stored the mapping of \"{name}\"\n"));
    }
    if clear {
        store.set_mapping(name, None, now).await?;
        return print(&format!("removed the mapping of \"{name}\"\n"));
    }
    match store.import_settings(name).await?.1 {
        Some(mapping) => print(&mapping),
        None => print(&format!("\"{name}\" has no mapping\n")),
    }
}

async fn remove(database: &DatabaseArg, name: &str, yes: bool) -> anyhow::Result<()> {
    let store = open(database).await?;
    let org = store.org(name).await?;
    let what = format!(
        "organisation \"{name}\" with {} and {}",
        count(org.batches, "batch", "batches"),
        count(org.credentials, "credential", "credentials")
    );
    if !yes
        && !is_confirmed(&format!("Remove {what}? This cannot be undone. Type the name to confirm: "), name)?
    {
        bail!("the name did not match: nothing was removed");
    }
    store.remove_org(name, Clock::system().now()).await?;
    print(&format!("removed {what}\n"))
}

fn list(orgs: &[Organisation]) -> String {
    if orgs.is_empty() {
        return "no organisations yet: add one with `batchscan org add NAME`\n".into();
    }
    let row = |org: &Organisation| {
        let (batches, credentials) = (grouped(org.batches), grouped(org.credentials));
        let zone = org.timezone.clone().unwrap_or("-".into());
        let mapping = if org.has_mapping { "yes" } else { "-" }.to_owned();
        [org.name.clone(), batches, credentials, zone, mapping, format_time(Some(org.created_at))]
    };
    table(
        ["NAME", "BATCHES", "CREDENTIALS", "TIME ZONE", "MAPPING", "ADDED"],
        &orgs.iter().map(row).collect::<Vec<_>>(),
    )
}

fn list_json(orgs: &[Organisation]) -> String {
    format!("{}\n", orgs.iter().map(organisation).collect::<serde_json::Value>())
}
