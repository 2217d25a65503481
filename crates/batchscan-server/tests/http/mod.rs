//! What the service does, seen from outside: every claim of the interface and of the decisions that HTTP shows.
//!
//! | part | holds |
//! |---|---|
//! | `app`, `reply`, `wire`, `sample`, `journal` | the service in process, its answers, raw connections, batches, the log |
//! | `contract`, `openapi`, `docs` | the OpenAPI document, which every answer is held against, and its pages |
//! | `auth_*`, `bearer`, `credentials`, `order` | tokens: how one is had, what it opens, when it dies |
//! | `dates`, `fields`, `windows`, `query` | what may be asked, and what a batch looks like |
//! | `paging`, `cursors`, `stream`, `walks`, `tenancy` | pages, v1's stream, data that changes meanwhile, tenants |
//! | `conditional`, `compression`, `cache`, `methods`, `cors` | HTTP's own features |
//! | `limits`, `protocol`, `timing`, `stopping`, `tls` | the edge |
//! | `operator`, `rate_limit` | what the operator sees and sets |
//! | `sqlite_failures`, `postgres_failures` | outages, each for one store alone |
//!
//! Held on every store: `http_on_sqlite` and `http_on_postgres` are the same claims over another database.

pub(crate) mod app;
pub(crate) mod contract;
pub(crate) mod journal;
pub(crate) mod reply;
pub(crate) mod sample;
pub(crate) mod wire;

mod auth_basic;
mod auth_form;
mod auth_refused;
mod bearer;
mod cache;
mod compression;
mod conditional;
mod cors;
mod credentials;
mod cursors;
mod dates;
mod docs;
mod fields;
mod limits;
mod methods;
mod openapi;
mod operator;
mod order;
mod pages;
mod paging;
mod protocol;
mod query;
mod rate_limit;
mod stopping;
mod stream;
mod tenancy;
mod timing;
mod tls;
mod walks;
mod windows;
