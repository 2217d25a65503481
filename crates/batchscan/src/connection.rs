//! Builds a client from the arguments and the saved profile. Sends nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, anyhow, bail};
use batchscan_client::{Client, ClientSecret, Error};
use indicatif::ProgressBar;

use crate::args::Connection;
use crate::client_secret;
use crate::platform::CONFIG_VARIABLE;
use crate::profiles::{self, Profile, Profiles};
use crate::terminal::note;

/// A client and the service it connects to.
pub(crate) struct Service {
    pub(crate) client: Client,
    pub(crate) url: String,
    pub(crate) client_id: String,
    retries: Arc<AtomicU64>,
    /// Whether the progress bar shows a retry. Reset it when a response arrives.
    pub(crate) is_retrying: Arc<AtomicBool>,
}

impl Service {
    /// A note if the connection is not encrypted and leaves this machine.
    pub(crate) fn plaintext_note(&self) -> Option<String> {
        let plain = self.url.strip_prefix("http://")?;
        let host = plain.split('/').next().unwrap_or_default();
        let host =
            host.rsplit_once(':').filter(|(_, port)| !port.contains(']')).map_or(host, |(host, _)| host);
        let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        if host == "localhost" || address.is_ok_and(|address| address.is_loopback()) {
            return None;
        }
        Some(format!("note: the connection to {host} is not encrypted; traffic can be intercepted"))
    }

    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }
}

/// The service and credentials from the arguments; missing values come from the saved profile.
pub(crate) fn resolve(connection: &Connection) -> anyhow::Result<Profile> {
    resolve_or(connection, |id| prompt_for_secret(id, ", or run `batchscan login`"))
}

/// The same, with another source of a secret that is neither given nor saved.
pub(crate) fn resolve_or(
    connection: &Connection,
    ask_secret: impl FnOnce(&str) -> anyhow::Result<ClientSecret>,
) -> anyhow::Result<Profile> {
    let given = match &connection.client_secret_file {
        None if connection.is_profile_named => None,
        file => client_secret::from_file_or_env(file.as_deref())?,
    };
    let is_complete = connection.url.is_some() && connection.client_id.is_some() && given.is_some();
    let saved = if is_complete { None } else { saved_profile(connection)? };
    let url = connection.url.clone().or_else(|| saved.as_ref().map(|saved| saved.url.clone()));
    let url = url.with_context(no_service)?;
    // Saved credentials must not be sent to another service, or as another client's.
    if let (Some(other), None) = (saved.as_ref().filter(|saved| saved.url != url), &connection.client_id) {
        bail!(
            "no client id given: profile {} is for {}, not {url}; use --client-id, or `batchscan login`",
            connection.profile,
            other.url
        );
    }
    let saved = saved.filter(|saved| saved.url == url);
    let saved_cert = || saved.as_ref().and_then(|saved| saved.ca_cert.clone());
    let ca_cert = connection.ca_cert.clone().or_else(saved_cert);
    let id = connection.client_id.clone().or_else(|| saved.as_ref().map(|saved| saved.client_id.clone()));
    let id = id.context("no client id given: use --client-id, or save it with `batchscan login`")?;
    let saved = saved.filter(|saved| saved.client_id == id);
    let client_secret = match given.or_else(|| saved.map(|saved| saved.client_secret)) {
        Some(secret) => secret,
        None => ask_secret(&id)?,
    };
    Ok(Profile { url, client_id: id, client_secret, ca_cert })
}

/// A new profile. The secret comes from the arguments, the environment or a prompt.
pub(crate) fn new_profile(
    connection: &Connection,
    url: String,
    client_id: String,
) -> anyhow::Result<Profile> {
    let client_secret = match client_secret::from_file_or_env(connection.client_secret_file.as_deref())? {
        Some(secret) => secret,
        None => prompt_for_secret(&client_id, "")?,
    };
    // Later commands may run in another folder.
    let ca_cert = connection.ca_cert.as_ref().map(std::path::absolute).transpose()?;
    Ok(Profile { url, client_id, client_secret, ca_cert })
}

