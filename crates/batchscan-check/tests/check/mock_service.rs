//! A correct service with a few batches, which can be given one fault.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use batchscan_testbed::ScriptedServer;
use batchscan_testbed::scripted_server::{Framing, Request, Response};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::dates::{self, PARSING};

pub(crate) const CLIENT: &str = "mock-client";
pub(crate) const SECRET: &str = "mock-secret-0123456789";
pub(crate) const TOKEN: &str = "mock-token-0123456789abcdef";

/// What the service does wrong. `Bare` has only the API, without this project's decisions.
#[rustfmt::skip]
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    None, Bare,
    CursorLoops, CursorNeverEnds, PagesOverlap, PageTruncated, BodyCutOff, GzipBomb, WrongOrder,
    DecimalsAsNumbers, FieldMissing, FieldAdded, DateWithoutZ, IntegerAsString, NullName, ControlCharacters,
    StartExclusive, EndExclusive, NaiveDateAccepted, OffsetRejected, V1DropsABatch, V1DiffersInAField,
    JsonBodyAccepted, WrongSecretAccepted, TokenNotChecked, SecretEchoed, HtmlErrors, DetailAsText,
    NoChanges, ChangesDropABatch, ChangesRepeat, BatchByIdDiffers,
    SometimesUnavailable, AlwaysUnavailable, UnavailableWithoutDetail, StopsResponding,
}

pub(crate) struct MockService {
    batches: Vec<(Timestamp, Value)>,
    page_size: usize,
    fault: Fault,
    cursors: Mutex<HashMap<String, (Filter, usize)>>,
    served: AtomicU64,
}

#[derive(Clone, PartialEq, Hash)]
struct Filter {
    start: Option<Timestamp>,
    end: Option<Timestamp>,
}

impl MockService {
    /// Three pages of batches.
    pub(crate) fn with(fault: Fault) -> Self {
        Self::sized(fault, 90, 30)
    }

    /// More batches than both versions must agree on.
    pub(crate) fn large(fault: Fault) -> Self {
        Self::sized(fault, 1050, 300)
    }

    pub(crate) fn sized(fault: Fault, batches: i64, page_size: usize) -> Self {
        let batches = (0..batches).map(batch).collect();
        Self { batches, page_size, fault, cursors: Mutex::default(), served: AtomicU64::new(0) }
    }

    pub(crate) fn serve(self) -> ScriptedServer {
        ScriptedServer::start(move |request| self.respond(request))
    }

    pub(crate) fn respond(&self, request: &Request) -> Response {
        let served = self.served.fetch_add(1, Ordering::Relaxed);
        if self.fault == Fault::StopsResponding && served > 5 {
            return Response::none().framed(Framing::Silent);
        }
        let mut response = self.unavailable(request, served).unwrap_or_else(|| self.route(request));
        if self.fault == Fault::HtmlErrors && response.status >= 400 {
            response = Response::new(response.status, "<html>no</html>").with("Content-Type", "text/html");
        }
        if self.fault == Fault::Bare {
            response.headers.retain(|(name, _)| name == "Content-Type");
        }
        response
    }

    fn unavailable(&self, request: &Request, served: u64) -> Option<Response> {
        let body = match self.fault {
            Fault::AlwaysUnavailable => r#"{"detail":"no store"}"#,
            Fault::SometimesUnavailable if served % 10 == 9 => r#"{"detail":"no store"}"#,
            Fault::UnavailableWithoutDetail if served % 10 == 9 => "busy",
            _ => return None,
        };
        let response =
            Response::new(503, body).with("Content-Type", "application/json").with("Retry-After", "0");
        request.path().ends_with("/batches").then_some(response)
    }

