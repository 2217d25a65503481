//! Sends one request over HTTP and reads its response to the end, within the limits of the run. No redirects, no
//! cookies, and no `Accept-Encoding` that a rule did not set.

use std::error::Error;
use std::io::Read;
use std::sync::Arc;

use reqwest::header::HeaderMap;
use reqwest::{Client, redirect};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use url::{Host, Url};

use crate::limits::Limits;
use crate::request::Request;

pub(crate) struct HttpClient {
    client: Client,
    runtime: Runtime,
    url: Url,
    pub(crate) base_url: String,
}

/// A response before redaction, with its body decompressed.
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// Why there is no complete response. Not redacted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The service took too long.
    #[error("{0}")]
    TimedOut(String),
    /// The connection failed before a response began.
    #[error(transparent)]
    NoResponse(#[from] batchscan_client::Error),
    /// The body ended early or could not be decompressed.
    #[error("{0}")]
    BadBody(String),
    /// The body exceeds the limit of the run.
    #[error("{0}")]
    TooLarge(String),
}

impl HttpClient {
    pub(crate) fn new(
        base_url: &Url,
        ca_cert: Option<&[u8]>,
        limits: &Limits,
    ) -> Result<Self, Box<dyn Error>> {
        let mut client = Client::builder()
            .tls_backend_preconfigured(tls_config(base_url.scheme() == "https", ca_cert)?)
            .http1_only()
            .redirect(redirect::Policy::none())
            .no_gzip()
            .no_zstd()
            .user_agent(concat!("batchscan-check/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(limits.connect_timeout);
        // A proxy cannot reach the loopback of this machine.
        let is_loopback = base_url.host().is_some_and(|host| match host {
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(ip) => ip.is_loopback(),
            Host::Ipv6(ip) => ip.is_loopback(),
        });
        if is_loopback {
            client = client.no_proxy();
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (url, base_url) = (base_url.clone(), base_url.as_str().trim_end_matches('/').to_owned());
        Ok(Self { client: client.build()?, runtime, url, base_url })
    }

    pub(crate) fn send(&self, request: &Request, limits: &Limits) -> Result<RawResponse, SendError> {
        self.runtime.block_on(self.exchange(request, limits))
    }

    async fn exchange(&self, request: &Request, limits: &Limits) -> Result<RawResponse, SendError> {
        let url = format!("{}{}", self.base_url, request.path);
        let mut outgoing = self.client.request(request.method.clone(), url);
        for (name, value) in &request.headers {
            outgoing = outgoing.header(*name, value);
        }
        if !request.body.is_empty() {
            outgoing = outgoing.body(request.body.clone());
        }
        let response = match timeout(limits.response_timeout, outgoing.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) if !error.is_timeout() => {
                return Err(batchscan_client::Error::from_http(&error, &self.url).into());
            }
            _ => {
                let secs = limits.response_timeout.as_secs_f32();
                return Err(SendError::TimedOut(format!("no response within {secs:.1} s")));
            }
        };
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = timeout(limits.body_timeout, read_body(response, limits.body_bytes)).await;
        let body = body.unwrap_or_else(|_| {
            Err(SendError::TimedOut(format!("{status}, then no complete body within the time limit")))
        })?;
        Ok(RawResponse { body: decompress(body, &headers, limits.body_bytes)?, status, headers })
    }
}

/// System roots are read only where they are needed: that takes a while.
fn tls_config(needs_roots: bool, ca_cert: Option<&[u8]>) -> Result<ClientConfig, Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    if needs_roots {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for certificate in CertificateDer::pem_slice_iter(ca_cert.unwrap_or_default()) {
        roots.add(certificate?)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

async fn read_body(mut response: reqwest::Response, limit: usize) -> Result<Vec<u8>, SendError> {
    let status = response.status().as_u16();
    let mut body = Vec::new();
    let url = response.url().clone();
    let broken = |error| {
        let error = batchscan_client::Error::from_http(&error, &url);
        SendError::BadBody(format!("{status}, then an incomplete body: {error}"))
    };
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        body.extend_from_slice(&chunk);
        if body.len() > limit {
            return Err(too_large(limit));
        }
    }
    Ok(body)
}

fn decompress(body: Vec<u8>, headers: &HeaderMap, limit: usize) -> Result<Vec<u8>, SendError> {
    let encoding = headers.get("content-encoding").map(|value| value.as_bytes().to_ascii_lowercase());
    let broken = |error| SendError::BadBody(format!("a body that cannot be decompressed: {error}"));
    // Responses to HEAD and 304 name an encoding but have no body.
    if body.is_empty() || encoding.as_deref() != Some(b"gzip") {
        return Ok(body);
    }
    let decoder = flate2::read::MultiGzDecoder::new(&*body);
    let mut plain = Vec::new();
    decoder.take(limit as u64 + 1).read_to_end(&mut plain).map_err(broken)?;
    if plain.len() > limit { Err(too_large(limit)) } else { Ok(plain) }
}

fn too_large(limit: usize) -> SendError {
    SendError::TooLarge(format!("a body of more than {limit} bytes, the limit of this run"))
}
