//! Imports of files and single batches, and their record.
//!
//! A body is first received completely, into a temporary file: a slow client must not hold the write lock of the
//! database, and a broken connection imports nothing.

use std::fs::File;
use std::io::{Cursor, ErrorKind, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use batchscan_formats::read::{
    LocatedError, Location, Mapping, RECORD_BYTES_MAX, ReadError, ReadOptions, read_text,
};
use batchscan_formats::{Format, unsupported_hint};
use batchscan_model::{BatchId, FieldError, OrgId, Reason, Zone};
use batchscan_store::{
    ImportError, ImportFilter, ImportOptions, ImportResult, ImportSource, hash_file, import_file,
};
use bytes::Bytes;
use http_body::Body as _;
use http_body_util::BodyExt;
use serde_json::json;
use tokio::time::Instant;

use super::access::Operator;
use super::json;
use super::request::{PathNames, Query, list as list_page, respond};
use crate::http::App;
use crate::http::error::{ApiError, Cause, MALFORMED_BODY};
use crate::http::response::no_content;
use crate::http::token::read_body;
use crate::slots::Slot;
use crate::spool::{Held, Spool, SpoolFile};

/// How long the next part of a body may take.
const PART_TIMEOUT: Duration = Duration::from_secs(30);
/// How fast a body must arrive on average, apart from one such pause.
const BYTES_PER_SEC_MIN: u64 = 1024;
/// Bytes that are written to the temporary file at once.
const WRITE_BYTES: usize = 256 * 1024;
/// The response to an import that was done before.
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const KEY_BYTES_MAX: usize = 255;
const FILE_NAME_CHARS_MAX: usize = 255;
/// How long removals stay visible to copies, unless the operator says otherwise.
pub const KEEP_REMOVALS_DAYS: u16 = 400;

static EXPECTED_TYPES: LazyLock<String> = LazyLock::new(|| {
    let types = Format::ALL.map(Format::media_type).map(|name| name.split(';').next().unwrap_or_default());
    format!("Send one of these as Content-Type: {}", types.join(", "))
});
const NO_ENCODING: &str = "Send the body without Content-Encoding";

/// A file that was received completely.
struct Received {
    format: Format,
    file: File,
    held: Held,
}

/// `POST /operator/v1/organisations/{name}/imports`.
pub(super) async fn create(
    State(app): State<App>,
    operator: Operator,
    PathNames(name): PathNames<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    operator.require_import_to(&name)?;
    let query = Query::parse(query.as_deref(), &["dry_run", "file", "mapping", "timezone"])?;
    let dry_run = query.flag("dry_run")?;
    let file = query.value("file", Reason::BadName, file_name)?;
    let format = match (format_of(&headers), &file) {
        (Err(refused @ ApiError::Refused(_, why)), Some(file)) if !dry_run => {
            record_other_type(&app, &operator, &name, (file, why)).await?;
            return Err(refused);
        }
        (format, _) => format?,
    };
    let timezone = query.value("timezone", Reason::BadTimezone, Zone::parse)?;
    let mapping = query.value("mapping", Reason::BadMapping, |text| Mapping::parse(text).ok())?;
    // The result of an earlier import would not be that of a dry run.
    let key = idempotency_key(&headers)?.filter(|_| !dry_run);
    // Fails for an unknown organisation before a long body is received.
    let org = operator.store.org_id(&name).await?;
    let slot = enter_queue(&app, org)?;
    let (content, held) = receive(&app.spool, slot, body, app.config.import_bytes_max).await?;
    let received = Received { format, file: content, held };
    let source = ImportSource { file, key, org: Some(org), ..ImportSource::default() };
    let read = ReadOptions { timezone, ..ReadOptions::default() };
    import(app, operator, name, received, (source, mapping, read), dry_run).await
}

/// Records a file of a type that is not imported, so that an operator sees it later. It waits as a file does.
async fn record_other_type(
    app: &App,
    operator: &Operator,
    name: &str,
    (file, why): (&str, &str),
) -> Result<(), ApiError> {
    let org = operator.store.org_id(name).await?;
    let _slot = enter_queue(app, org)?;
    let _turn = app.imports.wait_for_turn(org).await;
    operator.require_valid(app).await?;
    // As a watcher records it that imports into the database.
    let hint = unsupported_hint(Path::new(file)).map(|hint| format!("it {hint}"));
    let reason = vec![hint.unwrap_or_else(|| why.to_owned())];
    let source = ImportSource { file: Some(file.to_owned()), org: Some(org), ..ImportSource::default() };
    Ok(operator.store.record_rejected(name, source, reason, app.clock.now()).await?)
}

/// `PUT /operator/v1/organisations/{name}/batches/{batch_id}`.
pub(super) async fn put_batch(
    State(app): State<App>,
    operator: Operator,
    PathNames((name, id)): PathNames<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    operator.require_import_to(&name)?;
    Query::parse(query.as_deref(), &[])?;
    if format_of(&headers)? != Format::Json {
        return Err(ApiError::Refused(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Send the batch as application/json",
        ));
    }
    let org = operator.store.org_id(&name).await?;
    let slot = enter_queue(&app, org)?;
    let batch = read_body(body, RECORD_BYTES_MAX).await?;
    require_batch(&batch, &id)?;
    let file = app.spool.create(slot, batch.len() as u64);
    let write = |mut file: SpoolFile| file.write_all(&batch).and_then(|()| file.finish());
    let (file, held) = file.and_then(write).map_err(|error| unwritable(&error))?;
    let received = Received { format: Format::Json, file, held };
    let source = ImportSource { org: Some(org), ..ImportSource::default() };
    // It has the form of the API, which no mapping is for.
    let mapping = Some(Mapping::default());
    import(app, operator, name, received, (source, mapping, ReadOptions::default()), false).await
}

/// `DELETE /operator/v1/organisations/{name}/batches/{batch_id}`.
pub(super) async fn remove_batch(
    State(app): State<App>,
    operator: Operator,
    PathNames((name, id)): PathNames<(String, String)>,
) -> Result<Response, ApiError> {
    operator.require_admin()?;
    let id = BatchId::new(&id).ok_or(ApiError::NoSuchBatch)?;
    let now = app.clock.now();
    let since = now.plus_secs(-i64::from(KEEP_REMOVALS_DAYS) * 24 * 60 * 60);
    operator.store.remove_batches(&name, vec![id], since, now).await?;
    Ok(no_content())
}

/// `GET /operator/v1/organisations/{name}/imports`.
pub(super) async fn list(
    operator: Operator,
    PathNames(name): PathNames<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    operator.require_admin()?;
    let (after, limit) = Query::parse(query.as_deref(), &["after", "limit"])?.after()?;
    let entries = operator.store.imports(&name, ImportFilter::default(), after, limit + 1).await?;
    Ok(list_page(entries, limit, json::import))
}

fn enter_queue(app: &App, org: OrgId) -> Result<Slot, ApiError> {
    let busy = || ApiError::unavailable("too many imports at the same time");
    app.imports.enter(org).ok_or_else(busy)
}

fn format_of(headers: &HeaderMap) -> Result<Format, ApiError> {
    let refused = |text| ApiError::Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, text);
    if headers.get_all(header::CONTENT_ENCODING).iter().any(|encoding| encoding != "identity") {
        return Err(refused(NO_ENCODING));
    }
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let format = Format::from_media_type(media_type.unwrap_or_default());
    format.ok_or_else(|| refused(&EXPECTED_TYPES))
}