    fn route(&self, request: &Request) -> Response {
        let (allow, handler): (&str, fn(&Self, &Request) -> Response) = match request.path() {
            "/v1/auth" | "/v2/auth" => ("POST", Self::auth),
            "/v1/batches" | "/v2/batches" => ("GET, HEAD", Self::batches),
            "/v2/changes" if self.has_changes() => ("GET, HEAD", Self::changes),
            path if path.starts_with("/v2/batches/") && self.has_changes() => ("GET, HEAD", Self::batch),
            _ => return Response::json(404, &json!({"detail": "Not Found"})),
        };
        match request.method.as_str() {
            "OPTIONS" if self.fault != Fault::Bare => Response::new(204, "").with("Allow", allow),
            method if allow.split(", ").any(|known| known == method) => handler(self, request),
            _ => Response::json(405, &json!({"detail": "Method Not Allowed"})).with("Allow", allow),
        }
    }

    fn auth(&self, request: &Request) -> Response {
        if request.body.len() > 16 << 10 {
            return Response::json(413, &json!({"detail": "too large"}));
        }
        let is_form = request.header("content-type").is_some_and(|kind| kind.contains("form"));
        if self.fault == Fault::JsonBodyAccepted && !is_form && !request.body.is_empty() {
            return self.token();
        }
        let body: &[u8] = if is_form { &request.body } else { b"" };
        let mut fields: Vec<(String, String)> = url::form_urlencoded::parse(body).into_owned().collect();
        if self.fault == Fault::SecretEchoed && find(&fields, "client_id").is_none() {
            let entry = json!({"type": "missing", "loc": ["body", "client_id"], "msg": "x", "input": fields});
            return Response::json(422, &json!({"detail": [entry]}));
        }
        if let Some((id, secret)) = request.header("authorization").and_then(basic) {
            if find(&fields, "client_secret").is_some_and(|known| known != secret) {
                return auth_error(422, &json!([entry("value_error", "body", "client_secret", "differs")]));
            }
            fields.extend([("client_id".to_owned(), id), ("client_secret".to_owned(), secret)]);
        }
        let names = ["client_id", "client_secret", "grant_type"];
        let errors: Vec<Value> = names.iter().filter_map(|name| field_error(&fields, name)).collect();
        if !errors.is_empty() {
            let as_text = self.fault == Fault::DetailAsText;
            return auth_error(422, &if as_text { json!("a field is missing") } else { json!(errors) });
        }
        let known =
            find(&fields, "client_id") == Some(CLIENT) && find(&fields, "client_secret") == Some(SECRET);
        if known || self.fault == Fault::WrongSecretAccepted {
            self.token()
        } else {
            auth_error(401, &json!("no"))
        }
    }

    fn token(&self) -> Response {
        let body = match self.fault {
            Fault::Bare => json!({"access_token": TOKEN}),
            _ => json!({"access_token": TOKEN, "token_type": "bearer", "expires_in": 3600}),
        };
        Response::json(200, &body).with("Cache-Control", "no-store").with("Pragma", "no-cache")
    }

    fn has_changes(&self) -> bool {
        !matches!(self.fault, Fault::Bare | Fault::NoChanges)
    }

    /// A 401, unless the request has a valid token.
    fn unauthorized(&self, request: &Request) -> Option<Response> {
        let sent = request.header("authorization").unwrap_or_default();
        if sent == format!("Bearer {TOKEN}") || (self.fault == Fault::TokenNotChecked && !sent.is_empty()) {
            return None;
        }
        let challenge = if sent.starts_with("Bearer ") { "Bearer error=\"invalid_token\"" } else { "Bearer" };
        let response = Response::json(401, &json!({"detail": "Not authenticated"}));
        Some(response.with("WWW-Authenticate", challenge))
    }

