//! The rules, one table per file.

mod auth;
mod batches;
mod bearer;
mod changes;
mod dates;
mod errors;
mod fields;
mod http;
mod paging;
mod ranges;
mod rule;
mod token;

pub(crate) use rule::Rule;

/// Every rule, in the order of the run. The rules on all responses come last.
pub(crate) fn all() -> impl Iterator<Item = &'static Rule> {
    let tables = [
        auth::RULES,
        token::RULES,
        bearer::RULES,
        batches::RULES,
        fields::RULES,
        dates::RULES,
        ranges::RULES,
        paging::RULES,
        changes::RULES,
        http::RULES,
        errors::RULES,
    ];
    tables.into_iter().flatten()
}
