//! Builds a client: the address, the credentials, the patience.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use batchscan_model::ClientSecret;
use url::{Host, Url};

use crate::ask::Asker;
use crate::patience::{Retry, Rules};
use crate::{Client, Error, tls};

/// Longer than any network takes to connect that is worth waiting for.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long an answer may pause before its connection counts as broken: services that gather a page first take a while.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);

/// Which version of the interface to read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// `/v1`: one array. A connection that breaks in the middle of it ends the stream with an error.
    V1,
    /// `/v2`: pages with a cursor. A page that breaks is asked for again.
    #[default]
    V2,
}

impl Version {
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Version::V1 => "v1",
            Version::V2 => "v2",
        }
    }
}

/// A client in the making. [`Client::builder`] begins one.
///
/// ```
/// use std::time::Duration;
/// use batchscan_client::Client;
///
/// let client = Client::builder("https://scans.example.org")
///     .credentials("bs_6Qy0cVgJ0xXhT3mD", "a secret from a safe place")
///     .retry_for(Duration::from_secs(300))
///     .on_retry(|retry| eprintln!("{}; trying again in {:?}", retry.error, retry.wait))
///     .build()?;
/// # Ok::<(), batchscan_client::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClientBuilder {
    base: Result<Url, Error>,
    credentials: Option<(String, ClientSecret)>,
    version: Version,
    rules: Rules,
    added_roots_pem: Vec<Vec<u8>>,
}

impl ClientBuilder {
    pub(crate) fn new(url: &str) -> Self {
        // Read at once: an address with a password in it is not kept, and so never shown.
        let base = read_address(url);
        let (rules, added_roots_pem) = (Rules::default(), Vec::new());
        Self { base, credentials: None, version: Version::default(), rules, added_roots_pem }
    }

    /// What the service's operator issued.
    #[must_use]
    pub fn credentials(mut self, client_id: impl Into<String>, client_secret: impl Into<String>) -> Self {
        self.credentials = Some((client_id.into(), ClientSecret::new(client_secret)));
        self
    }

    /// Which version of the interface to read from; v2 unless told otherwise.
    #[must_use]
    pub fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// How long one page may be tried in all, waits included: two minutes unless told otherwise. Zero never tries
    /// again, and errors come as they are.
    #[must_use]
    pub fn retry_for(mut self, limit: Duration) -> Self {
        self.rules.limit = limit;
        self
    }

    /// How long to wait before trying again where the service does not say: 3 to 5 seconds unless told otherwise.
    #[must_use]
    pub fn retry_wait(mut self, wait: RangeInclusive<Duration>) -> Self {
        self.rules.wait = wait;
        self
    }

    /// Calls this before each wait, for a log or a progress bar.
    #[must_use]
    pub fn on_retry(mut self, listener: impl Fn(&Retry<'_>) + Send + Sync + 'static) -> Self {
        self.rules.listener = Some(Arc::new(listener));
        self
    }

    /// Trusts these certificates in PEM form, too, besides the system's: for an authority of one's own.
    #[must_use]
    pub fn root_certificates_pem(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.added_roots_pem.push(pem.into());
        self
    }

    /// The client. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`Error::Settings`] when the address, the credentials or an added certificate cannot be used.
    pub fn build(self) -> Result<Client, Error> {
        let wrong = |what: &str| Error::Settings(what.to_owned());
        let base = self.base?;
        let Some((id, secret)) = self.credentials else { return Err(wrong("the credentials are missing")) };
        if id.is_empty() || secret.reveal().is_empty() {
            return Err(wrong("the client id or the client secret is empty"));
        }
        let config = tls::config(&self.added_roots_pem, base.scheme() == "https")?;
        // Compressing for a network that is none costs more than it saves.
        let is_far = !is_loopback(&base);
        let mut http = reqwest::Client::builder()
            .tls_backend_preconfigured(config)
            // Credentials go to the address they were given for, and nowhere else.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_LIMIT)
            .read_timeout(SILENCE_LIMIT)
            .gzip(is_far)
            .zstd(is_far)
            .user_agent(concat!("batchscan-client/", env!("CARGO_PKG_VERSION")));
        if !is_far {
            // A proxy would look for the service on its own machine.
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| Error::Settings(format!("no HTTP client: {error}")))?;
        Ok(Client::new(Asker::new(http, base, id, secret, self.version, self.rules)))
    }
}

/// An address that requests can be made under: `http` or `https`, a host, perhaps a path.
fn read_address(text: &str) -> Result<Url, Error> {
    let wrong = |why: &str| Error::Settings(format!("the address cannot be used: {why}"));
    let url = Url::parse(text.trim())
        .map_err(|error| wrong(&format!("{error}; write it like https://scans.example.org")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it must not hold a user name or a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it must end with the host or a path, without ? or #"));
    }
    if let Some(version) =
        url.path().trim_end_matches('/').rsplit('/').next().filter(|last| ["v1", "v2"].contains(last))
    {
        return Err(wrong(&format!("leave /{version} out of it")));
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        Client::builder(url).credentials("id", "hush-5f").build().unwrap_err().to_string()
    }

    #[test]
    fn an_address_that_cannot_work_is_refused_before_anything_is_sent() {
        assert!(refused("scans.example.org").contains("write it like https://"), "{}", refused("x"));
        assert!(refused("ftp://scans.example.org").contains("http:// or https://"));
        assert!(refused("https://ann:hush@scans.example.org").contains("user name or a password"));
        assert!(refused("https://scans.example.org/?a=1").contains("without ? or #"));
        assert!(refused("").contains("write it like"));
        assert!(refused("https://scans.example.org/v2/").ends_with("leave /v2 out of it"));
    }

    #[test]
    fn credentials_are_needed_and_never_shown() {
        let builder = Client::builder("https://scans.example.org");
        assert_eq!(builder.clone().build().unwrap_err().to_string(), "the credentials are missing");
        assert!(builder.clone().credentials("id", "").build().is_err());
        let builder = builder.credentials("id", "hush-5f");
        assert!(!format!("{builder:?} {:?}", builder.clone().build().unwrap()).contains("hush-5f"));
    }

    #[test]
    fn an_added_root_must_be_a_certificate() {
        let builder =
            Client::builder("https://a.example").credentials("i", "s").root_certificates_pem("none");
        assert!(builder.build().unwrap_err().to_string().contains("no certificate in PEM form"));
    }
}
