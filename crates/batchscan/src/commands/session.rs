//! `batchscan session`: the browsers that are signed in to the dashboard.

use anyhow::bail;
use batchscan_model::UtcInstant;
use batchscan_server::clock::Clock;
use batchscan_store::{Credential, OrgOverview, Session as StoredSession, is_issued_id};
use serde_json::json;

use super::context::{format_time, open, org_name};
use crate::args::{Session, SessionCommand};
use crate::numbers::count;
use crate::table::table;
use crate::terminal::print;

pub(crate) async fn run(Session { database, command }: Session) -> anyhow::Result<()> {
    let store = open(&database).await?;
    match command {
        SessionCommand::List { org, json } => {
            let all = store.sessions(org.as_deref(), Clock::system().now()).await?;
            let credentials = store.credentials(org.as_deref()).await?;
            if json {
                return print(&list_json(&all, &credentials));
            }
            print(&list(&all, &credentials, &store.org_overviews().await?))
        }
        SessionCommand::End { id } => match store.end_sessions(&id, Clock::system().now()).await? {
            0 => bail!("there is no such session; list them with `batchscan session list`"),
            ended => print(&format!(
                "ended {}; a token it already has works until it expires, 1 h by default. To stop it now: batchscan \
                credential revoke {}\n",
                count(ended, "session", "sessions"),
                if is_issued_id(&id) { &id } else { "CLIENT_ID" }
            )),
        },
    }
}

/// The label of a session's credential.
fn label<'a>(session: &StoredSession, credentials: &'a [Credential]) -> &'a str {
    let found = credentials.iter().find(|credential| credential.client == session.client);
    found.map_or("", |credential| &credential.label)
}

fn list(all: &[StoredSession], credentials: &[Credential], orgs: &[OrgOverview]) -> String {
    if all.is_empty() {
        return "no sessions, and no unused sign-in links\n".to_owned();
    }
    let row = |session: &StoredSession| {
        let kind = if session.is_link { "link" } else { "signed in" };
        let [created, used, expires] =
            [Some(session.created_at), session.last_used_at, Some(session.expires_at)].map(format_time);
        let [label, kind] = [label(session, credentials), kind].map(str::to_owned);
        let org = credentials.iter().find(|credential| credential.client == session.client);
        let org = org_name(orgs, org.and_then(|credential| credential.org)).to_owned();
        [org, session.id.to_string(), session.client.to_string(), label, kind, created, used, expires]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    table(
        ["ORGANISATION", "SESSION", "CLIENT ID", "LABEL", "STATE", "CREATED", "LAST USED", "EXPIRES"],
        &rows,
    )
}

fn list_json(all: &[StoredSession], credentials: &[Credential]) -> String {
    let text = |instant: Option<UtcInstant>| instant.map(|instant| instant.to_string());
    let one = |session: &StoredSession| {
        json!({
            "id": session.id.as_str(),
            "client_id": session.client.as_str(),
            "label": label(session, credentials),
            "is_link": session.is_link,
            "created_at": session.created_at.to_string(),
            "last_used_at": text(session.last_used_at),
            "expires_at": session.expires_at.to_string(),
        })
    };
    format!("{}\n", all.iter().map(one).collect::<serde_json::Value>())
}
