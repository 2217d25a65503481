//! From what was typed and what `login` kept to a client of a service. Sends nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, bail};
use batchscan_client::{Client, ClientSecret, Error};
use indicatif::ProgressBar;

use crate::args::Connection;
use crate::profiles::{self, Profile, Profiles};
use crate::secret;

/// A client, and what it is a client of.
pub(crate) struct Service {
    pub(crate) client: Client,
    pub(crate) url: String,
    pub(crate) client_id: String,
    retries: Arc<AtomicU64>,
    /// Whether the bar shows what is waited for. Whoever gets an answer takes that back.
    pub(crate) is_waiting: Arc<AtomicBool>,
}

impl Service {
    /// A remark on a connection that others can listen to; nothing to say of an encrypted one, or of this machine.
    pub(crate) fn note(&self) -> Option<String> {
        let plain = self.url.strip_prefix("http://")?;
        let host = plain.split('/').next().unwrap_or_default();
        let host =
            host.rsplit_once(':').filter(|(_, port)| !port.contains(']')).map_or(host, |(host, _)| host);
        let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        if host == "localhost" || address.is_ok_and(|address| address.is_loopback()) {
            return None;
        }
        Some(format!("note: the connection to {host} is not encrypted; others on the way can read along"))
    }

    /// How often something had to be tried again.
    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }
}

/// Who asks whom: what was typed, completed by what `login` kept.
pub(crate) fn resolve(connection: &Connection) -> anyhow::Result<Profile> {
    let given = match &connection.client_secret_file {
        None if connection.is_by_name => None,
        file => secret::given(file.as_deref())?,
    };
    let is_whole = connection.url.is_some() && connection.client_id.is_some() && given.is_some();
    let kept = if is_whole { None } else { kept_profile(connection)? };
    let url = connection.url.clone().or_else(|| kept.as_ref().map(|kept| kept.url.clone()));
    let url =
        url.context("which service? Give --url and --client-id, or keep them with `batchscan login`")?;
    // Kept credentials are for the service and the client they were kept for: they must not reach another one.
    if let (Some(other), None) = (kept.as_ref().filter(|kept| kept.url != url), &connection.client_id) {
        bail!("the client id is missing: profile {} is for {}, not {url}", connection.profile, other.url);
    }
    let kept = kept.filter(|kept| kept.url == url);
    let id = connection.client_id.clone().or_else(|| kept.as_ref().map(|kept| kept.client_id.clone()));
    let id = id.context("the client id is missing: give --client-id, or keep it with `batchscan login`")?;
    let kept = kept.filter(|kept| kept.client_id == id);
    let client_secret = match given.or_else(|| kept.map(|kept| kept.client_secret)) {
        Some(secret) => secret,
        None => asked(&id, ", or run `batchscan login`")?,
    };
    Ok(Profile { url, client_id: id, client_secret })
}

/// Who asks whom, by what was typed alone.
pub(crate) fn resolve_new(
    connection: &Connection,
    url: String,
    client_id: String,
) -> anyhow::Result<Profile> {
    let client_secret = match secret::given(connection.client_secret_file.as_deref())? {
        Some(secret) => secret,
        None => asked(&client_id, "")?,
    };
    Ok(Profile { url, client_id, client_secret })
}

/// A client for it. What it waits for is shown on the bar.
pub(crate) fn client(
    profile: &Profile,
    connection: &Connection,
    bar: &ProgressBar,
) -> anyhow::Result<Service> {
    let retries = Arc::new(AtomicU64::new(0));
    let is_waiting = Arc::new(AtomicBool::new(false));
    let (counted, waits, shown) = (retries.clone(), is_waiting.clone(), bar.clone());
    let mut builder = Client::builder(&profile.url)
        .credentials(&profile.client_id, profile.client_secret.reveal())
        .retry_for(connection.retry_for)
        .on_retry(move |retry| {
            counted.fetch_add(1, Ordering::Relaxed);
            waits.store(true, Ordering::Relaxed);
            shown.set_message(format!("; {}, again in {} s", in_short(retry.error), retry.wait.as_secs()));
        });
    if let Some(file) = &connection.ca_cert {
        let pem = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        builder = builder.root_certificates_pem(pem);
    }
    let (url, client_id) = (profile.url.clone(), profile.client_id.clone());
    Ok(Service { client: builder.build()?, url, client_id, retries, is_waiting })
}

/// The profile, if there is one. Only a profile that was asked for by name must be there.
fn kept_profile(connection: &Connection) -> anyhow::Result<Option<Profile>> {
    let Ok(folder) = config_folder() else { return Ok(None) };
    let profiles = Profiles::load(&folder)?;
    match profiles.get(&connection.profile) {
        Err(_) if connection.profile.is_default() => Ok(None),
        found => found.cloned().map(Some),
    }
}

/// Where this user's profiles are.
pub(crate) fn config_folder() -> anyhow::Result<PathBuf> {
    let variable = |name| std::env::var_os(name);
    profiles::folder(variable("XDG_CONFIG_HOME").as_deref(), variable("HOME").as_deref())
}

fn asked(client_id: &str, or_else: &str) -> anyhow::Result<ClientSecret> {
    secret::asked(&format!("client secret of {client_id}: "))?.with_context(|| {
        format!(
            "the client secret is missing: set BATCHSCAN_CLIENT_SECRET or give --client-secret-file{or_else}"
        )
    })
}

/// A failure in a few words, for a line that has other things to show.
fn in_short(error: &Error) -> String {
    match error {
        Error::Unavailable { status, .. } => format!("the service is busy ({})", status.as_u16()),
        Error::Unreachable { .. } => "the service is unreachable".into(),
        _ => "the connection was lost".into(),
    }
}
