//! `batchscan openapi`.

use batchscan_server::config::Config;
use batchscan_server::http::openapi::document;
use batchscan_server::operator::DOCUMENT;

use crate::args::Openapi;
use crate::terminal::print;

pub(crate) fn run(command: Openapi) -> anyhow::Result<()> {
    if command.operator {
        return print(DOCUMENT);
    }
    let config = Config { public_url: command.public_url, metrics_in_public: false, ..Config::default() };
    print(&document(&config))
}
