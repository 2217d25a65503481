//! Decides when to renew a token. Knows nothing about HTTP.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

/// A token is renewed before it expires: by a tenth of its lifetime, within these bounds. At least one second, because
/// services count whole seconds.
const MARGIN: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(60);
/// Longer lifetimes are cut, so that adding them to an instant cannot overflow.
const LIFETIME_SECS_MAX: u64 = 10 * 365 * 86_400;

/// The response of the auth endpoint. The API promises only the token.
#[derive(Deserialize)]
pub(crate) struct TokenResponse {
    access_token: String,
    expires_in: Option<serde_json::Value>,
}

#[derive(Clone)]
pub(crate) struct Token {
    text: String,
    renew_at: Option<Instant>,
}

impl Token {
    pub(crate) fn new(response: TokenResponse, requested_at: Instant) -> Self {
        // Some services send the seconds as text. An unreadable value counts as missing.
        let secs = response.expires_in.and_then(|value| match value {
            serde_json::Value::String(text) => text.parse().ok(),
            other => other.as_u64(),
        });
        let renew_at = secs.map(|secs: u64| {
            let lifetime = Duration::from_secs(secs.min(LIFETIME_SECS_MAX));
            requested_at + lifetime.saturating_sub((lifetime / 10).clamp(*MARGIN.start(), *MARGIN.end()))
        });
        Self { text: response.access_token, renew_at }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn expire(&mut self) {
        self.renew_at = Some(Instant::now());
    }

    pub(crate) fn is_fresh(&self, now: Instant) -> bool {
        self.renew_at.is_none_or(|renew_at| now < renew_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_renewed_before_it_expires() {
        let decade = 10 * 365 * 86_400 - 60;
        for (expires_in, renewed_after) in [
            ("3600", Some(3_540)),
            ("\"10\"", Some(9)),
            ("3", Some(2)),
            ("1", Some(0)),
            ("0", Some(0)),
            ("18446744073709551615", Some(decade)),
            ("null", None),
            ("-1", None),
            ("\"soon\"", None),
            ("{}", None),
            ("1.5", None),
        ] {
            let json = format!(r#"{{"access_token":"t","expires_in":{expires_in}}}"#);
            let now = Instant::now();
            let token = Token::new(serde_json::from_str(&json).unwrap(), now);
            assert_eq!(token.renew_at, renewed_after.map(|secs| now + Duration::from_secs(secs)), "{json}");
        }
    }
}
