//! `batchscan credential`.

use std::io::IsTerminal;

use anyhow::{Context, anyhow, bail};
use batchscan_model::{ClientId, ClientSecret, UtcInstant};
use batchscan_server::auth::KeyRing;
use batchscan_server::clock::Clock;
use batchscan_server::operator::json::credential;
use batchscan_store::{
    AdminError, Credential as StoredCredential, CredentialStatus, Freshness, IdAndSecret, NewCredential,
    OrgOverview, Rotation, Session, Store, new_secret,
};
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use serde_json::json;

use super::context::{format_time, later, open, org_name};
use crate::args::{Credential, CredentialCommand, LinkOptions, settings};
use crate::table::table;
use crate::terminal::{note, print, print_hint, print_once};

/// The dashboard of a service with the default settings.
const LOCAL_URL: &str = "http://127.0.0.1:8080";

pub(crate) async fn run(Credential { database, command }: Credential) -> anyhow::Result<()> {
    let store = open(&database).await?;
    let now = Clock::system().now();
    match command {
        CredentialCommand::Issue { org, label, expires, link, link_options, json } => {
            let (client, secret) = issue(&store, &org, label, expires, now).await?;
            if link {
                return print_link(&store, client, &link_options, json, now).await;
            }
            if let Err(error) = print_once(&format_secret(&client, &secret, json)) {
                let revoked = store.revoke_credential(&client, now).await;
                revoked.with_context(|| format!("cannot print the secret, and cannot revoke {client}"))?;
                return Err(
                    error.context("the credential was revoked, because its secret could not be printed")
                );
            }
            if json {
                return Ok(());
            }
            if let Some(end) = expires {
                print(&format!("Expires on {}.\n", format_time(Some(end))))?;
            }
            print_hint(&format!("Next, on the client: batchscan login --url URL --client-id {client}"))
        }
        CredentialCommand::List { org, json } => {
            let all = store.credentials(org.as_deref()).await?;
            let orgs = store.org_overviews().await?;
            print(&if json { list_json(&all, &orgs, now) } else { list(&all, &orgs, now) })
        }
        CredentialCommand::Rotate { client_id, retire_after, json } => {
            rotate(&store, &parse_client_id(&client_id)?, later(now, retire_after), now, json).await
        }
        CredentialCommand::Link { client_id, options, json } => {
            print_link(&store, parse_client_id(&client_id)?, &options, json, now).await
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
    let secret = new_secret().ok_or_else(no_randomness)?;
    let secret_hash = KeyRing::new(&store.keys(now).await?, now)?.secret.hash(&secret);
    let ended = store.rotate_credential(client, Rotation { secret_hash, retire_at, now }).await?;
    print_once(&format_secret(client, &secret, json)).with_context(|| {
        let until = format_time(Some(retire_at));
        format!("the new secret was stored but could not be printed; the old one works until {until}")
    })?;
    if json {
        return Ok(());
    }
    match retire_at > now {
        true => print(&format!("The old secret works until {}.\n", format_time(Some(retire_at))))?,
        false => print(
            "The old secret no longer works. Tokens that it got work until they expire, or until the credential is revoked.\n",
        )?,
    }
    if let Some(until) = ended {
        print(&format!("An older secret, valid until {}, was ended.\n", format_time(Some(until))))?;
    }
    Ok(())
}

/// Creates a sign-in link and prints it, on a terminal also as a QR code.
async fn print_link(
    store: &Store,
    client: ClientId,
    options: &LinkOptions,
    json: bool,
    now: UtcInstant,
) -> anyhow::Result<()> {
    let credential = require_active(store, &client, now).await?;
    let keys = KeyRing::new(&store.keys(now).await?, now)?;
    let valid_until = later(now, options.link_valid);
    let expires_at = credential.expires_at.map_or(valid_until, |end| end.min(valid_until));
    let new = Session::new(&keys.secret, client.clone(), true, expires_at, now);
    let (session, secret) = new.ok_or_else(no_randomness)?;
    store.add_session(session, None).await?;
    let known = options.public_url.clone().or_else(settings::service_url);
    let url = known.as_deref().unwrap_or(LOCAL_URL);
    let link = format!("{url}/#sign-in-link={}", secret.reveal());
    if json {
        let expires_at = expires_at.to_string();
        let json = json!({ "client_id": client.as_str(), "link": link, "link_expires_at": expires_at });
        return print_once(&format!("{json}\n"));
    }
    print_once(&format!("client id     {client}\nsign-in link  {link}\n\n"))?;
    if std::io::stdout().is_terminal() {
        print(&format!("{}\n", terminal_code(&link)?))?;
    }
    print(&format!(
        "The link signs in once, until {}. The browser then stays signed in for up to 90 days.\n",
        format_time(Some(expires_at))
    ))?;
    if is_loopback(url) {
        let reason = match known {
            Some(_) => String::new(),
            None => ", the default: no setting names its address".to_owned(),
        };
        note(&format!(
            "note: the link works on this machine only (the service must listen at {url}{reason}); for other machines, set \
             BATCHSCAN_PUBLIC_URL in the service's settings, or --public-url, to the dashboard's address"
        ));
    }
    Ok(())
}

fn is_loopback(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, host)| host);
    host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]")
}