fn file_name(text: &str) -> Option<String> {
    let fits = !text.is_empty() && text.chars().count() <= FILE_NAME_CHARS_MAX;
    (fits && !text.chars().any(char::is_control)).then(|| text.to_owned())
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all("idempotency-key").iter();
    let (first, second) = (values.next(), values.next());
    let Some(value) = first else { return Ok(None) };
    let is_valid = |text: &&str| {
        !text.is_empty() && text.len() <= KEY_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match value.to_str().ok().filter(is_valid).filter(|_| second.is_none()) {
        Some(text) => Ok(Some(text.to_owned())),
        None => Err(ApiError::BadRequest("Send one Idempotency-Key of 1 to 255 visible ASCII characters")),
    }
}

/// Receives a body into an unnamed file.
async fn receive(
    spool: &Spool,
    slot: Slot,
    mut body: Body,
    bytes_max: u64,
) -> Result<(File, Held), ApiError> {
    let (started, mut bytes) = (Instant::now(), 0);
    let announced = body.size_hint().lower();
    if announced > bytes_max {
        return Err(ApiError::ImportTooLarge(bytes_max));
    }
    let mut file = spool.create(slot, announced).map_err(|error| unwritable(&error))?;
    let mut buffer = Vec::with_capacity(WRITE_BYTES);
    loop {
        let allowed = PART_TIMEOUT + Duration::from_secs(bytes / BYTES_PER_SEC_MIN);
        let deadline = (started + allowed).min(Instant::now() + PART_TIMEOUT);
        let part = tokio::time::timeout_at(deadline, body.frame()).await;
        let part = match part.map_err(|_| ApiError::BodyTimeout)? {
            None => Bytes::new(),
            Some(frame) => {
                let frame = frame.map_err(|_| ApiError::BadRequest(MALFORMED_BODY))?;
                match frame.into_data() {
                    Ok(data) if data.is_empty() => continue,
                    Ok(data) => data,
                    // Trailers.
                    Err(_) => continue,
                }
            }
        };
        let is_end = part.is_empty();
        bytes += part.len() as u64;
        if bytes > bytes_max {
            return Err(ApiError::ImportTooLarge(bytes_max));
        }
        buffer.extend_from_slice(&part);
        if is_end || buffer.len() >= WRITE_BYTES {
            let write = move || {
                file.write_all(&buffer)?;
                buffer.clear();
                Ok((file, buffer))
            };
            let written = tokio::task::spawn_blocking(write).await.map_err(|error| panicked(&error))?;
            (file, buffer) = written.map_err(|error| unwritable(&error))?;
        }
        if is_end {
            return file.finish().map_err(|error| unwritable(&error));
        }
    }
}

/// Imports a file that was received completely. A client that disconnects meanwhile does not stop it.
async fn import(
    app: App,
    operator: Operator,
    org: String,
    received: Received,
    (mut source, mapping, read): (ImportSource, Option<Mapping>, ReadOptions),
    dry_run: bool,
) -> Result<Response, ApiError> {
    let importing = tokio::spawn(async move {
        let Received { format, mut file, held } = received;
        let hashing = tokio::task::spawn_blocking(move || hash_file(&mut file).map(|hash| (file, hash)));
        let (file, hash) =
            hashing.await.map_err(|error| panicked(&error))?.map_err(|error| unwritable(&error))?;
        source.hash = Some(hash);
        let _turn = app.imports.wait_for_turn(held.slot.org()).await;
        // It may have been revoked while the file was received.
        operator.require_valid(&app).await?;
        let read = operator.store.read_options(&org, mapping, read).await?;
        let now = app.clock.now();
        let options = ImportOptions { source, now, dry_run, read };
        let imported =
            import_file(&operator.store, &org, (format, file), options, Arc::new(AtomicU64::new(0))).await;
        imported.map_err(ApiError::from)
    });
    let ImportResult { id, counts, warnings, messages, is_replay } =
        importing.await.map_err(|error| panicked(&error))??;
    let body = json!({
        "import_id": id, "new": counts.new, "corrected": counts.corrected, "unchanged": counts.unchanged,
        "warnings": warnings, "messages": messages,
    });
    let mut response = respond(StatusCode::OK, &body);
    if is_replay {
        response.headers_mut().insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// Checks that the JSON is one batch, with this id.
fn require_batch(json: &[u8], id: &str) -> Result<(), ApiError> {
    let invalid = |error| ApiError::InvalidImport(vec![LocatedError { location: Location::File, error }]);
    if !json.trim_ascii_start().starts_with(b"{") {
        return Err(invalid(FieldError::problem("", "not a JSON object; send one batch")));
    }
    let (mut found, mut batches) = (None, 0);
    let mut accept = |batch: batchscan_model::Batch, _| {
        batches += 1;
        found = Some(batch.batch_id.as_str().to_owned());
        ControlFlow::Continue(())
    };
    let source: Box<dyn Read> = Box::new(Cursor::new(json.to_vec()));
    read_text(Format::Json, source, &ReadOptions::default(), &AtomicU64::new(0), &mut accept)
        .map_err(|error| ApiError::from(ImportError::File(error)))?;
    match found {
        Some(found) if batches == 1 && found == id => Ok(()),
        Some(found) if batches == 1 => {
            Err(invalid(FieldError::new("batch_id", format!("{found:?}"), "the id in the path")))
        }
        _ => Err(invalid(FieldError::problem("", format!("{batches} batches; send one")))),
    }
}

impl From<ImportError> for ApiError {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Store(error) => error.into(),
            // The disk of the temporary file failed, so that the same import can succeed later.
            ImportError::File(ReadError::Io(error)) => {
                ApiError::unavailable(&format!("cannot read the file of an import: {error}"))
            }
            ImportError::File(ReadError::Invalid { errors, .. }) => ApiError::InvalidImport(errors),
            ImportError::File(error) => {
                let error = FieldError::problem("", error.to_string());
                ApiError::InvalidImport(vec![LocatedError { location: Location::File, error }])
            }
        }
    }
}

fn panicked(error: &tokio::task::JoinError) -> ApiError {
    ApiError::internal(error)
}

fn unwritable(error: &std::io::Error) -> ApiError {
    let cause = Cause::new(&format!("cannot write the temporary file of an import: {error}"));
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ApiError::NoSpace(cause),
        _ => ApiError::Unavailable(cause),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;
    use crate::slots::Slots;

    /// A part of this size each second, for two minutes.
    async fn receive_slowly(part_bytes: usize) -> Result<(File, Held), ApiError> {
        let parts = stream::unfold(0, move |sent| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            (sent < 120).then(|| (Ok::<_, Infallible>(vec![b'x'; part_bytes]), sent + 1))
        });
        let spool = Spool::new(std::env::temp_dir(), Some(0));
        let slot = Slots::new(1).acquire(OrgId(1)).unwrap();
        receive(&spool, slot, Body::from_stream(parts), u64::MAX).await
    }

    /// An import is repeated after a 503, but not after a 422.
    #[test]
    fn a_failing_disk_is_not_an_error_of_the_file() {
        let error = ImportError::File(ReadError::Io(ErrorKind::Other.into()));
        assert!(matches!(ApiError::from(error), ApiError::Unavailable(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_must_not_arrive_too_slowly() {
        assert!(receive_slowly(1_100).await.is_ok());
        assert!(matches!(receive_slowly(100).await, Err(ApiError::BodyTimeout)));
    }
}
