//! A small right service of the interface, which can be told to do one thing wrong.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::dates::{self, PARSING};
use crate::fault::Fault;
use crate::wire::{Reply, Request, serve};

pub(crate) const CLIENT: &str = "toy-client";
pub(crate) const SECRET: &str = "toy-secret-0123456789";
pub(crate) const TOKEN: &str = "toy-token-0123456789abcdef";
const FIELDS: [&str; 3] = ["client_id", "client_secret", "grant_type"];
const MISNAMED: [&str; 6] = ["cursor", "page_token", "nextToken", "page", "offset", "after"];

/// A service over some batches.
pub(crate) struct Toy {
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

impl Toy {
    /// A service with this fault and three pages of batches.
    pub(crate) fn with(fault: Fault) -> Self {
        Self::sized(fault, 90, 30)
    }

    /// A service with this fault and more batches than both versions must agree on.
    pub(crate) fn large(fault: Fault) -> Self {
        Self::sized(fault, 1050, 300)
    }

    fn sized(fault: Fault, batches: i64, page_size: usize) -> Self {
        let batches = (0..batches).map(batch).collect();
        Self { batches, page_size, fault, cursors: Mutex::default(), served: AtomicU64::new(0) }
    }

    /// A right service with so many batches.
    pub(crate) fn holding(batches: usize) -> Self {
        let mut toy = Self::with(Fault::None);
        toy.batches.truncate(batches);
        toy
    }

    pub(crate) fn serve(self) -> String {
        serve(move |request| self.answer(&request))
    }

    pub(crate) fn answer(&self, request: &Request) -> Option<Reply> {
        let served = self.served.fetch_add(1, Ordering::Relaxed);
        if self.fault == Fault::FallsSilent && served > 5 {
            return None;
        }
        if let Some(reply) = self.unavailable(request, served) {
            return Some(reply);
        }
        let mut reply = self.route(request);
        if self.fault == Fault::HtmlErrors && reply.status >= 400 {
            reply = Reply::new(reply.status, "<html>no</html>").with("Content-Type", "text/html");
        }
        if self.fault == Fault::Bare {
            reply.headers.retain(|(name, _)| *name == "Content-Type");
        }
        Some(reply)
    }

    fn unavailable(&self, request: &Request, served: u64) -> Option<Reply> {
        let strikes = match self.fault {
            Fault::SometimesUnavailable | Fault::UnavailableWithoutDetail => served % 10 == 9,
            Fault::AlwaysUnavailable => true,
            _ => false,
        };
        if !strikes || !request.path.ends_with("/batches") {
            return None;
        }
        let reply = Reply::json(503, &json!({"detail": "no store"})).with("Retry-After", "0");
        Some(if self.fault == Fault::UnavailableWithoutDetail {
            Reply { body: b"busy".into(), ..reply }
        } else {
            reply
        })
    }

    fn route(&self, request: &Request) -> Reply {
        let (allow, handler): (&str, fn(&Self, &Request) -> Reply) = match request.path.as_str() {
            "/v1/auth" | "/v2/auth" => ("POST", Self::auth),
            "/v1/batches" | "/v2/batches" => ("GET, HEAD", Self::batches),
            _ => return Reply::json(404, &json!({"detail": "Not Found"})),
        };
        match request.method.as_str() {
            "OPTIONS" if self.fault != Fault::Bare => Reply::new(204, "").with("Allow", allow),
            method if allow.split(", ").any(|known| known == method) => handler(self, request),
            _ => Reply::json(405, &json!({"detail": "Method Not Allowed"})).with("Allow", allow),
        }
    }

    fn auth(&self, request: &Request) -> Reply {
        if request.body.len() > 16 << 10 {
            return Reply::json(413, &json!({"detail": "too large"}));
        }
        let form = request.header("content-type").is_some_and(|kind| kind.contains("form"));
        if self.fault == Fault::JsonBodyAccepted && !form && !request.body.is_empty() {
            return self.token();
        }
        let mut fields: Vec<(String, String)> = match form {
            true => url::form_urlencoded::parse(&request.body).into_owned().collect(),
            false => Vec::new(),
        };
        if self.fault == Fault::SecretEchoed {
            let entry =
                json!([{"type": "missing", "loc": ["body", "client_id"], "msg": "x", "input": fields}]);
            if find(&fields, "client_id").is_none() {
                return Reply::json(422, &json!({"detail": entry}));
            }
        }
        if let Some((id, secret)) = request.header("authorization").and_then(basic) {
            if find(&fields, "client_secret").is_some_and(|known| known != secret) {
                return auth_invalid(&[entry("value_error", "body", "client_secret", "differs")]);
            }
            fields.extend([("client_id".to_owned(), id), ("client_secret".to_owned(), secret)]);
        }
        let faults: Vec<Value> = FIELDS.iter().filter_map(|field| auth_fault(&fields, field)).collect();
        if !faults.is_empty() {
            return if self.fault == Fault::DetailAsText {
                Reply::json(422, &json!({"detail": "a field is missing"}))
            } else {
                auth_invalid(&faults)
            };
        }
        let known =
            find(&fields, "client_id") == Some(CLIENT) && find(&fields, "client_secret") == Some(SECRET);
        if known || self.fault == Fault::WrongSecretAccepted { self.token() } else { auth_unknown() }
    }

