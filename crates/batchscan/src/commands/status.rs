//! `batchscan status`: one screen for an operator's day. What needs attention comes first.

use std::path::Path;
use std::process::ExitCode;

use batchscan_model::UtcInstant;
use batchscan_server::clock::Clock;
use batchscan_server::operator::json::{credential, import};
use batchscan_store::{
    Credential, CredentialStatus, DatabaseUrl, HostHealth, ImportEntry, OrgStatus, Status,
    WATCHER_TIMEOUT_SECS, Watcher, WatcherState,
};
use serde_json::{Value, json};

use super::context::{format_time, open};
use crate::args;
use crate::numbers::{count, grouped, size};
use crate::platform::shell_quoted;
use crate::table::{sanitize, table};
use crate::terminal::print;

const DAY_SECS: i64 = 86_400;
/// Credentials that expire earlier are reported.
const EXPIRY_DAYS: i64 = 14;
/// Rejected files, warnings and tries of ended credentials are reported for this time.
const REJECTION_DAYS: i64 = 7;
/// Files of an organisation that are listed.
const FILES_MAX: usize = 5;
/// An older backup is reported.
const BACKUP_DAYS: i64 = 7;
const FREE_BYTES_MIN: u64 = 1024 * 1024 * 1024;

pub(crate) async fn run(args::Status { database, json }: args::Status) -> anyhow::Result<ExitCode> {
    let store = open(&database).await?;
    let (status, now) = (store.status().await?, Clock::system().now());
    let report = Report { database: &database.database, hosts: store.hosts(), status, now };
    let attention = report.attention();
    print(&if json { report.json(&attention) } else { report.text(&attention) })?;
    Ok(if attention.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Report<'a> {
    database: &'a DatabaseUrl,
    hosts: Vec<HostHealth>,
    status: Status,
    now: UtcInstant,
}

impl Report<'_> {
    /// What an operator should look at, a sentence each.
    fn attention(&self) -> Vec<String> {
        let mut found = Vec::new();
        let down = self.hosts.iter().filter(|host| !host.is_up);
        found.extend(down.map(|host| format!("the database host {} does not respond", host.host)));
        if let Some(free) = self.free_bytes().filter(|free| *free < FREE_BYTES_MIN) {
            found.push(format!("the disk of the database has {} left", size(free)));
        }
        let has_batches = self.status.orgs.iter().any(|org| org.org.batches > 0);
        match self.status.backed_up_at {
            None if has_batches => {
                found.push("there is no backup: run `batchscan backup --keep 14 FOLDER`".into());
            }
            Some(at) if self.days_since(at) >= BACKUP_DAYS => {
                found.push(format!("the last backup is {} days old", self.days_since(at)));
            }
            _ => {}
        }
        found.extend(self.status.orgs.iter().flat_map(|org| self.attention_of(org)));
        found
    }

    fn attention_of(&self, org: &OrgStatus) -> Vec<String> {
        let name = &org.org.name;
        let is_recent = |import: &&ImportEntry| self.days_since(import.at) < REJECTION_DAYS;
        // Those that were imported come first: their batches may be wrong.
        let files: Vec<&ImportEntry> = org.open_imports.iter().filter(is_recent).collect();
        let watchers = org.watchers.iter().filter_map(|watcher| self.attention_of_watcher(watcher, name));
        let mut found: Vec<String> = watchers.collect();
        found.extend(files.iter().take(FILES_MAX).map(|one| describe(one)));
        if !files.is_empty() {
            let more = match files.len().saturating_sub(FILES_MAX) {
                0 => String::new(),
                more => format!("{}; ", count(more as u64, "more file", "more files")),
            };
            let name = shell_quoted(name);
            found.push(format!(
                "{more}`batchscan imports --org {name}` lists all, and --acknowledge ends these messages"
            ));
        }
        found
            .extend(org.credentials.iter().filter_map(|credential| self.attention_of_credential(credential)));
        found.into_iter().map(|text| format!("{name}: {text}")).collect()
    }

    fn attention_of_watcher(&self, watcher: &Watcher, org: &str) -> Option<String> {
        let (folder, host) = (sanitize(&watcher.folder), sanitize(&watcher.host));
        let at = format_time(Some(watcher.seen_at));
        let what = match watcher.state {
            WatcherState::Stopped => format!("was stopped at {at}: start it again"),
            _ if self.is_silent(watcher) => {
                format!("has not reported since {at}: check that it runs and that its token is valid")
            }
            WatcherState::Waiting => {
                return Some(format!("the watcher of {folder} on {host}: {}", sanitize(&watcher.detail)));
            }
            WatcherState::Running => return None,
        };
        let forget = format!("`batchscan org forget-watchers {}`", shell_quoted(org));
        Some(format!("the watcher of {folder} on {host} {what}, or forget it with {forget}"))
    }

    fn is_silent(&self, watcher: &Watcher) -> bool {
        let silent_secs = self.now.secs() - watcher.seen_at.secs();
        watcher.state != WatcherState::Stopped && silent_secs > WATCHER_TIMEOUT_SECS
    }

    fn state(&self, watcher: &Watcher) -> &'static str {
        if self.is_silent(watcher) { "silent" } else { watcher.state.name() }
    }

    fn attention_of_credential(&self, credential: &Credential) -> Option<String> {
        let status = credential.status(self.now);
        let who = named(credential);
        match (status, credential.expires_at, credential.last_rejected_at) {
            (CredentialStatus::Active, Some(end), _) if -self.days_since(end) <= EXPIRY_DAYS => {
                Some(format!("{who} expires at {}", format_time(Some(end))))
            }
            (CredentialStatus::Expired | CredentialStatus::Revoked, _, Some(tried))
                if self.days_since(tried) < REJECTION_DAYS =>
            {
                let ended = if status == CredentialStatus::Expired { "has expired" } else { "was revoked" };
                Some(format!(
                    "{who} {ended}, but a client still used it at {}: give that client another one",
                    format_time(Some(tried))
                ))
            }
            _ => None,
        }
    }

    fn days_since(&self, at: UtcInstant) -> i64 {
        (self.now.secs() - at.secs()) / DAY_SECS
    }

    /// The free space for an SQLite database.
    fn free_bytes(&self) -> Option<u64> {
        let DatabaseUrl::Sqlite(path) = self.database else { return None };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs4::available_space(folder).ok()
    }

    fn text(&self, attention: &[String]) -> String {
        let mut text = String::new();
        if attention.is_empty() {
            text += "nothing needs attention\n";
        } else {
            text += "needs attention:\n";
            text.extend(attention.iter().map(|line| format!("  {line}\n")));
        }
        let free = self.free_bytes().map_or(String::new(), |free| format!(", {} free", size(free)));
        text += &format!(
            "\nversion      {}\ndatabase     {} ({}{free})\nkeys         created {}\nlast backup  {}\n",
            env!("CARGO_PKG_VERSION"),
            self.database,
            size(self.status.database_bytes),
            format_time(self.status.key_created_at),
            format_time(self.status.backed_up_at),
        );
        let orgs: Vec<_> = self.status.orgs.iter().map(org_row).collect();
        if !orgs.is_empty() {
            let head = ["ORGANISATION", "BATCHES", "NEWEST BATCH", "LAST IMPORT", "BY", "LAST REJECTED FILE"];
            text += &format!("\n{}", table(head, &orgs));
        }
        let watchers: Vec<_> = self.status.orgs.iter().flat_map(|org| self.watcher_rows(org)).collect();
        if !watchers.is_empty() {
            let head = ["ORGANISATION", "WATCHED FOLDER", "HOST", "STATE", "LAST REPORT", "FILES"];
            text += &format!("\n{}", table(head, &watchers));
        }
        let credentials: Vec<_> = self.status.orgs.iter().flat_map(|org| self.credential_rows(org)).collect();
        if !credentials.is_empty() {
            let head = ["ORGANISATION", "CLIENT ID", "LABEL", "LAST USED", "EXPIRES"];
            text += &format!("\n{}", table(head, &credentials));
        }
        text
    }

    fn watcher_rows(&self, org: &OrgStatus) -> Vec<[String; 6]> {
        let row = |one: &Watcher| {
            let [folder, host, detail] = [&one.folder, &one.host, &one.detail].map(|text| sanitize(text));
            [
                org.org.name.clone(),
                folder,
                host,
                self.state(one).to_owned(),
                format_time(Some(one.seen_at)),
                detail,
            ]
        };
        org.watchers.iter().map(row).collect()
    }

    /// The credentials that are not over.
    fn credential_rows(&self, org: &OrgStatus) -> Vec<[String; 5]> {
        let is_active = |one: &&Credential| one.status(self.now) == CredentialStatus::Active;
        let row = |one: &Credential| {
            let [used, expires] = [one.last_used_at, one.expires_at].map(format_time);
            [org.org.name.clone(), one.client.to_string(), sanitize(&one.label), used, expires]
        };
        org.credentials.iter().filter(is_active).map(row).collect()
    }

    fn json(&self, attention: &[String]) -> String {
        let text = |instant: Option<UtcInstant>| instant.map(|instant| instant.to_string());
        let watcher = |watcher: &Watcher| {
            let Watcher { host, folder, detail, seen_at, .. } = watcher;
            let state = self.state(watcher);
            json!({
                "host": host, "folder": folder, "state": state, "detail": detail, "seen_at": seen_at.to_string(),
            })
        };
        let org = |org: &OrgStatus| {
            json!({
                "name": org.org.name,
                "batches": org.org.batches,
                "newest_batch_at": text(org.newest_batch_at),
                "last_import": org.last_import.as_ref().map(import),
                "last_rejected": org.last_rejected.as_ref().map(import),
                "watchers": org.watchers.iter().map(watcher).collect::<Value>(),
                "credentials": org.credentials.iter().map(|one| credential(one, self.now)).collect::<Value>(),
            })
        };
        let report = json!({
            "attention": attention,
            "version": env!("CARGO_PKG_VERSION"),
            "database": self.database.to_string(),
            "database_bytes": self.status.database_bytes,
            "free_bytes": self.free_bytes(),
            "key_created_at": text(self.status.key_created_at),
            "backed_up_at": text(self.status.backed_up_at),
            "organisations": self.status.orgs.iter().map(org).collect::<Value>(),
        });
        format!("{report}\n")
    }
}

