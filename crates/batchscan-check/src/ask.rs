//! One request as the rules write it: method, path, query, headers, form. Sends nothing itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The two versions of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Version {
    /// Flat arrays.
    V1,
    /// Pages.
    V2,
}

impl Version {
    pub(crate) const BOTH: [Self; 2] = [Self::V1, Self::V2];

    pub(crate) fn auth(self) -> &'static str {
        match self {
            Self::V1 => "/v1/auth",
            Self::V2 => "/v2/auth",
        }
    }

    pub(crate) fn batches(self) -> &'static str {
        match self {
            Self::V1 => "/v1/batches",
            Self::V2 => "/v2/batches",
        }
    }
}

/// A request to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Ask {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Option<Vec<u8>>,
}

impl Ask {
    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    pub(crate) fn new(method: &'static str, path: &str) -> Self {
        Self { method, path: path.to_owned(), headers: Vec::new(), body: None }
    }

    /// A form posted to an auth endpoint.
    pub(crate) fn form(path: &str, fields: &[(&str, &str)]) -> Self {
        Self::new("POST", path).body("application/x-www-form-urlencoded", pairs(fields).into_bytes())
    }

    pub(crate) fn body(mut self, content_type: &str, body: Vec<u8>) -> Self {
        self.body = Some(body);
        self.header("Content-Type", content_type)
    }

    pub(crate) fn query(mut self, fields: &[(&str, &str)]) -> Self {
        if !fields.is_empty() {
            self.path = format!("{}?{}", self.path, pairs(fields));
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

    /// Whether an answer to this request may rightly hold a token.
    pub(crate) fn obtains_token(&self) -> bool {
        Version::BOTH.iter().any(|version| self.path.starts_with(version.auth()))
    }

    /// The request as a person would write it down. Not yet redacted.
    pub(crate) fn written(&self) -> String {
        let mut line = format!("{} {}", self.method, self.path);
        for (name, value) in &self.headers {
            line.push_str(&format!("  {name}: {value}"));
        }
        match &self.body {
            Some(body) if !body.is_empty() => {
                line.push_str("  ");
                line.push_str(&String::from_utf8_lossy(body));
            }
            _ => {}
        }
        line
    }
}

/// `key=value` pairs joined by `&`. Colons stay as they are, so that dates remain readable.
fn pairs(fields: &[(&str, &str)]) -> String {
    let encode = |text: &str| -> String {
        url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace("%3A", ":")
    };
    let pairs: Vec<String> =
        fields.iter().map(|(key, value)| format!("{}={}", encode(key), encode(value))).collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plus_is_escaped_and_a_space_becomes_one() {
        let ask = Ask::get("/v1/batches").query(&[("a", "00+00:00"), ("b", "00 00:00")]);
        assert_eq!(ask.path, "/v1/batches?a=00%2B00:00&b=00+00:00");
    }

    #[test]
    fn a_request_is_written_on_one_line() {
        let ask = Ask::form("/v2/auth", &[("client_id", "me")]).header("X-Y", "z");
        let line = "POST /v2/auth  Content-Type: application/x-www-form-urlencoded  X-Y: z  client_id=me";
        assert_eq!(ask.written(), line);
    }
}