    fn token(&self) -> Reply {
        let body = match self.fault {
            Fault::Bare => json!({"access_token": TOKEN}),
            _ => json!({"access_token": TOKEN, "token_type": "bearer", "expires_in": 3600}),
        };
        Reply::json(200, &body).with("Cache-Control", "no-store").with("Pragma", "no-cache")
    }

    fn batches(&self, request: &Request) -> Reply {
        if let Some(reply) = self.stranger(request) {
            return reply;
        }
        let faults = self.query_faults(request);
        if !faults.is_empty() {
            return Reply::json(422, &json!({"detail": faults}));
        }
        let filter = Filter { start: self.date(request, "start_date"), end: self.date(request, "end_date") };
        let (filter, from) =
            match find(&request.query, "next_token").filter(|_| request.path == "/v2/batches") {
                Some(cursor) => self.cursors.lock().unwrap()[cursor].clone(),
                None => (filter, 0),
            };
        self.dress(request, &self.body(request, &filter, from))
    }

    fn stranger(&self, request: &Request) -> Option<Reply> {
        let sent = request.header("authorization").unwrap_or_default();
        if sent == format!("Bearer {TOKEN}") || (self.fault == Fault::TokenNotChecked && !sent.is_empty()) {
            return None;
        }
        let challenge = match sent.strip_prefix("Bearer ") {
            Some(_) => "Bearer error=\"invalid_token\"",
            None => "Bearer",
        };
        Some(Reply::json(401, &json!({"detail": "Not authenticated"})).with("WWW-Authenticate", challenge))
    }

    fn query_faults(&self, request: &Request) -> Vec<Value> {
        let paged = request.path == "/v2/batches";
        let mut faults: Vec<Value> = ["start_date", "end_date"]
            .into_iter()
            .filter_map(|name| self.date_fault(request, name))
            .collect();
        if let Some(cursor) = find(&request.query, "next_token").filter(|_| paged) {
            faults.extend(self.cursor_fault(request, cursor));
        }
        if paged && request.query.iter().any(|(name, _)| MISNAMED.contains(&name.as_str())) {
            faults.push(entry("value_error", "query", "next_token", "the cursor is called next_token"));
        }
        faults
    }

    fn date_fault(&self, request: &Request, name: &str) -> Option<Value> {
        if request.query.iter().filter(|(known, _)| known == name).count() > 1 {
            return Some(entry("value_error", "query", name, "given twice"));
        }
        let text = find(&request.query, name)?;
        let naive_fine = self.fault == Fault::NaiveDateAccepted && text.len() == 19;
        let refused = self.fault == Fault::OffsetRefused && text.ends_with("+00:00");
        match dates::parse(text) {
            Ok(_) if refused => {
                Some(entry(PARSING, "query", name, "Input should be a valid datetime or date, no"))
            }
            Ok(_) => None,
            Err(_) if naive_fine => None,
            Err(kind) => Some(entry(kind, "query", name, dates::msg(kind))),
        }
    }

    fn cursor_fault(&self, request: &Request, cursor: &str) -> Option<Value> {
        let cursors = self.cursors.lock().unwrap();
        let Some((filter, _)) = cursors.get(cursor) else {
            return Some(entry("value_error", "query", "next_token", "not a cursor of ours"));
        };
        [("start_date", filter.start), ("end_date", filter.end)].into_iter().find_map(|(name, known)| {
            let given = self.date(request, name)?;
            (Some(given) != known).then(|| entry("value_error", "query", name, "not the cursor's"))
        })
    }

    fn date(&self, request: &Request, name: &str) -> Option<Timestamp> {
        dates::parse(find(&request.query, name)?).ok()
    }

    fn body(&self, request: &Request, filter: &Filter, from: usize) -> Value {
        let mut hits: Vec<Value> = self
            .batches
            .iter()
            .filter(|(at, _)| self.lies_in(*at, filter))
            .map(|(_, batch)| batch.clone())
            .collect();
        if self.fault == Fault::WrongOrder {
            hits.reverse();
        }
        hits.iter_mut().for_each(|batch| self.spoil(batch));
        if request.path == "/v1/batches" {
            if self.fault == Fault::V1DropsABatch {
                hits.pop();
            }
            if self.fault == Fault::V1DiffersInAField {
                hits.iter_mut().for_each(|batch| batch["comment"] = json!("other"));
            }
            return Value::Array(hits);
        }
        let to = (from + self.page_size).min(hits.len());
        let next = if to < hits.len() { Some(to) } else { None };
        let next =
            next.map(|to| self.cursor(filter, if self.fault == Fault::PagesOverlap { to - 1 } else { to }));
        let next = match self.fault {
            Fault::CursorCircles if hits.len() > self.page_size => Some(self.cursor(filter, self.page_size)),
            Fault::CursorNeverEnds if hits.len() > self.page_size => {
                let cursor = format!("never-{}", self.served.load(Ordering::Relaxed));
                self.cursors.lock().unwrap().insert(cursor.clone(), (filter.clone(), to));
                Some(cursor)
            }
            _ => next,
        };
        json!({"data": hits[from.min(to)..to], "next_token": next})
    }

