//! Builds a client: address, credentials, retry policy, certificates.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use batchscan_model::ClientSecret;
use url::Url;

use crate::http::{self, is_loopback, parse_address};
use crate::retry::{Retry, RetryPolicy};
use crate::session::Session;
use crate::{Client, Error, Version};

/// Limit for a pause within a response. Some services take a while to prepare a page, and changes may be waited for: this
/// is longer than [`WAIT_MAX`](crate::changes::WAIT_MAX).
const READ_TIMEOUT: Duration = Duration::from_secs(75);

/// Builds a [`Client`]. Created by [`Client::builder`].
///
/// ```
/// use std::time::Duration;
/// use batchscan_client::Client;
///
/// let client = Client::builder("https://scans.example.org")
///     .credentials("bs_6Qy0cVgJ0xXhT3mD", "a secret from a safe place")
///     .retry_for(Duration::from_secs(300))
///     .on_retry(|retry| eprintln!("{}; retry in {:?}", retry.error, retry.wait))
///     .build()?;
/// # Ok::<(), batchscan_client::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClientBuilder {
    base: Result<Url, Error>,
    credentials: Option<(String, ClientSecret)>,
    version: Version,
    retry_policy: RetryPolicy,
    added_roots_pem: Vec<Vec<u8>>,
}

impl Client {
    /// Starts to build a client for the service at this address.
    pub fn builder(url: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(&url.into())
    }
}

impl ClientBuilder {
    pub(crate) fn new(url: &str) -> Self {
        // Parsed at once, so that an address with a password is never stored or shown.
        let (base, retry_policy) = (parse_address(url), RetryPolicy::default());
        Self {
            base,
            credentials: None,
            version: Version::default(),
            retry_policy,
            added_roots_pem: Vec::new(),
        }
    }

    /// Sets the credentials that the service's operator issued.
    #[must_use]
    pub fn credentials(mut self, client_id: impl Into<String>, client_secret: impl Into<String>) -> Self {
        self.credentials = Some((client_id.into(), ClientSecret::new(client_secret)));
        self
    }

    /// Sets the version of the API (default: v2).
    #[must_use]
    pub fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Sets the time limit for one page, all retries and waits included (default: two minutes). Zero disables retries.
    #[must_use]
    pub fn retry_for(mut self, limit: Duration) -> Self {
        self.retry_policy.limit = limit;
        self
    }

    /// Sets the wait before a retry if the service does not send `Retry-After` (default: 3 to 5 seconds).
    #[must_use]
    pub fn retry_wait(mut self, wait: RangeInclusive<Duration>) -> Self {
        self.retry_policy.wait = wait;
        self
    }

    /// Sets a function that is called before each wait, for example to log it.
    #[must_use]
    pub fn on_retry(mut self, listener: impl Fn(&Retry<'_>) + Send + Sync + 'static) -> Self {
        self.retry_policy.listener = Some(Arc::new(listener));
        self
    }

    /// Trusts these certificates in PEM format in addition to the system's, for a private certificate authority.
    #[must_use]
    pub fn root_certificates_pem(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.added_roots_pem.push(pem.into());
        self
    }

    /// Builds the client. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the address or the credentials are not valid, [`Error::RootCertificate`] if an added
    /// certificate is not.
    pub fn build(self) -> Result<Client, Error> {
        let base = self.base?;
        let credentials =
            self.credentials.ok_or_else(|| Error::Config("the credentials are missing".into()))?;
        if credentials.0.is_empty() || credentials.1.reveal().is_empty() {
            return Err(Error::Config("the client id or the client secret is empty".into()));
        }
        let is_local = is_loopback(&base);
        let http = http::client(&base, &self.added_roots_pem, |http| {
            // On loopback, compression costs more than it saves.
            http.read_timeout(READ_TIMEOUT).gzip(!is_local)
        })?;
        Ok(Client::new(Session::new(http, base, credentials, self.version, self.retry_policy)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_rejected_before_anything_is_sent() {
        let at = |url: &str| Client::builder(url).credentials("id", "hush-5f");
        let valid = "https://scans.example.org";
        for (builder, expected) in [
            (at("scans.example.org"), "write it like https://scans.example.org"),
            (at(""), "write it like https://scans.example.org"),
            (at("ftp://scans.example.org"), "it must begin with http:// or https://"),
            (at("https://ann:hush@scans.example.org"), "it must not contain a user name or a password"),
            (at("https://scans.example.org/?a=1"), "it must not contain ? or #"),
            (at("https://scans.example.org/v2/"), "remove /v2"),
            (at("https://scans.example.org/a/v2/batches"), "remove /v2/batches"),
            (at(valid).credentials("id", ""), "the client id or the client secret is empty"),
            (Client::builder(valid), "the credentials are missing"),
        ] {
            let error = builder.build().unwrap_err();
            assert!(matches!(error, Error::Config(_)) && error.to_string().ends_with(expected), "{error}");
        }
        let error = at(valid).root_certificates_pem("none").build().unwrap_err();
        assert_eq!(error, Error::RootCertificate("no certificate in PEM format".into()));
    }
}
