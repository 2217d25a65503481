//! `batchscan login` and `batchscan logout`.

use anyhow::bail;

use crate::args::{Login, Logout, parse_url};
use crate::connection::{self, config_folder};
use crate::profiles::Profiles;
use crate::progress::progress_bar;
use crate::table::table;
use crate::terminal::{note, print, prompt};

pub(crate) async fn run(command: Login) -> anyhow::Result<()> {
    let mut profiles = Profiles::load(&config_folder()?)?;
    if command.list {
        return list(&profiles);
    }
    let connection = command.connection;
    let url = match &connection.url {
        Some(url) => url.clone(),
        None => parse_url(&ask("address of the service: ", "--url")?).map_err(anyhow::Error::msg)?,
    };
    let id = connection.client_id.clone().map_or_else(|| ask("client id: ", "--client-id"), Ok)?;
    let profile = connection::new_profile(&connection, url, id)?;
    let bar = progress_bar("", "signing in{wide_msg}");
    let service = connection::connect(&profile, &connection, &bar)?;
    let signed_in = service.client.sign_in().await;
    bar.finish_and_clear();
    signed_in?;
    if let Some(text) = service.plaintext_note() {
        note(&text);
    }
    let name = &connection.profile;
    profiles.save(name, profile)?;
    let (url, id, file) = (service.url, service.client_id, profiles.path());
    let flag = if name.is_default() { String::new() } else { format!(" --profile {name}") };
    print(&format!(
        "signed in to {url} as {id}; saved as profile {name} in {}\n\
         next: batchscan pull{flag} --start-date 30d --output batches.xlsx\n",
        file.display(),
    ))
}

pub(crate) fn run_logout(command: &Logout) -> anyhow::Result<()> {
    let mut profiles = Profiles::load(&config_folder()?)?;
    let name = &command.profile;
    // Fails with a list of the saved profiles.
    profiles.get(name)?;
    profiles.remove(name)?;
    print(&format!("removed profile {name}\n"))
}

fn list(profiles: &Profiles) -> anyhow::Result<()> {
    let rows: Vec<[String; 3]> = profiles
        .list()
        .map(|(name, profile)| [name.to_string(), profile.url.clone(), profile.client_id.clone()])
        .collect();
    if rows.is_empty() {
        return print("no profiles; save one with `batchscan login --url URL --client-id ID`\n");
    }
    print(&table(["profile", "url", "client id"], &rows))
}

fn ask(question: &str, option: &str) -> anyhow::Result<String> {
    match prompt(question)?.as_deref().map(str::trim) {
        None | Some("") => bail!("{option} is missing"),
        Some(text) => Ok(text.to_owned()),
    }
}