    fn lies_in(&self, at: Timestamp, filter: &Filter) -> bool {
        let after = |start| if self.fault == Fault::StartExclusive { at > start } else { at >= start };
        let before = |end| if self.fault == Fault::EndExclusive { at < end } else { at <= end };
        filter.start.is_none_or(after) && filter.end.is_none_or(before)
    }

    fn spoil(&self, batch: &mut Value) {
        match self.fault {
            Fault::DecimalsAsNumbers => batch["avg_germination_rate"] = json!(92.5),
            Fault::FieldMissing => drop(batch.as_object_mut().unwrap().remove("comment")),
            Fault::FieldAdded => batch["organisation"] = json!("x"),
            Fault::DateWithoutZ => batch["batch_creation_date"] = json!("2024-05-01T00:00:00+00:00"),
            Fault::IntegerAsString => batch["number_of_images"] = json!("12"),
            Fault::NullName => batch["batch_name"] = Value::Null,
            Fault::SteersTheTerminal => batch["warnings"] = json!("\u{1b}[2J\u{202e}cleared"),
            _ => {}
        }
    }

    fn cursor(&self, filter: &Filter, offset: usize) -> String {
        let mut hasher = DefaultHasher::new();
        (filter, offset).hash(&mut hasher);
        let cursor = format!("{:016x}", hasher.finish());
        self.cursors.lock().unwrap().insert(cursor.clone(), (filter.clone(), offset));
        cursor
    }

    /// Headers, compression and conditional answers around a body.
    fn dress(&self, request: &Request, body: &Value) -> Reply {
        let text = body.to_string();
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let etag = format!("\"{:x}\"", hasher.finish());
        let matches = request.header("if-none-match") == Some(&etag) && self.fault != Fault::Bare;
        let mut reply = if matches { Reply::new(304, "") } else { Reply::json(200, body) };
        reply = reply.with("ETag", &etag).with("Cache-Control", "private, no-cache");
        reply = reply.with("Vary", "Authorization, Accept-Encoding");
        match self.fault {
            Fault::PageTruncated if request.path == "/v2/batches" => reply.body.truncate(text.len() / 2),
            Fault::BodyCutOff if request.path == "/v1/batches" => reply.promised = Some(text.len() + 10),
            Fault::GzipBomb => {
                return Reply { body: gzip(&vec![b' '; 4 << 20]), ..reply }.with("Content-Encoding", "gzip");
            }
            Fault::Bare => return reply,
            _ => {}
        }
        match request.header("accept-encoding") {
            Some("gzip") => Reply { body: gzip(&reply.body), ..reply }.with("Content-Encoding", "gzip"),
            Some("zstd") => Reply { body: zstd::encode_all(&*reply.body, 1).unwrap(), ..reply }
                .with("Content-Encoding", "zstd"),
            _ => reply,
        }
    }
}

fn batch(number: i64) -> (Timestamp, Value) {
    let start: Timestamp = "2024-05-01T00:00:00Z".parse().unwrap();
    // Every tenth has a fraction, and every tenth shares its second with the one before.
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

fn auth_fault(fields: &[(String, String)], field: &str) -> Option<Value> {
    if fields.iter().filter(|(name, _)| name == field).count() > 1 && field == "grant_type" {
        return Some(entry("value_error", "body", field, "given twice"));
    }
    match find(fields, field).unwrap_or_default() {
        "" => Some(entry("missing", "body", field, "Field required")),
        "client_credentials" => None,
        _ if field == "grant_type" => {
            Some(entry("literal_error", "body", field, "Input should be 'client_credentials'"))
        }
        _ => None,
    }
}

fn auth_invalid(entries: &[Value]) -> Reply {
    let grant = entries.iter().any(|entry| entry["type"] == "literal_error");
    let error = if grant { "unsupported_grant_type" } else { "invalid_request" };
    Reply::json(422, &json!({"detail": entries, "error": error, "error_description": "no"}))
}

fn auth_unknown() -> Reply {
    Reply::json(401, &json!({"detail": "no", "error": "invalid_client", "error_description": "no"}))
}

fn basic(header: &str) -> Option<(String, String)> {
    let decoded = STANDARD.decode(header.strip_prefix("Basic ")?).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (id, secret) = text.split_once(':')?;
    let decode = |text: &str| {
        let pair = format!("k={text}");
        url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned())
    };
    Some((decode(id)?, decode(secret)?))
}

fn find<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
