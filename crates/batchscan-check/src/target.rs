//! The service to check, and why it may not be possible to check it.

use std::fmt;

use url::Url;

/// The service to check and the client to check it as.
#[derive(Debug, Clone)]
pub struct Target {
    /// `http` or `https`, with or without a path, with or without a slash at the end.
    pub base_url: String,
    /// The client id.
    pub client_id: String,
    /// The client secret.
    pub client_secret: Secret,
    /// Certificates to trust in addition to the system's, in PEM format.
    pub ca_cert: Option<Vec<u8>>,
}

/// A client secret. Never printed.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps the secret as issued.
    pub fn new(secret: String) -> Self {
        Self(secret)
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Why nothing could be checked. All but `NoClient` begin with the base URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// The base URL is invalid.
    #[error("{0} is not a valid base URL: {1}")]
    BadUrl(String, &'static str),
    /// The HTTP client could not be set up.
    #[error("cannot set up the HTTP client: {0}")]
    NoClient(String),
    /// All paths of the API return 404.
    #[error("no batch scan API at {0} (404): give the base URL, without /v1 or /v2")]
    NoService(String),
    /// The service rejects the credentials.
    #[error(
        "the service at {0} rejected the client id and secret (401): nothing can be checked without a token"
    )]
    BadCredentials(String),
    /// There was no response to the first request.
    #[error("{0}; check the address, and that the service is running")]
    NoResponse(String),
    /// The TLS handshake failed.
    #[error("{0}")]
    Untrusted(String),
}

pub(crate) fn parse_base_url(text: &str) -> Result<Url, Unreachable> {
    let bad = |why| Unreachable::BadUrl(format!("{text:?}"), why);
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or_else(|| bad("it must begin with http:// or https://"))?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("it must not contain ? or #"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // The message must not repeat the URL: it contains a secret.
        return Err(Unreachable::BadUrl("a URL with a user name or a password".to_owned(), "remove them"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print() {
        assert_eq!(format!("{:?}", Secret::new("hush".into())), "[redacted]");
    }

    #[test]
    fn a_base_url_is_http_or_https_without_query_and_credentials() {
        for good in ["http://127.0.0.1:8080", "https://scans.example/", "https://scans.example/api/"] {
            assert!(parse_base_url(good).is_ok(), "{good}");
        }
        for bad in ["", "scans.example", "ftp://x", "http://x/?a=b", "http://x/#a", "http://me:hush@x/"] {
            let error = parse_base_url(bad).unwrap_err().to_string();
            assert!(!error.contains("hush"), "{error}");
        }
    }
}
