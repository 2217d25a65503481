//! Compression of answers (decision 032): which encoding a client takes, and the encoders.

use std::io::Write;

use axum::http::{HeaderMap, HeaderValue, header};
use bytes::Bytes;
use zstd::stream::write::Encoder as ZstdEncoder;

use batchscan_store::deflate::{Deflated, GzipBody, TEXT_BYTES_MIN, gzip};
use batchscan_store::{Form, PageText};

/// Made on the fly for one answer: seven times smaller at 1.5 ms a page.
const ZSTD_LEVEL: i32 = 1;

/// How a body is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Encoding {
    Plain,
    Gzip,
    Zstd,
}

impl Encoding {
    /// What the client likes best; of equals, what serves it best.
    pub(super) fn accepted(headers: &HeaderMap) -> Self {
        Self::accepted_among(&[Encoding::Zstd, Encoding::Gzip], headers)
    }

    /// The same, of those that there are.
    pub(super) fn accepted_among(offered: &[Encoding], headers: &HeaderMap) -> Self {
        let mut best = (0, Encoding::Plain);
        let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        for item in values.flat_map(|value| value.split(',')) {
            let (name, weight) =
                item.split_once(';').map_or((item, 1_000), |(name, q)| (name, thousandths(q)));
            let encoding = match name.trim().to_ascii_lowercase().as_str() {
                "zstd" => Encoding::Zstd,
                "gzip" | "x-gzip" => Encoding::Gzip,
                _ => continue,
            };
            let is_better = weight > best.0 || (weight == best.0 && weight > 0 && encoding == Encoding::Zstd);
            if is_better && offered.contains(&encoding) {
                best = (weight, encoding);
            }
        }
        best.1
    }

    /// The value of `Content-Encoding`; none for a plain body.
    pub(super) fn header(self) -> Option<HeaderValue> {
        match self {
            Encoding::Plain => None,
            Encoding::Gzip => Some(HeaderValue::from_static("gzip")),
            Encoding::Zstd => Some(HeaderValue::from_static("zstd")),
        }
    }

    /// What to ask the store for: gzip it may have already.
    pub(super) fn form(self) -> Form {
        match self {
            Encoding::Gzip => Form::Deflated,
            Encoding::Plain | Encoding::Zstd => Form::Plain,
        }
    }

    /// This encoding, unless a body of that size is better sent plain.
    pub(super) fn for_size(self, bytes: usize) -> Self {
        if bytes < TEXT_BYTES_MIN { Encoding::Plain } else { self }
    }

    /// A whole body at once.
    pub(super) fn encode(self, plain: &Bytes) -> std::io::Result<Bytes> {
        match self {
            Encoding::Plain => Ok(plain.clone()),
            Encoding::Gzip => Ok(Bytes::from(gzip(plain))),
            Encoding::Zstd => zstd::bulk::compress(plain, ZSTD_LEVEL).map(Bytes::from),
        }
    }
}

/// Encodes a body chunk by chunk.
pub(super) enum Encoder {
    Plain,
    Gzip(GzipBody),
    Zstd(ZstdEncoder<'static, Vec<u8>>),
}

impl Encoder {
    /// An encoder at the start of a body.
    pub(super) fn new(encoding: Encoding) -> std::io::Result<Self> {
        Ok(match encoding {
            Encoding::Plain => Encoder::Plain,
            Encoding::Gzip => Encoder::Gzip(GzipBody::default()),
            Encoding::Zstd => Encoder::Zstd(ZstdEncoder::new(Vec::new(), ZSTD_LEVEL)?),
        })
    }

    /// What can be sent after this chunk; it may be nothing yet.
    pub(super) fn push(&mut self, chunk: PageText) -> std::io::Result<Vec<u8>> {
        match (self, chunk) {
            (Encoder::Gzip(body), PageText::Deflated(piece)) => Ok(body.push(&piece)),
            (Encoder::Gzip(body), PageText::Plain(text)) => Ok(body.push(&Deflated::of(&text))),
            (Encoder::Plain, PageText::Plain(text)) => Ok(text),
            (Encoder::Zstd(encoder), PageText::Plain(text)) => {
                encoder.write_all(&text).map(|()| std::mem::take(encoder.get_mut()))
            }
            (Encoder::Plain | Encoder::Zstd(_), PageText::Deflated(_)) => Err(unasked()),
        }
    }

    /// The end of the body.
    pub(super) fn finish(self) -> std::io::Result<Vec<u8>> {
        match self {
            Encoder::Plain => Ok(Vec::new()),
            Encoder::Gzip(body) => Ok(body.finish()),
            Encoder::Zstd(encoder) => encoder.finish(),
        }
    }
}

/// A store gives compressed text to those alone who ask for it.
fn unasked() -> std::io::Error {
    std::io::Error::other("the store gave compressed text that was not asked for")
}

/// A quality value such as `q=0.8`, in thousandths. What cannot be read is taken as 1, as most servers do.
fn thousandths(parameter: &str) -> u32 {
    let value = parameter.trim().strip_prefix(['q', 'Q']).and_then(|rest| rest.strip_prefix('='));
    let value = value.and_then(|text| text.trim().parse::<f32>().ok());
    // Between 0 and 1 by the clamp, so the cast only drops the fraction.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0..=1000 just before"
    )]
    value.map_or(1_000, |q| (q.clamp(0.0, 1.0) * 1_000.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(value: &'static str) -> Encoding {
        Encoding::accepted(&HeaderMap::from_iter([(
            header::ACCEPT_ENCODING,
            HeaderValue::from_static(value),
        )]))
    }

    /// Decision 032.
    #[test]
    fn the_client_chooses_and_zstd_wins_a_tie() {
        assert_eq!(accepted("gzip, deflate, br, zstd"), Encoding::Zstd);
        assert_eq!(accepted("gzip"), Encoding::Gzip);
        assert_eq!(accepted("gzip;q=1.0, zstd;q=0.5"), Encoding::Gzip);
        assert_eq!(accepted("gzip;q=0, zstd;q=0"), Encoding::Plain);
        assert_eq!(accepted("identity"), Encoding::Plain);
        assert_eq!(accepted("br;q=1, *"), Encoding::Plain);
    }

    /// Decision 032.
    #[test]
    fn what_is_not_there_is_not_chosen() {
        let value = HeaderValue::from_static("gzip, zstd");
        let asked = HeaderMap::from_iter([(header::ACCEPT_ENCODING, value)]);
        assert_eq!(Encoding::accepted_among(&[Encoding::Gzip], &asked), Encoding::Gzip);
        assert_eq!(Encoding::accepted_among(&[], &asked), Encoding::Plain);
    }
}
