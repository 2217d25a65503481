//! A request as the rules describe it: method, path, query, headers, body. Sends nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;

/// The two versions of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Version {
    /// Flat arrays.
    V1,
    /// Pages.
    V2,
}

impl Version {
    pub(crate) const BOTH: [Self; 2] = [Self::V1, Self::V2];

    pub(crate) fn auth_path(self) -> &'static str {
        match self {
            Self::V1 => "/v1/auth",
            Self::V2 => "/v2/auth",
        }
    }

    pub(crate) fn batches_path(self) -> &'static str {
        match self {
            Self::V1 => "/v1/batches",
            Self::V2 => "/v2/batches",
        }
    }
}

/// A request to send. An empty body is no body.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: Method, path: &str) -> Self {
        Self { method, path: path.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    /// `GET` of a version's batches, without a token.
    pub(crate) fn batches(version: Version) -> Self {
        Self::get(version.batches_path())
    }

    pub(crate) fn empty_post(path: &str) -> Self {
        Self::new(Method::POST, path).header("Content-Length", "0")
    }

    pub(crate) fn form(path: &str, fields: &[(&str, &str)]) -> Self {
        Self::new(Method::POST, path).body("application/x-www-form-urlencoded", encode_pairs(fields))
    }

    pub(crate) fn body(mut self, content_type: &str, body: String) -> Self {
        self.body = body.into_bytes();
        self.header("Content-Type", content_type)
    }

    pub(crate) fn query(mut self, fields: &[(&str, &str)]) -> Self {
        if !fields.is_empty() {
            self.path = format!("{}?{}", self.path, encode_pairs(fields));
        }
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn basic(self, id: &str, secret: &str) -> Self {
        let credentials = STANDARD.encode(format!("{id}:{secret}"));
        self.header("Authorization", &format!("Basic {credentials}"))
    }

    /// Whether the response may contain a token.
    pub(crate) fn is_auth(&self) -> bool {
        Version::BOTH.iter().any(|version| self.path.starts_with(version.auth_path()))
    }

    /// The request on one line, for reports. Not redacted.
    pub(crate) fn to_line(&self) -> String {
        let mut line = format!("{} {}", self.method, self.path);
        for (name, value) in &self.headers {
            line.push_str(&format!("  {name}: {value}"));
        }
        if !self.body.is_empty() {
            line.push_str("  ");
            line.push_str(&String::from_utf8_lossy(&self.body));
        }
        line
    }
}

/// `key=value` pairs joined by `&`. Colons are not escaped, so that dates stay readable.
fn encode_pairs(fields: &[(&str, &str)]) -> String {
    let pairs = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    pairs.replace("%3A", ":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plus_is_escaped_and_a_space_becomes_a_plus() {
        let request = Request::get("/v1/batches").query(&[("a", "00+00:00"), ("b", "00 00:00")]);
        assert_eq!(request.path, "/v1/batches?a=00%2B00:00&b=00+00:00");
    }

    #[test]
    fn a_request_is_shown_on_one_line() {
        let request = Request::form("/v2/auth", &[("client_id", "me")]).header("X-Y", "z");
        let line = "POST /v2/auth  Content-Type: application/x-www-form-urlencoded  X-Y: z  client_id=me";
        assert_eq!(request.to_line(), line);
    }
}
