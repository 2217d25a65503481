//! Fuzzing of what a request contains: nothing causes a panic, and nothing that we did not issue is accepted. `cargo
//! test` replays the corpus (docs/TESTING.md).

use axum::http::{HeaderMap, HeaderValue, header};
use batchscan_model::{OrgId, UtcInstant};
use batchscan_store::{KeyPurpose, ServiceKey};
use bolero::check;

use super::authorization::{basic_credentials, bearer_token};
use super::query::{PageQuery, RangeQuery};
use super::token::TokenRequest;
use crate::auth::{Signer, Token};
use crate::cipher::Cipher;
use crate::cursor::Cursor;

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

fn cipher() -> Cipher<Cursor> {
    let created_at = UtcInstant::EPOCH;
    let key = ServiceKey { kid: "k".into(), purpose: KeyPurpose::Cursor, bytes: [7; 32], created_at };
    Cipher::new(&[key])
}

fn authorization(bytes: &[u8]) -> HeaderMap {
    let value = HeaderValue::from_bytes(bytes).ok();
    value.map(|value| (header::AUTHORIZATION, value)).into_iter().collect()
}

#[test]
fn a_cursor() {
    let cipher = cipher();
    check!().for_each(|bytes: &[u8]| assert_eq!(cipher.decrypt(OrgId(1), text(bytes)), None));
}

#[test]
fn a_token() {
    let key = [Signer::new("k", &[7; 32])];
    check!().for_each(|bytes: &[u8]| assert!(Token::verify(text(bytes), &key).is_err()));
}

#[test]
fn a_form() {
    check!().for_each(|bytes: &[u8]| drop(TokenRequest::parse(&HeaderMap::new(), bytes)));
}

#[test]
fn a_query() {
    let cipher = cipher();
    check!().for_each(|bytes: &[u8]| {
        let _ = (RangeQuery::parse(text(bytes)), PageQuery::parse(text(bytes), &cipher, OrgId(1)));
    });
}

#[test]
fn an_authorization_header() {
    check!().for_each(|bytes: &[u8]| {
        let headers = authorization(bytes);
        assert!(basic_credentials(&headers).is_none() || bearer_token(&headers).is_none());
    });
}
