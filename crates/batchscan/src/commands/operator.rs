//! `batchscan operator token`: tokens of the operator API.

use anyhow::{Context, anyhow};
use batchscan_model::{ClientId, UtcInstant};
use batchscan_server::auth::KeyRing;
use batchscan_server::clock::Clock;
use batchscan_store::{IdAndSecret, NewCredential, OperatorRole, OperatorToken, Store};
use serde_json::json;

use super::context::{format_time, open};
use crate::args::{Operator, OperatorCommand, TokenCommand, usage_error};
use crate::table::{sanitize, table};
use crate::terminal::{print, print_once};

pub(crate) async fn run(Operator { database, command }: Operator) -> anyhow::Result<()> {
    let OperatorCommand::Token { command } = command;
    let now = Clock::system().now();
    match command {
        TokenCommand::Issue { role, org, label, expires, json } => {
            if role == OperatorRole::Admin && org.is_some() {
                usage_error("operator", "--org can only be used with --role ingest").exit();
            }
            let store = open(&database).await?;
            issue(&store, (role, org.as_deref()), label, expires, json, now).await
        }
        TokenCommand::List { json } => {
            let all = open(&database).await?.operator_tokens().await?;
            print(&if json { list_json(&all, now) } else { list(&all, now) })
        }
        TokenCommand::Revoke { id } => {
            let id = ClientId::new(&id).context("this is not the id of an operator token")?;
            open(&database).await?.revoke_operator_token(&id, now).await?;
            print(&format!("revoked {id}\n"))
        }
    }
}

async fn issue(
    store: &Store,
    (role, org): (OperatorRole, Option<&str>),
    label: String,
    expires_at: Option<UtcInstant>,
    json: bool,
    now: UtcInstant,
) -> anyhow::Result<()> {
    let keys = KeyRing::new(&store.keys(now).await?, now)?;
    let issued = IdAndSecret::of_operator()
        .ok_or_else(|| anyhow!("the random number generator failed: nothing was issued"))?;
    let (id, secret_hash) = (&issued.id, keys.secret.hash(&issued.secret));
    let new = NewCredential { client: id.clone(), label, expires_at, secret_hash, now };
    store.add_operator_token(role, org, new).await?;
    let text = match json {
        true => format!("{}\n", json!({ "id": id.as_str(), "token": issued.reveal() })),
        false => format!(
            "id     {id}\ntoken  {}\n\nSave the token now; it cannot be shown again.\n",
            issued.reveal()
        ),
    };
    if let Err(error) = print_once(&text) {
        let revoked = store.revoke_operator_token(id, now).await;
        revoked.with_context(|| format!("cannot print the token, and cannot revoke {id}"))?;
        return Err(error.context("the token was revoked, because it could not be printed"));
    }
    match expires_at {
        Some(end) if !json => print(&format!("Expires on {}.\n", format_time(Some(end)))),
        _ => Ok(()),
    }
}

fn list(all: &[OperatorToken], now: UtcInstant) -> String {
    if all.is_empty() {
        return "no tokens yet: issue one with `batchscan operator token issue --role ingest`\n".into();
    }
    let row = |OperatorToken { credential: token, role, org }: &OperatorToken| {
        let [issued, expires, used] =
            [Some(token.created_at), token.expires_at, token.last_used_at].map(format_time);
        let org = org.as_deref().map_or_else(|| "all".into(), sanitize);
        let state = token.status(now).name().to_owned();
        [
            token.client.to_string(),
            role.name().into(),
            org,
            sanitize(&token.label),
            state,
            issued,
            expires,
            used,
        ]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    table(["ID", "ROLE", "ORGANISATION", "LABEL", "STATE", "ISSUED", "EXPIRES", "LAST USED"], &rows)
}

fn list_json(all: &[OperatorToken], now: UtcInstant) -> String {
    let text = |instant: Option<UtcInstant>| instant.map(|instant| instant.to_string());
    let one = |OperatorToken { credential: token, role, org }: &OperatorToken| {
        json!({
            "id": token.client.as_str(),
            "role": role.name(),
            "organisation": org,
            "label": token.label,
            "state": token.status(now).name(),
            "created_at": token.created_at.to_string(),
            "expires_at": text(token.expires_at),
            "revoked_at": text(token.revoked_at),
            "last_used_at": text(token.last_used_at),
        })
    };
    format!("{}\n", all.iter().map(one).collect::<serde_json::Value>())
}
