//! From what was typed and what `login` kept to a client of a service. Sends nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail};
use batchscan_client::{Client, ClientSecret};
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
}

impl Service {
    /// A remark on a connection that others can listen to; nothing to say of an encrypted one, or of this machine.
    pub(crate) fn note(&self) -> Option<String> {
        let is_here = |url: &str| ["127.", "localhost", "[::1]"].iter().any(|here| url.starts_with(here));
        let plain = self.url.strip_prefix("http://").filter(|host| !is_here(host))?;
        Some(format!("note: the connection to {plain} is not encrypted; others on the way can read along"))
    }

    /// How often something had to be tried again.
    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }
}

/// Who asks whom: what was typed, completed by what `login` kept.
pub(crate) fn resolve(connection: &Connection) -> anyhow::Result<Profile> {
    let given = secret::given(connection.client_secret_file.as_deref())?;
    let is_whole = connection.url.is_some() && connection.client_id.is_some() && given.is_some();
    let kept = if is_whole { None } else { kept_profile(connection)? };
    complete(connection, given, kept)
}

/// The same, by what was typed alone.
pub(crate) fn resolve_new(connection: &Connection) -> anyhow::Result<Profile> {
    complete(connection, secret::given(connection.client_secret_file.as_deref())?, None)
}

/// Kept credentials are for the service and the client they were kept for: they must not reach another one.
fn complete(
    connection: &Connection,
    given: Option<ClientSecret>,
    kept: Option<Profile>,
) -> anyhow::Result<Profile> {
    let kept = kept.filter(|kept| connection.url.as_ref().is_none_or(|url| *url == kept.url));
    let Some(url) = connection.url.clone().or_else(|| kept.as_ref().map(|kept| kept.url.clone())) else {
        bail!("which service? Give --url and --client-id, or keep them with `batchscan login`");
    };
    let kept = kept.filter(|kept| connection.client_id.as_ref().is_none_or(|id| *id == kept.client_id));
    let id = connection.client_id.clone().or_else(|| kept.as_ref().map(|kept| kept.client_id.clone()));
    let id = id.context("the client id is missing: give --client-id, or keep it with `batchscan login`")?;
    let client_secret = match given.or_else(|| kept.map(|kept| kept.client_secret)) {
        Some(secret) => secret,
        None => asked(&id)?,
    };
    Ok(Profile { url, client_id: id, client_secret })
}

/// A client for it. What it waits for is shown on the bar.
pub(crate) fn client(
    profile: &Profile,
    connection: &Connection,
    bar: &ProgressBar,
) -> anyhow::Result<Service> {
    let retries = Arc::new(AtomicU64::new(0));
    let (counted, shown) = (retries.clone(), bar.clone());
    let mut builder = Client::builder(&profile.url)
        .credentials(&profile.client_id, profile.client_secret.reveal())
        .retry_for(connection.retry_for)
        .on_retry(move |retry| {
            counted.fetch_add(1, Ordering::Relaxed);
            shown.set_prefix(format!("({}; again in {} s) ", retry.error, retry.wait.as_secs()));
        });
    if let Some(file) = &connection.ca_cert {
        let pem = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        builder = builder.root_certificates_pem(pem);
    }
    let (url, client_id) = (profile.url.clone(), profile.client_id.clone());
    Ok(Service { client: builder.build()?, url, client_id, retries })
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

fn asked(client_id: &str) -> anyhow::Result<ClientSecret> {
    secret::asked(&format!("client secret of {client_id}: "))?.context(
        "the client secret is missing: set BATCHSCAN_CLIENT_SECRET, give --client-secret-file, or run `batchscan login`",
    )
}
