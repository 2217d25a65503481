//! `batchscan credential`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use batchscan_model::{ClientId, ClientSecret, UtcInstant};
use batchscan_server::auth::{self, KeyRing};
use batchscan_server::clock::Clock;
use batchscan_store::{DatabaseUrl, NewCredential, Rotation, Store};
use serde_json::json;

use super::{open, when};
use crate::args::Credential;
use crate::figures::table;
use crate::output::print;

pub(crate) async fn run(database: &DatabaseUrl, command: Credential) -> anyhow::Result<ExitCode> {
    let store = open(database).await?;
    let now = Clock::system().now();
    match command {
        Credential::Issue { org, label, expires, json } => {
            let expires_at = expires.map(|time| later(now, time));
            let (client, secret) = issue(&store, &org, label, expires_at, now).await?;
            print(&shown_once(&client, &secret, json))?;
            if let Some(end) = expires_at.filter(|_| !json) {
                print(&format!("It ends on {}.\n", when(Some(end))))?;
            }
        }
        Credential::List { org, json } => {
            let all = store.credentials(&org).await?;
            print(&if json { list_json(&all, now) } else { list(&all, &org, now) })?;
        }
        Credential::Rotate { client_id, retire_after, json } => {
            let client = client_id_of(&client_id)?;
            let secret = auth::new_secret().ok_or_else(no_randomness)?;
            let secret_hash = KeyRing::new(&store.keys(now).await?, now)?.hash_secret(&secret);
            let retire_at = later(now, retire_after);
            let ended = store.rotate_credential(&client, Rotation { secret_hash, retire_at, now }).await?;
            print(&shown_once(&client, &secret, json))?;
            if !json {
                print(&format!("The secret before it works until {}.\n", when(Some(retire_at))))?;
            }
            if let Some(until) = ended.filter(|_| !json) {
                let until = when(Some(until));
                print(&format!("The one before that, which was to work until {until}, has ended now.\n"))?;
            }
        }
        Credential::Revoke { client_id } => {
            let client = client_id_of(&client_id)?;
            store.revoke_credential(&client, now).await?;
            print(&format!(
                "revoked {client}: no new tokens, and those that are out stop working within 5 s\n"
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Issues a credential and stores its secret's hash.
pub(super) async fn issue(
    store: &Store,
    org: &str,
    label: String,
    expires_at: Option<UtcInstant>,
    now: UtcInstant,
) -> anyhow::Result<(ClientId, ClientSecret)> {
    let issued = auth::issue().ok_or_else(no_randomness)?;
    let secret_hash = KeyRing::new(&store.keys(now).await?, now)?.hash_secret(&issued.secret);
    let new = NewCredential { client: issued.client.clone(), label, expires_at, secret_hash, now };
    store.add_credential(org, new).await?;
    Ok((issued.client, issued.secret))
}

fn shown_once(client: &ClientId, secret: &ClientSecret, json: bool) -> String {
    if json {
        return format!("{}\n", json!({ "client_id": client.as_str(), "client_secret": secret.reveal() }));
    }
    format!(
        "client id      {client}\nclient secret  {}\n\nThe secret is shown this once: it is not kept in a form that can be read.\n",
        secret.reveal()
    )
}

fn client_id_of(text: &str) -> anyhow::Result<ClientId> {
    ClientId::new(text).with_context(|| {
        let shown: String = text.chars().take(70).filter(|c| !c.is_control()).collect();
        format!("\"{shown}\" is not a client id: `batchscan credential list --org NAME` shows them")
    })
}

fn later(now: UtcInstant, time: Duration) -> UtcInstant {
    now.plus_secs(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}

fn no_randomness() -> anyhow::Error {
    anyhow!("the system gives no random numbers: nothing was issued")
}

fn list(all: &[batchscan_store::Credential], org: &str, now: UtcInstant) -> String {
    if all.is_empty() {
        return format!("no credentials yet: issue one with `batchscan credential issue --org \"{org}\"`\n");
    }
    let rows: Vec<_> = all
        .iter()
        .map(|info| {
            [
                info.client.to_string(),
                info.label.clone(),
                info.status(now).name().to_owned(),
                when(Some(info.created_at)),
                when(info.expires_at),
                when(info.last_used_at),
                when(info.old_secret_until(now)),
            ]
        })
        .collect();
    table(["CLIENT ID", "LABEL", "STATE", "ISSUED", "EXPIRES", "LAST USED", "OLD SECRET UNTIL"], &rows)
}

fn list_json(all: &[batchscan_store::Credential], now: UtcInstant) -> String {
    let text = |instant: Option<UtcInstant>| instant.map(|instant| instant.to_string());
    let all: Vec<_> = all
        .iter()
        .map(|info| {
            json!({
                "client_id": info.client.as_str(),
                "label": info.label,
                "state": info.status(now).name(),
                "created_at": info.created_at.to_string(),
                "expires_at": text(info.expires_at),
                "revoked_at": text(info.revoked_at),
                "last_used_at": text(info.last_used_at),
                "old_secret_until": text(info.old_secret_until(now)),
            })
        })
        .collect();
    format!("{}\n", json!(all))
}
