//! A complete response.

use std::io::Read;

use reqwest::RequestBuilder;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use super::{TestApp, contract};

/// Status, headers and body of a response.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// Sends a request. Every response is compared with the OpenAPI document.
    pub(crate) async fn to(request: RequestBuilder) -> Self {
        let (client, request) = request.build_split();
        let request = request.unwrap();
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let response = client.execute(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let reply = Self { status, headers, body: response.bytes().await.unwrap().to_vec() };
        contract::check(method.as_str(), &path, &reply);
        reply
    }

    /// The value of a header. Several values are joined.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let values: Vec<&str> =
            self.headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// The body without its encoding.
    pub(crate) fn decoded(&self) -> Vec<u8> {
        match self.header("content-encoding").as_deref() {
            None => self.body.clone(),
            Some("gzip") => {
                let mut plain = Vec::new();
                flate2::read::GzDecoder::new(&self.body[..]).read_to_end(&mut plain).unwrap();
                plain
            }
            Some(other) => panic!("unexpected encoding {other}"),
        }
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The batches in a response of v1 or v2.
    pub(crate) fn batches(&self) -> Vec<Value> {
        let body = self.json();
        body.as_array().or_else(|| body["data"].as_array()).unwrap().clone()
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.batches().iter().map(|batch| batch["batch_id"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn next_token(&self) -> Option<String> {
        self.json()["next_token"].as_str().map(str::to_owned)
    }

    #[track_caller]
    pub(crate) fn has_headers(&self, expected: &[(&str, &str)]) {
        for (name, value) in expected {
            assert_eq!(self.header(name).as_deref(), Some(*value), "{name}");
        }
    }

    /// Contract section 7: every error response has a JSON body with a field `detail`.
    #[track_caller]
    pub(crate) fn is_error(&self, status: u16, body: &Value) {
        assert_eq!((self.status, &self.json()), (status, body));
        self.has_headers(&[("content-type", "application/json"), ("cache-control", "no-store")]);
    }

    /// An error whose `detail` is this text.
    #[track_caller]
    pub(crate) fn is_detail(&self, status: u16, detail: &str) {
        self.is_error(status, &json!({ "detail": detail }));
    }

    #[track_caller]
    pub(crate) fn is_invalid_query(&self, errors: &[Value]) {
        self.is_error(422, &json!({ "detail": errors }));
    }

    #[track_caller]
    pub(crate) fn is_invalid_token(&self) {
        self.is_detail(401, "The access token is not valid: get a new one");
        self.has_headers(&[("www-authenticate", "Bearer error=\"invalid_token\"")]);
    }

    /// Wrong credentials (decision 005).
    #[track_caller]
    pub(crate) fn is_invalid_client(&self) {
        let text = "The client_id or client_secret is wrong";
        self.is_error(401, &json!({ "detail": text, "error": "invalid_client", "error_description": text }));
    }

    /// Decision 028.
    #[track_caller]
    pub(crate) fn is_unavailable(&self) {
        let text = "The service is temporarily unavailable: try again in a few seconds";
        self.is_detail(503, text);
        let wait: u64 = self.header("retry-after").unwrap().parse().unwrap();
        assert!((3..=5).contains(&wait), "{wait}");
    }
}

/// One entry of a 422.
pub(crate) fn invalid(kind: &str, part: &str, field: &str, msg: &str) -> Value {
    let mut entry = json!({ "type": kind, "loc": [part, field], "msg": msg });
    if kind.starts_with("timezone") || kind.starts_with("datetime") {
        entry["ctx"] = json!({ "example": "2026-01-31T08:00:00Z" });
    }
    entry
}

/// A missing or empty form field.
pub(crate) fn missing(field: &str) -> Value {
    invalid("missing", "body", field, "Field required")
}

pub(crate) fn repeated(part: &str, field: &str) -> Value {
    invalid("value_error", part, field, "Value error, the parameter is repeated")
}

/// A date without a timezone.
pub(crate) fn naive(field: &str) -> Value {
    invalid("timezone_aware", "query", field, "Input should have timezone info")
}

pub(crate) fn not_a_datetime(field: &str) -> Value {
    let msg = "Input should be a valid datetime or date, in the form YYYY-MM-DDTHH:MM:SSZ such as 2026-01-31T08:00:00Z: \
               a plain date is not accepted";
    invalid("datetime_from_date_parsing", "query", field, msg)
}

pub(crate) fn bad_cursor() -> Value {
    let msg = "Value error, not a cursor of this service: pass next_token of the previous page";
    invalid("value_error", "query", "next_token", msg)
}

/// The metrics of the service.
pub(crate) async fn metrics(app: &TestApp) -> String {
    app.send("GET", "/metrics").await.text().to_owned()
}

/// A metric without labels.
pub(crate) async fn metric(app: &TestApp, name: &str) -> u64 {
    let (start, text) = (format!("{name} "), metrics(app).await);
    let line = text.lines().find(|line| line.starts_with(&start)).unwrap();
    line[start.len()..].parse().unwrap()
}
