//! The answers of operations. Errors are told by the very type that is sent: its status, its body, its header.

use axum::http::StatusCode;
use batchscan_model::{Invalid, Part, Reason};

use super::super::error::{ApiError, Cause};
use super::headers::{self, Header};
use super::node::{Node, object};
use super::schemas;
use crate::auth::TokenRefused;

/// An answer of an operation.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    description: &'static str,
    headers: Vec<Header>,
    /// The media type, the schema and examples.
    content: Option<Node>,
    links: Option<Node>,
    /// The component that it is, where many operations share it.
    component: Option<&'static str>,
}

impl Answer {
    /// An answer that only one operation gives.
    pub(super) fn new(status: StatusCode, description: &'static str, headers: &[Header]) -> Self {
        let headers = [&[Header::RequestId], headers].concat();
        Self { status: status.as_u16(), description, headers, content: None, links: None, component: None }
    }

    /// The answer with a body of JSON.
    pub(super) fn json(self, schema: Node) -> Self {
        self.body("application/json", schema)
    }

    pub(super) fn body(mut self, media_type: &str, schema: Node) -> Self {
        self.content = Some(object! { media_type => object! { "schema" => schema } });
        self
    }

    pub(super) fn links(mut self, links: Node) -> Self {
        self.links = Some(links);
        self
    }

    pub(super) fn node(&self) -> Node {
        match self.component {
            Some(name) => object! { "$ref" => format!("#/components/responses/{name}") },
            None => self.in_full(),
        }
    }

    /// The same answer to HEAD (decision 030).
    pub(super) fn without_body(&self) -> Self {
        Self { content: None, links: None, component: None, ..self.clone() }
    }

    fn in_full(&self) -> Node {
        let described = object! { "description" => self.description };
        let headed = described.with("headers", Some(headers::references(&self.headers)));
        headed.with("content", self.content.clone()).with("links", self.links.clone())
    }
}

/// Every error that the document tells of. Those of paths that it does not have are not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Error {
    NotHttp,
    WrongCredentials,
    NotAuthenticated,
    MethodNotAllowed,
    BodyTooSlow,
    BodyTooLarge,
    UriTooLong,
    InvalidTokenRequest,
    InvalidQuery,
    TooManyRequests,
    HeadersTooLarge,
    Broken,
    Unavailable,
}

impl Error {
    const ALL: [Error; 13] = [
        Error::NotHttp,
        Error::WrongCredentials,
        Error::NotAuthenticated,
        Error::MethodNotAllowed,
        Error::BodyTooSlow,
        Error::BodyTooLarge,
        Error::UriTooLong,
        Error::InvalidTokenRequest,
        Error::InvalidQuery,
        Error::TooManyRequests,
        Error::HeadersTooLarge,
        Error::Broken,
        Error::Unavailable,
    ];

    /// What can happen to any request, whatever it asks for.
    pub(super) const OF_ALL: [Error; 5] =
        [Error::NotHttp, Error::MethodNotAllowed, Error::UriTooLong, Error::HeadersTooLarge, Error::Broken];

    /// The error as an answer, which operations refer to.
    pub(super) fn answer(self) -> Answer {
        let samples = self.samples();
        // There is at least one of each.
        let status = samples.first().map_or(StatusCode::OK, |(_, error)| error.status());
        let mut answer =
            Answer::new(status, self.description(), &[&[Header::NoStore], self.headers()].concat());
        let example =
            |(name, error): (&str, ApiError)| (name.to_owned(), object! { "value" => error.body() });
        let examples = Node::Object(samples.into_iter().map(example).collect());
        let content = object! { "schema" => schemas::reference(self.schema()), "examples" => examples };
        answer.content = Some(object! { "application/json" => content });
        answer.component = Some(self.name());
        answer
    }