    /// The complete state in pages. `since` is the number of batches that the client has.
    fn changes(&self, request: &Request) -> Response {
        if let Some(response) = self.unauthorized(request) {
            return response;
        }
        let number = |name: &str| find(&request.query, name).map(str::parse::<usize>);
        let errors: Vec<Value> = [("since", usize::MAX), ("wait", 60)]
            .into_iter()
            .filter(|(name, max)| {
                number(name).is_some_and(|number| !number.is_ok_and(|number| number <= *max))
            })
            .map(|(name, _)| entry("value_error", "query", name, "invalid"))
            .collect();
        if !errors.is_empty() {
            return Response::json(422, &json!({"detail": errors}));
        }
        let mut batches: Vec<Value> = self.batches.iter().map(|(_, batch)| batch.clone()).collect();
        batches.iter_mut().for_each(|batch| self.corrupt(batch));
        if self.fault == Fault::ChangesDropABatch {
            batches.pop();
        }
        let mut from = number("since").and_then(Result::ok).unwrap_or(0).min(batches.len());
        if self.fault == Fault::ChangesRepeat && from == batches.len() {
            from = from.saturating_sub(1);
        }
        let to = (from + self.page_size).min(batches.len());
        let more = to < batches.len();
        let body = json!({"data": batches[from..to], "removed": [], "since": to.to_string(), "more": more});
        Response::json(200, &body).with("Cache-Control", "no-store")
    }

    fn batch(&self, request: &Request) -> Response {
        if let Some(response) = self.unauthorized(request) {
            return response;
        }
        let pair = request.path().replace("/v2/batches/", "id=");
        let id = url::form_urlencoded::parse(pair.as_bytes()).next().unwrap().1;
        let Some((_, batch)) = self.batches.iter().find(|(_, batch)| batch["batch_id"] == *id) else {
            return Response::json(404, &json!({"detail": "no such batch"}));
        };
        let mut batch = batch.clone();
        self.corrupt(&mut batch);
        if self.fault == Fault::BatchByIdDiffers {
            batch["comment"] = json!("other");
        }
        self.finish(request, &batch)
    }

    fn batches(&self, request: &Request) -> Response {
        if let Some(response) = self.unauthorized(request) {
            return response;
        }
        let errors = self.query_errors(request);
        if !errors.is_empty() {
            return Response::json(422, &json!({"detail": errors}));
        }
        let date = |name| dates::parse(find(&request.query, name)?).ok();
        let (filter, from) = match cursor_in(request) {
            Some(cursor) => self.cursors.lock().unwrap()[cursor].clone(),
            None => (Filter { start: date("start_date"), end: date("end_date") }, 0),
        };
        self.finish(request, &self.body(request, &filter, from))
    }

    fn query_errors(&self, request: &Request) -> Vec<Value> {
        let dates = ["start_date", "end_date"];
        let mut errors: Vec<Value> =
            dates.into_iter().filter_map(|name| self.date_error(request, name)).collect();
        errors.extend(cursor_in(request).and_then(|cursor| self.cursor_error(request, cursor)));
        let misnamed = ["cursor", "page_token", "nextToken", "page", "offset", "after"];
        if request.path() == "/v2/batches" && misnamed.iter().any(|name| find(&request.query, name).is_some())
        {
            errors.push(entry("value_error", "query", "next_token", "the cursor is called next_token"));
        }
        for (name, msg) in [
            ("startDate", "Value error, the parameter is called start_date"),
            ("from", "Value error, the parameter is called start_date"),
            ("end", "Value error, the parameter is called end_date"),
            ("crop_type", "Value error, batches cannot be filtered by this field"),
        ] {
            if find(&request.query, name).is_some() {
                errors.push(entry("value_error", "query", name, msg));
            }
        }
        errors
    }

    fn date_error(&self, request: &Request, name: &str) -> Option<Value> {
        if request.query.iter().filter(|(known, _)| known == name).count() > 1 {
            return Some(entry("value_error", "query", name, "repeated"));
        }
        let text = find(&request.query, name)?;
        let (kind, msg) = match dates::parse(text) {
            Ok(_) if self.fault == Fault::OffsetRejected && text.ends_with("+00:00") => PARSING,
            Err(_) if self.fault == Fault::NaiveDateAccepted && text.len() == 19 => return None,
            result => result.err()?,
        };
        Some(entry(kind, "query", name, msg))
    }