fn org_row(org: &OrgStatus) -> [String; 6] {
    let imported = |import: &ImportEntry| (format_time(Some(import.at)), sanitize(&import.actor));
    let (imported_at, by) = org.last_import.as_ref().map_or(("-".into(), "-".into()), imported);
    let rejected = |import: &ImportEntry| format!("{} {}", format_time(Some(import.at)), file(import));
    let rejected = org.last_rejected.as_ref().map_or("-".into(), rejected);
    [
        org.org.name.clone(),
        grouped(org.org.batches),
        format_time(org.newest_batch_at),
        imported_at,
        by,
        rejected,
    ]
}

/// A file that was rejected or has warnings, when and why.
fn describe(import: &ImportEntry) -> String {
    let what = match import.is_rejected {
        true => "rejected".to_owned(),
        false => format!("imported with {}", count(import.warnings, "warning", "warnings")),
    };
    // Wrong values are more important than what was ignored.
    let first = import.messages.iter().find(|message| message.contains("expected"));
    let Some(first) = first.or(import.messages.first()) else {
        return format!("{} was {what} at {}", file(import), format_time(Some(import.at)));
    };
    let more = match import.messages.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    format!("{} was {what} at {}: {}{more}", file(import), format_time(Some(import.at)), sanitize(first))
}

fn file(import: &ImportEntry) -> String {
    sanitize(import.file.as_deref().unwrap_or("a file"))
}

fn named(credential: &Credential) -> String {
    match credential.label.as_str() {
        "" => credential.client.to_string(),
        label => format!("{} ({})", credential.client, sanitize(label)),
    }
}
