//! The HTTP client for every kind of request, and the addresses that it accepts.

use std::time::Duration;

use url::{Host, Url};

use crate::{Error, tls};

/// Generous for any usable network.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An HTTP client for one address, which trusts these certificates in addition to the system's.
pub(crate) fn client(
    base: &Url,
    added_roots_pem: &[Vec<u8>],
    configure: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
) -> Result<reqwest::Client, Error> {
    let mut http = reqwest::Client::builder()
        .tls_backend_preconfigured(tls::config(added_roots_pem, base.scheme() == "https")?)
        // Credentials only go to the address they were given for.
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("batchscan-client/", env!("CARGO_PKG_VERSION")));
    if is_loopback(base) {
        // A proxy would connect to its own loopback.
        http = http.no_proxy();
    }
    let built = configure(http).build();
    built.map_err(|error| Error::Config(format!("cannot set up HTTP: {error}")))
}

/// Paths that the client adds itself.
const API_PATHS: [&str; 6] = ["/v1", "/v2", "/v1/batches", "/v2/batches", "/v1/auth", "/v2/auth"];

/// Parses the address of a service: `http` or `https`, a host, optionally a path.
pub(crate) fn parse_address(text: &str) -> Result<Url, Error> {
    let invalid = |reason: String| Err(Error::Config(format!("invalid address: {reason}")));
    let url = match Url::parse(text.trim()) {
        Ok(url) => url,
        Err(error) => return invalid(format!("{error}; write it like https://scans.example.org")),
    };
    let path = url.path().trim_end_matches('/');
    let api_path = API_PATHS.into_iter().find(|end| path.ends_with(end));
    if !matches!(url.scheme(), "http" | "https") {
        invalid("it must begin with http:// or https://".into())
    } else if !url.username().is_empty() || url.password().is_some() {
        invalid("it must not contain a user name or a password".into())
    } else if url.query().is_some() || url.fragment().is_some() {
        invalid("it must not contain ? or #".into())
    } else if let Some(api_path) = api_path {
        invalid(format!("remove {api_path}"))
    } else {
        Ok(url)
    }
}

pub(crate) fn is_loopback(url: &Url) -> bool {
    url.host().is_some_and(|host| match host {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    })
}
