//! Every path with its operations. A test holds them against the routes.

use axum::http::StatusCode;

use super::answers::{Answer, Error};
use super::headers::Header;
use super::node::{Node, object};
use super::operation::Operation;
use super::schemas::reference;
use super::{BASIC, BEARER, CLIENT_CREDENTIALS};
use crate::config::Config;

const AUTH_ERRORS: &[Error] = &[
    Error::WrongCredentials,
    Error::BodyTooSlow,
    Error::BodyTooLarge,
    Error::InvalidTokenRequest,
    Error::TooManyRequests,
    Error::Unavailable,
];
const BATCH_ERRORS: &[Error] =
    &[Error::NotAuthenticated, Error::InvalidQuery, Error::TooManyRequests, Error::Unavailable];
const BATCH_HEADERS: [Header; 4] = [Header::Revalidated, Header::ETag, Header::Vary, Header::ContentEncoding];
const PUBLIC_HEADERS: [Header; 4] =
    [Header::PublicRevalidated, Header::ETag, Header::VaryPublic, Header::ContentEncoding];
const V1_HEADERS: [Header; 2] = [Header::Deprecation, Header::Sunset];

/// The paths of a service that is set up so.
pub(super) fn all(config: &Config) -> Node {
    let is_v1_ending = config.v1_sunset.is_some();
    let mut paths = object! {
        "/v2/auth" => token("getToken", false).post("optionsOfAuth"),
        "/v2/batches" => batches().read("headBatches", "optionsOfBatches"),
        "/v1/auth" => token("getTokenV1", is_v1_ending).post("optionsOfAuthV1"),
        "/v1/batches" => all_batches(is_v1_ending).read("headBatchesV1", "optionsOfBatchesV1"),
        "/healthz" => alive().read("headHealthz", "optionsOfHealthz"),
        "/readyz" => ready().read("headReadyz", "optionsOfReadyz"),
    };
    if config.metrics_in_public {
        paths = paths.with("/metrics", Some(metrics().read("headMetrics", "optionsOfMetrics")));
    }
    paths.with("/openapi.json", Some(document().read("headOpenapi", "optionsOfOpenapi")))
}

fn token(id: &'static str, is_deprecated: bool) -> Operation {
    let form = object! {
        "required" => true,
        "content" => object! {
            "application/x-www-form-urlencoded" => object! { "schema" => reference("TokenRequest") },
        },
    };
    let granted = Answer::new(StatusCode::OK, "A token.", &[Header::NoStore, Header::Pragma]);
    Operation {
        id,
        tag: "Tokens",
        summary: "Get an access token",
        description: Some(
            "Send the credentials you were given as a form. HTTP Basic works as well; client_id and client_secret may \
             then be left out of the form. A token of either version serves on both.",
        ),
        is_deprecated,
        parameters: &[],
        body: Some(form),
        answers: vec![granted.json(reference("Token"))],
        errors: AUTH_ERRORS,
        // Basic is welcome and not needed.
        security: Some(Node::List(vec![object! {}, needs(BASIC)])),
    }
}

fn batches() -> Operation {
    let next = object! {
        "next" => object! {
            "operationId" => "listBatches",
            "parameters" => object! { "next_token" => "$response.body#/next_token" },
            "description" => "The next page, unless next_token is null.",
        },
    };
    let page = Answer::new(StatusCode::OK, "A page of batches, oldest first.", &BATCH_HEADERS);
    Operation {
        id: "listBatches",
        tag: "Batches",
        summary: "Read batches page by page",
        description: Some(
            "Begin without next_token, and send the one of each page for the next, until it is null. Every batch that is \
             there during the whole walk comes exactly once. Unknown parameters are ignored.",
        ),
        is_deprecated: false,
        parameters: &["StartDate", "EndDate", "NextToken", "IfNoneMatch"],
        body: None,
        answers: vec![page.json(reference("BatchPage")).links(next), not_modified(&BATCH_HEADERS[..3])],
        errors: BATCH_ERRORS,
        security: Some(by_token()),
    }
}

fn all_batches(is_deprecated: bool) -> Operation {
    let headers = [&BATCH_HEADERS[..], &V1_HEADERS].concat();
    let everything = Answer::new(StatusCode::OK, "All of them as one array, oldest first.", &headers);
    let schema = object! { "type" => "array", "items" => reference("Batch") };
    Operation {
        id: "listBatchesV1",
        tag: "Batches",
        summary: "Read all batches at once",
        description: Some(
            "However many there are: the answer is streamed. If it breaks off, so does the connection; what came is then \
             not the whole. Unknown parameters are ignored, next_token too.",
        ),
        is_deprecated,
        parameters: &["StartDate", "EndDate", "IfNoneMatch"],
        body: None,
        answers: vec![everything.json(schema), not_modified(&[&BATCH_HEADERS[..3], &V1_HEADERS].concat())],
        errors: BATCH_ERRORS,
        security: Some(by_token()),
    }
}

fn alive() -> Operation {
    let answer = Answer::new(StatusCode::OK, "It lives.", &[Header::NoStore]);
    reading("getHealthz", "Health", "Does the process live?", answer.json(reference("Alive")))
}

fn ready() -> Operation {
    let answer = Answer::new(StatusCode::OK, "It can answer.", &[Header::NoStore]);
    let operation =
        reading("getReadyz", "Health", "Can the service answer?", answer.json(reference("Ready")));
    Operation { errors: &[Error::Unavailable], ..operation }
}

fn metrics() -> Operation {
    let answer = Answer::new(StatusCode::OK, "The counters, as OpenMetrics text.", &[Header::NoStore]);
    let answer = answer.body("application/openmetrics-text", object! { "type" => "string" });
    reading("getMetrics", "Health", "What has the service done?", answer)
}

fn document() -> Operation {
    let answer = Answer::new(StatusCode::OK, "This document.", &PUBLIC_HEADERS);
    let answer = answer.json(object! { "type" => "object", "required" => ["openapi", "info", "paths"] });
    let operation = reading("getOpenapi", "Document", "This document", answer);
    let answers = [operation.answers, vec![not_modified(&PUBLIC_HEADERS[..3])]].concat();
    Operation { answers, parameters: &["IfNoneMatch"], ..operation }
}

/// An operation that asks for nothing and needs no token.
fn reading(id: &'static str, tag: &'static str, summary: &'static str, answer: Answer) -> Operation {
    Operation {
        id,
        tag,
        summary,
        description: None,
        is_deprecated: false,
        parameters: &[],
        body: None,
        answers: vec![answer],
        errors: &[],
        security: None,
    }
}

fn not_modified(headers: &[Header]) -> Answer {
    Answer::new(StatusCode::NOT_MODIFIED, "Nothing has changed: what you have is the answer.", headers)
}

/// A token, however it was had.
fn by_token() -> Node {
    Node::List(vec![needs(CLIENT_CREDENTIALS), needs(BEARER)])
}

fn needs(scheme: &str) -> Node {
    object! { scheme => Node::List(Vec::new()) }
}
