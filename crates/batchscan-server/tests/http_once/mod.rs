//! HTTP tests that no store can influence. They run once, on SQLite.

mod auth_basic;
mod auth_form;
mod bearer;
mod compression;
mod cors;
mod dashboard;
mod disconnects;
mod docs;
mod export;
mod limits;
mod methods;
mod openapi;
mod operator;
mod operator_api;
mod protocol;
mod rate_limit;
mod stopping;
mod timing;
mod tls;