/// Builds the client. Retries are shown on the progress bar. Once the bar is finished, the first retry prints a note instead.
pub(crate) fn connect(
    profile: &Profile,
    connection: &Connection,
    bar: &ProgressBar,
) -> anyhow::Result<Service> {
    let retries = Arc::new(AtomicU64::new(0));
    let is_retrying = Arc::new(AtomicBool::new(false));
    let (counter, flag, bar) = (retries.clone(), is_retrying.clone(), bar.clone());
    let mut builder = Client::builder(&profile.url)
        .credentials(&profile.client_id, profile.client_secret.reveal())
        .on_retry(move |retry| {
            counter.fetch_add(1, Ordering::Relaxed);
            let is_first = !flag.swap(true, Ordering::Relaxed);
            if bar.is_finished() && is_first {
                note(&format!("note: {}; trying again", short_cause(retry.error)));
            } else {
                let secs = retry.wait.as_secs_f64().ceil();
                bar.set_message(format!("; {}; next try in {secs} s", short_cause(retry.error)));
            }
        });
    if let Some(retry_for) = connection.retry_for {
        builder = builder.retry_for(retry_for);
    }
    if let Some(pem) = read_ca_cert(profile.ca_cert.as_deref())? {
        builder = builder.root_certificates_pem(pem);
    }
    let (url, client_id) = (profile.url.clone(), profile.client_id.clone());
    let client = builder.build().map_err(|error| name_certificate(error, profile.ca_cert.as_deref()))?;
    Ok(Service { client, url, client_id, retries, is_retrying })
}

/// The certificates to trust in addition to the system's.
pub(crate) fn read_ca_cert(file: Option<&Path>) -> anyhow::Result<Option<Vec<u8>>> {
    let read = |file: &Path| std::fs::read(file).with_context(|| format!("cannot read {}", file.display()));
    file.map(read).transpose()
}

/// Names the file of a certificate that is not valid.
pub(crate) fn name_certificate(error: Error, ca_cert: Option<&Path>) -> anyhow::Error {
    match (error, ca_cert) {
        (Error::RootCertificate(reason), Some(file)) => anyhow!("cannot read {}: {reason}", file.display()),
        (error, _) => error.into(),
    }
}

/// An error message that suggests the saved profiles, if there are any.
fn no_service() -> String {
    let profiles = config_folder().and_then(|folder| Profiles::load(&folder));
    let names: Vec<String> =
        profiles.iter().flat_map(Profiles::list).map(|(name, _)| format!("--profile {name}")).collect();
    match names.is_empty() {
        true => "no service given: use --url and --client-id, or save them with `batchscan login`".into(),
        false => format!("no service given, and there is no default profile: use {}", names.join(" or ")),
    }
}

/// The saved profile. Only a profile other than the default must exist.
fn saved_profile(connection: &Connection) -> anyhow::Result<Option<Profile>> {
    let Ok(folder) = config_folder() else { return Ok(None) };
    let profiles = Profiles::load(&folder)?;
    match profiles.get(&connection.profile) {
        Err(_) if connection.profile.is_default() => Ok(None),
        found => found.cloned().map(Some),
    }
}

pub(crate) fn config_folder() -> anyhow::Result<PathBuf> {
    let variable = |name| std::env::var_os(name);
    profiles::folder(variable(CONFIG_VARIABLE).as_deref(), variable("HOME").as_deref())
}

fn prompt_for_secret(client_id: &str, or_else: &str) -> anyhow::Result<ClientSecret> {
    client_secret::from_prompt(&format!("client secret of {client_id}: "))?.with_context(|| {
        format!("no client secret given: set BATCHSCAN_CLIENT_SECRET or use --client-secret-file{or_else}")
    })
}

/// The cause of a retry in a few words.
fn short_cause(error: &Error) -> String {
    match error {
        Error::Unavailable { status, .. } => format!("the service is busy ({})", status.as_u16()),
        Error::Unreachable { .. } => "the service is unreachable".into(),
        _ => "connection lost".into(),
    }
}
