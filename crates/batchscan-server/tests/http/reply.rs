//! An answer, read whole.

use reqwest::RequestBuilder;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::http::contract;

/// Status, headers and body of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// Sends a request. Its answer is held against the OpenAPI document, whatever the test is about.
    pub(crate) async fn to(request: RequestBuilder) -> Self {
        let (client, request) = request.build_split();
        let request = request.unwrap();
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let response = client.execute(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let reply = Self { status, headers, body: response.bytes().await.unwrap().to_vec() };
        contract::hold(method.as_str(), &path, &reply);
        reply
    }

    /// A header's value; all of them, joined, if it stands more than once.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let values: Vec<&str> =
            self.headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The batches, of either version.
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

    /// Interface section 7: every error response has a JSON body with a field detail.
    #[track_caller]
    pub(crate) fn is_error(&self, status: u16, body: &Value) {
        assert_eq!((self.status, &self.json()), (status, body));
        assert_eq!(self.header("content-type").as_deref(), Some("application/json"));
        assert_eq!(self.header("cache-control").as_deref(), Some("no-store"));
    }

    #[track_caller]
    pub(crate) fn is_invalid_query(&self, faults: &[Value]) {
        self.is_error(422, &json!({ "detail": faults }));
    }
}

/// One entry of a 422.
pub(crate) fn fault(kind: &str, part: &str, field: &str, msg: &str) -> Value {
    json!({ "type": kind, "loc": [part, field], "msg": msg })
}

/// A form field that is missing or empty.
pub(crate) fn missing(field: &str) -> Value {
    fault("missing", "body", field, "Field required")
}

/// A parameter that stands more than once.
pub(crate) fn repeated(part: &str, field: &str) -> Value {
    fault("value_error", part, field, "Value error, the parameter is repeated")
}

/// A date without its timezone.
pub(crate) fn naive(field: &str) -> Value {
    fault("timezone_aware", "query", field, "Input should have timezone info")
}

/// A text that is no datetime.
pub(crate) fn no_datetime(field: &str) -> Value {
    let msg = "Input should be a valid datetime or date, in the form YYYY-MM-DDTHH:MM:SSZ";
    fault("datetime_from_date_parsing", "query", field, msg)
}

/// A cursor that opens nothing.
pub(crate) fn bad_cursor() -> Value {
    let msg = "Value error, not a cursor of this service: pass next_token of the previous page";
    fault("value_error", "query", "next_token", msg)
}

/// The 401 of a token that opens nothing.
pub(crate) fn invalid_token() -> Value {
    json!({ "detail": "The access token is not valid: get a new one" })
}

/// The 401 of a token that has run out.
pub(crate) fn expired_token() -> Value {
    json!({ "detail": "The access token has expired: get a new one" })
}

/// The 401 of wrong credentials.
pub(crate) fn wrong_credentials() -> Value {
    let text = "The client_id or client_secret is wrong";
    json!({ "detail": text, "error": "invalid_client", "error_description": text })
}
