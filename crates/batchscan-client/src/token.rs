//! A token, and when it is too old to be sent. Knows nothing of HTTP.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

/// A token is renewed a tenth of its life before its end, within these bounds. Services that count in whole seconds
/// end it up to one early.
const MARGIN: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(60);
/// A life that is longer is as good as endless; it keeps sums of times in range.
const LIFE_SECS_MAX: u64 = 10 * 365 * 86_400;

/// The answer of the auth endpoint. The interface promises the token alone.
#[derive(Deserialize)]
pub(crate) struct TokenAnswer {
    access_token: String,
    expires_in: Option<serde_json::Value>,
}

/// A token with the end of its usefulness.
#[derive(Clone)]
pub(crate) struct Token {
    text: String,
    renew_at: Option<Instant>,
}

impl Token {
    /// `asked_at` is when it was asked for: its life began after that.
    pub(crate) fn new(answer: TokenAnswer, asked_at: Instant) -> Self {
        // Some services write the seconds as text; what cannot be read is as if it were not there.
        let secs = answer.expires_in.and_then(|value| match value {
            serde_json::Value::String(text) => text.parse().ok(),
            other => other.as_u64(),
        });
        let renew_at = secs.map(|secs: u64| {
            let life = Duration::from_secs(secs.min(LIFE_SECS_MAX));
            asked_at + life.saturating_sub((life / 10).clamp(*MARGIN.start(), *MARGIN.end()))
        });
        Self { text: answer.access_token, renew_at }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Marks it as one that the service does not take.
    pub(crate) fn refuse(&mut self) {
        self.renew_at = Some(Instant::now());
    }

    pub(crate) fn is_fresh(&self, now: Instant) -> bool {
        self.renew_at.is_none_or(|renew_at| now < renew_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(expires_in: &str) -> Token {
        let answer = serde_json::from_str(&format!(r#"{{"access_token":"t","expires_in":{expires_in}}}"#));
        Token::new(answer.unwrap(), Instant::now())
    }

    fn is_fresh_after(token: &Token, secs: u64) -> bool {
        token.is_fresh(Instant::now() + Duration::from_secs(secs))
    }

    #[test]
    fn a_token_is_renewed_before_its_end() {
        let hour = token("3600");
        assert!(is_fresh_after(&hour, 3_530) && !is_fresh_after(&hour, 3_541));
        let short = token("\"10\"");
        assert!(is_fresh_after(&short, 8) && !is_fresh_after(&short, 9));
        let shorter = token("3");
        assert!(is_fresh_after(&shorter, 1) && !is_fresh_after(&shorter, 2));
        assert!(!is_fresh_after(&token("1"), 0) && !is_fresh_after(&token("0"), 0));
    }

    #[test]
    fn a_token_without_a_readable_end_is_used_until_it_is_refused() {
        for odd in ["null", "-1", "\"soon\"", "{}", "1.5"] {
            assert!(is_fresh_after(&token(odd), 1_000_000), "{odd}");
        }
        assert!(is_fresh_after(&token("18446744073709551615"), 86_400));
    }
}
