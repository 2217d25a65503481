//! One module per command: each calls the libraries and prints the result.

mod context;
mod self_signed;

pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod batch;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod copy;
pub(crate) mod credential;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod import;
mod import_messages;
mod import_preview;
pub(crate) mod imports;
pub(crate) mod key;
pub(crate) mod list;
pub(crate) mod login;
pub(crate) mod mirror;
pub(crate) mod openapi;
pub(crate) mod operator;
pub(crate) mod org;
pub(crate) mod pull;
pub(crate) mod restore;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod status;
pub(crate) mod summary;
pub(crate) mod watch;