    fn name(self) -> &'static str {
        match self {
            Error::NotHttp => "NotHttp",
            Error::WrongCredentials => "WrongCredentials",
            Error::NotAuthenticated => "NotAuthenticated",
            Error::MethodNotAllowed => "MethodNotAllowed",
            Error::BodyTooSlow => "BodyTooSlow",
            Error::BodyTooLarge => "BodyTooLarge",
            Error::UriTooLong => "UriTooLong",
            Error::InvalidTokenRequest => "InvalidTokenRequest",
            Error::InvalidQuery => "InvalidQuery",
            Error::TooManyRequests => "TooManyRequests",
            Error::HeadersTooLarge => "HeadersTooLarge",
            Error::Broken => "Broken",
            Error::Unavailable => "Unavailable",
        }
    }

    /// Errors as the service sends them, each under the name of an example.
    fn samples(self) -> Vec<(&'static str, ApiError)> {
        let none = || Cause::ours("");
        let invalid = |part, field, reason| {
            let mut invalid = Invalid::default();
            invalid.push(part, field, reason);
            invalid
        };
        let form = |field, reason| ApiError::InvalidForm(invalid(Part::Body, field, reason));
        let query = |field, reason| ApiError::InvalidQuery(invalid(Part::Query, field, reason));
        match self {
            Error::NotHttp => vec![("body", ApiError::BrokenBody)],
            Error::WrongCredentials => vec![("wrong", ApiError::WrongCredentials { by_basic: false })],
            Error::NotAuthenticated => vec![
                ("none", ApiError::NoToken),
                ("expired", ApiError::BadToken(TokenRefused::Expired)),
                ("invalid", ApiError::BadToken(TokenRefused::Invalid)),
            ],
            Error::MethodNotAllowed => vec![("method", ApiError::MethodNotAllowed("GET, HEAD, OPTIONS"))],
            Error::BodyTooSlow => vec![("slow", ApiError::BodyTooSlow)],
            Error::BodyTooLarge => vec![("large", ApiError::BodyTooLarge)],
            Error::UriTooLong => vec![("long", ApiError::UriTooLong)],
            Error::InvalidTokenRequest => vec![
                ("missing", form("client_secret", Reason::Missing)),
                ("grant_type", form("grant_type", Reason::NotClientCredentials)),
            ],
            Error::InvalidQuery => vec![
                ("timezone", query("start_date", Reason::NoTimezone)),
                ("datetime", query("end_date", Reason::NotADatetime)),
                ("repeated", query("start_date", Reason::Repeated)),
            ],
            Error::TooManyRequests => vec![("many", ApiError::TooManyRequests(1))],
            Error::HeadersTooLarge => vec![("large", ApiError::HeadersTooLarge)],
            Error::Broken => vec![("broken", ApiError::Broken(none()))],
            Error::Unavailable => vec![("unavailable", ApiError::Unavailable(none()))],
        }
    }

    fn description(self) -> &'static str {
        match self {
            Error::NotHttp => "The request breaks the rules of HTTP.",
            Error::WrongCredentials => "The client id or the client secret is wrong; which one is not told.",
            Error::NotAuthenticated => "There is no token, or one that is expired, forged or revoked.",
            Error::MethodNotAllowed => "The path knows other methods only.",
            Error::BodyTooSlow => "The form did not arrive within 10 seconds.",
            Error::BodyTooLarge => "The form is larger than 16 KiB.",
            Error::UriTooLong => "Path and query are longer than 8 KiB.",
            Error::InvalidTokenRequest => {
                "A field is missing, empty, wrong or there twice; or the body is no form at all."
            }
            Error::InvalidQuery => "A parameter is wrong or there twice.",
            Error::TooManyRequests => {
                "More requests than the operator allows a credential. Only where there is such a limit."
            }
            Error::HeadersTooLarge => "The header fields are larger than 32 KiB, or more than 100.",
            Error::Broken => "The service failed. What happened is in its log, under the request's id.",
            Error::Unavailable => "The service cannot reach its data at the moment: wait, and try again.",
        }
    }

    fn schema(self) -> &'static str {
        match self {
            Error::WrongCredentials => "TokenError",
            Error::InvalidTokenRequest => "InvalidTokenRequest",
            Error::InvalidQuery => "InvalidQuery",
            _ => "Error",
        }
    }

    fn headers(self) -> &'static [Header] {
        match self {
            Error::WrongCredentials => &[Header::Pragma, Header::BasicChallenge],
            Error::NotAuthenticated => &[Header::BearerChallenge],
            Error::MethodNotAllowed => &[Header::Allow],
            Error::InvalidTokenRequest => &[Header::Pragma],
            Error::TooManyRequests | Error::Unavailable => &[Header::RetryAfter],
            _ => &[],
        }
    }
}

/// Every error, by the name that operations refer to it by.
pub(super) fn components() -> Node {
    Node::Object(Error::ALL.map(|error| (error.name().to_owned(), error.answer().in_full())).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decision 046: a new error has to be told of, or left out on purpose.
    #[test]
    fn every_error_of_the_service_is_told_of_or_belongs_to_no_operation() {
        let told = |error: &ApiError| match error {
            ApiError::InvalidQuery(_) => Some(Error::InvalidQuery),
            ApiError::InvalidForm(_) => Some(Error::InvalidTokenRequest),
            ApiError::WrongCredentials { .. } => Some(Error::WrongCredentials),
            ApiError::NoToken | ApiError::BadToken(_) => Some(Error::NotAuthenticated),
            // No path of the document is not there.
            ApiError::NotFound => None,
            ApiError::MethodNotAllowed(_) => Some(Error::MethodNotAllowed),
            ApiError::BrokenBody => Some(Error::NotHttp),
            ApiError::BodyTooLarge => Some(Error::BodyTooLarge),
            ApiError::BodyTooSlow => Some(Error::BodyTooSlow),
            ApiError::UriTooLong => Some(Error::UriTooLong),
            ApiError::HeadersTooLarge => Some(Error::HeadersTooLarge),
            ApiError::TooManyRequests(_) => Some(Error::TooManyRequests),
            ApiError::Unavailable(_) => Some(Error::Unavailable),
            ApiError::Broken(_) => Some(Error::Broken),
        };
        for error in Error::ALL {
            for (_, sample) in error.samples() {
                assert_eq!(told(&sample), Some(error));
                assert_eq!(sample.status().as_u16(), error.answer().status, "{error:?}");
            }
        }
    }
}