    fn cursor_error(&self, request: &Request, cursor: &str) -> Option<Value> {
        let cursors = self.cursors.lock().unwrap();
        let Some((filter, _)) = cursors.get(cursor) else {
            return Some(entry("value_error", "query", "next_token", "unknown cursor"));
        };
        [("start_date", filter.start), ("end_date", filter.end)].into_iter().find_map(|(name, known)| {
            let date = dates::parse(find(&request.query, name)?).ok()?;
            (Some(date) != known).then(|| entry("value_error", "query", name, "not the cursor's"))
        })
    }

    fn body(&self, request: &Request, filter: &Filter, from: usize) -> Value {
        let matching = self.batches.iter().filter(|(at, _)| self.is_in(*at, filter));
        let mut found: Vec<Value> = matching.map(|(_, batch)| batch.clone()).collect();
        if self.fault == Fault::WrongOrder {
            found.reverse();
        }
        found.iter_mut().for_each(|batch| self.corrupt(batch));
        if request.path() == "/v1/batches" {
            match self.fault {
                Fault::V1DropsABatch => drop(found.pop()),
                Fault::V1DiffersInAField => {
                    found.iter_mut().for_each(|batch| batch["comment"] = json!("other"));
                }
                _ => {}
            }
            return Value::Array(found);
        }
        let to = (from + self.page_size).min(found.len());
        let overlap = usize::from(self.fault == Fault::PagesOverlap);
        let next = match self.fault {
            Fault::CursorLoops if found.len() > self.page_size => {
                Some(self.store_cursor(0, filter, self.page_size))
            }
            Fault::CursorNeverEnds if found.len() > self.page_size => {
                Some(self.store_cursor(self.served.load(Ordering::Relaxed), filter, to))
            }
            _ => (to < found.len()).then(|| self.store_cursor(0, filter, to - overlap)),
        };
        json!({"data": found[from.min(to)..to], "next_token": next})
    }

    fn is_in(&self, at: Timestamp, filter: &Filter) -> bool {
        let after = |start| if self.fault == Fault::StartExclusive { at > start } else { at >= start };
        let before = |end| if self.fault == Fault::EndExclusive { at < end } else { at <= end };
        filter.start.is_none_or(after) && filter.end.is_none_or(before)
    }

    fn corrupt(&self, batch: &mut Value) {
        match self.fault {
            Fault::DecimalsAsNumbers => batch["avg_germination_rate"] = json!(92.5),
            Fault::FieldMissing => drop(batch.as_object_mut().unwrap().remove("comment")),
            Fault::FieldAdded => batch["organisation"] = json!("x"),
            Fault::DateWithoutZ => batch["batch_creation_date"] = json!("2024-05-01T00:00:00+00:00"),
            Fault::IntegerAsString => batch["number_of_images"] = json!("12"),
            Fault::NullName => batch["batch_name"] = Value::Null,
            Fault::ControlCharacters => batch["warnings"] = json!("\u{1b}[2J\u{202e}cleared"),
            _ => {}
        }
    }

    fn store_cursor(&self, salt: u64, filter: &Filter, offset: usize) -> String {
        let cursor = hash(&(salt, filter, offset));
        self.cursors.lock().unwrap().insert(cursor.clone(), (filter.clone(), offset));
        cursor
    }

    /// Adds headers and compression, or returns a 304.
    fn finish(&self, request: &Request, body: &Value) -> Response {
        let text = body.to_string();
        let etag = format!("\"{}\"", hash(&text));
        let matches = request.header("if-none-match") == Some(&etag) && self.fault != Fault::Bare;
        let mut response = if matches { Response::new(304, "") } else { Response::json(200, body) };
        response = response.with("ETag", &etag).with("Cache-Control", "private, no-cache");
        response = response.with("Vary", "Authorization, Accept-Encoding");
        match self.fault {
            Fault::PageTruncated if request.path() == "/v2/batches" => response.body.truncate(text.len() / 2),
            Fault::BodyCutOff if request.path() == "/v1/batches" => {
                response = response.truncated(10);
            }
            Fault::GzipBomb => response.body = vec![b' '; 4 << 20],
            _ => {}
        }
        let can_gzip = request.header("accept-encoding") == Some("gzip") && self.fault != Fault::Bare;
        if can_gzip || self.fault == Fault::GzipBomb {
            response.body = gzip(&response.body);
            response = response.with("Content-Encoding", "gzip");
        }
        response
    }
}

