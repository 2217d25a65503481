//! `batchscan login` and `batchscan logout`.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::bail;

use crate::args::{Login, Logout};
use crate::connection::{self, config_folder};
use crate::figures::table;
use crate::output::{bar, print, remark};
use crate::profiles::Profiles;
use crate::units::parse_url;

pub(crate) async fn run(command: Login) -> anyhow::Result<ExitCode> {
    let mut profiles = Profiles::load(&config_folder()?)?;
    if command.list {
        return list(&profiles);
    }
    let connection = command.connection;
    let url = match &connection.url {
        Some(url) => url.clone(),
        None => parse_url(&answer("address of the service: ", "--url")?).map_err(anyhow::Error::msg)?,
    };
    let id = connection.client_id.clone().map_or_else(|| answer("client id: ", "--client-id"), Ok)?;
    let profile = connection::resolve_new(&connection, url, id)?;
    let bar = bar("", "signing in{wide_msg}");
    let service = connection::client(&profile, &connection, &bar)?;
    let signed_in = service.client.sign_in().await;
    bar.finish_and_clear();
    signed_in?;
    if let Some(note) = service.note() {
        remark(&note);
    }
    let name = &connection.profile;
    profiles.save(name, profile)?;
    let (url, id, file) = (service.url, service.client_id, profiles.path());
    let flag = if name.is_default() { String::new() } else { format!(" --profile {name}") };
    print(&format!(
        "signed in to {url} as {id}; kept as profile {name} in {}\n\
         next: batchscan pull{flag} --start-date 30d --output batches.xlsx\n",
        file.display(),
    ))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run_logout(command: &Logout) -> anyhow::Result<ExitCode> {
    let mut profiles = Profiles::load(&config_folder()?)?;
    let name = &command.profile;
    // The error of a name that is not there lists those that are.
    profiles.get(name)?;
    profiles.remove(name)?;
    print(&format!("forgot profile {name}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn list(profiles: &Profiles) -> anyhow::Result<ExitCode> {
    let rows: Vec<[String; 3]> = profiles
        .list()
        .map(|(name, profile)| [name.to_string(), profile.url.clone(), profile.client_id.clone()])
        .collect();
    if rows.is_empty() {
        print("no profiles; keep one with `batchscan login --url URL --client-id ID`\n")?;
    } else {
        print(&table(["profile", "url", "client id"], &rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(question: &str, flag: &str) -> anyhow::Result<String> {
    if !std::io::stdin().is_terminal() {
        bail!("{flag} is missing");
    }
    let mut err = std::io::stderr().lock();
    err.write_all(question.as_bytes()).and_then(|()| err.flush())?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    match line.trim() {
        "" => bail!("{flag} is missing"),
        answer => Ok(answer.to_owned()),
    }
}
