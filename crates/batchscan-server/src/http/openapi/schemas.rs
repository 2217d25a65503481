//! The other schemas: the page, the token, the bodies of errors and of health.

use super::batch;
use super::node::{Node, object};

/// Every schema, by name.
pub(super) fn all() -> Node {
    object! {
        "Batch" => batch::schema(),
        "BatchPage" => page(),
        "TokenRequest" => token_request(),
        "Token" => token(),
        "Error" => error(),
        "TokenError" => token_error(),
        "Fault" => fault(),
        "InvalidQuery" => invalid_query(),
        "InvalidTokenRequest" => invalid_token_request(),
        "Alive" => status("alive"),
        "Ready" => status("ready"),
    }
}

/// `{"$ref": …}` to a schema of this name.
pub(super) fn reference(name: &str) -> Node {
    object! { "$ref" => format!("#/components/schemas/{name}") }
}

fn page() -> Node {
    object! {
        "type" => "object",
        "description" => "A page of batches, oldest first.",
        "required" => ["data", "next_token"],
        "properties" => object! {
            "data" => object! {
                "type" => "array",
                "items" => reference("Batch"),
                "description" => "The batches of this page. Their number is the operator's to set; it is 1000 otherwise.",
            },
            "next_token" => object! {
                "type" => ["string", "null"],
                "minLength" => 1,
                "maxLength" => 512,
                "description" => "The cursor of the next page; null on the last one.",
                "examples" => ["AbCdEf0123456789_-"],
            },
        },
    }
}

fn token_request() -> Node {
    let credential = |description: &str, example: &str| {
        object! {
            "type" => "string",
            "minLength" => 1,
            "description" => description,
            "examples" => [example],
        }
    };
    object! {
        "type" => "object",
        "description" => "Each field once. Others are ignored.",
        "required" => ["client_id", "client_secret", "grant_type"],
        "properties" => object! {
            "client_id" => credential("The client id you were given.", "bs_6Qy0cVgJ0xXhT3mD"),
            "client_secret" => credential("The client secret that came with it.", "YOUR-CLIENT-SECRET")
                .with("format", Some("password")),
            "grant_type" => object! {
                "type" => "string",
                "const" => "client_credentials",
                "description" => "The one kind of grant there is.",
            },
        },
    }
}

fn token() -> Node {
    object! {
        "type" => "object",
        "required" => ["access_token", "token_type", "expires_in"],
        "properties" => object! {
            "access_token" => object! {
                "type" => "string",
                "minLength" => 1,
                "description" => "Goes into the header Authorization, behind the word Bearer.",
                "examples" => ["AbCdEf0123456789.AbCdEf0123456789"],
            },
            "token_type" => object! { "type" => "string", "const" => "bearer" },
            "expires_in" => object! {
                "type" => "integer",
                "minimum" => 1,
                "description" => "For how many seconds it is good.",
                "examples" => [3600],
            },
        },
    }
}

fn detail() -> Node {
    object! { "type" => "string", "description" => "What is wrong, for people." }
}

fn error() -> Node {
    object! {
        "type" => "object",
        "required" => ["detail"],
        "properties" => object! { "detail" => detail() },
    }
}

/// The members of RFC 6749 beside `detail` (decision 005).
fn oauth_members(detail: Node, words: Vec<&str>) -> Node {
    object! {
        "detail" => detail,
        "error" => object! {
            "type" => "string",
            "enum" => words,
            "description" => "The word that RFC 6749 has for it.",
        },
        "error_description" => object! { "type" => "string", "description" => "The same as detail, as one text." },
    }
}

fn token_error() -> Node {
    object! {
        "type" => "object",
        "required" => ["detail", "error", "error_description"],
        "properties" => oauth_members(detail(), vec!["invalid_client"]),
    }
}

fn fault() -> Node {
    object! {
        "type" => "object",
        "description" => "One field that was refused. What was sent is never repeated.",
        "required" => ["type", "loc", "msg"],
        "properties" => object! {
            "type" => object! {
                "type" => "string",
                "description" => "What kind of fault, in pydantic's words: missing, literal_error, timezone_aware, \
                                  timezone_offset, datetime_from_date_parsing, value_error.",
                "examples" => ["missing", "timezone_aware"],
            },
            "loc" => object! {
                "type" => "array",
                "items" => object! { "type" => "string" },
                "minItems" => 2,
                "description" => "Where it stands: the part of the request, body or query, then the field's name.",
                "examples" => [["query", "start_date"]],
            },
            "msg" => object! { "type" => "string", "description" => "What is wrong with it, for people." },
        },
    }
}

fn faults() -> Node {
    object! {
        "type" => "array",
        "items" => reference("Fault"),
        "minItems" => 1,
        "description" => "One entry for each field at fault.",
    }
}

fn invalid_query() -> Node {
    object! {
        "type" => "object",
        "required" => ["detail"],
        "properties" => object! { "detail" => faults() },
    }
}

fn invalid_token_request() -> Node {
    object! {
        "type" => "object",
        "required" => ["detail", "error", "error_description"],
        "properties" => oauth_members(faults(), vec!["invalid_request", "unsupported_grant_type"]),
    }
}

fn status(word: &str) -> Node {
    object! {
        "type" => "object",
        "required" => ["status"],
        "properties" => object! { "status" => object! { "type" => "string", "const" => word } },
    }
}
