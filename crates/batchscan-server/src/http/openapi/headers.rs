//! The header fields of answers, and which answers carry them.

use super::node::{Node, object};

/// A header field that the document tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    RequestId,
    NoStore,
    Revalidated,
    PublicRevalidated,
    Pragma,
    ETag,
    Vary,
    VaryPublic,
    ContentEncoding,
    Allow,
    AllowUnlessPreflight,
    RetryAfter,
    BearerChallenge,
    BasicChallenge,
    Deprecation,
    Sunset,
}

impl Header {
    const ALL: [Header; 16] = [
        Header::RequestId,
        Header::NoStore,
        Header::Revalidated,
        Header::PublicRevalidated,
        Header::Pragma,
        Header::ETag,
        Header::Vary,
        Header::VaryPublic,
        Header::ContentEncoding,
        Header::Allow,
        Header::AllowUnlessPreflight,
        Header::RetryAfter,
        Header::BearerChallenge,
        Header::BasicChallenge,
        Header::Deprecation,
        Header::Sunset,
    ];

    /// Its name on the wire.
    fn name(self) -> &'static str {
        match self {
            Header::RequestId => "x-request-id",
            Header::NoStore | Header::Revalidated | Header::PublicRevalidated => "Cache-Control",
            Header::Pragma => "Pragma",
            Header::ETag => "ETag",
            Header::Vary | Header::VaryPublic => "Vary",
            Header::ContentEncoding => "Content-Encoding",
            Header::Allow | Header::AllowUnlessPreflight => "Allow",
            Header::RetryAfter => "Retry-After",
            Header::BearerChallenge | Header::BasicChallenge => "WWW-Authenticate",
            Header::Deprecation => "Deprecation",
            Header::Sunset => "Sunset",
        }
    }

    fn schema(self) -> Node {
        let text = || object! { "type" => "string" };
        let matching = |pattern: &str| text().with("pattern", Some(pattern));
        match self {
            Header::RequestId => matching("^[A-Za-z0-9._-]{1,40}$"),
            Header::NoStore => text().with("const", Some("no-store")),
            Header::Revalidated => text().with("const", Some("private, no-cache")),
            Header::PublicRevalidated | Header::Pragma => text().with("const", Some("no-cache")),
            Header::ETag => matching("^W/\"[0-9a-f.-]+\"$"),
            // Where the operator names origins, Origin stands there too.
            Header::Vary => matching("^Authorization, Accept-Encoding"),
            Header::VaryPublic => matching("^Accept-Encoding"),
            Header::ContentEncoding => text().with("enum", Some(["gzip", "zstd"])),
            Header::Allow | Header::AllowUnlessPreflight => matching("^[A-Z]+(, [A-Z]+)*$"),
            Header::RetryAfter => object! { "type" => "integer", "minimum" => 1 },
            Header::BearerChallenge => matching("^Bearer( error=\"invalid_token\")?$"),
            Header::BasicChallenge => matching("^Basic realm="),
            Header::Deprecation => matching("^@-?[0-9]+$"),
            Header::Sunset => text(),
        }
    }

    fn description(self) -> &'static str {
        match self {
            Header::RequestId => "The request's id, as in the service's log: tell it to the operator.",
            Header::NoStore => "Not to be kept.",
            Header::Revalidated => "Kept by the client alone, and asked for again each time.",
            Header::PublicRevalidated => "To be asked for again each time.",
            Header::Pragma => "The same for old caches.",
            Header::ETag => "Names this answer to this question: send it back as If-None-Match.",
            Header::Vary | Header::VaryPublic => "What the answer depends on besides its address.",
            Header::ContentEncoding => "How the body is compressed, where Accept-Encoding allowed it.",
            Header::Allow => "The methods that this path knows.",
            Header::AllowUnlessPreflight => {
                "The methods that this path knows; a browser that asks for CORS is told by CORS headers instead."
            }
            Header::RetryAfter => "How many seconds to wait before trying again; 3 to 5 with a 503.",
            Header::BearerChallenge => "What to send; with an error if a token was sent and is not good.",
            Header::BasicChallenge => "What to send; only where credentials came by HTTP Basic.",
            Header::Deprecation => {
                "When v1 is deprecated (RFC 9745); only where the operator set an end to it."
            }
            Header::Sunset => "When v1 ends (RFC 8594); only where the operator set an end to it.",
        }
    }

    /// Whether it is on every answer that is said to carry it.
    fn is_required(self) -> bool {
        !matches!(
            self,
            Header::AllowUnlessPreflight
                | Header::ContentEncoding
                | Header::BasicChallenge
                | Header::Deprecation
                | Header::Sunset
        )
    }

    fn component(self) -> Node {
        let described = object! { "description" => self.description() };
        described.with("required", self.is_required().then_some(true)).with("schema", Some(self.schema()))
    }
}

/// Every header field, by the name that answers refer to it by.
pub(super) fn all() -> Node {
    Node::Object(Header::ALL.map(|header| (format!("{header:?}"), header.component())).to_vec())
}

/// The header fields of an answer.
pub(super) fn references(headers: &[Header]) -> Node {
    let reference = |header: &Header| {
        let target = object! { "$ref" => format!("#/components/headers/{header:?}") };
        (header.name().to_owned(), target)
    };
    Node::Object(headers.iter().map(reference).collect())
}
