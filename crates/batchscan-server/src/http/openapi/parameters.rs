//! The parameters of batch requests, with their exact forms.

use super::node::{Node, object};

/// A year from 0001 on, no second 60, a fraction or none, and UTC (decision 013). The format says which days and times
/// there are. A space stands where a `+` was not escaped in a URL. No look-ahead: many programs' patterns have none.
const DATE: &str = concat!(
    r"^(\d{3}[1-9]|\d{2}[1-9]\d|\d[1-9]\d{2}|[1-9]\d{3})-\d{2}-\d{2}",
    r"T\d{2}:\d{2}:[0-5]\d(\.\d{1,9})?(Z|[+ ]00:00)$"
);

/// Every parameter, by the name that operations refer to it by.
pub(super) fn all() -> Node {
    object! {
        "StartDate" => date("start_date", "Batches that were made on or after this instant."),
        "EndDate" => date("end_date", "Batches that were made on or before this instant."),
        "NextToken" => next_token(),
        "IfNoneMatch" => if_none_match(),
    }
}

/// The parameters of these names.
pub(super) fn references(names: &[&str]) -> Node {
    let reference = |name: &&str| object! { "$ref" => format!("#/components/parameters/{name}") };
    Node::List(names.iter().map(reference).collect())
}

fn date(name: &str, meaning: &str) -> Node {
    object! {
        "name" => name,
        "in" => "query",
        "description" => format!(
            "{meaning} In UTC: YYYY-MM-DDTHH:MM:SS, a fraction of up to nine digits or none, then Z or +00:00. \
             An unescaped + arrives as a space, which is read as a +. At most once."
        ),
        // Examples of the schema, not of the parameter: Swagger UI would fill those in, and ask for a single second.
        "schema" => object! {
            "type" => "string",
            "format" => "date-time",
            "pattern" => DATE,
            "examples" => ["2026-01-31T08:00:00Z", "2026-01-31T08:00:00.250Z", "2026-01-31T08:00:00+00:00"],
        },
    }
}

fn next_token() -> Node {
    object! {
        "name" => "next_token",
        "in" => "query",
        "description" => "The cursor of the page before. It remembers the dates: leave them out, or repeat them \
                          unchanged. Under another name (cursor, page_token, nextToken, page, offset, after) it is \
                          refused.",
        "schema" => object! { "type" => "string", "minLength" => 1, "maxLength" => 512 },
    }
}

fn if_none_match() -> Node {
    object! {
        "name" => "If-None-Match",
        "in" => "header",
        "description" => "The ETag of an answer you have: while nothing has changed, the answer is 304 without a body.",
        "schema" => object! { "type" => "string" },
    }
}
