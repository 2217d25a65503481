//! Reads responses: bodies within a size limit, and the meaning of error statuses.

use std::ops::Deref;
use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::{Response, StatusCode};
use serde_json::Value;

use crate::Error;

/// Limit for tokens and error bodies, which have a few hundred bytes.
pub(crate) const SMALL_BYTES_MAX: usize = 256 * 1024;
/// Limit for a page: 10,000 batches of 20 KiB each.
pub(crate) const PAGE_BYTES_MAX: usize = 256 * 1024 * 1024;

pub(crate) async fn read_body(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, Error> {
    let length = response.content_length().and_then(|length| usize::try_from(length).ok());
    let mut body = Vec::with_capacity(length.unwrap_or(0).min(bytes_max));
    while let Some(chunk) = read_chunk(&mut response).await? {
        if body.len() + chunk.len() > bytes_max {
            let reason = format!("the response is larger than {} KiB", bytes_max >> 10);
            return Err(Error::unexpected_response(response.url(), reason));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Reads the next part of a body; `None` at its end.
pub(crate) async fn read_chunk(
    response: &mut Response,
) -> Result<Option<impl Deref<Target = [u8]> + use<>>, Error> {
    response.chunk().await.map_err(|error| Error::from_http(&error, response.url()))
}

/// The error for a status that is not a success. 401 depends on the endpoint and is not handled here.
pub(crate) async fn status_error(response: Response) -> Error {
    let (status, url) = (response.status(), response.url().clone());
    let retry_after = retry_after(&response);
    let detail = read_detail(response).await;
    match status.as_u16() {
        410 if detail.is_some() => Error::PositionGone,
        429 | 502 | 503 | 504 => Error::Unavailable { status, detail, retry_after },
        500.. => Error::Rejected { status, detail },
        400.. if detail.is_some() && status != StatusCode::NOT_FOUND => Error::Rejected { status, detail },
        _ => Error::unexpected_response(&url, format!("it returned {status}")),
    }
}

/// Reads the `detail` of an error response, if it has the form that the API defines.
pub(crate) async fn read_detail(response: Response) -> Option<String> {
    parse_detail(&read_body(response, SMALL_BYTES_MAX).await.ok()?)
}

/// The `detail` in the body of an error response.
pub(crate) fn parse_detail(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    Some(match body.get("detail")? {
        Value::String(text) => text.clone(),
        Value::Array(entries) => entries.iter().map(field_error).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    })
}

/// One entry of a 422: `query.start_date: Input should have timezone info`.
fn field_error(entry: &Value) -> String {
    let loc = entry["loc"].as_array().map(Vec::as_slice).unwrap_or_default();
    let path: Vec<&str> = loc.iter().filter_map(Value::as_str).collect();
    format!("{}: {}", path.join("."), entry["msg"].as_str().unwrap_or("not valid"))
}

/// `Retry-After` in seconds. A date is ignored, because clocks differ.
fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}