fn batch(number: i64) -> (Timestamp, Value) {
    let start: Timestamp = "2024-05-01T00:00:00Z".parse().unwrap();
    // Every tenth has a fraction, and every tenth has the second of the previous one.
    let micros = if number % 10 == 3 { 250_000 } else { 0 };
    let second = if number % 10 == 9 { number - 1 } else { number };
    let at = start + SignedDuration::from_secs(second * 600) + SignedDuration::from_micros(micros);
    let decimal = |hundredths: i64| json!(format!("{}.{:02}", hundredths / 100, hundredths % 100));
    let nullable = |value: Value| if number % 5 == 0 { Value::Null } else { value };
    let batch = json!({
        "batch_id": format!("batch-{number:06}"), "batch_name": format!("Tray {number}"),
        "batch_creation_date": at.to_string(), "crop_type": nullable(json!("lettuce")),
        "number_of_images": 12, "total_cells_per_tray": nullable(json!(128)),
        "avg_germinated_seedlings": decimal(11_850), "avg_non_germinated_seedlings": decimal(950),
        "avg_germination_rate": decimal(9_258), "avg_usable_seedlings": nullable(decimal(11_000)),
        "avg_non_usable_cells": decimal(1_800), "avg_usable_seedling_rate": decimal(8_594),
        "avg_coefficient_of_variation": decimal(1_205), "avg_median_seedling_size_mm2": decimal(24_000),
        "scanned_by_email": nullable(json!("grower@nursery.example")),
        "analysis_link": nullable(json!("https://reports.example/r/1")), "comment": nullable(json!("müde\n")),
        "warnings": number % 3 == 0,
    });
    (at, batch)
}

fn entry(kind: &str, part: &str, field: &str, msg: &str) -> Value {
    json!({"type": kind, "loc": [part, field], "msg": msg})
}

fn field_error(fields: &[(String, String)], name: &str) -> Option<Value> {
    let is_grant = name == "grant_type";
    if is_grant && fields.iter().filter(|(known, _)| known == name).count() > 1 {
        return Some(entry("value_error", "body", name, "repeated"));
    }
    match find(fields, name).unwrap_or_default() {
        "" => Some(entry("missing", "body", name, "Field required")),
        value if is_grant && value != "client_credentials" => {
            Some(entry("literal_error", "body", name, "Input should be 'client_credentials'"))
        }
        _ => None,
    }
}

fn auth_error(status: u16, detail: &Value) -> Response {
    let error = match status {
        401 => "invalid_client",
        _ if detail[0]["type"] == "literal_error" => "unsupported_grant_type",
        _ => "invalid_request",
    };
    Response::json(status, &json!({"detail": detail, "error": error, "error_description": "no"}))
}

fn basic(header: &str) -> Option<(String, String)> {
    let text = String::from_utf8(STANDARD.decode(header.strip_prefix("Basic ")?).ok()?).ok()?;
    let (id, secret) = text.split_once(':')?;
    let pairs = format!("id={id}&secret={secret}");
    let mut values = url::form_urlencoded::parse(pairs.as_bytes()).map(|(_, value)| value.into_owned());
    Some((values.next()?, values.next()?))
}

fn cursor_in(request: &Request) -> Option<&str> {
    find(&request.query, "next_token").filter(|_| request.path() == "/v2/batches")
}

fn find<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn hash(value: &impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