/// A link of a credential that cannot be used would never work.
async fn require_active(
    store: &Store,
    client: &ClientId,
    now: UtcInstant,
) -> anyhow::Result<StoredCredential> {
    let found = store.credential(client, Freshness::Latest).await?;
    let credential = found.ok_or_else(|| AdminError::CredentialNotFound(client.clone()))?;
    match credential.status(now) {
        CredentialStatus::Active => Ok(credential),
        CredentialStatus::Expired => bail!("{client} has expired: issue a new credential"),
        CredentialStatus::Revoked => Err(AdminError::Revoked(client.clone()).into()),
    }
}

/// A QR code, black on white on every terminal: many scanners cannot read an inverted one.
fn terminal_code(text: &str) -> anyhow::Result<String> {
    let code = QrCode::new(text)?.render::<Dense1x2>().build();
    Ok(code.lines().map(|line| format!("\x1b[38;5;16;48;5;231m{line}\x1b[0m\n")).collect())
}

/// Issues a credential and stores the hash of its secret.
pub(super) async fn issue(
    store: &Store,
    org: &str,
    label: String,
    expires_at: Option<UtcInstant>,
    now: UtcInstant,
) -> anyhow::Result<(ClientId, ClientSecret)> {
    let issued = IdAndSecret::of_client().ok_or_else(no_randomness)?;
    let secret_hash = KeyRing::new(&store.keys(now).await?, now)?.secret.hash(&issued.secret);
    let new = NewCredential { client: issued.id.clone(), label, expires_at, secret_hash, now };
    store.add_credential(org, new).await?;
    Ok((issued.id, issued.secret))
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
        format!("\"{shown}\" is not a valid client id; list them with `batchscan credential list`")
    })
}

fn no_randomness() -> anyhow::Error {
    anyhow!("the random number generator failed: nothing was issued")
}

fn list(all: &[StoredCredential], orgs: &[OrgOverview], now: UtcInstant) -> String {
    if all.is_empty() {
        return "no credentials yet: issue one with `batchscan credential issue --org NAME`\n".to_owned();
    }
    let row = |info: &StoredCredential| {
        let state = info.status(now).name().to_owned();
        let [issued, expires, used, old_secret] =
            [Some(info.created_at), info.expires_at, info.last_used_at, info.old_secret_until(now)]
                .map(format_time);
        let org = org_name(orgs, info.org).to_owned();
        [org, info.client.to_string(), info.label.clone(), state, issued, expires, used, old_secret]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    table(
        ["ORGANISATION", "CLIENT ID", "LABEL", "STATE", "ISSUED", "EXPIRES", "LAST USED", "OLD SECRET UNTIL"],
        &rows,
    )
}

fn list_json(all: &[StoredCredential], orgs: &[OrgOverview], now: UtcInstant) -> String {
    let one = |one: &StoredCredential| {
        let mut json = credential(one, now);
        json["organisation"] = org_name(orgs, one.org).into();
        json
    };
    format!("{}\n", all.iter().map(one).collect::<serde_json::Value>())
}
