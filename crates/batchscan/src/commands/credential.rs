//! `batchscan credential`.

use std::time::Duration;

use anyhow::{Context, anyhow};
use batchscan_model::{ClientId, ClientSecret, UtcInstant};
use batchscan_server::auth::{self, KeyRing};
use batchscan_server::clock::Clock;
use batchscan_store::{Credential as StoredCredential, NewCredential, Rotation, Store};
use serde_json::json;

use super::context::{format_time, open};
use crate::args::{Credential, CredentialCommand};
use crate::table::table;
use crate::terminal::print;

pub(crate) async fn run(Credential { database, command }: Credential) -> anyhow::Result<()> {
    let store = open(&database).await?;
    let now = Clock::system().now();
    match command {
        CredentialCommand::Issue { org, label, expires, json } => {
            let expires_at = expires.map(|time| later(now, time));
            let (client, secret) = issue(&store, &org, label, expires_at, now).await?;
            print(&format_secret(&client, &secret, json))?;
            match expires_at.filter(|_| !json) {
                Some(end) => print(&format!("Expires on {}.\n", format_time(Some(end)))),
                None => Ok(()),
            }
        }
        CredentialCommand::List { org, json } => {
            let all = store.credentials(&org).await?;
            print(&if json { list_json(&all, now) } else { list(&all, &org, now) })
        }
        CredentialCommand::Rotate { client_id, retire_after, json } => {
            rotate(&store, &parse_client_id(&client_id)?, later(now, retire_after), now, json).await
        }
        CredentialCommand::Revoke { client_id } => {
            let client = parse_client_id(&client_id)?;
            store.revoke_credential(&client, now).await?;
            print(&format!("revoked {client}: already issued tokens stop working within 5 s\n"))
        }
    }
}

async fn rotate(
    store: &Store,
    client: &ClientId,
    retire_at: UtcInstant,
    now: UtcInstant,
    json: bool,
) -> anyhow::Result<()> {
    let secret = auth::new_secret().ok_or_else(no_randomness)?;
    let secret_hash = KeyRing::new(&store.keys(now).await?, now)?.hash_secret(&secret);
    let ended = store.rotate_credential(client, Rotation { secret_hash, retire_at, now }).await?;
    print(&format_secret(client, &secret, json))?;
    if json {
        return Ok(());
    }
    print(&format!("The old secret works until {}.\n", format_time(Some(retire_at))))?;
    if let Some(until) = ended {
        print(&format!("An older secret, valid until {}, was ended.\n", format_time(Some(until))))?;
    }
    Ok(())
}

/// Issues a credential and stores the hash of its secret.
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

fn format_secret(client: &ClientId, secret: &ClientSecret, json: bool) -> String {
    if json {
        return format!("{}\n", json!({ "client_id": client.as_str(), "client_secret": secret.reveal() }));
    }
    format!(
        "client id      {client}\nclient secret  {}\n\nSave the secret now; it cannot be shown again.\n",
        secret.reveal()
    )
}

fn parse_client_id(text: &str) -> anyhow::Result<ClientId> {
    ClientId::new(text).with_context(|| {
        let shown: String = text.chars().take(70).filter(|c| !c.is_control()).collect();
        format!("\"{shown}\" is not a valid client id; list them with `batchscan credential list --org NAME`")
    })
}

fn later(now: UtcInstant, time: Duration) -> UtcInstant {
    now.plus_secs(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}

fn no_randomness() -> anyhow::Error {
    anyhow!("the system has no random numbers: nothing was issued")
}

fn list(all: &[StoredCredential], org: &str, now: UtcInstant) -> String {
    if all.is_empty() {
        return format!("no credentials yet: issue one with `batchscan credential issue --org \"{org}\"`\n");
    }
    let row = |info: &StoredCredential| {
        let state = info.status(now).name().to_owned();
        let [issued, expires, used, old_secret] =
            [Some(info.created_at), info.expires_at, info.last_used_at, info.old_secret_until(now)]
                .map(format_time);
        [info.client.to_string(), info.label.clone(), state, issued, expires, used, old_secret]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    table(["CLIENT ID", "LABEL", "STATE", "ISSUED", "EXPIRES", "LAST USED", "OLD SECRET UNTIL"], &rows)
}

fn list_json(all: &[StoredCredential], now: UtcInstant) -> String {
    let text = |instant: Option<UtcInstant>| instant.map(|instant| instant.to_string());
    let one = |info: &StoredCredential| {
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
    };
    format!("{}\n", all.iter().map(one).collect::<serde_json::Value>())
}
